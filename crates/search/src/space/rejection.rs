//! Why a point is left out before anything is compiled: it cannot be good, or legal.

use std::collections::BTreeMap;
use std::fmt;

use tilewright_schedule::{GpuResource, Illegal};

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
    /// A block of a GPU would have more threads than it may, or too few to be worth one.
    BlockThreads,
    /// The lanes of a GPU's warp cannot be arranged like that, or are already.
    Lanes,
    /// What a tile needs does not begin where groups of elements do.
    Groups,
    /// Multiprocessors of a GPU would have nothing to do.
    Blocks,
    /// Operands need more shared memory than a block has.
    SharedMemory,
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
            Rejection::BlockThreads => "threads of a block",
            Rejection::Lanes => "lanes of a warp",
            Rejection::Groups => "groups of elements",
            Rejection::Blocks => "idle multiprocessors",
            Rejection::SharedMemory => "shared memory",
            Rejection::NoPlace => "no place",
            Rejection::Illegal(reason) => reason,
        })
    }
}

/// How often each reason came up.
pub type Rejections = BTreeMap<Rejection, usize>;

/// The kind of a refusal, for counting.
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
            Illegal::RegisterIndex { .. } | Illegal::RegisterData { .. } => "register index",
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
