//! Writes the schedule that a program gets without search, from static analysis alone.
//!
//! The analysis is FlexTensor's (section 4.1): for every statement its spatial and reduction loops,
//! their trip counts and order, and for every tensor its producers and consumers. Beyond
//! FlexTensor, it uses the stride in memory between neighbouring iterations of every loop.
//!
//! [`mod@inlining`] inlines pointwise stages that are cheap to repeat. The rest depends on the kind
//! of target: [`mod@cpu`] places, tiles and vectorises statements, and [`mod@gpu`] distributes
//! every statement over blocks and threads. `planner` is the only function that tells targets
//! apart. [`complete()`] adds the steps that a schedule leaves open.
//!
//! Every step is tried on the draft before it is added to the schedule, so the result is always
//! legal. Steps that cannot be applied are left out, down to the unchanged loops of the program's
//! text.

mod analysis;
mod complete;
mod cpu;
mod gpu;
mod inlining;
mod threads;

use tilewright_ir::Program;
use tilewright_target::Target;

use crate::draft::{Draft, StatementId};
use crate::lower::size::MeasuredDraft;
use crate::step::{LoopName, Schedule, StatementName, Step};
use crate::steps;

pub use complete::complete;
pub use threads::with_threads;

/// Returns a schedule for a program whose sizes are known, and an empty one where they are not.
pub fn schedule_by_rules<'t>(program: &'t Program, target: impl Into<Target<'t>>) -> Schedule {
    let target = target.into();
    let Ok(draft) = Draft::new(program, target) else { return Schedule::default() };
    planner(target, draft, Schedule::default(), None).schedule()
}

/// Plans the schedule for one kind of target.
pub(crate) trait Plan<'a> {
    /// Plans a draft to which no step has been applied.
    fn schedule(self: Box<Self>) -> Schedule;

    /// Adds steps for all statements except those in `done`, and returns the schedule and its
    /// draft. The first `program_statements` statements are those of the program; steps of the
    /// schedule have made the others.
    fn complete(self: Box<Self>, done: &[StatementName], program_statements: usize) -> (Schedule, Draft<'a>);

    /// Runs nests in parallel that have enough work and no parallel loop, on targets whose
    /// schedules choose what threads run.
    fn with_threads(self: Box<Self>) -> Schedule;
}

/// Returns the planner for a target. `schedule` has led to `draft`, and `lowered` is the last draft
/// that was found to be legal.
pub(crate) fn planner<'a>(
    target: Target<'a>,
    draft: Draft<'a>,
    schedule: Schedule,
    lowered: Option<MeasuredDraft<'a>>,
) -> Box<dyn Plan<'a> + 'a> {
    match target {
        Target::Cpu(machine) => Box::new(Planner { machine, draft, schedule, last_legal: lowered }),
        Target::Gpu(machine) => Box::new(Planner { machine, draft, schedule, last_legal: lowered }),
    }
}

/// The name of a tensor as part of a new name. Tensors of called functions have a dot in their
/// names, which the schedule's text does not allow in new names.
fn without_dots(tensor: &str) -> String {
    tensor.replace('.', "_")
}

/// Returns true when only lowering can decide whether a step is legal, because of the limits on
/// registers, vectors and code size.
fn needs_lowering(step: &Step) -> bool {
    matches!(step, Step::Unroll(_) | Step::Vectorize(_) | Step::Promote { .. })
}

/// The steps so far, and the draft that they lead to, for a machine.
pub(crate) struct Planner<'a, M> {
    pub machine: &'a M,
    pub draft: Draft<'a>,
    pub schedule: Schedule,
    /// The last draft that was found to be legal.
    last_legal: Option<MeasuredDraft<'a>>,
}

impl<'a, M> Planner<'a, M> {
    /// Applies a step and adds it to the schedule, if it is legal.
    pub fn try_step(&mut self, step: Step) -> bool {
        let mut next = self.draft.clone();
        if steps::apply(&mut next, &step).is_err() {
            return false;
        }
        self.draft = next;
        self.schedule.steps.push(step);
        true
    }

    /// Takes steps that only make sense together. If one is not legal, or the draft cannot be
    /// lowered, none is taken.
    pub fn try_steps(&mut self, plan: impl FnOnce(&mut Self) -> bool) -> bool {
        let before = self.draft.clone();
        let steps = self.schedule.steps.len();
        if plan(self) && (!self.schedule.steps[steps..].iter().any(needs_lowering) || self.can_be_lowered()) {
            return true;
        }
        self.draft = before;
        self.schedule.steps.truncate(steps);
        false
    }

    fn can_be_lowered(&mut self) -> bool {
        let measured = match &self.last_legal {
            Some(before) => before.after_changes(&self.draft),
            None => MeasuredDraft::new(&self.draft),
        };
        let is_legal = measured.is_ok();
        self.last_legal = measured.ok().or(self.last_legal.take());
        is_legal
    }

    /// Returns an unused name that begins with this one.
    pub(super) fn unused_name(&self, like: &str) -> String {
        let taken = |name: &String| {
            self.draft.loops.iter().any(|own| own.name == *name)
                || self.draft.expect_unused_name(name).is_err()
        };
        let numbered = (2..).map(|number| format!("{like}{number}"));
        let mut names = std::iter::once(like.to_string()).chain(numbered);
        names.find(|name| !taken(name)).expect("there are more names than loops")
    }

    /// The name of a loop, as steps use it.
    pub fn loop_name(&self, var: tilewright_ir::nest::LoopVarId) -> LoopName {
        self.draft.loop_name(var)
    }

    /// The name of a statement.
    pub fn name_of(&self, statement: StatementId) -> StatementName {
        self.draft.statement(statement).name.clone()
    }
}
