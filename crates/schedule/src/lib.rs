//! Steps that turn a program into loops: what they are, how they read, and when they are legal.
//!
//! A [`Schedule`] is a list of [`Step`]s, with a text form in [`text`]. [`apply`] does them one after the other on
//! the loops of a program and lowers the result to a [`LoopNest`]; it is total: what it cannot do is a [`Refusal`]
//! that names the reason, and the step where one alone is at fault; [`blame()`] finds it where it shows only in the end.
//! [`default_schedule`] writes one for any program, from static analysis alone, and [`complete`] what a schedule leaves
//! open; [`rename`] says one in the names of another program.
//!
//! Read next: [`step`] for the vocabulary, `draft` for the loops while steps are applied, `steps` for what each does,
//! `legality` for why a schedule is legal, `lower` for how the result is spelled out.

pub mod analysis;
mod blame;
mod default;
mod draft;
pub mod illegal;
mod legality;
mod lower;
mod rename;
pub mod step;
mod steps;
pub mod text;

use tilewright_ir::{LoopNest, Program};
use tilewright_target::Target;

pub use blame::blame;
pub use default::{complete, default_schedule};
pub use illegal::{GpuResource, Illegal, Refusal};
pub use lower::effort::effort;
pub use rename::{NewNames, Renamed, rename};
pub use step::{LayoutDim, LoopName, Place, PromoteScope, Schedule, StatementName, Step, Unit};

use draft::Draft;

/// The loops of a program whose sizes are known, after the steps of a schedule.
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
