//! The loops while steps are applied to them.
//!
//! A [`Draft`] is a tree of loops and statements over three tables: loops, statements and buffers. A loop's place
//! in its table is its variable's id, so subscripts name loops directly. Every loop runs from 0 to its extent,
//! which is a number, or such an expression in the loops around it that the sum of all iterations is right:
//! splitting 10 iterations by 4 gives an inner loop of `min(4, 10 - 4*outer)`. So no step needs a guard, and
//! lowering decides how a remainder is run.
//!
//! Steps change the tree through the functions of this module; [`mod@crate::lower`] turns the end result into a
//! [`tilewright_ir::LoopNest`]. Which statement a loop belongs to is kept with the loop: a producer that is computed
//! inside a consumer's reduction runs anew in every iteration, it is not part of that reduction.

mod build;
mod lookup;
mod prefetch;
pub(crate) mod region;
pub(crate) mod rewrite;
pub(crate) mod simplify;

use std::sync::Arc;

use tilewright_ir::nest::{Buffer, LoopKind};
use tilewright_ir::{
    Access, Expr, ExprKind, IndexExpr, Origin, Program, ReduceOp, TensorId, Update, VarId, index::Atom,
};
use tilewright_target::Cpu;

use crate::illegal::Illegal;
use crate::step::StatementName;

pub(crate) use prefetch::{Lines, Prefetch};

/// The result of a step.
pub(crate) type Legal<T> = Result<T, Illegal>;

/// Points at a statement of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StatementId(pub usize);

/// A program with its loops, on the way from the order of the text to that of the schedule.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    pub program: &'a Program,
    pub target: &'a Cpu,
    pub buffers: Vec<DraftBuffer>,
    pub loops: Vec<Loop>,
    /// Shared between drafts until one changes: planning makes many that differ little.
    pub statements: Vec<Arc<Statement>>,
    /// Runs once, for constants.
    pub setup: Vec<Node>,
    pub body: Vec<Node>,
    pub prefetches: Vec<Prefetch>,
    /// Loops that steps have replaced, with the step: for messages.
    pub gone: Vec<(String, String)>,
}

/// A buffer, and where its room is made.
#[derive(Clone, Debug)]
pub(crate) struct DraftBuffer {
    pub buffer: Buffer,
    /// For scratch memory: in every iteration of this loop, or once outside all.
    pub room: Option<VarId>,
    /// Some of its elements may never be written, because it holds the last part of something.
    pub ragged: bool,
    /// Inlined, or otherwise without use.
    pub gone: bool,
    /// Filled by the copy of a `promote`.
    pub staged: bool,
}

/// A loop from 0 to its extent.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub name: String,
    pub extent: IndexExpr,
    pub kind: LoopKind,
    pub role: LoopRole,
    /// The statement whose iterations it runs; none for an ordered loop, which may have several inside.
    pub owner: Option<StatementId>,
    /// Whether it still is what the program says: its variable's whole range, untouched.
    pub pristine: bool,
}

/// What the iterations of a loop have to do with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoopRole {
    /// Nothing: they write different elements.
    Spatial,
    /// They are reduced into the same elements.
    Reduction,
    /// They must come in order.
    Ordered,
}

/// A loop with what it runs, or a statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    Loop(VarId, Vec<Node>),
    Statement(StatementId),
}

/// One store, with what is decided about it.
#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub name: StatementName,
    /// The element it writes.
    pub target: Access,
    pub update: Update,
    /// The value, of the compute type of the target.
    pub value: Expr,
    /// Where its result is gathered before it goes to the target.
    pub accumulator: Option<Accumulator>,
    /// It writes totals of an `rfactor`, which are its own.
    pub is_partial: bool,
    /// The program's variables, in terms of the loops, and how many values each has.
    pub vars: Vec<(IndexExpr, IndexExpr)>,
}

/// A buffer in which one iteration of a loop gathers a statement's results.
#[derive(Clone, Debug)]
pub(crate) struct Accumulator {
    pub name: String,
    pub at: VarId,
    pub in_registers: bool,
}

impl Statement {
    /// The operator and whether elements are first set to its neutral element, if the statement reduces.
    pub fn reduction(&self) -> Option<(ReduceOp, bool)> {
        match self.update {
            Update::Reduce { op, reset } => Some((op, reset)),
            Update::Assign => None,
        }
    }

    /// Everything it reads, its subscripts' data included.
    pub fn reads(&self) -> Vec<Access> {
        let mut found = Vec::new();
        collect_reads(&self.value, &mut found);
        for index in &self.target.indices {
            collect_index_reads(index, &mut found);
        }
        found
    }

    /// Rewrites every subscript and index value.
    pub fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
        self.value.map_indices(map);
        for index in self.target.indices.iter_mut().chain(self.vars.iter_mut().map(|(value, _)| value)) {
            *index = map(index);
        }
    }
}

/// The accesses in an expression, those inside subscripts included.
pub(crate) fn collect_reads(expr: &Expr, found: &mut Vec<Access>) {
    match &expr.kind {
        ExprKind::Load(access) => {
            access.indices.iter().for_each(|index| collect_index_reads(index, found));
            found.push(access.clone());
        }
        ExprKind::Index(index) => collect_index_reads(index, found),
        _ => expr.operands().iter().for_each(|operand| collect_reads(operand, found)),
    }
}

fn collect_index_reads(index: &IndexExpr, found: &mut Vec<Access>) {
    // `visit` goes into the subscripts of data too, so each access is taken where it is the data's own value.
    index.visit(&mut |atom| {
        if let Atom::Data(data) = atom {
            own_loads(&data.value, found);
        }
    });
}

fn own_loads(expr: &Expr, found: &mut Vec<Access>) {
    match &expr.kind {
        ExprKind::Load(access) => found.push(access.clone()),
        _ => expr.operands().iter().for_each(|operand| own_loads(operand, found)),
    }
}

/// An access of a buffer that no text stands for.
pub(crate) fn access(tensor: TensorId, indices: Vec<IndexExpr>) -> Access {
    Access { tensor, indices, origin: Origin::default() }
}

impl Draft<'_> {
    /// The loop behind a variable.
    pub fn loop_of(&self, var: VarId) -> &Loop {
        &self.loops[var.index()]
    }

    /// The statement behind an id.
    pub fn statement(&self, id: StatementId) -> &Statement {
        &self.statements[id.0]
    }

    /// The statement behind an id, to be changed.
    pub fn statement_mut(&mut self, id: StatementId) -> &mut Statement {
        Arc::make_mut(&mut self.statements[id.0])
    }

    /// A new loop; its node is for the caller to place.
    pub fn add_loop(&mut self, new: Loop) -> VarId {
        self.loops.push(new);
        VarId(self.loops.len() as u32 - 1)
    }

    /// A new statement; its node is for the caller to place.
    pub fn add_statement(&mut self, new: Statement) -> StatementId {
        self.statements.push(Arc::new(new));
        StatementId(self.statements.len() - 1)
    }

    /// A new buffer.
    pub fn add_buffer(&mut self, buffer: Buffer, room: Option<VarId>) -> Legal<TensorId> {
        let extents = buffer.shape.iter().map(|extent| *extent as u128);
        let elements = extents.fold(1, u128::saturating_mul);
        let bytes = elements.saturating_mul(buffer.dtype.bytes() as u128);
        if bytes > i64::MAX as u128 / 2 {
            return Err(Illegal::TooLarge { name: buffer.name, bytes });
        }
        self.buffers.push(DraftBuffer { buffer, room, ragged: false, gone: false, staged: false });
        Ok(TensorId(self.buffers.len() as u32 - 1))
    }

    /// Puts an expression in a variable's place, in everything inside `nodes`.
    pub fn substitute(&mut self, nodes: &[Node], var: VarId, by: &IndexExpr) {
        let mut replace = |atom: &Atom| (*atom == Atom::Var(var)).then(|| by.clone());
        for (inner, statement) in contents(nodes) {
            if let Some(inner) = inner {
                let extent = self.loops[inner.index()].extent.substitute(&mut replace);
                self.loops[inner.index()].extent = extent;
            }
            if let Some(id) = statement {
                self.statement_mut(id).map_indices(&mut |index| index.substitute(&mut replace));
            }
        }
    }

    /// Moves the room of buffers from one loop's iterations to another's.
    pub fn move_rooms(&mut self, from: VarId, to: VarId) {
        for buffer in self.buffers.iter_mut().filter(|buffer| buffer.room == Some(from)) {
            buffer.room = Some(to);
        }
    }

    /// Moves what is fixed to one loop's iterations to another's.
    pub fn move_attachments(&mut self, from: VarId, to: VarId) {
        self.move_rooms(from, to);
        for statement in &mut self.statements {
            if statement.accumulator.as_ref().is_some_and(|accumulator| accumulator.at == from)
                && let Some(accumulator) = &mut Arc::make_mut(statement).accumulator
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

/// Every loop and statement in a forest, outermost first and in order.
pub(crate) fn contents(nodes: &[Node]) -> Vec<(Option<VarId>, Option<StatementId>)> {
    let mut found = Vec::new();
    for node in nodes {
        match node {
            Node::Loop(var, body) => {
                found.push((Some(*var), None));
                found.extend(contents(body));
            }
            Node::Statement(id) => found.push((None, Some(*id))),
        }
    }
    found
}

/// The statements in a forest, in order.
pub(crate) fn statements_in(nodes: &[Node]) -> Vec<StatementId> {
    contents(nodes).into_iter().filter_map(|(_, statement)| statement).collect()
}

/// The loops in a forest.
pub(crate) fn loops_in(nodes: &[Node]) -> Vec<VarId> {
    contents(nodes).into_iter().filter_map(|(var, _)| var).collect()
}

/// The expression with one variable in the place of another.
pub(crate) fn rename(expr: &IndexExpr, from: VarId, to: VarId) -> IndexExpr {
    expr.substitute(&mut |atom| (*atom == Atom::Var(from)).then(|| IndexExpr::var(to)))
}
