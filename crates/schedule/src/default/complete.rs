//! Completes a partial schedule: applies its steps, then adds steps for all statements that the
//! caller does not list as done, chosen as for the default schedule.

use tilewright_ir::Program;
use tilewright_target::Target;

use super::planner;
use crate::draft::Draft;
use crate::illegal::Refusal;
use crate::lower::size::MeasuredDraft;
use crate::step::{Schedule, StatementName};
use crate::steps;

/// Adds steps for all statements except those in `done`, chosen as [`super::schedule_by_rules`]
/// chooses them. Refuses only if the given schedule itself is refused.
pub fn complete<'t>(
    program: &'t Program,
    schedule: Schedule,
    done: &[StatementName],
    target: impl Into<Target<'t>>,
) -> Result<Schedule, Refusal> {
    let target = target.into();
    let whole = |reason| Refusal { step: None, reason };
    let mut draft = Draft::new(program, target).map_err(whole)?;
    let program_statements = draft.statements.len();
    for (at, step) in schedule.steps.iter().enumerate() {
        steps::apply(&mut draft, step).map_err(|reason| Refusal { step: Some(at), reason })?;
    }
    let lowered = Some(MeasuredDraft::new(&draft).map_err(whole)?);
    Ok(planner(target, draft, schedule, lowered).complete(done, program_statements).0)
}
