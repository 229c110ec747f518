//! Defines [`PartialSchedule`]: a schedule that is still being written, for programs that choose
//! its steps.
//!
//! A partial schedule has the steps so far and the loops that they lead to. A scheduler asks for
//! the stages of the program and for what can be decided about each ([`PartialSchedule::choices`]),
//! takes decisions, and has the open rest filled in as in the default schedule
//! ([`PartialSchedule::complete`]). A decision is a list of steps, so a scheduler may also try
//! steps of its own ([`PartialSchedule::with`]).
//!
//! Every decision gives a new partial schedule and leaves the old one as it was. The two share all
//! that the decision does not change, so a copy is cheap, and undoing a decision is to drop the
//! copy. [`PartialSchedule::changed_nests`] tells which nests differ, so that a search computes the
//! cost of these alone.

mod blocks;
mod concern;
mod place;
mod placements;

use std::sync::Arc;

use tilewright_ir::{LoopNest, Program};
use tilewright_target::Target;

use crate::default::planner;
use crate::draft::{Draft, Legal, Node};
use crate::illegal::Illegal;
use crate::lower;
use crate::step::{Schedule, StatementName, Step};
use crate::steps;

use concern::Operands;
pub use place::Place;
pub use placements::{Choice, Freedom, Placement, StageId};

/// A nest at the root of the loops: one stage, with all that is computed inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NestId(Node);

/// A program with the steps that have been decided so far.
#[derive(Clone, Debug)]
pub struct PartialSchedule<'a> {
    target: Target<'a>,
    draft: Draft<'a>,
    steps: Vec<Step>,
    /// The number of statements of the program, which are the first ones of the draft.
    program_statements: usize,
    operands: Arc<Operands>,
}

impl<'a> PartialSchedule<'a> {
    /// The program without any steps. Its sizes must be known.
    pub fn new(program: &'a Program, target: impl Into<Target<'a>>) -> Result<Self, Illegal> {
        let target = target.into();
        let draft = Draft::new(program, target)?;
        let program_statements = draft.statements.len();
        let operands = Arc::new(Operands::new(program));
        Ok(PartialSchedule { target, draft, steps: Vec::new(), program_statements, operands })
    }

    /// Whether the target runs grids of blocks of threads.
    pub fn has_grid(&self) -> bool {
        self.draft.capabilities.grid.is_some()
    }

    /// The steps so far.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Applies more steps.
    pub fn with(&self, steps: &[Step]) -> Result<Self, Illegal> {
        let mut next = self.clone();
        for step in steps {
            steps::apply(&mut next.draft, step)?;
            next.steps.push(step.clone());
        }
        Ok(next)
    }

    /// The nests at the root, in the order in which they run.
    pub fn nests(&self) -> Vec<NestId> {
        self.draft.body.iter().copied().map(NestId).collect()
    }

    /// The nests that `before` does not have, or has with other contents.
    pub fn changed_nests(&self, before: &PartialSchedule) -> Vec<NestId> {
        let changed = self.draft.statements_changed_since(&before.draft);
        let removed = before.draft.statements_changed_since(&self.draft);
        let is_changed = |nest: &NestId| {
            let inside = self.draft.statements_in(&[nest.0]);
            inside.iter().any(|id| changed.contains(id) || removed.contains(id))
        };
        self.nests().into_iter().filter(is_changed).collect()
    }

    /// The loops of one nest alone, with all that is still open filled in.
    pub fn lower_nest(&self, nest: NestId) -> Legal<LoopNest> {
        self.lower_nest_with(nest, &[])
    }

    /// Like [`PartialSchedule::lower_nest`], but leaves the loops of these statements as the steps
    /// have made them.
    pub fn lower_nest_with(&self, nest: NestId, done: &[StatementName]) -> Legal<LoopNest> {
        let mut alone = self.draft.clone();
        alone.body = vec![nest.0];
        let open = planner(self.target, alone, Schedule::default(), None);
        let (_, completed) = open.complete(done, self.draft.statements.len());
        lower::lower(&completed)
    }

    /// The schedule, with all that is still open filled in as in the default schedule.
    pub fn complete(&self) -> Schedule {
        let steps = Schedule { steps: self.steps.clone() };
        let open = planner(self.target, self.draft.clone(), steps, None);
        open.complete(&[], self.draft.statements.len()).0
    }
}
