//! Finds the step at fault when only the whole schedule is refused.
//!
//! Some refusals appear only after the last step, and [`apply`](crate::apply) then names no step.
//! To find one, `blame` lowers every prefix of the schedule too. A prefix may be illegal by itself:
//! an accumulator in registers, for example, is illegal until its loops are unrolled. So the step
//! at fault is the one since which every prefix has been refused for the same reason.
//!
//! This costs one lowering for each step. It is for messages to people; a search only counts
//! reasons.

use tilewright_ir::Program;
use tilewright_target::Target;

use crate::draft::Draft;
use crate::illegal::{Illegal, Refusal};
use crate::step::Schedule;
use crate::{lower, steps};

/// Adds the step at fault to the refusal that [`apply`](crate::apply) gave. The step stays empty
/// where the program itself is refused, and where one of the GPU passes after emission refuses.
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

/// Returns true when two reasons are the same at different steps. The numbers, and the loops that
/// are still to be unrolled, may differ.
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
