//! Defines [`default_schedule`]: the schedule that a program gets unless another one is asked for.

use tilewright_ir::Program;
use tilewright_schedule::{Schedule, schedule_by_rules};
use tilewright_target::Target;

use crate::beam::{self, BeamOptions};
use crate::kind::cost_model;

/// The schedule that a program gets unless another one is asked for: the one by rules, or a better
/// one that a short beam search finds.
pub fn default_schedule<'t>(program: &'t Program, target: impl Into<Target<'t>>) -> Schedule {
    let target = target.into();
    let found = beam::search(program, target, &*cost_model(target), &BeamOptions::DEFAULT).ok();
    match found.and_then(|found| found.ranked.into_iter().next()) {
        Some((schedule, _)) => schedule,
        None => schedule_by_rules(program, target),
    }
}
