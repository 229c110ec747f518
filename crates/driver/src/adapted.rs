//! Uses a schedule of the cache that was tuned for nearly the same sizes or for another number of
//! threads, where nothing was tuned for the wanted ones.

use tilewright_cache::{Difference, NearSchedule};
use tilewright_ir::Program;
use tilewright_schedule::{Schedule, apply, with_threads};
use tilewright_search::cost::CostModel;
use tilewright_target::Target;

use crate::schedule::{ChosenSchedule, Origin};

/// How much slower than the default schedule an adapted one may be by the model. A schedule that
/// has won a search was measured, and the model errs.
const MOST_LOSS: f64 = 1.2;

/// The default schedule, or the first of these that is legal here and promises to be as fast.
pub(crate) fn adapted_or_default<'t>(
    program: &'t Program,
    target: Target<'t>,
    near: Vec<NearSchedule>,
    model: &dyn CostModel,
) -> ChosenSchedule {
    let default = ChosenSchedule::default(program, target);
    let seconds = |schedule: &Schedule| {
        let nest = apply(program, schedule, target).ok()?;
        Some(model.estimate(&nest).seconds)
    };
    let Some(limit) = seconds(&default.schedule).map(|seconds| MOST_LOSS * seconds) else { return default };
    let adapted = |near: NearSchedule| {
        let schedule = with_more_threads(program, target, &near)?;
        let is_fast = seconds(&schedule).is_some_and(|seconds| seconds <= limit);
        let origin = Origin::Adapted { differences: near.differences };
        is_fast.then_some(ChosenSchedule { schedule, origin, unusable: Vec::new() })
    };
    near.into_iter().find_map(adapted).unwrap_or(default)
}

/// A schedule for a single thread has no parallel loops.
fn with_more_threads(program: &Program, target: Target<'_>, near: &NearSchedule) -> Option<Schedule> {
    let is_of_one = |own: &Difference| matches!(own, Difference::Threads { found: 1, .. });
    match near.differences.iter().any(is_of_one) {
        true => with_threads(program, near.schedule.clone(), target).ok(),
        false => Some(near.schedule.clone()),
    }
}
