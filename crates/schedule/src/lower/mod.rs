//! From the loops of a draft to a loop nest, one pass after the other:
//!
//! 1. `emit` spells out what steps only noted down: where reductions begin from their neutral element, where
//!    results are gathered and stored, where buffers have their room, and by [`mod@idle`] where threads may compute in
//!    vain; [`mod@effort`] and [`mod@size`]
//!    refuse what would take too long to compile;
//! 2. [`mod@sieve`] leaves out iterations that add nothing;
//! 3. [`mod@remainders`] gives tiles that are not whole a version of their own, or a mask;
//! 4. [`mod@conditions`] lifts conditions on indices, such as those of padding, out of inner loops;
//! 5. [`mod@expand`] writes out unrolled loops whose iterations differ by a condition;
//! 6. [`mod@tidy`] resolves what the ranges of loops decide, and drops what never runs;
//! 7. for a GPU, [`mod@kernels`] makes scratch memory shared, or with [`mod@private`] registers, and checks limits,
//!    [`mod@pipeline`] lets copies run ahead, and [`mod@barriers`] puts barriers; before there are versions, [`mod@apart`]
//!    lets threads do apart what needs all of a block.
//!    Conditions stay where they are: a GPU's threads need not jump for them.

mod accumulate;
mod apart;
mod barriers;
mod claim;
mod conditions;
pub(crate) mod effort;
mod emit;
mod expand;
mod idle;
mod kernels;
mod own;
mod pipeline;
mod prefetch;
mod private;
pub(crate) mod remainders;
mod sieve;
pub(crate) mod size;
pub(crate) mod stmts;
pub(crate) mod tidy;

use tilewright_ir::LoopNest;
use tilewright_target::Target;

use crate::draft::{Draft, Legal};
use effort::Effort;

/// The loop nest that a draft describes.
pub(crate) fn lower(draft: &Draft) -> Legal<LoopNest> {
    let mut nest = emit::emit(draft)?;
    let [setup, body] = [&nest.setup, &nest.body].map(|stmts| Effort::of(stmts, draft.vectors()));
    setup.and(body).check()?;
    tidy::tidy(&mut nest);
    sieve::sieve(&mut nest);
    tidy::tidy(&mut nest);
    remainders::guard_ends(&mut nest);
    if let Target::Gpu(_) = draft.target {
        apart::take_apart(&mut nest)?;
    }
    remainders::version(&mut nest);
    tidy::tidy(&mut nest);
    match draft.target {
        Target::Cpu(_) => {
            conditions::lift(&mut nest);
            expand::expand(&mut nest);
            tidy::tidy(&mut nest);
        }
        Target::Gpu(gpu) => {
            tidy::tidy_minima(&mut nest);
            kernels::share(&mut nest, draft);
            pipeline::pipeline(&mut nest, &draft.pipelines);
            kernels::check(&nest, gpu)?;
            own::check(&nest, draft, gpu)?;
            barriers::synchronise(&mut nest);
        }
    }
    stmts::drop_unused_buffers(&mut nest);
    Ok(nest)
}
