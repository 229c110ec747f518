//! Threads past the end of a tile: what they may compute in vain.
//!
//! A result that is gathered in registers and never stored harms nobody, so a thread that has none may compute along with
//! the others, as long as all that it reads is there. Tiles in shared memory are filled up for that. Without conditions
//! the code of a tile is straight, and there need not be another version of it for the last one.

use tilewright_ir::nest::Scope;
use tilewright_ir::{Access, IndexExpr, VarId};
use tilewright_target::Target;

use super::emit::Emitter;
use crate::draft::multiples::{Multiple, rounded_up};
use crate::draft::simplify::Ranges;
use crate::draft::{LoopRole, StatementId};

impl Emitter<'_> {
    /// The conditions of a loop that statements inside it need.
    pub fn needed_guards(&self, var: VarId, inside: &[StatementId]) -> Vec<IndexExpr> {
        let guards = self.draft.loop_of(var).guards.clone();
        let (mut candidates, mut needed): (Vec<IndexExpr>, Vec<IndexExpr>) =
            guards.into_iter().partition(|guard| self.is_about_results(guard));
        if candidates.is_empty() || !inside.iter().all(|id| self.may_compute_in_vain(*id)) {
            return self.draft.loop_of(var).guards.clone();
        }
        // One after the other: each may rely on those that stay.
        while let Some(guard) = candidates.pop() {
            let kept: Vec<&IndexExpr> = candidates.iter().chain(&needed).collect();
            if !inside.iter().all(|id| self.reads_what_is_there(*id, var, &kept)) {
                needed.push(guard);
            }
        }
        needed
    }

    /// Whether it says nothing of the reduction, which must not pass over too little.
    fn is_about_results(&self, guard: &IndexExpr) -> bool {
        guard.vars().into_iter().all(|var| self.draft.loop_of(var).role == LoopRole::Spatial)
    }

    /// Whether what a statement computes for elements that there are not is never looked at.
    fn may_compute_in_vain(&self, id: StatementId) -> bool {
        let statement = self.draft.statement(id);
        let Some(accumulator) = &statement.accumulator else { return false };
        let reduced_outside = self.draft.loops_up_to(accumulator.at).into_iter().any(|var| {
            let own = self.draft.loop_of(var);
            own.owner == Some(id) && own.role == LoopRole::Reduction
        });
        matches!(self.draft.target, Target::Gpu(_))
            && accumulator.in_registers
            && statement.reduction().is_some_and(|(_, reset)| reset)
            && !reduced_outside
    }

    /// Whether all that a statement reads is inside of buffers, and written, where only these conditions of a loop hold.
    fn reads_what_is_there(&self, id: StatementId, var: VarId, kept: &[&IndexExpr]) -> bool {
        let mut ranges = Ranges::default();
        for around in self.draft.path(id) {
            let own = self.draft.loop_of(around);
            ranges.add(around, &own.extent);
            match around == var {
                true => kept.iter().for_each(|guard| ranges.add_bound(guard)),
                false => own.guards.iter().for_each(|guard| ranges.add_bound(guard)),
            }
        }
        let statement = self.draft.statement(id);
        let multiples = statement.multiples(&ranges);
        statement.reads().iter().all(|read| self.is_there(read, &ranges, &multiples))
    }

    fn is_there(&self, read: &Access, ranges: &Ranges, multiples: &[Multiple]) -> bool {
        let buffer = &self.draft.buffers[read.tensor.index()];
        let is_written = buffer.filled
            || matches!(buffer.buffer.scope, Scope::Argument(id) if self.draft.program.tensor(id).role.is_supplied());
        let inside = |(index, extent): (&IndexExpr, &i64)| {
            ranges.never_negative(&rounded_up(index, multiples))
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
