//! Rejects tiles that are slow on any GPU, before anything is compiled (section 4.6 of the Halide
//! autoscheduler's paper).

use tilewright_schedule::analysis::iterations;
use tilewright_target::Gpu;

use super::operand::{OperandKnob, Staging};
use super::tile::Tile;
use crate::knob::Point;
use crate::space::rejection::Rejection;
use crate::space::stage::Stage;

/// The largest number of copies of the innermost code after unrolling. More copies take the
/// compiler seconds.
const MAX_COPIES: i64 = 1024;
/// The largest number of registers of a thread for its results.
const MAX_RESULTS: i64 = 160;
/// The largest number of registers for the results of a thread without a reduction.
const MAX_POINTWISE: i64 = 16;
/// At most one in this many lanes of the warps may be idle.
const IDLE_LANES: i64 = 4;
/// The largest number of blocks that share one reduction. With more blocks, writing the partial
/// totals costs more than the sharing saves.
const MAX_SHARES: i64 = 32;
/// The number of blocks per multiprocessor from which sharing a reduction gains nothing.
const ENOUGH_BLOCKS: i64 = 4;
/// The least number of threads in a block when the results are spread over as many multiprocessors
/// as possible.
const MIN_THREADS: i64 = 32;

/// Rejects tiles that leave a GPU idle or exceed its limits. A statement whose `matters` is false
/// only hosts other statements in its blocks, and those keep the GPU busy.
pub(super) fn check(
    tile: &Tile,
    stage: &Stage,
    matters: bool,
    gpu: &Gpu,
    point: &Point,
) -> Result<(), Rejection> {
    if tile.threads(point) > gpu.block_threads as i64 {
        return Err(Rejection::BlockThreads);
    }
    if !tile.warp.is_valid_rectangle(tile, point) {
        return Err(Rejection::Lanes);
    }
    let in_groups = |knob: &&OperandKnob| knob.choice(point) == Staging::Groups;
    if tile.operand_knobs.iter().filter(in_groups).any(|knob| knob.group_size(tile, stage, point).is_none()) {
        return Err(Rejection::Groups);
    }
    if matters {
        check_busy(tile, stage, gpu, point)?;
    }
    let words = (stage.dtype.compute_type().bytes() as i64 + 3) / 4;
    let (results, is_reduction) = (tile.results(point), !tile.cuts.reduced.is_empty());
    // All threads of a block hold their registers at the same time, and some registers are for
    // operands and addresses.
    let of_thread =
        (gpu.processor_registers as i64 / tile.threads(point).max(1)).min(gpu.thread_registers as i64);
    let most = if is_reduction { MAX_RESULTS.min(of_thread * 2 / 3) } else { MAX_POINTWISE };
    if results * words > most {
        return Err(Rejection::Registers);
    }
    if results * tile.most_unrolled(point) > MAX_COPIES {
        return Err(Rejection::CodeSize);
    }
    let elements: i64 = tile.operand_knobs.iter().map(|knob| knob.shared_elements(tile, stage, point)).sum();
    let bytes = elements * stage.dtype.bytes() as i64 * tile.pipeline_stages(point);
    if bytes > gpu.block_shared as i64 {
        return Err(Rejection::SharedMemory);
    }
    Ok(())
}

/// Rejects blocks with too many idle lanes, and grids that leave multiprocessors idle.
fn check_busy(tile: &Tile, stage: &Stage, gpu: &Gpu, point: &Point) -> Result<(), Rejection> {
    let (threads, blocks) = (tile.threads(point), tile.blocks(point));
    let warp = gpu.warp.max(1) as i64;
    let possible = iterations(tile.cuts.spatial.iter().map(|at| stage.loops[*at].trips));
    let lanes = (threads + warp - 1) / warp * warp;
    if possible >= warp && (lanes - threads) * IDLE_LANES > lanes {
        return Err(Rejection::BlockThreads);
    }
    let shares = tile.shares(point);
    let unshared = blocks / shares.max(1);
    if shares > MAX_SHARES || (shares > 1 && unshared > ENOUGH_BLOCKS * gpu.processors as i64) {
        return Err(Rejection::Blocks);
    }
    // The results could be spread over `enough` blocks. A quarter of them suffices for a candidate
    // to be worth measuring.
    let enough = (possible / MIN_THREADS).clamp(1, gpu.processors as i64);
    if blocks.saturating_mul(4) < enough {
        return Err(Rejection::Blocks);
    }
    Ok(())
}
