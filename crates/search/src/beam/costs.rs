//! Defines [`NestCosts`]: the predicted times of nests, each of which is computed once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tilewright_schedule::partial::{NestId, PartialSchedule};

use crate::cost::CostModel;

/// The costs of all nests so far.
pub(super) struct NestCosts<'m> {
    model: &'m dyn CostModel,
    /// The predicted seconds of each nest, by the steps that concern it; none if nothing is kept.
    known: Option<Mutex<HashMap<u64, f64>>>,
}

impl<'m> NestCosts<'m> {
    pub fn new(model: &'m dyn CostModel, keeps: bool) -> NestCosts<'m> {
        NestCosts { model, known: keeps.then(Mutex::default) }
    }

    /// The predicted seconds of each nest; infinite if it cannot be lowered. A decision changes few
    /// nests: those that are as they were `before` keep their costs.
    pub fn of_nests(
        &self,
        partial: &PartialSchedule,
        before: Option<(&PartialSchedule, &[(NestId, f64)])>,
    ) -> Vec<(NestId, f64)> {
        let changed = before.map(|(before, _)| partial.changed_nests(before)).unwrap_or_default();
        let old = before.map_or(&[][..], |(_, costs)| costs);
        let kept = |nest: NestId| old.iter().find(|(own, _)| *own == nest && !changed.contains(&nest));
        let nests = partial.nests().into_iter();
        nests.map(|nest| kept(nest).copied().unwrap_or_else(|| (nest, self.seconds(partial, nest)))).collect()
    }

    fn seconds(&self, partial: &PartialSchedule, nest: NestId) -> f64 {
        let compute =
            || partial.lower_nest(nest).map_or(f64::INFINITY, |nest| self.model.estimate(&nest).seconds);
        let Some(known) = &self.known else { return compute() };
        let key = key(partial, nest);
        let found = lock(known).get(&key).copied();
        found.unwrap_or_else(|| {
            let seconds = compute();
            lock(known).insert(key, seconds);
            seconds
        })
    }
}

fn lock(known: &Mutex<HashMap<u64, f64>>) -> MutexGuard<'_, HashMap<u64, f64>> {
    // A thread that panicked has left complete entries only.
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Identifies a nest by its statements and the steps that have led to it.
fn key(partial: &PartialSchedule, nest: NestId) -> u64 {
    let mut hasher = DefaultHasher::new();
    partial.statements_in(nest).hash(&mut hasher);
    partial.steps_of(nest).hash(&mut hasher);
    hasher.finish()
}
