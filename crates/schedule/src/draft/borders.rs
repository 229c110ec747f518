//! Recognises subscripts that a border changes: clamped, wrapped and mirrored ones.
//!
//! Away from the border, each of them is a plain subscript. Lowering makes a version of the code
//! for the interior (`lower::conditions`), and the analysis of strides looks only at the interior.

use tilewright_ir::ids::Ids;
use tilewright_ir::{Atom, IndexExpr};

use super::simplify::split_clamp;

/// The least divisor of a remainder that counts as a border. Smaller ones, such as the 2 of a
/// parity, repeat all over a loop.
const LEAST_PERIOD: i64 = 64;

/// The subscript inside a clamp, a fold or a remainder, and an expression that is not negative
/// where that subscript is the result.
pub(crate) fn inside_border<I: Ids>(atom: &Atom<I>) -> Option<(IndexExpr<I>, IndexExpr<I>)> {
    match atom {
        Atom::Min(pair) => {
            let (free, border) = split_clamp(pair).or_else(|| split_fold(pair))?;
            Some((free.clone(), border.sub(free)))
        }
        Atom::Max(pair) => {
            let (free, border) = split_clamp(pair)?;
            Some((free.clone(), free.sub(border)))
        }
        Atom::Mod(pair) => {
            let period = pair.1.as_constant().filter(|period| *period >= LEAST_PERIOD)?;
            let free = nearest_to_zero(&pair.0, period)?;
            let condition = free.minimum(&IndexExpr::constant(period - 1).sub(&free));
            Some((free, condition))
        }
        _ => None,
    }
}

/// Splits `min(x, 2*W - 1 - x)`, the subscript of a mirrored tensor, into the plain subscript and
/// its mirror image. The constant tells them apart: the plain one begins near 0, its mirror image
/// near `2*W`. Signs do not, because a subscript such as `x - k` has both.
fn split_fold<I: Ids>(pair: &(IndexExpr<I>, IndexExpr<I>)) -> Option<(&IndexExpr<I>, &IndexExpr<I>)> {
    let (left, right) = pair;
    left.add(right).as_constant()?;
    let distance = |side: &IndexExpr<I>| side.constant_part().unsigned_abs();
    Some(if distance(left) <= distance(right) { (left, right) } else { (right, left) })
}

/// The dividend of a remainder without whole periods: `x + 99` with a period of 100 is `x - 1`, as
/// the remainder of `x - 1` is written with a positive number.
fn nearest_to_zero<I: Ids>(dividend: &IndexExpr<I>, period: i64) -> Option<IndexExpr<I>> {
    if dividend.as_constant().is_some() {
        return None;
    }
    let offset = dividend.constant_part();
    let periods = offset.checked_add(period / 2)?.div_euclid(period);
    Some(dividend.offset(periods.checked_mul(period)?.checked_neg()?))
}
