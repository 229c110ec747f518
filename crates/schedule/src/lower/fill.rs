//! Emits the loops that set the elements of a scatter, or all partial totals of an `rfactor`, to
//! the neutral element.
//!
//! A scatter sets the elements that one iteration of the loops around may write: whole dimensions
//! where data chooses the element, and the elements of its own loops elsewhere. The innermost loop
//! of a fill runs over neighbouring elements, so on a target with vector registers it is a vector.
//! On a GPU it is spread over the threads that then reduce values into the elements, or is a kernel
//! of its own.

use tilewright_ir::nest::{
    Access, Atom, Axis, Claim, ClaimRole, Expr, For, IndexExpr, LoopKind, LoopVarId, Stmt, Store,
};
use tilewright_target::Registers;

use super::claim::claim_in_copy;
use super::emit::{Emitter, guarded};
use super::inverse::Inverse;
use crate::draft::simplify::Ranges;
use crate::draft::{StatementId, access};
use crate::steps::kind::MOST_LANES;

/// The fewest elements that a fill sets as one vector.
const LEAST_LANES: i64 = 4;

/// The most threads of a block in a fill that is a kernel of its own.
const MOST_THREADS: i64 = 256;

impl Emitter<'_> {
    /// Sets the whole tensor that a statement writes to one value.
    pub fn fill(&mut self, id: StatementId, value: Expr) -> Vec<Stmt> {
        let claim = self.claim(id, ClaimRole::Neutral);
        let element = self.draft.statement(id).target.clone();
        let shape = self.buffer(element.tensor).shape.clone();
        let vars: Vec<LoopVarId> = (0..shape.len()).map(|at| self.new_var(&format!("d{at}"))).collect();
        let mut indices: Vec<IndexExpr> = vars.iter().map(|var| IndexExpr::var(*var)).collect();
        let mut loops: Vec<(LoopVarId, i64)> = vars.into_iter().zip(shape).collect();
        let around = self.loops_around_fill(id);
        let inner = match self.threads_of_fill(id, &around, &mut loops, &mut indices) {
            Some(threads) => self.over_threads(threads, &mut loops, &mut indices),
            None => InnerLoops::default(),
        };
        // The claim names the loops of the statement, of which the fill has none.
        let mut ranges = Ranges::default();
        for var in self.draft.path(id) {
            ranges.add_loop(var, &self.draft.loop_of(var).extent);
        }
        let known = Inverse::of(&element.indices, &indices, &ranges);
        let claim = claim_in_copy(&claim, &|index: &IndexExpr| known.rewrite(index));
        vec![loops_around(&loops, &inner, store_of(access(element.tensor, indices), value, claim))]
    }

    /// The loops around the place at which a statement's elements are set.
    fn loops_around_fill(&self, id: StatementId) -> Vec<LoopVarId> {
        let place = self.draft.reset_loop(id);
        place.map_or_else(|| self.draft.path(id), |place| self.draft.loops_around(place))
    }

    /// Sets the elements that a scatter may write in one iteration of the loops around to one
    /// value.
    pub fn fill_rows(&mut self, id: StatementId, value: &Expr) -> Vec<Stmt> {
        let target = self.draft.statement(id).target.clone();
        let shape = self.buffer(target.tensor).shape.clone();
        let is_chosen: Vec<bool> =
            target.indices.iter().map(|index| self.draft.is_chosen(id, index)).collect();
        let names_row = |var: &LoopVarId| {
            let rows = target.indices.iter().zip(&is_chosen).filter(|(_, is_chosen)| !**is_chosen);
            rows.into_iter().any(|(index, _)| index.mentions(*var))
        };
        let place = self.draft.reset_loop(id);
        let mut loops = place.map(|place| self.draft.loops_in_subscripts(id, place)).unwrap_or_default();
        loops.retain(names_row);
        let around = self.loops_around_fill(id);
        let guards = self.guards_of_elements(id, &loops);
        let claim = self.claim(id, ClaimRole::Neutral);
        let mut whole = Vec::new();
        let mut indices = target.indices.clone();
        for (at, index) in indices.iter_mut().enumerate().filter(|(at, _)| is_chosen[*at]) {
            let var = self.new_var(&format!("d{at}"));
            whole.push((var, shape[at]));
            *index = IndexExpr::var(var);
        }
        let outer: Vec<LoopVarId> = around.iter().chain(&loops).copied().collect();
        let spread = self.threads_of_fill(id, &outer, &mut whole, &mut indices);
        let has_vectors = matches!(self.draft.capabilities.registers, Registers::Vector { .. });
        let is_vector = |var: &LoopVarId| self.draft.loop_of(*var).kind == LoopKind::Vector;
        let inner = match spread {
            Some(threads) => self.over_threads(threads, &mut whole, &mut indices),
            None if has_vectors && !outer.iter().any(is_vector) => self.vectors(&mut whole, &mut indices),
            None => InnerLoops::default(),
        };
        self.replicate(&loops, &guards, &mut |renamed| {
            let target = access(target.tensor, indices.iter().map(renamed).collect());
            let claim = claim_in_copy(&claim, renamed);
            vec![loops_around(&whole, &inner, store_of(target, value.clone(), claim))]
        })
    }

    /// The number of threads of a block over which a fill is spread, and whether blocks share it. A
    /// fill is spread if it is a kernel of its own, or if all threads of a block run it. Its loops
    /// are then fused into one.
    fn threads_of_fill(
        &mut self,
        id: StatementId,
        around: &[LoopVarId],
        loops: &mut Vec<(LoopVarId, i64)>,
        indices: &mut [IndexExpr],
    ) -> Option<SpreadThreads> {
        let grid = self.draft.capabilities.grid?;
        if around.is_empty() {
            self.flatten(loops, indices);
            let threads = loops.last()?.1.min(MOST_THREADS).min(grid.block_threads as i64);
            return Some(SpreadThreads { threads, has_blocks: true }).filter(|own| own.threads > 1);
        }
        let kind = |var: &LoopVarId| self.draft.loop_of(*var).kind;
        let is_in_kernel =
            around.iter().any(|var| matches!(kind(var), LoopKind::Block(_) | LoopKind::Thread(_)));
        if !is_in_kernel || around.iter().any(|var| kind(var) == LoopKind::Thread(Axis::X)) {
            return None;
        }
        let path = self.draft.path(id);
        let along_x = path.iter().find(|var| kind(var) == LoopKind::Thread(Axis::X))?;
        let threads = self.draft.loop_of(*along_x).extent.as_constant()?;
        self.flatten(loops, indices);
        Some(SpreadThreads { threads: threads.min(loops.last()?.1), has_blocks: false })
    }

    /// Fuses the loops of a fill into one, so that a single kernel runs them all.
    fn flatten(&mut self, loops: &mut Vec<(LoopVarId, i64)>, indices: &mut [IndexExpr]) {
        let all = loops.iter().try_fold(1i64, |all, (_, extent)| all.checked_mul(*extent));
        let ([_, _, ..], Some(all)) = (loops.as_slice(), all.filter(|all| *all > 0)) else { return };
        let element = self.new_var("element");
        let mut rest = IndexExpr::var(element);
        let mut places = Vec::with_capacity(loops.len());
        for (at, (var, extent)) in loops.iter().enumerate().rev() {
            let extent = IndexExpr::constant(*extent);
            places.push((*var, if at == 0 { rest.clone() } else { rest.modulo(&extent) }));
            rest = rest.floor_div(&extent);
        }
        let mut replace = |atom: &Atom| {
            places.iter().find(|(var, _)| *atom == Atom::Var(*var)).map(|(_, place)| place.clone())
        };
        indices.iter_mut().for_each(|index| *index = index.substitute(&mut replace));
        *loops = vec![(element, all)];
    }

    /// Spreads the innermost loop of a fill over threads. What remains of the loop runs over the
    /// groups of elements that the threads set together.
    fn over_threads(
        &mut self,
        spread: SpreadThreads,
        loops: &mut Vec<(LoopVarId, i64)>,
        indices: &mut [IndexExpr],
    ) -> InnerLoops {
        let Some((group, elements)) = loops.pop() else { return InnerLoops::default() };
        let thread = self.new_var("thread");
        let element = IndexExpr::var(group).scale(spread.threads).add(&IndexExpr::var(thread));
        let mut replace = |atom: &Atom| (*atom == Atom::Var(group)).then(|| element.clone());
        indices.iter_mut().for_each(|index| *index = index.substitute(&mut replace));
        let groups = (elements + spread.threads - 1) / spread.threads;
        let over_groups = if spread.has_blocks { LoopKind::Block(Axis::X) } else { LoopKind::Serial };
        let divides = elements % spread.threads == 0;
        InnerLoops {
            loops: vec![(group, groups, over_groups), (thread, spread.threads, LoopKind::Thread(Axis::X))],
            guard: (!divides).then(|| IndexExpr::constant(elements - 1).sub(&element)),
        }
    }

    /// Splits the innermost loop of a fill into vectors, if it runs over neighbouring elements and
    /// is a whole number of vectors.
    fn vectors(&mut self, loops: &mut [(LoopVarId, i64)], indices: &mut [IndexExpr]) -> InnerLoops {
        let Some((last, extent)) = loops.last_mut() else { return InnerLoops::default() };
        let lanes = 1 << extent.trailing_zeros().min(MOST_LANES.trailing_zeros());
        let index = indices.last_mut().filter(|index| index.as_var() == Some(*last));
        let (Some(index), true) = (index, lanes >= LEAST_LANES) else { return InnerLoops::default() };
        let lane = self.new_var("lane");
        *index = IndexExpr::var(*last).scale(lanes).add(&IndexExpr::var(lane));
        *extent /= lanes;
        InnerLoops { loops: vec![(lane, lanes, LoopKind::Vector)], guard: None }
    }
}

/// The threads of a block that set elements together.
#[derive(Clone, Copy)]
struct SpreadThreads {
    threads: i64,
    /// Whether the groups of elements are spread over blocks.
    has_blocks: bool,
}

/// The innermost loops of a fill, outermost first, and the condition of its store.
#[derive(Default)]
struct InnerLoops {
    loops: Vec<(LoopVarId, i64, LoopKind)>,
    guard: Option<IndexExpr>,
}

/// The loops of a fill, outermost first, around its store.
fn loops_around(loops: &[(LoopVarId, i64)], inner: &InnerLoops, store: Store) -> Stmt {
    let conditions: Vec<IndexExpr> = inner.guard.iter().cloned().collect();
    let mut body = guarded(&conditions, vec![Stmt::Store(store)]);
    let outer = loops.iter().map(|(var, extent)| (*var, *extent, LoopKind::Serial));
    for (var, extent, kind) in outer.chain(inner.loops.iter().copied()).rev() {
        body = vec![Stmt::For(For { var, extent: IndexExpr::constant(extent), kind, body })];
    }
    body.remove(0)
}

fn store_of(target: Access, value: Expr, claim: Option<Box<Claim>>) -> Store {
    Store { target, value, reduce: None, is_asynchronous: false, is_atomic: false, claim }
}
