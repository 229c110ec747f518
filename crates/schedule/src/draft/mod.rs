//! The loops while steps are applied to them.
//!
//! A [`Draft`] is a [`mod@tree`] of loops and statements over three tables: loops, statements and buffers. A loop's place
//! in its table is its variable's id, so subscripts name loops directly. Every loop runs from 0 to its extent,
//! which is a number, or such an expression in the loops around it that the sum of all iterations is right:
//! splitting 10 iterations by 4 gives an inner loop of `min(4, 10 - 4*outer)`. So no step needs a guard, and
//! lowering decides how a remainder is run.
//!
//! Steps change the tree through the functions of this module; [`mod@crate::lower`] turns the end result into a
//! [`tilewright_ir::LoopNest`]. Which statement a loop belongs to is kept with the loop: a producer that is computed
//! inside a consumer's reduction runs anew in every iteration, it is not part of that reduction.

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
pub(crate) mod simplify;
mod table;
mod tree;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use tilewright_ir::nest::{Buffer, LoopKind};
use tilewright_ir::{
    Access, Expr, ExprKind, IndexExpr, Origin, Program, ReduceOp, TensorId, Update, VarId, index::Atom,
};
use tilewright_target::{Target, Vectors};

use crate::illegal::Illegal;
use crate::step::StatementName;

pub(crate) use instance::Instance;
use multiples::Multiple;
pub(crate) use prefetch::{Lines, Prefetch};
use simplify::Ranges;
use table::Table;
use tree::Links;
pub(crate) use tree::{Node, Parent};

/// The result of a step.
pub(crate) type Legal<T> = Result<T, Illegal>;

/// Points at a statement of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct StatementId(pub usize);

/// A program with its loops, on the way from the order of the text to that of the schedule.
#[derive(Clone, Debug)]
pub(crate) struct Draft<'a> {
    pub program: &'a Program,
    pub target: Target<'a>,
    pub buffers: Table<DraftBuffer>,
    pub loops: Table<Loop>,
    pub statements: Table<Statement>,
    /// Runs once, for constants.
    pub setup: Vec<Node>,
    pub body: Vec<Node>,
    pub prefetches: Vec<Prefetch>,
    /// Loops whose copies run ahead, and by how many iterations and one.
    pub pipelines: Vec<(VarId, i64)>,
    links: Links,
    /// Loops that steps have replaced, with the step: for messages.
    pub gone: Table<(String, String)>,
    /// The tensors of the program by name.
    tensors: Arc<HashMap<String, TensorId>>,
    /// For each tensor of the program, the last statement that writes it.
    last_writers: Arc<Vec<Option<usize>>>,
}

/// A buffer, and where its room is made.
#[derive(Clone, Debug)]
pub(crate) struct DraftBuffer {
    pub buffer: Buffer,
    /// For scratch memory: in every iteration of this loop, or once outside all.
    pub room: Option<VarId>,
    /// Some of its elements may never be written, because it holds the last part of something.
    pub ragged: bool,
    /// All of its elements are written, also those that stand for nothing; but for the padding.
    pub filled: bool,
    /// So many elements at the end of the last dimension are padding, which nothing writes.
    pub pad: i64,
    /// Inlined, or otherwise without use.
    pub gone: bool,
    /// Filled by the copy of a `promote`.
    pub staged: bool,
    /// The statements that write or read it, in the order of their ids.
    users: Vec<StatementId>,
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
    /// Iterations where one of these is negative do nothing.
    pub guards: Vec<IndexExpr>,
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
    /// It is computed at a loop of a consumer, and only what that one needs: a variable may not have all its values.
    pub is_narrowed: bool,
    /// The instances of the program that it executes: its own, and those that were inlined. A copy has none.
    pub instances: Vec<Instance>,
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
        self.visit_reads(&mut |access| found.push(access.clone()));
        found
    }

    fn visit_reads(&self, visit: &mut dyn FnMut(&Access)) {
        visit_reads(&self.value, visit);
        for index in &self.target.indices {
            visit_index_reads(index, visit);
        }
    }

    /// What it asks to have no remainder before it reads anything, as it is written and as the ranges of its loops make it.
    pub fn multiples(&self, ranges: &Ranges) -> Vec<Multiple> {
        if self.target.indices.iter().any(IndexExpr::has_data) {
            return Vec::new();
        }
        let asked = multiples::multiples(&self.value).into_iter();
        asked.flat_map(|own| [Multiple { number: ranges.simplify(&own.number), of: own.of }, own]).collect()
    }

    /// The tensors that it writes and reads.
    fn tensors(&self) -> BTreeSet<TensorId> {
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
    }
}

/// Calls `visit` on the accesses in an expression, those inside subscripts first.
pub(crate) fn visit_reads(expr: &Expr, visit: &mut dyn FnMut(&Access)) {
    match &expr.kind {
        ExprKind::Load(access) => {
            access.indices.iter().for_each(|index| visit_index_reads(index, visit));
            visit(access);
        }
        ExprKind::Index(index) => visit_index_reads(index, visit),
        _ => expr.operands().iter().for_each(|operand| visit_reads(operand, visit)),
    }
}

fn visit_index_reads(index: &IndexExpr, visit: &mut dyn FnMut(&Access)) {
    // `IndexExpr::visit` goes into the subscripts of data too, so each access is taken where it is the data's own value.
    index.visit(&mut |atom| {
        if let Atom::Data(data) = atom {
            visit_own_loads(&data.value, visit);
        }
    });
}

fn visit_own_loads(expr: &Expr, visit: &mut dyn FnMut(&Access)) {
    match &expr.kind {
        ExprKind::Load(access) => visit(access),
        _ => expr.operands().iter().for_each(|operand| visit_own_loads(operand, visit)),
    }
}

/// An access of a buffer that no text stands for.
pub(crate) fn access(tensor: TensorId, indices: Vec<IndexExpr>) -> Access {
    Access { tensor, indices, origin: Origin::default() }
}

impl Draft<'_> {
    /// The vectors that code is written out for.
    pub fn vectors(&self) -> Vectors {
        crate::lower::effort::vectors(self.target)
    }

    /// The loop behind a variable.
    pub fn loop_of(&self, var: VarId) -> &Loop {
        &self.loops[var.index()]
    }

    /// The statement behind an id.
    pub fn statement(&self, id: StatementId) -> &Statement {
        &self.statements[id.0]
    }

    /// Changes a statement, and with it who uses which tensor.
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

    fn add_user(&mut self, tensor: TensorId, id: StatementId) {
        let users = &mut self.buffers[tensor.index()].users;
        let at = users.partition_point(|user| *user < id);
        users.insert(at, id);
    }

    /// A new loop; its node is for the caller to place.
    pub fn add_loop(&mut self, new: Loop) -> VarId {
        self.loops.push(new);
        self.links.add_loop();
        VarId(self.loops.len() as u32 - 1)
    }

    /// Notes that loops are not what the program says any more.
    pub fn touch(&mut self, loops: &[VarId]) {
        for var in loops.iter().map(|var| var.index()) {
            if self.loops[var].pristine {
                self.loops[var].pristine = false;
            }
        }
    }

    /// A new statement; its node is for the caller to place.
    pub fn add_statement(&mut self, new: Statement) -> StatementId {
        let id = StatementId(self.statements.len());
        for tensor in new.tensors() {
            self.add_user(tensor, id);
        }
        self.statements.push(new);
        self.links.add_statement();
        id
    }

    /// A new buffer.
    pub fn add_buffer(&mut self, buffer: Buffer, room: Option<VarId>) -> Legal<TensorId> {
        let extents = buffer.shape.iter().map(|extent| *extent as u128);
        let elements = extents.fold(1, u128::saturating_mul);
        let bytes = elements.saturating_mul(buffer.dtype.bytes() as u128);
        if bytes > i64::MAX as u128 / 2 {
            return Err(Illegal::TooLarge { name: buffer.name, bytes });
        }
        let (ragged, filled, gone, staged) = (false, false, false, false);
        self.buffers.push(DraftBuffer {
            buffer,
            room,
            ragged,
            filled,
            pad: 0,
            gone,
            staged,
            users: Vec::new(),
        });
        Ok(TensorId(self.buffers.len() as u32 - 1))
    }

    /// Puts an expression in a variable's place, in everything inside `nodes`.
    pub fn substitute(&mut self, nodes: &[Node], var: VarId, by: &IndexExpr) {
        let mut replace = |atom: &Atom| (*atom == Atom::Var(var)).then(|| by.clone());
        for node in self.contents(nodes) {
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

    /// Of the buffers that these statements write, those whose room is made in the iterations of a loop.
    pub fn rooms_at(&self, var: VarId, statements: &[StatementId]) -> BTreeSet<TensorId> {
        let written = statements.iter().map(|id| self.statement(*id).target.tensor);
        written.filter(|tensor| self.buffers[tensor.index()].room == Some(var)).collect()
    }

    /// Moves the room of buffers from one loop's iterations to those of another, which runs the same now.
    pub fn move_rooms(&mut self, from: VarId, to: VarId) {
        for tensor in self.rooms_at(from, &self.statements_in(self.body_of(to))) {
            self.buffers[tensor.index()].room = Some(to);
        }
    }

    /// Moves what is fixed to one loop's iterations to those of another, which runs the same now.
    pub fn move_attachments(&mut self, from: VarId, to: VarId) {
        self.move_rooms(from, to);
        for id in self.statements_in(self.body_of(to)) {
            if self.gathers_at(id) == Some(from)
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

/// The expression with one variable in the place of another.
pub(crate) fn rename(expr: &IndexExpr, from: VarId, to: VarId) -> IndexExpr {
    expr.substitute(&mut |atom| (*atom == Atom::Var(from)).then(|| IndexExpr::var(to)))
}
