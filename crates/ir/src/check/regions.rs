//! Decides whether a set of boxes of elements covers another box.
//!
//! A box ([`Region`]) has an interval in each dimension. An interval may have a step, so that
//! `O(2*i) = …` fills every other element. A region is covered if nothing is left of it after the
//! boxes are subtracted. With steps, each residue class is checked separately, because the elements
//! of one class are dense again.

use crate::index::{Atom, IndexExpr, greatest_common_divisor};
use crate::interval::Knowledge;
use crate::program::VarId;
use crate::prove::can_prove_nonnegative;

/// `low`, `low + step`, … up to `high`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SteppedInterval {
    pub low: IndexExpr,
    pub high: IndexExpr,
    pub step: i64,
}

/// An interval in each dimension.
pub(super) type Region = Vec<SteppedInterval>;

/// The maximal least common multiple of steps; boxes with larger ones are not analysed.
const LARGEST_STEP: i64 = 16;
/// The maximal number of pieces, and of residue classes, that are analysed.
const MOST_PIECES: usize = 64;

/// The region of a whole tensor.
pub(super) fn whole_tensor(shape: &[IndexExpr]) -> Region {
    let all = |extent: &IndexExpr| SteppedInterval {
        low: IndexExpr::constant(0),
        high: extent.offset(-1),
        step: 1,
    };
    shape.iter().map(all).collect()
}

/// The step at which an index takes every value between its ends, or `None` if it may leave gaps.
/// `extent` returns the number of values of a variable, and `None` for a fixed variable.
pub(super) fn dense_step(
    known: &dyn Knowledge,
    index: &IndexExpr,
    extent: &dyn Fn(VarId) -> Option<IndexExpr>,
) -> Option<i64> {
    let mut digits = Vec::new();
    for var in index.vars() {
        let Some(extent) = extent(var) else { continue };
        let (coefficient, rest) = index.split_on(&Atom::Var(var))?;
        if rest.mentions(var) || coefficient.vars().iter().any(|other| *other == var) {
            return None;
        }
        digits.push((magnitude(known, coefficient)?, extent));
    }
    let step = digits.iter().filter_map(|(size, _)| size.as_constant()).min().unwrap_or(1).max(1);
    let mut reach = IndexExpr::constant(0);
    while !digits.is_empty() {
        let fits = |(size, _): &(IndexExpr, IndexExpr)| {
            let multiple = step == 1 || size.as_constant().is_some_and(|size| size % step == 0);
            multiple && can_prove_nonnegative(&reach.offset(step).sub(size), &[], known)
        };
        let (size, extent) = digits.remove(digits.iter().position(fits)?);
        reach = reach.add(&size.mul(&extent.offset(-1)));
    }
    Some(step)
}

/// The absolute value of a coefficient whose sign is known.
pub(super) fn magnitude(known: &dyn Knowledge, coefficient: IndexExpr) -> Option<IndexExpr> {
    let opposite = coefficient.scale(-1);
    if can_prove_nonnegative(&coefficient, &[], known) {
        Some(coefficient)
    } else {
        can_prove_nonnegative(&opposite, &[], known).then_some(opposite)
    }
}

/// Returns true if the boxes provably cover the region. False may also mean that the steps or the
/// number of pieces are too large for the analysis.
pub(super) fn covers(known: &dyn Knowledge, region: &Region, boxes: &[Region], facts: &[IndexExpr]) -> bool {
    let mut steps = vec![1i64; region.len()];
    for interval in boxes.iter().flat_map(|inner| inner.iter().enumerate()) {
        let (dimension, interval) = interval;
        steps[dimension] = least_common_multiple(steps[dimension], interval.step);
        if steps[dimension] > LARGEST_STEP {
            return false;
        }
    }
    let classes: i64 = steps.iter().product();
    if classes as usize > MOST_PIECES {
        return false;
    }
    (0..classes).all(|class| {
        let mut rest = class;
        let residues: Vec<i64> = steps
            .iter()
            .map(|step| {
                let residue = rest % step;
                rest /= step;
                residue
            })
            .collect();
        let boxes: Vec<Region> =
            boxes.iter().filter_map(|inner| restrict_to_class(inner, &residues, &steps)).collect();
        let region = restrict_to_class(region, &residues, &steps);
        region.is_some_and(|region| covers_class(known, region, &boxes, &steps, facts))
    })
}

/// The part of a box whose elements have the given residues, with its ends moved to such elements.
fn restrict_to_class(region: &Region, residues: &[i64], steps: &[i64]) -> Option<Region> {
    let part = |((interval, residue), step): ((&SteppedInterval, &i64), &i64)| {
        let residue = IndexExpr::constant(*residue);
        let away = residue.sub(&interval.low).modulo(&IndexExpr::constant(interval.step));
        if away.as_constant() != Some(0) {
            return None;
        }
        let modulus = IndexExpr::constant(*step);
        let low = interval.low.add(&residue.sub(&interval.low).modulo(&modulus));
        let high = interval.high.sub(&interval.high.sub(&residue).modulo(&modulus));
        Some(SteppedInterval { low, high, step: *step })
    };
    region.iter().zip(residues).zip(steps).map(part).collect()
}

/// Checks the coverage of one residue class. All interval ends are elements of the class, and its
/// neighbouring elements are `steps` apart.
fn covers_class(
    known: &dyn Knowledge,
    region: Region,
    boxes: &[Region],
    steps: &[i64],
    facts: &[IndexExpr],
) -> bool {
    let empty = |interval: &SteppedInterval| {
        can_prove_nonnegative(&interval.low.sub(&interval.high).offset(-1), facts, known)
    };
    let mut pieces = vec![region];
    for taken in boxes {
        let mut left = Vec::new();
        for piece in pieces {
            let mut core = piece;
            for (dimension, from) in taken.iter().enumerate() {
                let SteppedInterval { low, high, step } = core[dimension].clone();
                let before = SteppedInterval {
                    low: low.clone(),
                    high: high.minimum(&from.low.offset(-steps[dimension])),
                    step,
                };
                let after = SteppedInterval {
                    low: low.maximum(&from.high.offset(steps[dimension])),
                    high: high.clone(),
                    step,
                };
                for part in [before, after] {
                    if !empty(&part) {
                        let mut outside = core.clone();
                        outside[dimension] = part;
                        left.push(outside);
                    }
                }
                core[dimension] =
                    SteppedInterval { low: low.maximum(&from.low), high: high.minimum(&from.high), step };
            }
        }
        pieces = left;
        if pieces.len() > MOST_PIECES {
            return false;
        }
    }
    pieces.iter().all(|piece| piece.iter().any(empty))
}

fn least_common_multiple(left: i64, right: i64) -> i64 {
    left / greatest_common_divisor(left, right) * right
}
