//! Defines [`Decisions`]: the decisions that lead to a partial schedule.

use tilewright_schedule::Step;
use tilewright_schedule::partial::{Freedom, PartialSchedule, StageId};

/// The steps of each decision, in the order of [`PartialSchedule::stages`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Decisions {
    steps: Vec<Vec<Step>>,
}

impl Decisions {
    /// These decisions and one more, which has led from one partial schedule to the next.
    pub fn and(&self, before: &PartialSchedule, next: &PartialSchedule) -> Decisions {
        let mut steps = self.steps.clone();
        steps.push(next.steps()[before.steps().len()..].to_vec());
        Decisions { steps }
    }

    /// The steps of a decision that divide loops for the stage. Other stages may be computed at the
    /// loops that they make.
    pub fn dividing_steps(&self, at: usize) -> Vec<Step> {
        let all = self.steps.get(at).map_or(&[][..], Vec::as_slice);
        all.iter().filter(|step| step.placed_tensor().is_none()).cloned().collect()
    }

    /// Takes a decision, given by the position of its stage, if need be after steps that divide the
    /// loops for it. Returns none where it is not possible.
    pub fn take<'a>(
        &self,
        at: usize,
        stage: StageId,
        partial: &PartialSchedule<'a>,
        dividing: &[Step],
    ) -> Option<PartialSchedule<'a>> {
        let steps = self.steps.get(at).map_or(&[][..], Vec::as_slice);
        if steps.is_empty() {
            return (partial.freedom(stage) != Freedom::ReadOnce).then(|| partial.clone());
        }
        let divided = || partial.with(&[dividing, steps].concat());
        partial.with(steps).or_else(|_| divided()).ok()
    }
}
