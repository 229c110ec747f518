//! Emits the hyperbolic tangent, `tanh`.
//!
//! tanh|x| = t / (t + 2) with t = e^(2|x|) - 1. The quotient is as accurate as t for small x, and
//! insensitive to the error of t for large x. A quotient of two polynomials in x² takes a fifth
//! fewer instructions for f32, but its rounding errors add up to more than 5 units in the last
//! place below 1.

use super::exp::{quarter_expm1, unless_tiny};
use super::lanes::Lanes;

/// tanh x.
pub(super) fn tanh<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    // Beyond 10 (f32) or 20 (f64), the result rounds to 1.
    let limit = x.precision.pick(20.0, 40.0);
    let quarter = quarter_expm1((x.abs() * 2.0).at_most(limit));
    unless_tiny(x, (quarter / (quarter + 0.5)).copysign(x))
}
