//! From the loops of a draft to a loop nest, one pass after the other:
//!
//! 1. `emit` spells out what steps only noted down: where reductions begin from their neutral element, where
//!    results are gathered and stored, where buffers have their room;
//! 2. [`mod@remainders`] gives tiles that are not whole a version of their own, or a mask;
//! 3. [`mod@conditions`] lifts conditions on indices, such as those of padding, out of inner loops;
//! 4. [`mod@expand`] writes out unrolled loops whose iterations differ by a condition;
//! 5. [`mod@tidy`] resolves what the ranges of loops decide, and drops what never runs.
//!
//! [`mod@effort`] refuses what would take too long to compile, right after the first.

mod accumulate;
pub(crate) mod conditions;
pub(crate) mod effort;
mod emit;
mod expand;
mod prefetch;
pub(crate) mod remainders;
pub(crate) mod stmts;
pub(crate) mod tidy;

use tilewright_ir::LoopNest;

use crate::draft::{Draft, Legal};
use crate::illegal::Illegal;

/// The loop nest that a draft describes.
pub(crate) fn lower(draft: &Draft) -> Legal<LoopNest> {
    let mut nest = spelled_out(draft)?;
    tidy::tidy(&mut nest);
    remainders::version(&mut nest);
    tidy::tidy(&mut nest);
    conditions::lift(&mut nest);
    expand::expand(&mut nest);
    tidy::tidy(&mut nest);
    stmts::drop_unused_buffers(&mut nest);
    Ok(nest)
}

/// Whether a draft can be lowered: only the first pass refuses anything.
pub(crate) fn is_legal(draft: &Draft) -> bool {
    check(draft).is_ok()
}

/// Why a draft cannot be lowered, if so.
pub(crate) fn check(draft: &Draft) -> Legal<()> {
    spelled_out(draft).map(|_| ())
}

fn spelled_out(draft: &Draft) -> Legal<LoopNest> {
    let nest = emit::emit(draft)?;
    match effort::too_many_operations(&nest, draft.target.vectors) {
        Some(operations) => Err(Illegal::TooMuchCode { operations }),
        None => Ok(nest),
    }
}
