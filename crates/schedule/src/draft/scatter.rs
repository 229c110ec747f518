//! Analyses scatters: reductions into elements that data chooses.
//!
//! A scatter with `!` sets its whole tensor to the neutral element, also the elements that no point
//! writes. In the dimensions whose subscripts depend on data, or on reduced loops, any element may
//! be the one that a point is reduced into. These dimensions are *chosen*. In the other dimensions
//! the loops of the statement choose the element, so a part of the tensor, a *row*, belongs to each
//! of their iterations. If these loops reach all rows, each iteration can set its own row.
//!
//! Threads that share a reduced loop of a scatter may meet in one element, so they update elements
//! atomically. That gives the same bits in every run only where the order of the updates does not
//! matter.

use tilewright_ir::nest::{IndexExpr, LoopKind, LoopVarId};
use tilewright_ir::{VarId, VarKind};

use super::{Draft, LoopRole, StatementId};

impl Draft<'_> {
    /// Returns true when data chooses the elements that a statement writes.
    pub fn is_scatter(&self, id: StatementId) -> bool {
        self.statement(id).target.indices.iter().any(IndexExpr::has_data)
    }

    /// Returns true when data or reduced loops decide the value of a subscript.
    pub fn is_chosen(&self, id: StatementId, index: &IndexExpr) -> bool {
        let reduced = |var: &LoopVarId| {
            let own = self.loop_of(*var);
            own.owner == Some(id) && own.role == LoopRole::Reduction
        };
        index.has_data() || index.vars().iter().any(reduced)
    }

    /// Returns true when a scatter can set one row after the other to the neutral element: the
    /// iterations of its loops together reach all rows of the tensor. A scatter that a step has
    /// moved to a consumer reaches the rows that the consumer needs, if it reached all before.
    pub fn resets_rows(&self, id: StatementId) -> bool {
        let statement = self.statement(id);
        if statement.is_narrowed && !statement.is_partial && self.reaches_all_rows_of_program(id) {
            return true;
        }
        let shape = &self.buffers[statement.target.tensor.index()].buffer.shape;
        let subscripts = statement.target.indices.iter().zip(shape);
        let rows: Vec<(&IndexExpr, i64)> = subscripts
            .filter(|(index, _)| !self.is_chosen(id, index))
            .map(|(index, extent)| (index, *extent))
            .collect();
        let own = self.loops_owned_by(id);
        rows.iter().all(|(index, _)| index.vars().iter().all(|var| own.contains(var)))
            && self.reaches_rows_of_each_allocation(id, &rows)
    }

    /// Returns true when subscripts take all values in each iteration of the loops around the
    /// allocation of the statement's tensor.
    fn reaches_rows_of_each_allocation(&self, id: StatementId, rows: &[(&IndexExpr, i64)]) -> bool {
        let room = self.buffers[self.statement(id).target.tensor.index()].allocated_at;
        let outer = room.map(|room| self.loops_up_to(room)).unwrap_or_default();
        let extents = outer.iter().map(|var| self.loop_of(*var).extent.as_constant());
        let Some(extents) = extents.collect::<Option<Vec<i64>>>() else { return false };
        let iterations: Vec<IndexExpr> = outer.into_iter().map(IndexExpr::var).collect();
        let all: Vec<(&IndexExpr, i64)> =
            rows.iter().copied().chain(iterations.iter().zip(extents)).collect();
        self.takes_all_values(id, &all)
    }

    /// Returns true when each subscript of the program's statement is either chosen, or a variable
    /// of its own, plus a number, that takes all values of the dimension.
    fn reaches_all_rows_of_program(&self, id: StatementId) -> bool {
        let Some(number) = self.statement(id).first_instance() else { return false };
        let (statement, _) = self.program.statements()[number];
        let Some(shape) = self.program.shape(statement.target) else { return false };
        let is_reduced = |var: &VarId| self.program.var(*var).kind == VarKind::Reduction;
        let mut seen: Vec<VarId> = Vec::new();
        statement.indices.iter().zip(shape).all(|(index, extent)| {
            if index.has_data() || index.vars().iter().any(is_reduced) {
                return true;
            }
            let own = index.vars().into_iter().find(|var| statement.vars.contains(var));
            let Some(var) = own else { return false };
            let Some(shift) = index.sub(&tilewright_ir::IndexExpr::var(var)).as_constant() else {
                return false;
            };
            let range = &self.program.var(var).range;
            let is_new = !seen.contains(&var);
            seen.push(var);
            is_new
                && range.from.as_constant() == Some(-shift)
                && range.to.as_constant() == i64::try_from(extent).ok().map(|extent| extent - shift)
        })
    }

    /// Returns true when threads share a reduced loop of a scatter.
    pub fn updates_atomically(&self, id: StatementId) -> bool {
        let is_shared =
            |kind: LoopKind| matches!(kind, LoopKind::Parallel | LoopKind::Block(_) | LoopKind::Thread(_));
        self.is_scatter(id) && self.reduced_loop_is(id, is_shared)
    }

    fn reduced_loop_is(&self, id: StatementId, test: impl Fn(LoopKind) -> bool) -> bool {
        let own = self.loops_owned_by(id);
        let mut own = own.iter().map(|var| self.loop_of(*var));
        own.any(|own| own.role == LoopRole::Reduction && test(own.kind))
    }

    /// Checks that threads may share a reduced loop of a scatter, and returns the reason if not.
    pub fn check_atomic_updates(&self, id: StatementId) -> Result<(), String> {
        let statement = self.statement(id);
        let dtype = self.buffers[statement.target.tensor.index()].buffer.dtype;
        let can_be_atomic = statement.reduction().is_some_and(|(op, _)| op.can_be_atomic(dtype));
        let why = if dtype.is_float() {
            format!(
                "a {dtype} result depends on the order of its iterations, in which data chooses the elements"
            )
        } else if !can_be_atomic {
            "data chooses the elements, and there is no atomic operation for this reduction".to_string()
        } else if !self.capabilities.atomic_bytes.contains(&dtype.bytes()) {
            let kind = self.capabilities.kind;
            format!("data chooses the elements, and a {kind} has no atomic operations on {dtype}")
        } else {
            return Ok(());
        };
        Err(format!("{why}; `rfactor` gives each iteration its own elements"))
    }

    /// The loop before which a scatter sets its elements to the neutral element; none if it does so
    /// right before the update.
    pub(super) fn reset_loop_of_scatter(&self, id: StatementId) -> Option<LoopVarId> {
        let own = self.loops_owned_by(id);
        if !self.resets_rows(id) {
            return match self.statement(id).is_partial {
                true => self.outermost_loop_of_totals(id),
                false => own.first().copied(),
            };
        }
        let reduced = self.outermost_reduction(id)?;
        // Threads that share the reduction wait for the fill, and cannot wait inside loops over
        // threads. Blocks that share it do not wait for each other.
        let by_blocks = self.reduced_loop_is(id, |kind| matches!(kind, LoopKind::Block(_)));
        let by_threads = self.reduced_loop_is(id, |kind| matches!(kind, LoopKind::Thread(_)));
        let is_left = |var: &LoopVarId| match self.loop_of(*var).kind {
            LoopKind::Block(_) => by_blocks,
            LoopKind::Thread(_) => by_blocks || by_threads,
            _ => false,
        };
        own.into_iter().take_while(|var| *var != reduced).find(is_left).or(Some(reduced))
    }

    /// Returns a loop of another statement over threads, inside which the threads of a scatter
    /// would have to wait until its elements are set to the neutral element.
    pub fn thread_loop_around_fill(&self, id: StatementId) -> Option<LoopVarId> {
        let resets = matches!(self.statement(id).reduction(), Some((_, true)));
        let by_threads = self.reduced_loop_is(id, |kind| matches!(kind, LoopKind::Thread(_)));
        if !resets || !by_threads || !self.is_scatter(id) {
            return None;
        }
        let around = self.reset_loop(id).map(|place| self.loops_around(place)).unwrap_or_default();
        around.into_iter().find(|var| matches!(self.loop_of(*var).kind, LoopKind::Thread(_)))
    }
}
