//! Defines [`NestCosts`]: the predicted times of nests, each of which is computed once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tilewright_ir::{LoopNest, walk};
use tilewright_schedule::compilation_effort;
use tilewright_schedule::partial::{NestId, PartialSchedule};
use tilewright_target::Target;

use crate::cost::CostModel;
use crate::kind::most_kernel_effort;

/// The cost of a nest.
#[derive(Clone, Copy, Debug)]
pub(super) struct NestCost {
    pub nest: NestId,
    /// The predicted seconds; infinite if the nest cannot be lowered.
    pub seconds: f64,
    /// The number of stores in the lowered nest. The time to lower and to estimate grows with it.
    pub size: usize,
}

/// The costs of all nests so far.
pub(super) struct NestCosts<'m> {
    model: &'m dyn CostModel,
    target: Target<'m>,
    /// The seconds and the size of each nest, by the steps that concern it; none if nothing is
    /// kept.
    known: Option<Mutex<HashMap<u64, (f64, usize)>>>,
}

impl<'m> NestCosts<'m> {
    pub fn new(model: &'m dyn CostModel, target: Target<'m>, keeps: bool) -> NestCosts<'m> {
        NestCosts { model, target, known: keeps.then(Mutex::default) }
    }

    /// The costs of all nests, and the size of those that are new. A decision changes few nests:
    /// those that are as they were `before` keep their costs.
    pub fn of_nests(
        &self,
        partial: &PartialSchedule,
        before: Option<(&PartialSchedule, &[NestCost])>,
    ) -> (Vec<NestCost>, usize) {
        let changed = before.map(|(before, _)| partial.changed_nests(before)).unwrap_or_default();
        let old = before.map_or(&[][..], |(_, costs)| costs);
        let kept = |nest: NestId| old.iter().find(|own| own.nest == nest && !changed.contains(&nest));
        let mut fresh = 0;
        let cost = |nest: NestId| {
            kept(nest).copied().unwrap_or_else(|| {
                let own = self.cost(partial, nest);
                fresh += own.size;
                own
            })
        };
        let costs = partial.nests().into_iter().map(cost).collect();
        (costs, fresh)
    }

    fn cost(&self, partial: &PartialSchedule, nest: NestId) -> NestCost {
        let compute = || match partial.lower_nest(nest) {
            Ok(lowered) => (seconds(&lowered, self.model, self.target), count_stores(&lowered)),
            Err(_) => (f64::INFINITY, 1),
        };
        let (seconds, size) = match &self.known {
            None => compute(),
            Some(known) => {
                let key = key(partial, nest);
                let found = lock(known).get(&key).copied();
                found.unwrap_or_else(|| {
                    let cost = compute();
                    lock(known).insert(key, cost);
                    cost
                })
            }
        };
        NestCost { nest, seconds, size }
    }
}

/// The seconds by which schedules compete: those that the model predicts, and more where kernels
/// take long to compile.
pub(super) fn seconds(nest: &LoopNest, model: &dyn CostModel, target: Target<'_>) -> f64 {
    let predicted = model.estimate(nest).seconds;
    let Some(most) = most_kernel_effort(target) else { return predicted };
    let kernels = nest.roots().len().max(1) as f64;
    let effort = compilation_effort(nest, target) as f64 / kernels;
    predicted * (effort / most).max(1.0)
}

fn count_stores(nest: &LoopNest) -> usize {
    let mut stores = 0;
    walk::visit(&nest.body, &mut |stmt| stores += usize::from(stmt.store().is_some()));
    stores
}

fn lock(known: &Mutex<HashMap<u64, (f64, usize)>>) -> MutexGuard<'_, HashMap<u64, (f64, usize)>> {
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
