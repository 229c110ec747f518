//! Which step is at fault where all of them together are refused.
//!
//! Some reasons show only when the last step is done, and [`apply`](crate::apply) then names no step. To point at
//! one, every beginning of the schedule is lowered too. A beginning may be illegal by itself, as an accumulator in
//! registers is before its loops are unrolled, so what counts is since when there has been the same reason without
//! a break: the step that brought it is at fault.
//!
//! That costs a lowering a step. It is for people; a search only counts reasons.

use tilewright_ir::Program;
use tilewright_target::Target;

use crate::draft::Draft;
use crate::illegal::{Illegal, Refusal};
use crate::step::Schedule;
use crate::{lower, steps};

/// The refusal that [`apply`](crate::apply) gave, with the step at fault. There is none where the program itself is
/// refused.
pub fn blame<'t>(
    program: &'t Program,
    schedule: &Schedule,
    target: impl Into<Target<'t>>,
    refusal: Refusal,
) -> Refusal {
    match refusal.step {
        Some(_) => refusal,
        None => Refusal { step: culprit(program, schedule, target.into(), &refusal.reason), ..refusal },
    }
}

fn culprit(program: &Program, schedule: &Schedule, target: Target<'_>, reason: &Illegal) -> Option<usize> {
    let mut draft = Draft::new(program, target).ok()?;
    let is_refused = |draft: &Draft| lower::size::check(draft).is_err_and(|other| is_alike(&other, reason));
    let mut was_refused = is_refused(&draft);
    let mut culprit = None;
    for (at, step) in schedule.steps.iter().enumerate() {
        steps::apply(&mut draft, step).ok()?;
        let now_refused = is_refused(&draft);
        if now_refused && !was_refused {
            culprit = Some(at);
        }
        was_refused = now_refused;
    }
    culprit
}

/// Whether a reason is the other at a later time: the numbers, and the loops that are left to be unrolled, may differ.
fn is_alike(reason: &Illegal, later: &Illegal) -> bool {
    let registers = |reason: &Illegal| match reason {
        Illegal::RegisterTile { name, .. }
        | Illegal::RegisterIndex { name, .. }
        | Illegal::RegisterData { name } => Some(name.clone()),
        _ => None,
    };
    match (registers(reason), registers(later)) {
        (None, None) => std::mem::discriminant(reason) == std::mem::discriminant(later),
        (one, other) => one == other,
    }
}
