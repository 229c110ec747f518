//! Analyses the reductions of a draft: before which loop a reduction is reset to its neutral
//! element, which loops index the result, and whether threads combine it.

use tilewright_ir::nest::{Atom, Axis, BufferId, IndexExpr, LoopKind, LoopVarId};

use super::{Draft, LoopRole, Node, StatementId};

impl Draft<'_> {
    /// The loop at which a step lets a statement accumulate its result.
    pub fn accumulates_at(&self, id: StatementId) -> Option<LoopVarId> {
        self.statement(id).accumulator.as_ref().map(|accumulator| accumulator.at)
    }

    /// The loop before which a reduction sets its elements to the neutral element; none if it does
    /// so right before the update.
    pub fn reset_loop(&self, id: StatementId) -> Option<LoopVarId> {
        if self.is_scatter(id) {
            return self.reset_loop_of_scatter(id);
        }
        if self.misses_partial_totals(id) {
            return self.outermost_loop_of_totals(id);
        }
        self.outermost_reduction(id)
    }

    /// Returns true when the iterations do not reach every partial total of an `rfactor`, although
    /// all of them are added up.
    pub fn misses_partial_totals(&self, id: StatementId) -> bool {
        let Some(first) = self.loops_owned_by(id).first().copied() else { return false };
        let named = self.loops_in_subscripts(id, first);
        let varies = |var: &LoopVarId| self.copied_extent(*var, &named).as_constant().is_none();
        let is_partial = self.statement(id).is_partial;
        is_partial
            && (named.iter().any(varies)
                || self.outermost_reduction(id).is_none()
                || self.guards_skip_totals(id))
    }

    /// Returns true when guards skip partial totals that the buffer has elements for.
    fn guards_skip_totals(&self, id: StatementId) -> bool {
        let own = self.loops_owned_by(id);
        let reduced = |var: LoopVarId| own.contains(&var) && self.loop_of(var).role == LoopRole::Reduction;
        let statement = self.statement(id);
        let mut inside = super::simplify::Ranges::default();
        for var in self.path(id) {
            inside.add_loop(var, &self.loop_of(var).extent);
        }
        self.subscript_bounds(id).iter().for_each(|bound| inside.assume_nonnegative(bound));
        // Iterations skipped by loops outside the buffer's allocation are not added up either.
        // Where a guard skips iterations of a reduction, the total keeps its reset value, unless
        // the reset happens further in.
        let within = own.iter().filter(|var| self.is_inside_allocation(statement.target.tensor, **var));
        let accumulated_outside = self.accumulates_at(id).map(|at| self.loops_up_to(at)).unwrap_or_default();
        let guards = within.flat_map(|var| self.loop_of(*var).guards.iter().map(move |guard| (*var, guard)));
        let of_totals = guards.filter(|(var, guard)| {
            accumulated_outside.contains(var) || !guard.vars().into_iter().any(reduced)
        });
        let mut sides = of_totals.flat_map(|(_, guard)| super::simplify::split_minima(guard));
        sides.any(|side| !inside.never_negative(&side))
    }

    /// Expressions that are at least 0 where a statement's subscripts do not run past the end of
    /// their buffer. The bound of a quotient is stated for its dividend, because the guards of
    /// fused loops have that form. Subscripts that depend on data are checked where they are used.
    pub fn subscript_bounds(&self, id: StatementId) -> Vec<IndexExpr> {
        let target = &self.statement(id).target;
        let shape = &self.buffers[target.tensor.index()].buffer.shape;
        let bound = |(index, extent): (&IndexExpr, &i64)| match quotient(index) {
            Some((whole, by)) => IndexExpr::constant(extent * by - 1).sub(&whole),
            None => IndexExpr::constant(extent - 1).sub(index),
        };
        target.indices.iter().zip(shape).filter(|(index, _)| !index.has_data()).map(bound).collect()
    }

    /// Returns true when a loop is inside the one in whose iterations a buffer is allocated.
    fn is_inside_allocation(&self, tensor: BufferId, var: LoopVarId) -> bool {
        let allocated_at = self.buffers[tensor.index()].allocated_at;
        allocated_at.is_none_or(|room| self.loops_around(var).contains(&room))
    }

    /// The outermost loop inside the allocation of the partial totals.
    pub(super) fn outermost_loop_of_totals(&self, id: StatementId) -> Option<LoopVarId> {
        let statement = self.statement(id);
        let allocated_at = self.buffers[statement.target.tensor.index()].allocated_at;
        let path = self.path(id);
        let inside =
            allocated_at.and_then(|room| path.iter().position(|var| *var == room)).map_or(0, |at| at + 1);
        statement.is_partial.then(|| path.get(inside).copied()).flatten()
    }

    /// The outermost loop that a statement reduces over.
    pub fn outermost_reduction(&self, id: StatementId) -> Option<LoopVarId> {
        self.loops_owned_by(id).into_iter().find(|var| self.loop_of(*var).role == LoopRole::Reduction)
    }

    /// The reduction loop of a statement that is distributed over threads, whose partial results
    /// are combined.
    pub fn combined_thread_loop(&self, id: StatementId) -> Option<LoopVarId> {
        let over_threads = |var: &LoopVarId| matches!(self.loop_of(*var).kind, LoopKind::Thread(_));
        let reduced = |var: &LoopVarId| self.loop_of(*var).role == LoopRole::Reduction;
        let own = self.loops_owned_by(id).into_iter().find(|var| reduced(var) && over_threads(var));
        own.filter(|_| !self.is_scatter(id))
    }

    /// Checks whether the threads of a reduction loop can be combined along this axis, and returns
    /// the reason if not.
    pub fn check_combined_threads(&self, var: LoopVarId, axis: Axis) -> Result<(), String> {
        let own = self.loop_of(var);
        let Some(id) = own.owner else { return Err("it belongs to no statement".to_string()) };
        let statement = self.statement(id);
        if axis != Axis::X {
            return Err(format!("threads are combined along x, and not along {}", axis.name()));
        }
        if self.body_of(var) != [Node::Statement(id)] {
            return Err("it is not the innermost loop of its statement: `reorder` it there".to_string());
        }
        let reduced = |other: &LoopVarId| *other != var && self.loop_of(*other).role == LoopRole::Reduction;
        if let Some(other) = self.loops_owned_by(id).into_iter().find(reduced) {
            let (own, other) = (self.qualified_loop_name(var), self.qualified_loop_name(other));
            return Err(format!(
                "`{other}` is reduced too: `rfactor {own}` gives each thread its own total first"
            ));
        }
        if statement.target.indices.iter().any(|index| index.has_data() || index.mentions(var)) {
            return Err("the choice of its elements depends on data, or on the loop itself".to_string());
        }
        if statement.accumulator.is_some() {
            let why = "the result is promoted, but a total of combined threads is always in registers";
            return Err(why.to_string());
        }
        if own.extent.as_constant().is_none() || !own.guards.is_empty() || self.misses_partial_totals(id) {
            return Err("its number of iterations is not constant, or guards skip some".to_string());
        }
        Ok(())
    }

    /// The statement's loops from `from` inwards that its subscripts mention.
    pub fn loops_in_subscripts(&self, id: StatementId, from: LoopVarId) -> Vec<LoopVarId> {
        let own = self.loops_owned_by(id);
        let at = own.iter().position(|var| *var == from).unwrap_or(0);
        let indices = &self.statement(id).target.indices;
        let named = |var: &LoopVarId| indices.iter().any(|index| index.mentions(*var));
        own[at..].iter().copied().filter(named).collect()
    }

    /// The extent of a loop in a copy of some loops. Where the extent depends on a loop that is not
    /// copied, because the statement reduces over it, the result is the largest extent.
    pub fn copied_extent(&self, var: LoopVarId, copied: &[LoopVarId]) -> IndexExpr {
        let own = self.loop_of(var);
        let Some(statement) = own.owner else { return own.extent.clone() };
        let path = self.path(statement);
        let first = path.iter().position(|other| copied.contains(other)).unwrap_or(0);
        let reduced = |other: &LoopVarId| {
            let inside = path.iter().position(|at| at == other).is_some_and(|at| at >= first);
            !copied.contains(other)
                && (inside || self.loop_of(*other).role == LoopRole::Reduction)
                && self.loop_of(*other).owner == Some(statement)
        };
        if !own.extent.vars().iter().any(reduced) {
            return own.extent.clone();
        }
        let most = self.ranges(statement).greatest_value(&own.extent);
        most.map_or_else(|| own.extent.clone(), IndexExpr::constant)
    }
}

/// The dividend and the divisor of an expression that is just one quotient.
fn quotient(index: &IndexExpr) -> Option<(IndexExpr, i64)> {
    match index.terms() {
        [term] if term.coefficient == 1 && index.constant_part() == 0 => match term.factors.as_slice() {
            [Atom::FloorDiv(pair)] => Some((pair.0.clone(), pair.1.as_constant()?)).filter(|(_, by)| *by > 0),
            _ => None,
        },
        _ => None,
    }
}
