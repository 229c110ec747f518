//! Finds the step at fault when only the whole schedule is refused.
//!
//! Some refusals appear only after the last step, and [`apply`](crate::apply) then names no step.
//! To find one, `blame` lowers every prefix of the schedule too. A prefix may be illegal by itself:
//! an accumulator in registers, for example, is illegal until its loops are unrolled. So the step
//! at fault is the one since which every prefix has been refused for the same reason.
//!
//! This costs one lowering for each step from the one at fault on. It is for messages to people; a
//! search only counts reasons.

use tilewright_ir::Program;
use tilewright_target::Target;

use crate::draft::{Draft, Legal};
use crate::illegal::{Illegal, Refusal};
use crate::step::Schedule;
use crate::{lower, steps};

/// Adds the step at fault to the refusal that [`apply`](crate::apply) gave. The step stays empty
/// where the program itself is refused.
pub fn blame<'t>(
    program: &'t Program,
    schedule: &Schedule,
    target: impl Into<Target<'t>>,
    refusal: Refusal,
) -> Refusal {
    match refusal.step {
        Some(_) => refusal,
        None => Refusal { step: step_at_fault(program, schedule, target.into(), &refusal.reason), ..refusal },
    }
}

fn step_at_fault(
    program: &Program,
    schedule: &Schedule,
    target: Target<'_>,
    reason: &Illegal,
) -> Option<usize> {
    let mut drafts = vec![Draft::new(program, target).ok()?];
    for step in &schedule.steps {
        let mut draft = drafts.last().expect("the list begins with the draft of no step").clone();
        steps::apply(&mut draft, step).ok()?;
        drafts.push(draft);
    }
    let is_legal = |draft: &Draft| !check_lowering(draft).is_err_and(|other| is_same_reason(&other, reason));
    // The first draft is that of no step, so the number of the last legal draft is the number of
    // the step after it.
    drafts.iter().rposition(is_legal).filter(|at| *at < schedule.steps.len())
}

/// Lowers a draft as far as needed to know whether it is refused.
fn check_lowering(draft: &Draft) -> Legal<()> {
    match draft.capabilities.grid {
        None => lower::size::check(draft),
        Some(_) => lower::lower(draft).map(|_| ()),
    }
}

/// Returns true when two reasons are the same at different steps. Numbers, names of loops, and the
/// loops that are still to be unrolled may differ.
fn is_same_reason(reason: &Illegal, later: &Illegal) -> bool {
    let registers = |reason: &Illegal| match reason {
        Illegal::RegisterTile { name, .. }
        | Illegal::ThreadRegisters { name, .. }
        | Illegal::RegisterIndex { name, .. }
        | Illegal::RegisterLane { name, .. }
        | Illegal::RegisterData { name } => Some(name.clone()),
        _ => None,
    };
    match (reason, later) {
        (Illegal::Kernel(one), Illegal::Kernel(other)) => one.is_same_fault(other),
        (
            Illegal::GpuLimit { statement, what, .. },
            Illegal::GpuLimit { statement: other, what: other_what, .. },
        ) => (statement, what) == (other, other_what),
        _ => match (registers(reason), registers(later)) {
            (None, None) => std::mem::discriminant(reason) == std::mem::discriminant(later),
            (one, other) => one == other,
        },
    }
}
