//! Tiles that no CPU likes, told before anything is compiled.

use tilewright_target::Cpu;

use super::tile::Tile;
use crate::knob::Point;
use crate::space::rejection::Rejection;
use crate::space::stage::Stage;

/// Copies of the innermost code that are written out.
const MOST_COPIES: i64 = 128;
/// A statement with fewer operations than this is done before threads are awake.
const WORTH_THREADS: f64 = 200_000.0;

/// Refuses tiles that no machine likes.
pub(crate) fn check(tile: &Tile, stage: &Stage, target: &Cpu, point: &Point) -> Result<(), Rejection> {
    tile.check_lanes(stage, target, point)?;
    let (results, copies) = tile.registers(stage, target, point);
    // One register at least for what is read from memory, and one for what every lane gets.
    if !stage.busy(true).is_empty() && results + 2 > target.vectors.registers() as i64 {
        return Err(Rejection::Registers);
    }
    if copies > MOST_COPIES {
        return Err(Rejection::CodeSize);
    }
    Ok(())
}

/// Refuses to leave cores without work.
pub(crate) fn check_threads(
    tile: &Tile,
    stage: &Stage,
    target: &Cpu,
    point: &Point,
) -> Result<(), Rejection> {
    if stage.ordered || target.cores < 2 || stage.work < WORTH_THREADS {
        return Ok(());
    }
    let possible: i64 = stage.busy(false).iter().map(|at| stage.loops[*at].trips).product();
    match tile.spread_over(point) < possible.min(target.cores as i64) {
        true => Err(Rejection::Threads),
        false => Ok(()),
    }
}
