//! Defines [`NestCosts`]: the predicted times of nests, each of which is computed once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use tilewright_schedule::partial::{NestId, PartialSchedule};
use tilewright_schedule::{StatementName, Step};

use crate::cost::CostModel;

/// The costs of all nests so far.
pub(super) struct NestCosts<'m> {
    model: &'m dyn CostModel,
    /// The predicted seconds of each nest, by the steps that concern it; none if nothing is kept.
    known: Option<HashMap<u64, f64>>,
}

impl<'m> NestCosts<'m> {
    pub fn new(model: &'m dyn CostModel, keeps: bool) -> NestCosts<'m> {
        NestCosts { model, known: keeps.then(HashMap::new) }
    }

    /// The predicted seconds of each nest; infinite if it cannot be lowered. A decision changes few
    /// nests: those that are as they were `before` keep their costs.
    pub fn of_nests(
        &mut self,
        partial: &PartialSchedule,
        before: Option<(&PartialSchedule, &[(NestId, f64)])>,
    ) -> Vec<(NestId, f64)> {
        let changed = before.map(|(before, _)| partial.changed_nests(before)).unwrap_or_default();
        let old = before.map_or(&[][..], |(_, costs)| costs);
        let kept = |nest: NestId| old.iter().find(|(own, _)| *own == nest && !changed.contains(&nest));
        let nests = partial.nests().into_iter();
        nests.map(|nest| kept(nest).copied().unwrap_or_else(|| (nest, self.seconds(partial, nest)))).collect()
    }

    fn seconds(&mut self, partial: &PartialSchedule, nest: NestId) -> f64 {
        let model = self.model;
        let compute = || partial.lower_nest(nest).map_or(f64::INFINITY, |nest| model.estimate(&nest).seconds);
        match &mut self.known {
            Some(known) => *known.entry(key(partial, nest)).or_insert_with(compute),
            None => compute(),
        }
    }
}

/// Identifies a nest by its statements and the steps that have led to it. A step that inlines a
/// stage concerns all nests, since it may have changed any of them.
fn key(partial: &PartialSchedule, nest: NestId) -> u64 {
    let statements = partial.statements_in(nest);
    let mut hasher = DefaultHasher::new();
    statements.hash(&mut hasher);
    for step in partial.steps().iter().filter(|step| concerns(step, &statements)) {
        step.hash(&mut hasher);
    }
    hasher.finish()
}

fn concerns(step: &Step, statements: &[StatementName]) -> bool {
    let loops = step.loops();
    loops.is_empty()
        || loops.iter().any(|name| statements.contains(&name.statement))
        || statements.iter().any(|own| step.placed_tensor() == Some(&own.tensor))
}
