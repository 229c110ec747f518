//! Applies steps to the loops of a draft, or refuses them: one file for each step or family of
//! steps, and files for the parts of `promote` (`groups`, `layout`, `padding`, `view`).

mod clone;
mod compute_at;
mod compute_with;
mod fuse;
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
mod scan;
mod sliding;
pub(crate) mod split;
#[cfg(test)]
mod tests;
mod view;

use tilewright_ir::nest::LoopKind;

use crate::draft::{Draft, Legal};
use crate::step::{LoopLevel, Step};

/// Applies one step. After a refusal the draft is in an undefined state and must not be used.
pub(crate) fn apply(draft: &mut Draft, step: &Step) -> Legal<()> {
    transform(draft, step)?;
    sliding::check_kept_parts(draft)
}

fn transform(draft: &mut Draft, step: &Step) -> Legal<()> {
    match step {
        Step::Split { target, outer, inner } => split::split(draft, target, outer, inner),
        Step::Fuse { loops, name } => fuse::fuse(draft, loops, name),
        Step::Reorder { loops } => reorder::reorder(draft, loops),
        Step::Unroll(target) => kind::set_kind(draft, target, LoopKind::Unrolled),
        Step::Vectorize(target) => kind::set_kind(draft, target, LoopKind::Vector),
        Step::Parallel(target) => kind::set_kind(draft, target, LoopKind::Parallel),
        Step::Bind { target, to } => kind::set_kind(draft, target, kind::loop_kind(*to)),
        Step::Inline { tensor } => inline::inline(draft, tensor),
        Step::Clone { tensor, name, readers } => clone::clone(draft, tensor, (name, readers)),
        Step::ComputeAt { tensor, at, storage } => {
            compute_at::compute_at(draft, tensor, at, storage.as_ref())
        }
        Step::ComputeWith { target, with, ahead } => compute_with::compute_with(draft, target, with, *ahead),
        Step::Promote { tensor, at, name, scope, gathered, layout, pad } => match at {
            LoopLevel::Loop(at) if draft.statement_writes(at, tensor)? => {
                promote::promote_result(draft, tensor, at, name, (*scope, *gathered), layout)
            }
            _ => promote::promote_operand(draft, tensor, at, name, (*scope, *gathered), (layout, *pad)),
        },
        Step::Rfactor { target, name } => rfactor::rfactor(draft, target, name),
        Step::Scan { target, name } => scan::scan(draft, target, name),
        Step::Pipeline { target, stages } => pipeline::pipeline(draft, target, *stages),
        Step::Prefetch { tensor, at, ahead, of } => prefetch::prefetch(draft, tensor, at, *ahead, of),
    }
}
