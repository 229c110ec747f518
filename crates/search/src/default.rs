//! Defines [`default_schedule`]: the schedule that a program gets unless another one is asked for.

use tilewright_ir::Program;
use tilewright_schedule::{Schedule, schedule_by_rules};
use tilewright_target::Target;

use crate::beam;
use crate::kind::{cost_model, default_search};

/// The schedule that a program gets unless another one is asked for: by rules, and on targets whose
/// cost model can be relied on the better one that a short beam search finds.
pub fn default_schedule<'t>(program: &'t Program, target: impl Into<Target<'t>>) -> Schedule {
    let target = target.into();
    let searched = default_search(target)
        .and_then(|options| beam::search(program, target, &*cost_model(target), &options).ok());
    match searched.and_then(|found| found.ranked.into_iter().next()) {
        Some((schedule, _)) => schedule,
        None => schedule_by_rules(program, target),
    }
}
