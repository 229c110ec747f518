//! Defines the [`Draft`]: the loops of a program while steps are applied to them.
//!
//! A [`Draft`] is a [`mod@tree`] of loops and statements over three tables: loops, statements and
//! buffers. A loop's index in its table is the id of its variable, so subscripts name loops
//! directly. Every loop runs from 0 to its extent. The extent is a number, or an expression in the
//! loops around it that gives the exact number of iterations: splitting 10 iterations by 4 gives an
//! inner loop of `min(4, 10 - 4*outer)`. So no step needs a guard, and lowering decides how a
//! remainder runs. Where the target needs fixed trip counts, the inner loop has 4 iterations and a
//! guard.
//!
//! Steps change the tree through the functions of this module. [`mod@crate::lower`] turns the final
//! draft into a [`tilewright_ir::LoopNest`]. Each loop records the statement that it belongs to: a
//! producer that is computed inside a consumer's reduction runs anew in every iteration and is not
//! part of that reduction.

pub(crate) mod borders;
mod build;
mod changes;
pub(crate) mod comparison;
pub(crate) mod instance;
mod lookup;
pub(crate) mod multiples;
mod prefetch;
mod reduction;
pub(crate) mod region;
pub(crate) mod rewrite;
pub(crate) mod scan;
mod scatter;
pub(crate) mod simplify;
mod table;
mod tree;
pub(crate) mod value_size;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tilewright_ir::ids::InNest;
use tilewright_ir::nest::{Access, Atom, Buffer, BufferId, Expr, IndexExpr, LoopKind, LoopVarId, Scope};
use tilewright_ir::{Origin, Program, ReduceOp, Role, TensorId, Update};
use tilewright_target::Capabilities;

use crate::illegal::Illegal;
use crate::step::StatementName;

pub(crate) use instance::Instance;
use multiples::Multiple;
pub(crate) use prefetch::{CacheLines, Prefetch};
use scan::ScanRole;
use simplify::Ranges;
use table::Table;
use tree::Links;
pub(crate) use tree::{Node, Parent};

/// The result of a step.
pub(crate) type Legal<T> = Result<T, Illegal>;

/// The id of a statement in a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StatementId(pub usize);

/// A program with its loops, while the steps of a schedule transform them.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    pub program: &'a Program,
    /// The capabilities of the target.
    pub capabilities: Capabilities,
    pub buffers: Table<DraftBuffer>,
    pub loops: Table<Loop>,
    pub statements: Table<Statement>,
    /// Nodes that run once, to prepare constants.
    pub setup: Vec<Node>,
    pub body: Vec<Node>,
    pub prefetches: Vec<Prefetch>,
    /// The pipelined loops, each with its number of stages: copies run `stages - 1` iterations
    /// ahead.
    pub pipelines: Vec<(LoopVarId, i64)>,
    pub kept_parts: Vec<KeptParts>,
    links: Links,
    /// The names of loops that steps have replaced, each with the step that did so. For messages.
    pub replaced_loops: Table<(String, String)>,
    /// The buffers of the program's tensors, by name.
    tensors: Arc<HashMap<String, BufferId>>,
    /// For each tensor of the program, the last statement that writes it.
    last_writers: Arc<Vec<Option<usize>>>,
}

/// A buffer, and the loop at which it is allocated.
#[derive(Clone, Debug)]
pub(crate) struct DraftBuffer {
    pub buffer: Buffer,
    /// The loop in whose iterations a scratch buffer is allocated; none if it is allocated once
    /// outside all loops.
    pub allocated_at: Option<LoopVarId>,
    /// Whether some elements may never be written, because the region that the buffer holds is
    /// shorter at the end of the tensor.
    pub may_be_partial: bool,
    /// Whether all elements except the padding of `pad` are written, even those that stand for no
    /// element of the tensor.
    pub is_fully_written: bool,
    /// The number of elements at the end of the last dimension that are padding, which nothing
    /// writes.
    pub pad: i64,
    /// Whether the buffer was inlined or is otherwise unused.
    pub is_removed: bool,
    /// Whether the copy of a `promote` fills the buffer.
    pub is_staged: bool,
    /// The statements that write or read the buffer, in the order of their ids.
    users: Vec<StatementId>,
}

/// A buffer that keeps what earlier iterations of these loops have computed, for later ones.
#[derive(Clone, Debug)]
pub(crate) struct KeptParts {
    pub tensor: BufferId,
    /// The loops inside the one in whose iterations the buffer exists, up to the loop at which the
    /// tensor is computed, outermost first.
    pub loops: Vec<LoopVarId>,
}

/// A loop from 0 to its extent.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    /// The name for steps; empty for a loop that only carries guards, which no step names.
    pub name: String,
    pub extent: IndexExpr,
    pub kind: LoopKind,
    pub role: LoopRole,
    /// The statement whose iterations the loop runs; none for an ordered loop, which may have
    /// several statements inside.
    pub owner: Option<StatementId>,
    /// Whether no step has changed the loop: it still runs over the whole range of its variable.
    pub is_unchanged: bool,
    /// Whether the loop computes only the rows that earlier iterations of a loop around it have
    /// not: its extent is smaller in later iterations.
    pub slides: bool,
    /// Whether later iterations use what earlier ones have computed, so that no step may change
    /// their order.
    pub keeps_order: bool,
    /// Conditions for an iteration to run: an iteration in which one of these expressions is
    /// negative does nothing.
    pub guards: Vec<IndexExpr>,
}

/// How the iterations of a loop relate to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopRole {
    /// The iterations are independent: they write different elements.
    Spatial,
    /// The iterations are reduced into the same elements.
    Reduction,
    /// The iterations must run in order.
    Ordered,
}

/// One store, with the decisions that steps have made about it.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub name: StatementName,
    /// The element that the statement writes.
    pub target: Access,
    pub update: Update,
    /// The value, in the compute type of the target.
    pub value: Expr,
    /// The buffer that accumulates the statement's result before it is stored to the target.
    pub accumulator: Option<Accumulator>,
    /// Whether the statement writes the partial totals of an `rfactor`, which no other statement
    /// writes.
    pub is_partial: bool,
    /// The program's variables in terms of the loops, each with its number of values.
    pub vars: Vec<(IndexExpr, IndexExpr)>,
    /// Whether the statement is computed at a loop of a consumer, and only the part that this
    /// consumer needs. A variable may then not take all its values.
    pub is_narrowed: bool,
    /// The program instances that the statement executes: its own, and those that were inlined. A
    /// copy has none.
    pub instances: Vec<Instance>,
    /// The task of the statement in a recurrence that is computed in parts, if it has one.
    pub scan: Option<ScanRole>,
}

/// A buffer in which one iteration of the loop `at` accumulates a statement's results.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    pub name: String,
    pub at: LoopVarId,
    pub in_registers: bool,
}

impl Statement {
    /// If the statement is a reduction, its operator and whether elements are first set to the
    /// neutral element.
    pub fn reduction(&self) -> Option<(ReduceOp, bool)> {
        match self.update {
            Update::Reduce { op, reset } => Some((op, reset)),
            Update::Assign => None,
        }
    }

    /// All accesses that the statement reads, including those inside its subscripts.
    pub fn reads(&self) -> Vec<Access> {
        let mut found = Vec::new();
        self.visit_reads(&mut |access| found.push(access.clone()));
        found
    }

    fn visit_reads<'s>(&'s self, visit: &mut dyn FnMut(&'s Access)) {
        self.value.visit_reads(visit);
        self.target.indices.iter().for_each(|index| index.visit_reads(visit));
    }

    /// The numbers that the statement requires to be divisible before it reads anything, both as
    /// written and as simplified by the ranges of its loops.
    pub fn required_multiples(&self, ranges: &Ranges) -> Vec<Multiple<InNest>> {
        if self.target.indices.iter().any(IndexExpr::has_data) {
            return Vec::new();
        }
        let required = multiples::multiples(&self.value).into_iter();
        required
            .flat_map(|own| [Multiple { number: ranges.simplify(&own.number), divisor: own.divisor }, own])
            .collect()
    }

    /// Returns true when the statement reads or writes a tensor.
    pub fn uses(&self, tensor: BufferId) -> bool {
        self.tensors().contains(&tensor)
    }

    /// The tensors that the statement writes and reads.
    fn tensors(&self) -> BTreeSet<BufferId> {
        let mut tensors = BTreeSet::from([self.target.tensor]);
        self.visit_reads(&mut |access| _ = tensors.insert(access.tensor));
        tensors
    }

    /// Rewrites every subscript and index value.
    pub fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
        self.value.map_indices(map);
        for index in self.target.indices.iter_mut().chain(self.vars.iter_mut().map(|(value, _)| value)) {
            *index = map(index);
        }
        for instance in &mut self.instances {
            instance.map_indices(map);
        }
        if let Some(scan) = &mut self.scan {
            scan.map_indices(map);
        }
    }
}

/// An access to a buffer that has no place in the program's text.
pub(crate) fn access(tensor: BufferId, indices: Vec<IndexExpr>) -> Access {
    Access { tensor, indices, origin: Origin::default() }
}

impl Draft<'_> {
    /// Returns true when the caller promises not to change a tensor.
    pub fn is_constant(&self, tensor: BufferId) -> bool {
        let Scope::Argument(id) = self.buffers[tensor.index()].buffer.scope else { return false };
        self.program.tensor(id).role == Role::Input { constant: true }
    }

    /// The buffer of a tensor of the program. A draft begins with one buffer for each tensor, in
    /// the order of the program, and nothing ever removes an entry from the table of buffers.
    pub fn buffer_of(tensor: TensorId) -> BufferId {
        BufferId(tensor.0)
    }

    /// The tensor of the program whose buffer this is: the inverse of `buffer_of`. None for a
    /// buffer that a step has added.
    pub fn tensor_of(&self, buffer: BufferId) -> Option<TensorId> {
        (buffer.index() < self.program.tensors.len()).then_some(TensorId(buffer.0))
    }

    /// The loop behind a variable.
    pub fn loop_of(&self, var: LoopVarId) -> &Loop {
        &self.loops[var.index()]
    }

    /// The statement behind an id.
    pub fn statement(&self, id: StatementId) -> &Statement {
        &self.statements[id.0]
    }

    /// Changes a statement, and updates which statements use which tensor.
    pub fn change<R>(&mut self, id: StatementId, change: impl FnOnce(&mut Statement) -> R) -> R {
        let before = self.statement(id).tensors();
        let result = change(&mut self.statements[id.0]);
        let after = self.statement(id).tensors();
        for tensor in before.difference(&after) {
            self.buffers[tensor.index()].users.retain(|user| *user != id);
        }
        for tensor in after.difference(&before) {
            self.add_user(*tensor, id);
        }
        result
    }

    fn add_user(&mut self, tensor: BufferId, id: StatementId) {
        let users = &mut self.buffers[tensor.index()].users;
        let at = users.partition_point(|user| *user < id);
        users.insert(at, id);
    }

    /// Adds a loop. The caller must place its node in the tree.
    pub fn add_loop(&mut self, new: Loop) -> LoopVarId {
        self.loops.push(new);
        self.links.add_loop();
        LoopVarId(self.loops.len() as u32 - 1)
    }

    /// Marks loops as no longer the ones of the program.
    pub fn mark_changed(&mut self, loops: &[LoopVarId]) {
        for var in loops.iter().map(|var| var.index()) {
            if self.loops[var].is_unchanged {
                self.loops[var].is_unchanged = false;
            }
        }
    }

    /// Adds a statement. The caller must place its node in the tree.
    pub fn add_statement(&mut self, new: Statement) -> StatementId {
        let id = StatementId(self.statements.len());
        for tensor in new.tensors() {
            self.add_user(tensor, id);
        }
        self.statements.push(new);
        self.links.add_statement();
        id
    }

    /// Adds a buffer.
    pub fn add_buffer(&mut self, buffer: Buffer, allocated_at: Option<LoopVarId>) -> Legal<BufferId> {
        let extents = buffer.shape.iter().map(|extent| *extent as u128);
        let elements = extents.fold(1, u128::saturating_mul);
        let bytes = elements.saturating_mul(buffer.dtype.bytes() as u128);
        if bytes > i64::MAX as u128 / 2 {
            return Err(Illegal::TooLarge { name: buffer.name, bytes });
        }
        let (ragged, filled, gone, staged) = (false, false, false, false);
        self.buffers.push(DraftBuffer {
            buffer,
            allocated_at,
            may_be_partial: ragged,
            is_fully_written: filled,
            pad: 0,
            is_removed: gone,
            is_staged: staged,
            users: Vec::new(),
        });
        Ok(BufferId(self.buffers.len() as u32 - 1))
    }

    /// Replaces a variable by an expression, in everything inside `nodes`.
    pub fn substitute(&mut self, nodes: &[Node], var: LoopVarId, by: &IndexExpr) {
        let mut replace = |atom: &Atom| (*atom == Atom::Var(var)).then(|| by.clone());
        for node in self.descendants(nodes) {
            match node {
                Node::Loop(inner) => {
                    let own = &mut self.loops[inner.index()];
                    own.extent = own.extent.substitute(&mut replace);
                    own.guards.iter_mut().for_each(|guard| *guard = guard.substitute(&mut replace));
                }
                Node::Statement(id) => {
                    self.change(id, |own| own.map_indices(&mut |index| index.substitute(&mut replace)))
                }
            }
        }
    }

    /// The buffers that these statements write and that are allocated in the iterations of a loop.
    pub fn allocations_at(&self, var: LoopVarId, statements: &[StatementId]) -> BTreeSet<BufferId> {
        let written = statements.iter().map(|id| self.statement(*id).target.tensor);
        written.filter(|tensor| self.buffers[tensor.index()].allocated_at == Some(var)).collect()
    }

    /// Moves the allocation of buffers from one loop to another that now has the same iterations.
    pub fn move_allocations(&mut self, from: LoopVarId, to: LoopVarId) {
        for tensor in self.allocations_at(from, &self.statements_in(self.body_of(to))) {
            self.buffers[tensor.index()].allocated_at = Some(to);
        }
    }

    /// Moves buffers, accumulators and prefetches from one loop to another that now has the same
    /// iterations.
    pub fn move_attachments(&mut self, from: LoopVarId, to: LoopVarId) {
        self.move_allocations(from, to);
        for id in self.statements_in(self.body_of(to)) {
            if self.accumulates_at(id) == Some(from)
                && let Some(accumulator) = &mut self.statements[id.0].accumulator
            {
                accumulator.at = to;
            }
        }
        for prefetch in &mut self.prefetches {
            for place in [&mut prefetch.at, &mut prefetch.of] {
                *place = if *place == from { to } else { *place };
            }
        }
    }
}

/// Replaces one variable by another in an expression.
pub(crate) fn replace_var(expr: &IndexExpr, from: LoopVarId, to: LoopVarId) -> IndexExpr {
    expr.substitute(&mut |atom| (*atom == Atom::Var(from)).then(|| IndexExpr::var(to)))
}
