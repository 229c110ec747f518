//! Completes a schedule that contains only the important steps.

use tilewright_ir::Program;
use tilewright_target::Target;

use super::{Planner, gpu};
use crate::draft::{Draft, StatementId};
use crate::illegal::Refusal;
use crate::lower::size::Measured;
use crate::step::{Schedule, StatementName};
use crate::steps;

/// Adds steps for all statements except those in `done`, chosen as [`super::default_schedule`]
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
    let own = draft.statements.len();
    for (at, step) in schedule.steps.iter().enumerate() {
        steps::apply(&mut draft, step).map_err(|reason| Refusal { step: Some(at), reason })?;
    }
    let lowered = Some(Measured::new(&draft).map_err(whole)?);
    let cpu = match target {
        Target::Cpu(cpu) => cpu,
        Target::Gpu(gpu) => return Ok(gpu::finish(Planner { draft, schedule, lowered, machine: gpu }, done)),
    };
    let mut planner = Planner { draft, schedule, lowered, machine: cpu };
    for statement in planner.draft.statements_in(&planner.draft.body) {
        if done.contains(&planner.name_of(statement)) {
            continue;
        }
        match statement.0 < own {
            true => planner.guarded(|planner| planner.tile_statement(statement)),
            false => planner.guarded(|planner| planner.finish_copy(statement)),
        };
    }
    Ok(planner.schedule)
}

impl Planner<'_> {
    /// Handles a copy that a promotion made: vectors along its last loop, and threads if it is
    /// outside other parallel loops.
    fn finish_copy(&mut self, statement: StatementId) -> bool {
        let name = self.name_of(statement);
        let Some(last) = self.draft.own_loops(statement).last().copied() else { return true };
        let last = self.loop_name(last);
        self.guarded(|planner| planner.vectorize_copy(&last));
        self.guarded(|planner| planner.run_in_parallel(&name))
    }
}
