//! Lowers the loops of a draft to a loop nest, in these passes:
//!
//! 1. `emit` writes out the decisions that steps only recorded: where reductions are reset to their
//!    neutral element, where results are accumulated and stored, where buffers are allocated and,
//!    by [`mod@unneeded_guards`], where threads may compute unused values. [`mod@effort`] refuses
//!    code that would take too long to compile. [`mod@size`] makes the checks of this pass for
//!    drafts that are still being planned.
//! 2. [`mod@strided_reductions`] removes iterations that add nothing.
//! 3. [`mod@remainders`] gives partial tiles a version of their own, or a mask.
//! 4. [`mod@conditions`] lifts conditions on indices, such as those of padding, out of inner loops.
//!    Where the target needs no branch for a condition, this pass and the next are left out.
//! 5. [`mod@expand`] writes out unrolled loops whose iterations differ in a condition.
//! 6. [`mod@tidy`] resolves expressions that the ranges of loops decide, and drops statements that
//!    never run.
//! 7. For blocks of threads, [`mod@kernels`] puts scratch memory into shared memory or, with
//!    [`mod@thread_registers`], into registers, and checks limits. [`mod@pipeline`] lets copies run
//!    ahead, [`mod@operand_registers`] checks operands in registers, and [`mod@barriers`] inserts
//!    barriers. Before versions are made, [`mod@split_thread_loops`] splits thread loops around
//!    statements that need all threads of a block.
//!
//! The [`Capabilities`] of the target decide which passes run.

mod accumulate;
mod barriers;
mod claim;
mod conditions;
pub(crate) mod effort;
mod emit;
mod expand;
mod fill;
mod inverse;
mod kernels;
mod operand_registers;
mod pipeline;
mod prefetch;
pub(crate) mod remainders;
pub(crate) mod size;
mod split_thread_loops;
pub(crate) mod stmts;
mod strided_reductions;
mod thread_registers;
pub(crate) mod tidy;
mod unneeded_guards;

use tilewright_ir::LoopNest;
use tilewright_target::Capabilities;

use crate::draft::{Draft, Legal};
use effort::Effort;

/// Lowers a draft to the loop nest that it describes.
pub(crate) fn lower(draft: &Draft) -> Legal<LoopNest> {
    let mut nest = emit::emit(draft)?;
    let Capabilities { grid, predicated, vector_bytes, .. } = draft.capabilities;
    let [setup, body] = [&nest.setup, &nest.body].map(|stmts| Effort::measure(stmts, vector_bytes));
    setup.plus(body).check()?;
    tidy::tidy(&mut nest);
    strided_reductions::remove_idle_iterations(&mut nest);
    tidy::tidy(&mut nest);
    remainders::guard_ends(&mut nest);
    if grid.is_some() {
        split_thread_loops::split(&mut nest)?;
    }
    remainders::version(&mut nest);
    tidy::tidy(&mut nest);
    match predicated {
        true => tidy::tidy_minima(&mut nest),
        false => {
            conditions::lift(&mut nest);
            expand::expand(&mut nest);
            tidy::tidy(&mut nest);
        }
    }
    if grid.is_some() {
        make_kernels(&mut nest, draft)?;
    }
    stmts::drop_unused_buffers(&mut nest);
    Ok(nest)
}

/// The passes for targets with blocks and threads.
fn make_kernels(nest: &mut LoopNest, draft: &Draft) -> Legal<()> {
    kernels::assign_scopes(nest, draft);
    pipeline::pipeline(nest, &draft.pipelines);
    kernels::check(nest, &draft.capabilities)?;
    operand_registers::check(nest, draft)?;
    barriers::synchronise(nest);
    Ok(())
}
