//! Defines [`with_threads`]: a schedule that was written for one thread, for several.

use tilewright_ir::Program;
use tilewright_target::Target;

use super::Planner;
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
    let Target::Cpu(machine) = target else { return Ok(schedule) };
    let mut draft = Draft::new(program, target).map_err(|reason| Refusal { step: None, reason })?;
    for (at, step) in schedule.steps.iter().enumerate() {
        steps::apply(&mut draft, step).map_err(|reason| Refusal { step: Some(at), reason })?;
    }
    let mut planner = Planner { machine, draft, schedule, last_legal: None };
    for statement in planner.draft.statements_in(&planner.draft.body) {
        let name = planner.name_of(statement);
        planner.try_steps(|planner| planner.run_in_parallel(&name));
    }
    Ok(planner.schedule)
}
