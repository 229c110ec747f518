//! Where a reduction begins, and which loops its result is told apart by.

use tilewright_ir::{IndexExpr, VarId};

use super::{Draft, LoopRole, StatementId};

impl Draft<'_> {
    /// The loop at which a statement's result is gathered by a step.
    pub fn gathers_at(&self, id: StatementId) -> Option<VarId> {
        self.statement(id).accumulator.as_ref().map(|accumulator| accumulator.at)
    }

    /// The loop before which a reduction sets its elements to the neutral element; none if it does so on the spot.
    pub fn reset_place(&self, id: StatementId) -> Option<VarId> {
        let own = self.own_loops(id);
        if self.statement(id).target.indices.iter().any(IndexExpr::has_data) {
            return own.first().copied();
        }
        if self.leaves_totals_out(id) {
            return self.outermost_of_totals(id);
        }
        self.outermost_reduction(id)
    }

    /// Whether not every total of an `rfactor` is reached by an iteration, though all are added up.
    pub fn leaves_totals_out(&self, id: StatementId) -> bool {
        let Some(first) = self.own_loops(id).first().copied() else { return false };
        let named = self.named_loops(id, first);
        let varies = |var: &VarId| self.copied_extent(*var, &named).as_constant().is_none();
        self.statement(id).is_partial && (named.iter().any(varies) || self.outermost_reduction(id).is_none())
    }

    /// The outermost loop inside the room of totals.
    fn outermost_of_totals(&self, id: StatementId) -> Option<VarId> {
        let statement = self.statement(id);
        let room = self.buffers[statement.target.tensor.index()].room;
        let path = self.path(id);
        let inside = room.and_then(|room| path.iter().position(|var| *var == room)).map_or(0, |at| at + 1);
        statement.is_partial.then(|| path.get(inside).copied()).flatten()
    }

    /// The outermost loop that a statement reduces over.
    pub fn outermost_reduction(&self, id: StatementId) -> Option<VarId> {
        self.own_loops(id).into_iter().find(|var| self.loop_of(*var).role == LoopRole::Reduction)
    }

    /// The statement's loops from `from` inwards that its subscripts name.
    pub fn named_loops(&self, id: StatementId, from: VarId) -> Vec<VarId> {
        let own = self.own_loops(id);
        let at = own.iter().position(|var| *var == from).unwrap_or(0);
        let indices = &self.statement(id).target.indices;
        let named = |var: &VarId| indices.iter().any(|index| index.mentions(*var));
        own[at..].iter().copied().filter(named).collect()
    }

    /// The extent of a loop in a copy of some loops: where it depends on a loop that is not copied, because the
    /// statement reduces over it, the largest.
    pub fn copied_extent(&self, var: VarId, copied: &[VarId]) -> IndexExpr {
        let own = self.loop_of(var);
        let Some(statement) = own.owner else { return own.extent.clone() };
        let path = self.path(statement);
        let first = path.iter().position(|other| copied.contains(other)).unwrap_or(0);
        let reduced = |other: &VarId| {
            let inside = path.iter().position(|at| at == other).is_some_and(|at| at >= first);
            !copied.contains(other)
                && (inside || self.loop_of(*other).role == LoopRole::Reduction)
                && self.loop_of(*other).owner == Some(statement)
        };
        if !own.extent.vars().iter().any(reduced) {
            return own.extent.clone();
        }
        let most = self.ranges(statement).most(&own.extent);
        most.map_or_else(|| own.extent.clone(), IndexExpr::constant)
    }
}
