//! From the loops of a draft to a loop nest, one pass after the other:
//!
//! 1. `emit` spells out what steps only noted down: where reductions begin from their neutral element, where
//!    results are gathered and stored, where buffers have their room; [`mod@effort`] and [`mod@size`]
//!    refuse what would take too long to compile;
//! 2. [`mod@remainders`] gives tiles that are not whole a version of their own, or a mask;
//! 3. [`mod@conditions`] lifts conditions on indices, such as those of padding, out of inner loops;
//! 4. [`mod@expand`] writes out unrolled loops whose iterations differ by a condition;
//! 5. [`mod@tidy`] resolves what the ranges of loops decide, and drops what never runs.

mod accumulate;
mod conditions;
pub(crate) mod effort;
mod emit;
mod expand;
mod prefetch;
pub(crate) mod remainders;
pub(crate) mod size;
pub(crate) mod stmts;
pub(crate) mod tidy;

use tilewright_ir::LoopNest;

use crate::draft::{Draft, Legal};
use effort::Effort;

/// The loop nest that a draft describes.
pub(crate) fn lower(draft: &Draft) -> Legal<LoopNest> {
    let mut nest = emit::emit(draft)?;
    let [setup, body] = [&nest.setup, &nest.body].map(|stmts| Effort::of(stmts, draft.target.vectors));
    setup.and(body).check()?;
    tidy::tidy(&mut nest);
    remainders::version(&mut nest);
    tidy::tidy(&mut nest);
    conditions::lift(&mut nest);
    expand::expand(&mut nest);
    tidy::tidy(&mut nest);
    stmts::drop_unused_buffers(&mut nest);
    Ok(nest)
}
