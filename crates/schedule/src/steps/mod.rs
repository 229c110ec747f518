//! The effect of each step on the loops of a draft: one file for each step or family of steps.

mod compute_at;
mod fuse;
mod gather;
mod groups;
mod inline;
pub(crate) mod kind;
mod layout;
mod padding;
mod pipeline;
mod prefetch;
pub(crate) mod promote;
mod reorder;
mod rfactor;
pub(crate) mod split;
#[cfg(test)]
mod tests;

use tilewright_ir::nest::LoopKind;

use crate::draft::{Draft, Legal};
use crate::step::{Place, Step};

/// Applies one step. After a refusal the draft is in an undefined state and must not be used.
pub(crate) fn apply(draft: &mut Draft, step: &Step) -> Legal<()> {
    match step {
        Step::Split { target, outer, inner } => split::split(draft, target, outer, inner),
        Step::Fuse { loops, name } => fuse::fuse(draft, loops, name),
        Step::Reorder { loops } => reorder::reorder(draft, loops),
        Step::Unroll(target) => kind::set(draft, target, LoopKind::Unrolled),
        Step::Vectorize(target) => kind::set(draft, target, LoopKind::Vector),
        Step::Parallel(target) => kind::set(draft, target, LoopKind::Parallel),
        Step::Bind { target, to } => kind::set(draft, target, kind::of_unit(*to)),
        Step::Inline { tensor } => inline::inline(draft, tensor),
        Step::ComputeAt { tensor, at } => compute_at::compute_at(draft, tensor, at),
        Step::Promote { tensor, at, name, scope, gathered, layout, pad } => match at {
            Place::Loop(at) if draft.writes(at, tensor)? => {
                promote::result(draft, tensor, at, name, (*scope, *gathered), layout)
            }
            _ => promote::operand(draft, tensor, at, name, (*scope, *gathered), (layout, *pad)),
        },
        Step::Rfactor { target, name } => rfactor::rfactor(draft, target, name),
        Step::Pipeline { target, stages } => pipeline::pipeline(draft, target, *stages),
        Step::Prefetch { tensor, at, ahead, of } => prefetch::prefetch(draft, tensor, at, *ahead, of),
    }
}
