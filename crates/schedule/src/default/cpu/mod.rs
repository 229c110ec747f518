//! Plans the schedule that a program gets on a CPU without search, in three parts:
//!
//! 1. [`mod@placement`] computes producers at the outer loop of their last consumer where that
//!    repeats little or nothing.
//! 2. [`mod@tile`] gives each statement vectors along the loop that is contiguous in memory, and a
//!    register tile where it reduces. [`mod@contiguous_reductions`] handles statements in which
//!    only a reduction loop is contiguous. [`mod@pack`] copies operands that are used often.
//!    [`mod@transpositions`] tiles statements that read along another dimension than they write.
//!    [`mod@scatters`] handles statements in which data chooses the element that is updated.
//!    [`mod@recurrences`] moves independent recurrences out of ordered loops first.
//! 3. [`mod@threads`] runs the outermost loop that has enough iterations in parallel.

mod contiguous_reductions;
mod pack;
mod placement;
mod recurrences;
mod scatters;
mod threads;
mod tile;
mod transpositions;

use tilewright_target::Cpu;

use crate::default::{Plan, Planner};
use crate::draft::{Draft, StatementId};
use crate::step::{Schedule, StatementName};

impl<'a> Plan<'a> for Planner<'a, Cpu> {
    fn schedule(mut self: Box<Self>) -> Schedule {
        self.place_stages();
        for statement in self.draft.statements_in(&self.draft.body) {
            self.try_steps(|planner| planner.tile_statement(statement));
        }
        if self.can_be_lowered() { self.schedule } else { Schedule::default() }
    }

    fn complete(
        mut self: Box<Self>,
        done: &[StatementName],
        program_statements: usize,
    ) -> (Schedule, Draft<'a>) {
        for statement in self.draft.statements_in(&self.draft.body) {
            if done.contains(&self.name_of(statement)) {
                continue;
            }
            match statement.0 < program_statements {
                true => self.try_steps(|planner| planner.tile_statement(statement)),
                false => self.try_steps(|planner| planner.finish_copy(statement)),
            };
        }
        (self.schedule, self.draft)
    }

    fn with_threads(mut self: Box<Self>) -> Schedule {
        for statement in self.draft.statements_in(&self.draft.body) {
            let name = self.name_of(statement);
            self.try_steps(|planner| planner.run_in_parallel(&name));
        }
        self.schedule
    }
}

impl Planner<'_, Cpu> {
    /// Handles a copy that a promotion made: vectors along its last loop, and threads if it is
    /// outside other parallel loops.
    fn finish_copy(&mut self, statement: StatementId) -> bool {
        let name = self.name_of(statement);
        let Some(last) = self.draft.loops_owned_by(statement).last().copied() else { return true };
        let last = self.loop_name(last);
        self.try_steps(|planner| planner.vectorize_copy(&last));
        self.try_steps(|planner| planner.run_in_parallel(&name))
    }
}
