//! What cannot be good, or legal, told before anything is compiled.

use std::collections::BTreeMap;
use std::fmt;

use tilewright_schedule::Illegal;
use tilewright_target::Cpu;

use super::stage::Stage;
use super::tile::Tile;
use crate::knob::Point;

/// Copies of the innermost code that are written out.
const MOST_COPIES: i64 = 128;
/// A statement with fewer operations than this is done before threads are awake.
const WORTH_THREADS: f64 = 200_000.0;

/// Why a point was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rejection {
    /// The vector loop's part is no multiple of the vector's lanes.
    VectorWidth,
    /// The tile and its operands need more registers than there are.
    Registers,
    /// Too much code would be written out.
    CodeSize,
    /// Cores would have nothing to do.
    Threads,
    /// There is no loop at the place that was chosen for a stage.
    NoPlace,
    /// A step is refused.
    Illegal(&'static str),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rejection::VectorWidth => "vector width",
            Rejection::Registers => "registers",
            Rejection::CodeSize => "code size",
            Rejection::Threads => "idle cores",
            Rejection::NoPlace => "no place",
            Rejection::Illegal(reason) => reason,
        })
    }
}

/// How often each reason came up.
pub type Rejections = BTreeMap<Rejection, usize>;

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

/// The kind of a refusal, for counting.
impl From<&Illegal> for Rejection {
    fn from(reason: &Illegal) -> Rejection {
        Rejection::Illegal(match reason {
            Illegal::RegisterTile { .. } => return Rejection::Registers,
            Illegal::TooMuchCode { .. } | Illegal::TooLong { .. } => return Rejection::CodeSize,
            Illegal::CarriedDependence { .. } => "dependence",
            Illegal::RegisterIndex { .. } => "register index",
            Illegal::ComputeAt { .. } | Illegal::Inline { .. } => "placement",
            Illegal::Promote { .. } => "promotion",
            Illegal::DependentExtent { .. } => "dependent extent",
            Illegal::Rfactor { .. } => "partial totals",
            Illegal::NameTaken(_) => "name taken",
            Illegal::NotNested { .. } => "not nested",
            Illegal::LoopKind(_) => "loop kind",
            Illegal::VectorBuffer { .. } | Illegal::WideInVector { .. } => "buffer in a vector",
            Illegal::Layout { .. } => "layout",
            Illegal::Prefetch { .. } => "prefetch",
            Illegal::UnknownLoop { .. } | Illegal::GoneLoop { .. } => "loop gone",
            _ => "other",
        })
    }
}
