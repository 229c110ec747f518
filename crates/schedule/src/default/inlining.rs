//! Inlines pointwise stages of the program into their consumers, if a stage is cheap to repeat or
//! its only consumer computes no more points than the stage.

use tilewright_ir::TensorId;
use tilewright_ir::nest::BufferId;

use super::Planner;
use crate::analysis::operations;
use crate::draft::{Draft, Parent};
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
        let cost = operations(&self.draft.statement(*producer).value);
        cost <= MOST_REPEATED_OPERATIONS || (reads.len() == 1 && used <= own)
    }
}
