//! Defines schedules: the steps that transform a program's loops, with their text form, their
//! legality and their lowering.
//!
//! A [`Schedule`] is a list of [`Step`]s, with a text form in [`text`]. [`apply`] applies the steps
//! one after the other to the loops of a program and lowers the result to a [`LoopNest`]. `apply`
//! is total: a step that cannot be applied gives a [`Refusal`], which names the reason and, where a
//! single step is at fault, that step. Some refusals appear only after the last step; [`blame()`]
//! then finds the step at fault. [`schedule_by_rules`] writes a schedule for any program, from
//! static analysis alone. [`complete`] adds the steps that a partial schedule leaves open.
//! [`rename`] translates a schedule to the names of another program.
//!
//! Read next: [`step`] for the vocabulary, `draft` for the loops while steps are applied, `steps`
//! for the effect of each step, `legality` for why a schedule is legal, `lower` for how the result
//! becomes a loop nest.

pub mod analysis;
mod blame;
mod default;
mod draft;
pub mod illegal;
mod legality;
mod lower;
pub mod partial;
mod rename;
pub mod step;
mod steps;
pub mod text;

use tilewright_ir::{LoopNest, Program};
use tilewright_target::Target;

pub use blame::blame;
pub use default::{complete, schedule_by_rules, with_threads};
pub use illegal::{GpuResource, Illegal, KernelFault, Refusal};
pub use lower::effort::compilation_effort;
pub use partial::PartialSchedule;
pub use rename::{NamingScheme, RenamedSchedule, rename};
pub use step::{
    LayoutDim, LoopLevel, LoopName, ParallelUnit, PromoteScope, Schedule, StatementName, Step, Storage,
};

use draft::Draft;

/// Applies a schedule to a program whose sizes are all known, and returns the lowered loops.
pub fn apply<'t>(
    program: &'t Program,
    schedule: &Schedule,
    target: impl Into<Target<'t>>,
) -> Result<LoopNest, Refusal> {
    let whole = |reason| Refusal { step: None, reason };
    let mut draft = Draft::new(program, target.into()).map_err(whole)?;
    for (at, step) in schedule.steps.iter().enumerate() {
        steps::apply(&mut draft, step).map_err(|reason| Refusal { step: Some(at), reason })?;
    }
    lower::lower(&draft).map_err(whole)
}
