//! Finds the guards of a loop that can be left out, so that threads past the end of a tile compute
//! results that nothing uses.
//!
//! A result that is accumulated in registers and never stored does no harm. So a thread without an
//! element of its own may compute along with the others, as long as everything that it reads
//! exists. Tiles in shared memory are padded for that purpose. Without conditions the code of a
//! tile is straight-line code, and the last tile needs no version of its own.

use tilewright_ir::ids::InNest;
use tilewright_ir::nest::{Access, IndexExpr, LoopVarId, Scope};

use super::emit::Emitter;
use crate::draft::multiples::{Multiple, round_up_quotients};
use crate::draft::simplify::Ranges;
use crate::draft::{LoopRole, StatementId};

impl Emitter<'_> {
    /// The guards of a loop that the statements inside it need.
    pub fn needed_guards(&self, var: LoopVarId, inside: &[StatementId]) -> Vec<IndexExpr> {
        let guards = self.draft.loop_of(var).guards.clone();
        let (mut candidates, mut needed): (Vec<IndexExpr>, Vec<IndexExpr>) =
            guards.into_iter().partition(|guard| self.is_about_results(guard));
        if candidates.is_empty() || !inside.iter().all(|id| self.result_may_be_unused(*id)) {
            return self.draft.loop_of(var).guards.clone();
        }
        // Guards are removed one after the other, because each proof may rely on the guards that
        // stay.
        while let Some(guard) = candidates.pop() {
            let kept: Vec<&IndexExpr> = candidates.iter().chain(&needed).collect();
            if !inside.iter().all(|id| self.reads_only_written_elements(*id, var, &kept)) {
                needed.push(guard);
            }
        }
        needed
    }

    /// Returns true when a guard does not depend on a reduction, all of whose guards must stay.
    fn is_about_results(&self, guard: &IndexExpr) -> bool {
        guard.vars().into_iter().all(|var| self.draft.loop_of(var).role == LoopRole::Spatial)
    }

    /// Returns true when a value that the statement computes for a missing element is never used.
    fn result_may_be_unused(&self, id: StatementId) -> bool {
        let statement = self.draft.statement(id);
        let Some(accumulator) = &statement.accumulator else { return false };
        let reduced_outside = self.draft.loops_up_to(accumulator.at).into_iter().any(|var| {
            let own = self.draft.loop_of(var);
            own.owner == Some(id) && own.role == LoopRole::Reduction
        });
        self.draft.capabilities.fixed_trip_counts
            && accumulator.in_registers
            && statement.reduction().is_some_and(|(_, reset)| reset)
            && !reduced_outside
    }

    /// Returns true when all elements that a statement reads are inside their buffers and written,
    /// if of this loop's guards only `kept` hold.
    fn reads_only_written_elements(&self, id: StatementId, var: LoopVarId, kept: &[&IndexExpr]) -> bool {
        let mut ranges = Ranges::default();
        for around in self.draft.path(id) {
            let own = self.draft.loop_of(around);
            ranges.add_loop(around, &own.extent);
            match around == var {
                true => kept.iter().for_each(|guard| ranges.assume_nonnegative(guard)),
                false => own.guards.iter().for_each(|guard| ranges.assume_nonnegative(guard)),
            }
        }
        let statement = self.draft.statement(id);
        let multiples = statement.required_multiples(&ranges);
        statement.reads().iter().all(|read| self.is_written_element(read, &ranges, &multiples))
    }

    fn is_written_element(&self, read: &Access, ranges: &Ranges, multiples: &[Multiple<InNest>]) -> bool {
        let buffer = &self.draft.buffers[read.tensor.index()];
        let is_written = buffer.is_fully_written
            || matches!(buffer.buffer.scope, Scope::Argument(id) if self.draft.program.tensor(id).role.is_supplied());
        let inside = |(index, extent): (&IndexExpr, &i64)| {
            ranges.never_negative(&round_up_quotients(index, multiples))
                && ranges.never_negative(&index.scale(-1).offset(extent - 1))
        };
        let mut written = buffer.buffer.shape.clone();
        if let Some(last) = written.last_mut() {
            *last -= buffer.pad;
        }
        is_written
            && !read.indices.iter().any(IndexExpr::has_data)
            && read.indices.iter().zip(&written).all(inside)
    }
}
