//! Inlines pointwise stages of the program into their consumers, if a stage is cheap to repeat or
//! its only consumer computes no more points than the stage.

use tilewright_ir::TensorId;
use tilewright_ir::nest::{Access, BufferId};

use super::Planner;
use crate::analysis::operations;
use crate::draft::{Draft, Parent, StatementId};
use crate::step::Step;

/// The largest cost, in operations, of an expression that is repeated rather than stored.
const MOST_REPEATED_OPERATIONS: usize = 3;

impl<M> Planner<'_, M> {
    /// Inlines pointwise stages that are cheap to repeat, except those for which `is_kept` returns
    /// true: it gets the stage's statement, a statement that reads the stage, and the read.
    pub(super) fn inline_stages(
        &mut self,
        is_kept: impl Fn(&Self, StatementId, StatementId, &Access) -> bool,
    ) {
        for at in 0..self.draft.program.tensors.len() {
            let tensor = TensorId(at as u32);
            if self.is_cheap_to_repeat(Draft::buffer_of(tensor), &is_kept) {
                let tensor = self.draft.program.tensor(tensor).name.clone();
                self.try_steps(|planner| planner.try_step(Step::Inline { tensor }));
            }
        }
    }

    /// Returns true when a pointwise stage costs less inside its consumers than in memory.
    fn is_cheap_to_repeat(
        &self,
        tensor: BufferId,
        is_kept: &impl Fn(&Self, StatementId, StatementId, &Access) -> bool,
    ) -> bool {
        let producers = self.draft.writers(Parent::Body, tensor);
        let [producer] = producers.as_slice() else { return false };
        let reads = self.draft.readers(Parent::Body, tensor);
        let own = self.points(*producer);
        let used: f64 = reads.iter().map(|(reader, _)| self.points(*reader)).sum();
        if reads.iter().any(|(reader, read)| is_kept(self, *producer, *reader, read)) {
            return false;
        }
        let cost = operations(&self.draft.statement(*producer).value);
        cost <= MOST_REPEATED_OPERATIONS || (reads.len() == 1 && used <= own)
    }
}
