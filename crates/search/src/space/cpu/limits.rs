//! Rejects tiles that are slow on any CPU, before anything is compiled.

use tilewright_schedule::analysis::iterations;
use tilewright_target::Cpu;

use super::tile::Tile;
use crate::knob::Point;
use crate::space::rejection::Rejection;
use crate::space::stage::Stage;

/// The largest number of copies of the innermost code after unrolling.
const MAX_COPIES: i64 = 128;
/// The least number of operations for which threads pay off. A statement with fewer operations is
/// finished before the threads wake up.
const MIN_PARALLEL_WORK: f64 = 200_000.0;

/// Rejects tiles that need too many registers or too much code, or whose vectors do not fill
/// registers.
pub(crate) fn check(tile: &Tile, stage: &Stage, target: &Cpu, point: &Point) -> Result<(), Rejection> {
    tile.check_lanes(stage, target, point)?;
    let (results, copies) = tile.registers(stage, target, point);
    // At least one register holds an operand loaded from memory, and one holds a broadcast operand.
    if !stage.repeated_loops(true).is_empty() && results + 2 > target.vectors.registers() as i64 {
        return Err(Rejection::Registers);
    }
    if copies > MAX_COPIES {
        return Err(Rejection::CodeSize);
    }
    Ok(())
}

/// Rejects points that leave cores without work.
pub(crate) fn check_threads(
    tile: &Tile,
    stage: &Stage,
    target: &Cpu,
    point: &Point,
) -> Result<(), Rejection> {
    if stage.is_ordered || target.cores < 2 || stage.work < MIN_PARALLEL_WORK {
        return Ok(());
    }
    let possible = iterations(stage.repeated_loops(false).iter().map(|at| stage.loops[*at].trips));
    match tile.parallel_iterations(point) < possible.min(target.cores as i64) {
        true => Err(Rejection::Threads),
        false => Ok(()),
    }
}
