//! Writes the schedule that a program gets without search, from static analysis alone.
//!
//! The analysis is FlexTensor's (section 4.1): for every statement its spatial and reduction loops,
//! their trip counts and order, and for every tensor its producers and consumers. Beyond
//! FlexTensor, it uses the stride in memory between neighbouring iterations of every loop. From
//! that:
//! 1. [`mod@placement`] inlines pointwise stages that are cheap to repeat. It computes other
//!    producers at the outer loop of their last consumer where that repeats little or nothing.
//! 2. [`mod@tile`] gives each statement vectors along the loop that is contiguous in memory, and a
//!    register tile where it reduces. [`mod@total`] handles statements in which only a reduction
//!    loop is contiguous. [`mod@pack`] copies operands that are used often.
//! 3. [`mod@threads`] runs the outermost loop that has enough iterations in parallel.
//!
//! For a GPU, [`mod@gpu`] distributes every statement over blocks and threads.
//! [`mod@outer_product`] does so in tiles, [`mod@combined`] lets threads share a result, and
//! [`mod@lanes`] gives each thread several adjacent results. [`mod@block`] handles statements
//! inside another statement's blocks. [`mod@parts`] splits long reductions for all of these.
//!
//! Every step is tried on the draft before it is added to the schedule, so the result is always
//! legal. Steps that cannot be applied are left out, down to the unchanged loops of the program's
//! text.

mod analysis;
mod block;
mod combined;
mod complete;
mod gpu;
mod lanes;
mod outer_product;
mod pack;
mod parts;
mod placement;
mod threads;
mod tile;
mod total;

use tilewright_ir::Program;
use tilewright_target::{Cpu, Target};

use crate::draft::{Draft, StatementId};
use crate::lower::size::Measured;
use crate::step::{LoopName, Schedule, StatementName, Step};
use crate::steps;

pub use complete::complete;

/// Returns a schedule for a program whose sizes are known, and an empty one where they are not.
pub fn default_schedule<'t>(program: &'t Program, target: impl Into<Target<'t>>) -> Schedule {
    let target = target.into();
    let Ok(draft) = Draft::new(program, target) else { return Schedule::default() };
    match target {
        Target::Cpu(cpu) => for_cpu(draft, cpu),
        Target::Gpu(gpu) => gpu::schedule(draft, gpu),
    }
}

fn for_cpu<'a>(draft: Draft<'a>, cpu: &'a Cpu) -> Schedule {
    let mut planner = Planner { draft, schedule: Schedule::default(), lowered: None, machine: cpu };
    planner.place_stages();
    for statement in planner.draft.statements_in(&planner.draft.body) {
        planner.guarded(|planner| planner.tile_statement(statement));
    }
    if planner.can_be_lowered() { planner.schedule } else { Schedule::default() }
}

/// The name of a tensor as part of a new name. Tensors of called functions have a dot in their
/// names, which the schedule's text does not allow in new names.
fn one_word(tensor: &str) -> String {
    tensor.replace('.', "_")
}

/// Returns true when only lowering can decide whether a step is legal, because of the limits on
/// registers, vectors and code size.
fn needs_lowering(step: &Step) -> bool {
    matches!(step, Step::Unroll(_) | Step::Vectorize(_) | Step::Promote { .. })
}

/// The steps so far, and the draft that they lead to, for a machine.
pub(crate) struct Planner<'a, M = Cpu> {
    pub machine: &'a M,
    pub draft: Draft<'a>,
    pub schedule: Schedule,
    /// The last draft that was found to be legal.
    lowered: Option<Measured<'a>>,
}

impl<'a, M> Planner<'a, M> {
    /// Applies a step and adds it to the schedule, if it is legal.
    pub fn take(&mut self, step: Step) -> bool {
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
    pub fn guarded(&mut self, plan: impl FnOnce(&mut Self) -> bool) -> bool {
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
        let measured = match &self.lowered {
            Some(before) => before.after_changes(&self.draft),
            None => Measured::new(&self.draft),
        };
        let is_legal = measured.is_ok();
        self.lowered = measured.ok().or(self.lowered.take());
        is_legal
    }

    /// The name of a loop, as steps use it.
    pub fn loop_name(&self, var: tilewright_ir::VarId) -> LoopName {
        let own = self.draft.loop_of(var);
        let inside = || self.draft.first_statement(self.draft.body_of(var));
        let statement = own.owner.or_else(inside).expect("a loop has a statement inside");
        self.name_of(statement).at(own.name.clone())
    }

    /// The name of a statement.
    pub fn name_of(&self, statement: StatementId) -> StatementName {
        self.draft.statement(statement).name.clone()
    }
}
