//! Tiles that no GPU likes, told before anything is compiled (the Halide autoscheduler's section 4.6).

use tilewright_target::Gpu;

use super::operand::{Choice, Way};
use super::tile::Tile;
use crate::knob::Point;
use crate::space::rejection::Rejection;
use crate::space::stage::Stage;

/// Copies of the innermost code that are written out: more take the compiler seconds.
const MOST_COPIES: i64 = 1024;
/// Registers of a thread that its results may take.
const MOST_RESULTS: i64 = 160;
/// Results of a thread without a reduction.
const MOST_POINTWISE: i64 = 16;
/// Of the lanes of warps, one in so many may be idle.
const IDLE_LANES: i64 = 4;
/// Blocks that a reduction is shared out to; more write more totals than they save time.
const MOST_SHARES: i64 = 32;
/// Blocks for every multiprocessor that leave nothing to gain by sharing a reduction out.
const ENOUGH_BLOCKS: i64 = 4;
/// Threads that a thread's work should be shared out to before multiprocessors are left idle.
const LEAST_THREADS: i64 = 32;

/// Refuses tiles that leave a GPU idle, or do not fit it. What `matters` little is there for others in its blocks, which keep
/// the GPU busy.
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
    if !tile.warp.is_told_apart(tile, point) {
        return Err(Rejection::Lanes);
    }
    let in_groups = |way: &&Way| way.choice(point) == Choice::Groups;
    if tile.ways.iter().filter(in_groups).any(|way| way.groups(tile, stage, point).is_none()) {
        return Err(Rejection::Groups);
    }
    if matters {
        check_busy(tile, stage, gpu, point)?;
    }
    let words = (stage.dtype.compute_type().bytes() as i64 + 3) / 4;
    let (results, is_reduction) = (tile.results(point), !tile.reduced.is_empty());
    // All threads of a block have their registers at a time, some of them for operands and addresses.
    let of_thread =
        (gpu.processor_registers as i64 / tile.threads(point).max(1)).min(gpu.thread_registers as i64);
    let most = if is_reduction { MOST_RESULTS.min(of_thread * 2 / 3) } else { MOST_POINTWISE };
    if results * words > most {
        return Err(Rejection::Registers);
    }
    if results * tile.most_unrolled(point) > MOST_COPIES {
        return Err(Rejection::CodeSize);
    }
    let elements: i64 = tile.ways.iter().map(|way| way.shared_elements(tile, stage, point)).sum();
    let bytes = elements * stage.dtype.bytes() as i64 * tile.stage_count(point);
    if bytes > gpu.block_shared as i64 {
        return Err(Rejection::SharedMemory);
    }
    Ok(())
}

/// Refuses blocks that have idle lanes, and grids that leave multiprocessors idle.
fn check_busy(tile: &Tile, stage: &Stage, gpu: &Gpu, point: &Point) -> Result<(), Rejection> {
    let (threads, blocks) = (tile.threads(point), tile.blocks(point));
    let warp = gpu.warp.max(1) as i64;
    let possible: i64 = tile.spatial.iter().map(|at| stage.loops[*at].trips).product();
    let lanes = (threads + warp - 1) / warp * warp;
    if possible >= warp && (lanes - threads) * IDLE_LANES > lanes {
        return Err(Rejection::BlockThreads);
    }
    let shares = tile.shares(point);
    let unshared = blocks / shares.max(1);
    if shares > MOST_SHARES || (shares > 1 && unshared > ENOUGH_BLOCKS * gpu.processors as i64) {
        return Err(Rejection::Blocks);
    }
    // Results could be spread over so many blocks; a quarter of them is enough to be worth a look.
    let enough = (possible / LEAST_THREADS).clamp(1, gpu.processors as i64);
    if blocks * 4 < enough {
        return Err(Rejection::Blocks);
    }
    Ok(())
}
