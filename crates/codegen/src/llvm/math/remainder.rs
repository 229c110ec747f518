//! Emits `fmod`, the exact remainder with the sign of the dividend.
//!
//! With n the integer next to the rounded quotient |x|/|y|, |x| - n·|y| is the remainder or the
//! remainder less |y|. It is exact, for it is a multiple of the last place of x or y, and below
//! |y|:
//!
//! **f32** computes in f64. Up to n = 2²⁸, the product n·|y| has at most 52 bits.
//!
//! **f64** needs a fused multiply-add, which rounds the difference alone. Up to 2⁵¹, the quotient's
//! rounding error is at most ¼, so the difference stays below |y|.
//!
//! Larger quotients go to the C library, which divides bit by bit.

use super::lanes::{Lanes, Mask, Precision};
use super::library::library_where;

/// The quotients below which the difference is exact.
const LIMIT_F32: f64 = 268_435_456.0;
const LIMIT_F64: f64 = 2_251_799_813_685_248.0;

/// The remainder of x by y, if the machine can compute it exactly.
pub(super) fn fmod<'ctx, 'm>(x: Lanes<'ctx, 'm>, y: Lanes<'ctx, 'm>) -> Option<Lanes<'ctx, 'm>> {
    let (magnitude, divisor) = (x.abs(), y.abs());
    let (huge, remainder) = match x.precision {
        Precision::Single => {
            let (huge, wide) = remainder_and_huge(magnitude.widened(), divisor.widened(), LIMIT_F32);
            (huge, wide.narrowed())
        }
        Precision::Double if x.m.has_fma => remainder_and_huge(magnitude, divisor, LIMIT_F64),
        Precision::Double => return None,
    };
    // Zero times an infinite divisor is not a number.
    let finite = divisor.equal(f64::INFINITY).and(magnitude.less(f64::INFINITY)).select(magnitude, remainder);
    Some(library_where(huge, "fmod", &[x, y], finite.copysign(x)))
}

/// The lanes whose quotient is beyond the limit, and the remainder of the others. NaN, an infinite
/// dividend and a divisor of zero give NaN.
fn remainder_and_huge<'ctx, 'm>(
    x: Lanes<'ctx, 'm>,
    y: Lanes<'ctx, 'm>,
    limit: f64,
) -> (Mask<'ctx, 'm>, Lanes<'ctx, 'm>) {
    let quotient = x / y;
    let n = quotient.round_scaled(1.0, 0).number;
    let nearest = (-n).fma(y, x);
    let remainder = nearest.less(0.0).select(nearest + y, nearest);
    let huge = quotient.less(limit).not().and(x.less(f64::INFINITY)).and(y.greater(0.0));
    (huge, remainder)
}
