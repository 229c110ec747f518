//! Emits `asinh`, `acosh` and `atanh`, all as log(1 + u) with a u that keeps its relative accuracy
//! where the result is small.

use super::lanes::Lanes;
use super::log::log1p;

/// Beyond these magnitudes, √(x² ± 1) is x to the last place, and x² would overflow soon.
const LARGE_F32: f64 = 1e9;
const LARGE_F64: f64 = 1e18;

/// asinh x, with u = |x| + x²/(1 + √(1 + x²)).
pub(super) fn asinh<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let magnitude = x.abs();
    let limited = magnitude.at_most(x.precision.pick(LARGE_F32, LARGE_F64));
    let square = limited * limited;
    let u = limited + square / ((square + 1.0).sqrt() + 1.0);
    log1p_or_log_of_double(magnitude, u).copysign(x)
}

/// acosh x, with u = t + √(t·(t + 2)) for t = x - 1.
pub(super) fn acosh<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let t = x.at_most(x.precision.pick(LARGE_F32, LARGE_F64)) - 1.0;
    let u = t + (t * (t + 2.0)).sqrt();
    x.less(1.0).select(x.constant(f64::NAN), log1p_or_log_of_double(x, u))
}

/// log(1 + u), or log 2x where x is large.
fn log1p_or_log_of_double<'ctx, 'm>(x: Lanes<'ctx, 'm>, u: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let large = x.greater(x.precision.pick(LARGE_F32, LARGE_F64));
    log1p(large.select(x, u)) + large.select(x.constant(std::f64::consts::LN_2), 0.0)
}

/// atanh x = ½·log(1 + u) with u = 2x/(1 - x).
pub(super) fn atanh<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let magnitude = x.abs();
    let u = magnitude * 2.0 / (x.constant(1.0) - magnitude);
    (log1p(u) * 0.5).copysign(x)
}
