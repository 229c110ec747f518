//! Finds statements, loops and tensors of a draft by the names that a schedule uses, the loops
//! around them, and the statements that write or read a tensor.

use tilewright_ir::nest::{Access, BufferId, LoopVarId};

use super::{Draft, Legal, LoopRole, Node, Parent, StatementId};
use crate::illegal::Illegal;
use crate::step::{LoopName, StatementName};

impl Draft<'_> {
    /// The statement of this name.
    pub fn find_statement(&self, name: &StatementName) -> Legal<StatementId> {
        let users = self.tensor_named(&name.tensor).map(|id| self.buffers[id.index()].users.as_slice());
        let has_name = |id: &StatementId| self.is_present(*id) && self.statement(*id).name == *name;
        users.unwrap_or_default().iter().copied().find(has_name).ok_or_else(|| {
            let present = self.statements_in(&self.setup).into_iter().chain(self.statements_in(&self.body));
            Illegal::UnknownStatement {
                name: name.to_string(),
                known: present.map(|id| self.statement(id).name.to_string()).collect(),
            }
        })
    }

    /// Returns true when a statement is in the tree, that is, not inlined.
    pub fn is_present(&self, statement: StatementId) -> bool {
        self.parent(Node::Statement(statement)) != Parent::None
    }

    /// Finds the loop of this name around its statement. If loops of several statements have the
    /// name, the innermost wins.
    pub fn find_loop(&self, name: &LoopName) -> Legal<LoopVarId> {
        let statement = self.find_statement(&name.statement)?;
        let path = self.path(statement);
        let is_named = |var: &LoopVarId| self.loop_of(*var).name == name.name && !name.name.is_empty();
        let found = path.iter().rev().copied().find(is_named);
        found.ok_or_else(|| {
            let text = name.to_string();
            match self.replaced_loops.iter().rev().find(|(gone, _)| *gone == text) {
                Some((gone, by)) => Illegal::ReplacedLoop { name: gone.clone(), by: by.clone() },
                None => Illegal::UnknownLoop {
                    statement: name.statement.to_string(),
                    name: name.name.clone(),
                    known: path
                        .iter()
                        .map(|var| self.loop_of(*var).name.clone())
                        .filter(|name| !name.is_empty())
                        .collect(),
                },
            }
        })
    }

    /// The loops around a statement, outermost first.
    pub fn path(&self, statement: StatementId) -> Vec<LoopVarId> {
        self.loops_around_node(Node::Statement(statement))
    }

    /// The loops around a loop, outermost first, without the loop itself.
    pub fn loops_around(&self, var: LoopVarId) -> Vec<LoopVarId> {
        self.loops_around_node(Node::Loop(var))
    }

    /// The loops that run the iterations of this statement itself.
    pub fn loops_owned_by(&self, statement: StatementId) -> Vec<LoopVarId> {
        self.path(statement).into_iter().filter(|var| self.loop_of(*var).owner == Some(statement)).collect()
    }

    /// Returns true when a statement reduces the iterations of a loop into one element, or into
    /// elements that data chooses. A scatter that sets its whole tensor to the neutral element at
    /// once reduces all of its iterations into one tensor.
    pub fn is_reduced_by(&self, var: LoopVarId, statement: StatementId) -> bool {
        let own = self.loop_of(var);
        let is_one_tensor = || {
            self.is_scatter(statement)
                && !self.statement(statement).is_partial
                && !self.resets_rows(statement)
        };
        own.owner == Some(statement) && (own.role == LoopRole::Reduction || is_one_tensor())
    }

    /// The tensor or buffer of this name.
    pub fn find_tensor(&self, name: &str) -> Legal<BufferId> {
        self.tensor_named(name).ok_or_else(|| {
            let present = self.buffers.iter().filter(|buffer| !buffer.is_removed);
            Illegal::UnknownTensor {
                name: name.to_string(),
                known: present.map(|buffer| buffer.buffer.name.clone()).collect(),
            }
        })
    }

    fn tensor_named(&self, name: &str) -> Option<BufferId> {
        let added = || {
            let added = self.program.tensors.len()..self.buffers.len();
            added.rev().find(|at| self.buffers[*at].buffer.name == name).map(|at| BufferId(at as u32))
        };
        let found = self.tensors.get(name).copied().or_else(added);
        found.filter(|id| !self.buffers[id.index()].is_removed)
    }

    /// The name of a loop, as steps use it.
    pub fn loop_name(&self, var: LoopVarId) -> LoopName {
        let own = self.loop_of(var);
        let statement = own.owner.or_else(|| self.first_statement(self.body_of(var)));
        let statement = statement.expect("a loop has a statement inside");
        self.statement(statement).name.loop_named(own.name.clone())
    }

    /// The name `STATEMENT.LOOP` of a loop, for messages.
    pub fn qualified_loop_name(&self, var: LoopVarId) -> String {
        let own = self.loop_of(var);
        let inside = || self.first_statement(self.body_of(var));
        match own.owner.or_else(inside) {
            Some(statement) => format!("{}.{}", self.statement(statement).name, own.name),
            None => own.name.clone(),
        }
    }

    /// Returns true when the loop's statement writes the tensor of this name.
    pub fn statement_writes(&self, at: &LoopName, tensor: &str) -> Legal<bool> {
        let statement = self.statement(self.find_statement(&at.statement)?);
        Ok(self.buffers[statement.target.tensor.index()].buffer.name == tensor)
    }

    /// Refuses a name for a part of a loop if another loop around the same statement has it.
    pub fn expect_unused_loop_name(&self, target: &LoopName, name: &str) -> Legal<()> {
        let path = self.path(self.find_statement(&target.statement)?);
        let taken = path.iter().any(|var| self.loop_of(*var).name == name && target.name != name);
        if taken { Err(Illegal::NameTaken(name.to_string())) } else { Ok(()) }
    }

    /// Returns true when a buffer, an accumulator or a prefetch is attached to the iterations of a
    /// loop.
    pub fn has_attachments(&self, var: LoopVarId) -> bool {
        let inside = self.statements_in(self.body_of(var));
        !self.allocations_at(var, &inside).is_empty()
            || inside.iter().any(|id| self.accumulates_at(*id) == Some(var))
            || self.prefetches.iter().any(|prefetch| prefetch.at == var || prefetch.of == var)
    }

    /// The statements inside a parent that write or read a tensor, in order.
    pub fn users(&self, inside: Parent, tensor: BufferId) -> Vec<StatementId> {
        self.users_that(inside, tensor, |_| true)
    }

    /// The statements inside a parent that write a tensor, in order.
    pub fn writers(&self, inside: Parent, tensor: BufferId) -> Vec<StatementId> {
        self.users_that(inside, tensor, |id| self.statement(id).target.tensor == tensor)
    }

    /// Returns true when other statements write or read the result of a statement, or it reads its
    /// own result, in the part of an iteration of `at` in which the statement runs.
    pub fn is_used_in_same_branch(&self, id: StatementId, at: LoopVarId) -> bool {
        let (around, tensor) = (Parent::Loop(at), self.statement(id).target.tensor);
        let own = self.child_containing(around, id);
        let is_beside = |other: &StatementId| self.child_containing(around, *other) == own;
        let writers = self.writers(around, tensor).into_iter().filter(is_beside).count();
        writers > 1 || self.readers(around, tensor).iter().any(|(reader, _)| is_beside(reader))
    }

    fn users_that(
        &self,
        inside: Parent,
        tensor: BufferId,
        test: impl Fn(StatementId) -> bool,
    ) -> Vec<StatementId> {
        let users = self.buffers[tensor.index()].users.iter().copied().filter(|id| test(*id));
        let mut users: Vec<StatementId> =
            users.filter(|id| self.child_containing(inside, *id).is_some()).collect();
        if users.len() > 1 {
            users.sort_by_cached_key(|id| self.execution_position(*id));
        }
        users
    }

    /// The accesses by which statements inside a parent read a tensor.
    pub fn readers(&self, inside: Parent, tensor: BufferId) -> Vec<(StatementId, Access)> {
        let mut found = Vec::new();
        for id in self.users(inside, tensor) {
            let reads = self.statement(id).reads();
            found.extend(reads.into_iter().filter(|read| read.tensor == tensor).map(|read| (id, read)));
        }
        found
    }

    /// Refuses a name that a tensor, a buffer or a statement already has.
    pub fn expect_unused_name(&self, name: &str) -> Legal<()> {
        let taken = self.buffers.iter().any(|buffer| buffer.buffer.name == name)
            || self.statements.iter().any(|statement| {
                statement.name.tensor == name
                    || statement.accumulator.as_ref().is_some_and(|buffer| buffer.name == name)
            });
        if taken { Err(Illegal::NameTaken(name.to_string())) } else { Ok(()) }
    }
}
