//! Defines the reasons for which a point is rejected before anything is compiled ([`Rejection`]):
//! it cannot be fast, or it is not legal.

use std::collections::BTreeMap;
use std::fmt;

use tilewright_schedule::{GpuResource, Illegal};

/// Why a point was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rejection {
    /// The tile of the vectorised loop is not a multiple of the vector's lanes, or the vector of
    /// partial totals would be too wide.
    VectorWidth,
    /// The tile and its operands need more registers than the machine has.
    Registers,
    /// The unrolled code would be too large.
    CodeSize,
    /// Some cores would have no work.
    Threads,
    /// A thread block would have more threads than allowed, or too many idle lanes in its warps.
    BlockThreads,
    /// The lanes of a warp cannot form the chosen rectangle, or the rectangle equals the default
    /// order of threads, so that another point has the same schedule.
    Lanes,
    /// An operand cannot be copied in groups of elements: no group size divides its rows and the
    /// distances between its tiles.
    Groups,
    /// There would be too few blocks to keep the multiprocessors busy, or a reduction is split
    /// among too many blocks.
    Blocks,
    /// The operands need more shared memory than a thread block has.
    SharedMemory,
    /// The loop at which the point computes a producer does not exist.
    NoSuchLoop,
    /// A step is illegal. The text names the kind of the violation.
    Illegal(&'static str),
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rejection::VectorWidth => "vector width",
            Rejection::Registers => "registers",
            Rejection::CodeSize => "code size",
            Rejection::Threads => "idle cores",
            Rejection::BlockThreads => "threads of a block",
            Rejection::Lanes => "lanes of a warp",
            Rejection::Groups => "groups of elements",
            Rejection::Blocks => "idle multiprocessors",
            Rejection::SharedMemory => "shared memory",
            Rejection::NoSuchLoop => "no such loop",
            Rejection::Illegal(reason) => reason,
        })
    }
}

/// The number of rejected points for each reason.
pub type Rejections = BTreeMap<Rejection, usize>;

/// Maps a refusal of the scheduler to its kind, for counting.
impl From<&Illegal> for Rejection {
    fn from(reason: &Illegal) -> Rejection {
        Rejection::Illegal(match reason {
            Illegal::RegisterTile { .. } | Illegal::ThreadRegisters { .. } => return Rejection::Registers,
            Illegal::GpuLimit { what, .. } => {
                return match what {
                    GpuResource::BlockThreads => Rejection::BlockThreads,
                    GpuResource::SharedBytes => Rejection::SharedMemory,
                    GpuResource::ThreadBytes => Rejection::Registers,
                };
            }
            Illegal::TooMuchCode { .. } | Illegal::TooLong { .. } => return Rejection::CodeSize,
            Illegal::CarriedDependence { .. } => "dependence",
            Illegal::RegisterIndex { .. } | Illegal::RegisterLane { .. } | Illegal::RegisterData { .. } => {
                "register index"
            }
            Illegal::ComputeAt { .. }
            | Illegal::StoreAt { .. }
            | Illegal::Inline { .. }
            | Illegal::Clone { .. } => "placement",
            Illegal::Promote { .. } => "promotion",
            Illegal::DependentExtent { .. } => "dependent extent",
            Illegal::Rfactor { .. } => "partial totals",
            Illegal::Scan { .. } => "recurrence",
            Illegal::NameTaken(_) => "name taken",
            Illegal::NotNested { .. } => "not nested",
            Illegal::LoopKind(_) => "loop kind",
            Illegal::BufferInVectorLoop { .. } | Illegal::WideAccumulatorInVector { .. } => {
                "buffer in a vector"
            }
            Illegal::Layout { .. } => "layout",
            Illegal::Prefetch { .. } => "prefetch",
            Illegal::UnknownLoop { .. } | Illegal::ReplacedLoop { .. } => "loop removed",
            _ => "other",
        })
    }
}
