//! Computes the cost of one access by the lanes of a warp: the sectors of global memory that the
//! lanes touch, and the cycles of shared memory including bank conflicts.
//!
//! The addresses are evaluated lane by lane. Subscripts contain quotients and remainders of the
//! thread index, and evaluating them is easier than deriving their pattern.

use std::collections::BTreeSet;

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Access, Atom, IndexExpr, LoopVarId};

/// The size of a sector, the unit of transfer of global memory, in bytes.
pub(super) const SECTOR_BYTES: i64 = 32;
/// The number of banks of shared memory, and the bytes that each bank delivers in one cycle.
const BANKS: i64 = 32;
const BANK_BYTES: i64 = 4;
/// The largest size of one access in bytes.
const MAX_ACCESS_BYTES: i64 = 16;

/// An access of a warp.
pub(super) struct Pattern {
    /// The first byte that each lane touches.
    addresses: Vec<i64>,
    /// The bytes of an element, and the number of elements in one access.
    bytes: i64,
    width: i64,
}

/// The cost of one access.
pub(super) struct AccessCost {
    /// The number of elements in the access.
    pub width: f64,
    /// The number of cycles of shared memory, including bank conflicts.
    pub bank_cycles: f64,
    /// The number of sectors of global memory.
    pub sectors: f64,
}

impl Pattern {
    /// Evaluates an access of threads along these loops, the fastest-varying loop first.
    /// `unrolled` are the unrolled loops.
    pub fn of(
        nest: &LoopNest,
        access: &Access,
        threads: &[(LoopVarId, i64)],
        unrolled: &[(LoopVarId, i64)],
    ) -> Pattern {
        let buffer = nest.buffer(access.tensor);
        let bytes = buffer.dtype.bytes() as i64;
        let strides = buffer.strides();
        let place = |values: &dyn Fn(LoopVarId) -> i64, lane: i64| -> i64 {
            let part = |((index, stride), extent): ((&IndexExpr, &i64), &i64)| {
                let mut leaf = |atom: &Atom| match atom {
                    Atom::Var(var) => Some(values(*var)),
                    // A data-dependent index may have any value.
                    Atom::Data(data) if threads.iter().any(|(var, _)| data.value.mentions(*var)) => {
                        Some(lane.wrapping_mul(7919) % extent.max(&1))
                    }
                    _ => Some(1),
                };
                index.eval(&mut leaf).unwrap_or(0).saturating_mul(*stride)
            };
            access.indices.iter().zip(&strides).zip(&buffer.shape).map(part).sum()
        };
        let lanes: i64 = threads.iter().map(|(_, count)| *count).product::<i64>().clamp(1, 32);
        let at_lane = |lane: i64| {
            let mut rest = lane;
            let mut values = Vec::with_capacity(threads.len());
            for (var, count) in threads {
                values.push((*var, rest % count.max(&1)));
                rest /= count.max(&1);
            }
            values
        };
        let places = (0..lanes).map(|lane| {
            let values = at_lane(lane);
            let value = |var: LoopVarId| values.iter().find(|(own, _)| *own == var).map_or(0, |(_, at)| *at);
            place(&value, lane) * bytes
        });
        let step = |own: LoopVarId| place(&|var| i64::from(var == own), 0) - place(&|_| 0, 0);
        let along = unrolled.iter().filter(|(var, _)| step(*var) == 1).max_by_key(|(_, trips)| *trips);
        let fits = |width: &i64| {
            along.is_some_and(|(_, trips)| trips % width == 0) && width * bytes <= MAX_ACCESS_BYTES
        };
        // All accesses must begin at a multiple of the width.
        let vars: BTreeSet<LoopVarId> = access.indices.iter().flat_map(|index| index.vars()).collect();
        let others = || vars.iter().filter(|var| along.is_none_or(|(own, _)| own != *var));
        let aligned =
            |width: &i64| place(&|_| 0, 0) % width == 0 && others().all(|var| step(*var) % width == 0);
        let row_fits = |width: &i64| strides.iter().rev().nth(1).is_none_or(|row| row % width == 0);
        let width =
            [4, 2].into_iter().find(|width| fits(width) && row_fits(width) && aligned(width)).unwrap_or(1);
        Pattern { addresses: places.collect(), bytes, width }
    }

    /// The cost of the access for a warp.
    pub fn cost(&self, warp: i64) -> AccessCost {
        let size = self.bytes * self.width;
        AccessCost {
            width: self.width as f64,
            bank_cycles: self.bank_cycles(warp, size),
            sectors: self.pieces(size, SECTOR_BYTES),
        }
    }

    /// The number of pieces of memory of some bytes that the lanes touch.
    fn pieces(&self, size: i64, bytes: i64) -> f64 {
        let all = self.addresses.iter().flat_map(|place| {
            let (first, last) = (place.div_euclid(bytes), (place + size - 1).div_euclid(bytes));
            first..=last
        });
        all.collect::<BTreeSet<i64>>().len() as f64
    }

    /// Each bank delivers one word at a time, to all lanes that need it. Wide accesses are split
    /// into parts of a warp.
    fn bank_cycles(&self, warp: i64, size: i64) -> f64 {
        let words = (size + BANK_BYTES - 1) / BANK_BYTES;
        let together = (warp / words).max(1) as usize;
        let mut turns = 0;
        for part in self.addresses.chunks(together) {
            let words: BTreeSet<i64> = part
                .iter()
                .flat_map(|place| (0..words).map(move |word| place.div_euclid(BANK_BYTES) + word))
                .collect();
            let mut banks = [0u32; BANKS as usize];
            words.iter().for_each(|word| banks[word.rem_euclid(BANKS) as usize] += 1);
            turns += banks.iter().max().copied().unwrap_or(1).max(1);
        }
        f64::from(turns)
    }
}
