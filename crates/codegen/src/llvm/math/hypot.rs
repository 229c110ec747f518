//! Emits `hypot`, the length of a vector of two components.
//!
//! The squares of numbers beyond the square root of the format's range overflow, or vanish. Such
//! numbers are multiplied by a power of two before, and the root by its reciprocal afterwards.

use super::lanes::Lanes;

/// Exponents of two: below the first, numbers are multiplied by two to the second; above the third,
/// they are divided by two to the fourth. Squares of the products are normal and finite.
const SCALES_F32: [f64; 4] = [-40.0, 100.0, 50.0, 90.0];
const SCALES_F64: [f64; 4] = [-400.0, 600.0, 500.0, 600.0];

/// √(x² + y²).
pub(super) fn hypot<'ctx, 'm>(x: Lanes<'ctx, 'm>, y: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (x, y) = (x.abs(), y.abs());
    let larger = x.greater(y).select(x, y);
    let [low, up, high, down] = x.precision.pick(SCALES_F32, SCALES_F64);
    let (small, large) = (larger.less(low.exp2()), larger.greater(high.exp2()));
    let three_way =
        |up: f64, down: f64| small.select(x.constant(up.exp2()), large.select(x.constant(down.exp2()), 1.0));
    let scale = three_way(up, -down);
    let (a, b) = (x * scale, y * scale);
    let length = a.fma(a, b * b).sqrt() * three_way(-up, down);
    // Infinity wins over NaN.
    let infinite = x.equal(f64::INFINITY).or(y.equal(f64::INFINITY));
    infinite.select(x.constant(f64::INFINITY), length)
}
