//! Applies the step `pipeline C.ko stages 3`: checks the loop and records in the draft that its
//! copies to shared memory run ahead. Lowering then pipelines the loop.

use tilewright_ir::nest::LoopKind;
use tilewright_target::Capabilities;

use crate::draft::{Draft, Legal, LoopRole};
use crate::illegal::{Illegal, KernelFault};
use crate::step::LoopName;

/// The most stages of a pipeline. More stages only take shared memory.
const MOST_STAGES: i64 = 8;

/// Records that the copies of a loop run ahead. Lowering pipelines the loop, once all loops are
/// known.
pub(super) fn pipeline(draft: &mut Draft, target: &LoopName, stages: i64) -> Legal<()> {
    let refuse = |why: &str| {
        let fault = KernelFault::Pipeline { loop_name: target.to_string(), why: why.to_owned() };
        Err(Illegal::Kernel(fault))
    };
    let var = draft.find_loop(target)?;
    let Capabilities { kind, shared_bytes, .. } = draft.capabilities;
    if shared_bytes.is_none() {
        return refuse(&format!("a {kind} has no shared memory; use `prefetch` instead"));
    }
    if !(2..=MOST_STAGES).contains(&stages) {
        return refuse(&format!("{stages} stages are not between 2 and {MOST_STAGES}"));
    }
    let own = draft.loop_of(var);
    if own.kind != LoopKind::Serial || own.role == LoopRole::Ordered {
        return refuse("it is not a serial loop, or it is an ordered loop");
    }
    if draft.pipelines.iter().any(|(other, _)| *other == var) {
        return refuse("it is pipelined already");
    }
    draft.mark_changed(&draft.loops_up_to(var));
    draft.pipelines.push((var, stages));
    Ok(())
}
