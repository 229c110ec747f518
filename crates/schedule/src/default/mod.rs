//! The schedule that a program gets without search, from static analysis alone.
//!
//! The analysis is FlexTensor's (section 4.1): for every statement its spatial and reduced loops, their trip counts
//! and order, and for every tensor its producers and consumers; beyond it, the distance in memory between
//! neighbouring iterations of every loop. From that:
//! 1. [`mod@placement`]: pointwise stages that are cheap to repeat are inlined, and other producers are computed at
//!    the outer loop of their last consumer where that repeats little or nothing;
//! 2. [`mod@tile`]: each statement gets vectors along the loop that walks memory and a register tile where it reduces;
//!    [`mod@total`] where only a reduced loop walks memory; [`mod@pack`] copies operands that are used often;
//! 3. [`mod@threads`]: the outermost loop that has enough iterations runs in parallel.
//!
//! For a GPU, [`mod@gpu`] spreads every statement over blocks and threads: [`mod@outer_product`] in tiles, [`mod@combined`]
//! lets threads share a result, [`mod@lanes`] gives them several side by side, [`mod@block`] spreads what is inside
//! another's blocks, and [`mod@parts`] cuts long reductions for all of them.
//!
//! Every step is tried on the loops before it is taken, so the result is always legal: what cannot be done is left
//! out, down to the loops of the text.

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

/// A schedule for a program whose sizes are known; an empty one where they are not.
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

/// The name of a tensor as part of a new one: those of called functions have a dot, which a schedule's text gives no
/// new name.
fn one_word(tensor: &str) -> String {
    tensor.replace('.', "_")
}

/// Whether only lowering can tell if a step is legal: what fits registers, vectors and the size of the code.
fn needs_lowering(step: &Step) -> bool {
    matches!(step, Step::Unroll(_) | Step::Vectorize(_) | Step::Promote { .. })
}

/// The steps so far, and the loops that they lead to, on a machine.
pub(crate) struct Planner<'a, M = Cpu> {
    pub machine: &'a M,
    pub draft: Draft<'a>,
    pub schedule: Schedule,
    /// The last loops that were found to be legal.
    lowered: Option<Measured<'a>>,
}

impl<'a, M> Planner<'a, M> {
    /// Takes a step if it is legal.
    pub fn take(&mut self, step: Step) -> bool {
        let mut next = self.draft.clone();
        if steps::apply(&mut next, &step).is_err() {
            return false;
        }
        self.draft = next;
        self.schedule.steps.push(step);
        true
    }

    /// Takes steps that only make sense together: if one is not legal, or they cannot be lowered, none is taken.
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
