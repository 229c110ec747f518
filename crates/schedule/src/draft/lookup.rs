//! Finding statements, loops and tensors by the names that a schedule uses, and their places in the tree.

use tilewright_ir::{Access, TensorId, VarId};

use super::{Draft, Legal, Node, StatementId, statements_in};
use crate::illegal::Illegal;
use crate::step::{LoopName, StatementName};

impl Draft<'_> {
    /// The statement of this name.
    pub fn find_statement(&self, name: &StatementName) -> Legal<StatementId> {
        let present: Vec<StatementId> =
            statements_in(&self.setup).into_iter().chain(statements_in(&self.body)).collect();
        present.iter().copied().find(|id| self.statement(*id).name == *name).ok_or_else(|| {
            Illegal::UnknownStatement {
                name: name.to_string(),
                known: present.iter().map(|id| self.statement(*id).name.to_string()).collect(),
            }
        })
    }

    /// The loop of this name around its statement: the innermost, if another statement's loop has the same.
    pub fn find_loop(&self, name: &LoopName) -> Legal<VarId> {
        let statement = self.find_statement(&name.statement)?;
        let path = self.path(statement);
        let found = path.iter().rev().copied().find(|var| self.loop_of(*var).name == name.name);
        found.ok_or_else(|| match self.gone.iter().rev().find(|(gone, _)| *gone == name.to_string()) {
            Some((gone, by)) => Illegal::GoneLoop { name: gone.clone(), by: by.clone() },
            None => Illegal::UnknownLoop {
                statement: name.statement.to_string(),
                name: name.name.clone(),
                known: path.iter().map(|var| self.loop_of(*var).name.clone()).collect(),
            },
        })
    }

    /// The loops around a statement, outermost first.
    pub fn path(&self, statement: StatementId) -> Vec<VarId> {
        let mut path = Vec::new();
        let _ = path_to(&self.body, statement, &mut path) || path_to(&self.setup, statement, &mut path);
        path
    }

    /// The loops around a loop, outermost first, without itself.
    pub fn loops_around(&self, var: VarId) -> Vec<VarId> {
        let first = statements_in(self.body_of(var)).first().copied();
        let mut path = first.map(|statement| self.path(statement)).unwrap_or_default();
        let at = path.iter().position(|other| *other == var).unwrap_or(path.len());
        path.truncate(at);
        path
    }

    /// The loops that run the iterations of this statement itself.
    pub fn own_loops(&self, statement: StatementId) -> Vec<VarId> {
        self.path(statement).into_iter().filter(|var| self.loop_of(*var).owner == Some(statement)).collect()
    }

    /// The tensor or buffer of this name.
    pub fn find_tensor(&self, name: &str) -> Legal<TensorId> {
        let present = || self.buffers.iter().enumerate().filter(|(_, buffer)| !buffer.gone);
        let found = present().find(|(_, buffer)| buffer.buffer.name == name);
        found.map(|(at, _)| TensorId(at as u32)).ok_or_else(|| Illegal::UnknownTensor {
            name: name.to_string(),
            known: present().map(|(_, buffer)| buffer.buffer.name.clone()).collect(),
        })
    }

    /// What a loop runs.
    pub fn body_of(&self, var: VarId) -> &[Node] {
        find_body(&self.body, var)
            .or_else(|| find_body(&self.setup, var))
            .expect("a loop that was looked up is in the tree")
    }

    /// What a loop runs, to be changed.
    pub fn body_of_mut(&mut self, var: VarId) -> &mut Vec<Node> {
        let nodes = if find_body(&self.body, var).is_some() { &mut self.body } else { &mut self.setup };
        find_body_mut(nodes, var).expect("a loop that was looked up is in the tree")
    }

    /// Puts another node in the place of a loop's.
    pub fn replace_loop(&mut self, var: VarId, by: &mut dyn FnMut(Vec<Node>) -> Vec<Node>) {
        let _ = replace_in(&mut self.body, var, by) || replace_in(&mut self.setup, var, by);
    }

    /// `STATEMENT.LOOP`, for messages.
    pub fn loop_text(&self, var: VarId) -> String {
        let own = self.loop_of(var);
        let inside = || statements_in(self.body_of(var)).first().copied();
        match own.owner.or_else(inside) {
            Some(statement) => format!("{}.{}", self.statement(statement).name, own.name),
            None => own.name.clone(),
        }
    }

    /// Whether the loop's statement writes the tensor of this name.
    pub fn writes(&self, at: &LoopName, tensor: &str) -> Legal<bool> {
        let statement = self.statement(self.find_statement(&at.statement)?);
        Ok(self.buffers[statement.target.tensor.index()].buffer.name == tensor)
    }

    /// Refuses a name for a part of a loop that another loop around the same statement has.
    pub fn expect_free_loop(&self, target: &LoopName, name: &str) -> Legal<()> {
        let path = self.path(self.find_statement(&target.statement)?);
        let taken = path.iter().any(|var| self.loop_of(*var).name == name && target.name != name);
        if taken { Err(Illegal::NameTaken(name.to_string())) } else { Ok(()) }
    }

    /// Whether a buffer belongs to the iterations of a loop.
    pub fn has_attachments(&self, var: VarId) -> bool {
        let accumulates = |id: &StatementId| {
            self.statement(*id).accumulator.as_ref().is_some_and(|accumulator| accumulator.at == var)
        };
        self.buffers.iter().any(|buffer| buffer.room == Some(var))
            || statements_in(self.body_of(var)).iter().any(accumulates)
            || self.prefetches.iter().any(|prefetch| prefetch.at == var || prefetch.of == var)
    }

    /// The statements of a forest that write a tensor.
    pub fn writers(&self, nodes: &[Node], tensor: TensorId) -> Vec<StatementId> {
        let writes = |id: &StatementId| self.statement(*id).target.tensor == tensor;
        statements_in(nodes).into_iter().filter(writes).collect()
    }

    /// The accesses by which statements of a forest read a tensor.
    pub fn readers(&self, nodes: &[Node], tensor: TensorId) -> Vec<(StatementId, Access)> {
        let mut found = Vec::new();
        for id in statements_in(nodes) {
            let reads = self.statement(id).reads();
            found.extend(reads.into_iter().filter(|read| read.tensor == tensor).map(|read| (id, read)));
        }
        found
    }

    /// Refuses a name that a tensor, buffer or statement has.
    pub fn expect_free(&self, name: &str) -> Legal<()> {
        let taken = self.buffers.iter().any(|buffer| buffer.buffer.name == name)
            || self.statements.iter().any(|statement| {
                statement.name.tensor == name
                    || statement.accumulator.as_ref().is_some_and(|buffer| buffer.name == name)
            });
        if taken { Err(Illegal::NameTaken(name.to_string())) } else { Ok(()) }
    }
}

fn path_to(nodes: &[Node], statement: StatementId, path: &mut Vec<VarId>) -> bool {
    nodes.iter().any(|node| match node {
        Node::Statement(id) => *id == statement,
        Node::Loop(var, body) => {
            path.push(*var);
            let found = path_to(body, statement, path);
            if !found {
                path.pop();
            }
            found
        }
    })
}

fn find_body(nodes: &[Node], wanted: VarId) -> Option<&[Node]> {
    nodes.iter().find_map(|node| match node {
        Node::Loop(var, body) if *var == wanted => Some(body.as_slice()),
        Node::Loop(_, body) => find_body(body, wanted),
        Node::Statement(_) => None,
    })
}

fn find_body_mut(nodes: &mut [Node], wanted: VarId) -> Option<&mut Vec<Node>> {
    nodes.iter_mut().find_map(|node| match node {
        Node::Loop(var, body) => {
            if *var == wanted {
                Some(body)
            } else {
                find_body_mut(body, wanted)
            }
        }
        Node::Statement(_) => None,
    })
}

fn replace_in(nodes: &mut Vec<Node>, wanted: VarId, by: &mut dyn FnMut(Vec<Node>) -> Vec<Node>) -> bool {
    for at in 0..nodes.len() {
        let Node::Loop(var, body) = &mut nodes[at] else { continue };
        if *var == wanted {
            let new = by(std::mem::take(body));
            nodes.splice(at..=at, new);
            return true;
        }
        if replace_in(body, wanted, by) {
            return true;
        }
    }
    false
}
