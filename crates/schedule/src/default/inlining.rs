//! Inlines pointwise stages of the program into their consumers, if a stage is cheap to repeat or
//! its only consumer computes no more points than the stage. Transpositions are not inlined into
//! recurrences.

use tilewright_ir::TensorId;
use tilewright_ir::nest::{Access, BufferId, LoopVarId};

use super::Planner;
use crate::analysis::{Stride, operations};
use crate::draft::{Draft, LoopRole, Parent, StatementId};
use crate::step::Step;

/// The largest cost, in operations, of an expression that is repeated rather than stored.
const MOST_REPEATED_OPERATIONS: usize = 3;

impl<M> Planner<'_, M> {
    /// Inlines pointwise stages that are cheap to repeat.
    pub(super) fn inline_stages(&mut self) {
        for at in 0..self.draft.program.tensors.len() {
            let tensor = TensorId(at as u32);
            if self.is_cheap_to_repeat(Draft::buffer_of(tensor)) {
                let tensor = self.draft.program.tensor(tensor).name.clone();
                self.try_steps(|planner| planner.try_step(Step::Inline { tensor }));
            }
        }
    }

    /// Returns true when a pointwise stage costs less inside its consumers than in memory.
    fn is_cheap_to_repeat(&self, tensor: BufferId) -> bool {
        let producers = self.draft.writers(Parent::Body, tensor);
        let [producer] = producers.as_slice() else { return false };
        let reads = self.draft.readers(Parent::Body, tensor);
        let own = self.points(*producer);
        let used: f64 = reads.iter().map(|(reader, _)| self.points(*reader)).sum();
        if reads.iter().any(|(reader, read)| self.strides_recurrence(*producer, *reader, read)) {
            return false;
        }
        let cost = operations(&self.draft.statement(*producer).value);
        cost <= MOST_REPEATED_OPERATIONS || (reads.len() == 1 && used <= own)
    }

    /// Returns true when a recurrence reads neighbouring elements of a stage, and would read
    /// elements far from each other if the stage were inlined. A transposition is such a stage.
    /// Outside of the recurrence its loops can be tiled, so that it reads whole cache lines.
    fn strides_recurrence(&self, producer: StatementId, reader: StatementId, read: &Access) -> bool {
        let is_ordered = |var: &LoopVarId| self.draft.loop_of(*var).role == LoopRole::Ordered;
        let is_contiguous =
            |access: &Access, var: &LoopVarId| self.stride(access, *var) == Stride::Elements(1);
        let own = |id: StatementId| {
            let target = &self.draft.statement(id).target;
            self.draft.loops_owned_by(id).into_iter().find(|var| is_contiguous(target, var))
        };
        let is_near = |access: &Access, var: LoopVarId| match self.stride(access, var) {
            Stride::Elements(step) => step.abs() <= 1,
            Stride::Irregular => false,
        };
        let is_read_along = own(reader).is_some_and(|var| is_contiguous(read, &var));
        let is_transposed = || {
            let reads = self.draft.statement(producer).reads();
            own(producer).is_some_and(|var| reads.iter().any(|access| !is_near(access, var)))
        };
        self.draft.path(reader).iter().any(is_ordered) && is_read_along && is_transposed()
    }
}
