//! Counts the sectors of global memory that a block fetches because they miss the cache of its
//! multiprocessor. A sector is the unit of transfer, 32 bytes.
//!
//! Going outwards from an access, the loops inside touch more and more elements. As long as these
//! fit into the cache, each is fetched once. From the first loop whose elements do not fit, every
//! iteration fetches them again. Threads run at the same time, so the elements of all threads count
//! from the beginning.

use tilewright_ir::ids::InNest;
use tilewright_ir::interval::{Knowledge, lower_bound, upper_bound};
use tilewright_ir::nest::{Access, IndexExpr, LoopVarId, Range};
use tilewright_ir::{LoopNest, SymbolId};

use super::lanes::SECTOR_BYTES;

/// The bytes of the cache that one block can use, beside other blocks.
const BLOCK_CACHE_BYTES: f64 = 32768.0;

/// A loop of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub var: LoopVarId,
    pub trips: f64,
    pub is_thread_loop: bool,
}

/// The number of sectors that an access fetches. Loops are given outermost first.
pub(super) fn fetched_sectors(nest: &LoopNest, access: &Access, loops: &[Loop]) -> f64 {
    let mut outside = 1.0;
    for first in 0..=loops.len() {
        let inside: Vec<Loop> = loops
            .iter()
            .enumerate()
            .filter(|(at, own)| *at >= first || own.is_thread_loop)
            .map(|(_, own)| *own)
            .collect();
        let sectors = touched_sectors(nest, access, &InnerLoops(inside));
        if sectors * SECTOR_BYTES as f64 <= BLOCK_CACHE_BYTES || first == loops.len() {
            return sectors * outside;
        }
        outside *= if loops[first].is_thread_loop { 1.0 } else { loops[first].trips };
    }
    outside
}

/// The number of sectors that an access touches over some loops. The touched elements are a box,
/// and every row is rounded up to whole sectors.
fn touched_sectors(nest: &LoopNest, access: &Access, inside: &InnerLoops) -> f64 {
    let buffer = nest.buffer(access.tensor);
    let extent = |(index, whole): (&IndexExpr, &i64)| {
        let ends = lower_bound(index, inside).zip(upper_bound(index, inside));
        let distance = ends.and_then(|(low, high)| high.sub(&low).as_constant());
        distance.map_or(*whole, |distance| (distance + 1).clamp(1, *whole)) as f64
    };
    let extents: Vec<f64> = access.indices.iter().zip(&buffer.shape).map(extent).collect();
    let Some((row, others)) = extents.split_last() else { return 1.0 };
    let bytes = row * buffer.dtype.bytes() as f64;
    others.iter().product::<f64>() * (bytes / SECTOR_BYTES as f64).ceil().max(1.0)
}

/// The loops over which elements are counted; all other variables stay fixed.
struct InnerLoops(Vec<Loop>);

impl Knowledge<InNest> for InnerLoops {
    fn range(&self, var: LoopVarId) -> Option<Range> {
        let own = self.0.iter().find(|own| own.var == var)?;
        Some(Range { from: IndexExpr::constant(0), to: IndexExpr::constant(own.trips as i64) })
    }

    fn least(&self, _: SymbolId) -> Option<i64> {
        None
    }
}
