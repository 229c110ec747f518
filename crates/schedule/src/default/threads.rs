//! Defines [`with_threads`]: a schedule that was written for one thread, for several.

use tilewright_ir::Program;
use tilewright_target::Target;

use super::planner;
use crate::draft::Draft;
use crate::illegal::Refusal;
use crate::step::Schedule;
use crate::steps;

/// Runs the nests of a CPU's schedule in parallel that have enough work and no parallel loop yet. A
/// schedule for another target stays as it is. Refuses only if the given schedule is refused.
pub fn with_threads<'t>(
    program: &'t Program,
    schedule: Schedule,
    target: impl Into<Target<'t>>,
) -> Result<Schedule, Refusal> {
    let target = target.into();
    let mut draft = Draft::new(program, target).map_err(|reason| Refusal { step: None, reason })?;
    for (at, step) in schedule.steps.iter().enumerate() {
        steps::apply(&mut draft, step).map_err(|reason| Refusal { step: Some(at), reason })?;
    }
    Ok(planner(target, draft, schedule, None).with_threads())
}
