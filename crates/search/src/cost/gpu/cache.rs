//! Counts the sectors of global memory that a block fetches because they miss the cache of its
//! multiprocessor. A sector is the unit of transfer, 32 bytes.
//!
//! Going outwards from an access, the loops inside touch more and more elements. As long as these
//! fit into the cache, each is fetched once. From the first loop whose elements do not fit, every
//! iteration fetches them again. Threads run at the same time, so the elements of all threads count
//! from the beginning.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Access, IndexExpr, LoopVarId};

use super::lanes::SECTOR_BYTES;
use crate::cost::cpu::Reach;

/// The bytes of the cache that one block can use, beside other blocks.
const BLOCK_CACHE_BYTES: f64 = 32768.0;

/// A loop of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Loop {
    pub var: LoopVarId,
    pub trips: f64,
    pub is_thread_loop: bool,
}

/// The number of sectors that loads of neighbouring elements fetch. `spans` is the distance from
/// the first to the last of them along each dimension. Loops are given outermost first.
pub(super) fn fetched_sectors(nest: &LoopNest, access: &Access, spans: &[i64], loops: &[Loop]) -> f64 {
    let mut outside = 1.0;
    for first in 0..=loops.len() {
        let inside: Vec<Loop> = loops
            .iter()
            .enumerate()
            .filter(|(at, own)| *at >= first || own.is_thread_loop)
            .map(|(_, own)| *own)
            .collect();
        let sectors = touched_sectors(nest, access, spans, &inside);
        if sectors * SECTOR_BYTES as f64 <= BLOCK_CACHE_BYTES || first == loops.len() {
            return sectors * outside;
        }
        outside *= if loops[first].is_thread_loop { 1.0 } else { loops[first].trips };
    }
    outside
}

/// The bytes of the tensor that loads of neighbouring elements touch in all of these loops.
pub(super) fn touched_bytes(nest: &LoopNest, access: &Access, spans: &[i64], loops: &[Loop]) -> f64 {
    let sectors = touched_sectors(nest, access, spans, loops);
    (sectors * SECTOR_BYTES as f64).min(nest.buffer(access.tensor).bytes() as f64)
}

/// The number of sectors that loads of neighbouring elements touch over some loops. The touched
/// elements are a box, and every row is rounded up to whole sectors. Subscripts that depend on data
/// may have any value, but there are no more elements than iterations.
fn touched_sectors(nest: &LoopNest, access: &Access, spans: &[i64], inside: &[Loop]) -> f64 {
    let buffer = nest.buffer(access.tensor);
    let trips = |var: LoopVarId| inside.iter().find(|own| own.var == var).map_or(1.0, |own| own.trips);
    let sides = access.indices.iter().zip(spans).zip(&buffer.shape).map(|((index, span), whole)| {
        let (reach, span, whole) = (Reach::of(index, &trips), *span as f64, (*whole).max(1) as f64);
        let width = (reach.width + span).min(whole - 1.0);
        (width, (reach.values * (span + 1.0)).min(width + 1.0))
    });
    let sides: Vec<(f64, f64)> = sides.collect();
    let Some(((width, _), outer)) = sides.split_last() else { return 1.0 };
    let bytes = (width + 1.0) * buffer.dtype.bytes() as f64;
    let rows: f64 = outer.iter().map(|(_, values)| values).product();
    let sectors = rows * (bytes / SECTOR_BYTES as f64).ceil().max(1.0);
    if !access.indices.iter().any(IndexExpr::has_data) {
        return sectors;
    }
    let loads: f64 = spans.iter().map(|span| (span + 1) as f64).product();
    sectors.min(loads * inside.iter().map(|own| own.trips).product::<f64>())
}
