//! Emits the gamma function, `tgamma`, and the logarithm of its magnitude, `lgamma`, for f32.
//!
//! Γ(y) = Γ(Y)/(y·(y + 1)·(y + 2)·(y + 3)) with Y = y + 4. From 4 on, Stirling's series has the
//! form log Γ(Y) = (Y - ½)·log Y - Y + ½·log 2π + P(1/Y²)/Y. Negative arguments take y = 1 - x and
//! the reflection Γ(x)·Γ(1 - x) = π/sin πx.
//!
//! All is computed in f64, so the cancellation near the zeros of the logarithm and the factor of
//! log Y cost no bits that f32 has. f64 would need more than its own precision for both.

use super::exp::exp;
use super::lanes::Lanes;
use super::log::log;
use super::pow::is_integer;

/// P for Y ≥ 4. The absolute error of the logarithm is 2^-54.9.
const STIRLING: [f64; 8] = [
    0.0833333333333312,
    -0.0027777777760813636,
    0.0007936503973259699,
    -0.0005951961553800605,
    0.0008393574797157787,
    -0.0018375120977871177,
    0.004780208969735878,
    -0.008773101415029693,
];

/// ½·log 2π.
const HALF_LOG_TWO_PI: f64 = 0.918938533204672741780329736406;

/// sin(πr) / r in r² for |r| ≤ ½, with a relative error of 2^-52.6.
const SIN_PI: [f64; 8] = [
    std::f64::consts::PI,
    -5.167712780049753,
    2.5501640398597765,
    -0.5992645287757133,
    0.0821458782565973,
    -0.007370361071932095,
    0.0004659776176748105,
    -2.1122953635134658e-05,
];

/// Γ(x) for f32.
pub(super) fn tgamma<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let wide = x.widened();
    let reflected = wide.less(0.0);
    // Beyond the limit, the result is infinite even in f64, and its reciprocal is 0.
    let y = reflected.select(-wide + 1.0, wide).at_most(200.0);
    let gamma = exp(log_gamma_of_shifted(y)) / rising_product(y);
    let reflection = wide.constant(std::f64::consts::PI) / (sin_pi(wide) * gamma);
    let pole = wide.less(0.0).and(is_integer(wide.abs()));
    pole.select(wide.constant(f64::NAN), reflected.select(reflection, gamma)).narrowed()
}

/// log |Γ(x)| for f32.
pub(super) fn lgamma<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let wide = x.widened();
    let reflected = wide.less(0.0);
    let y = reflected.select(-wide + 1.0, wide);
    let product = rising_product(y);
    let shifted = log_gamma_of_shifted(y);
    let reflection = product * std::f64::consts::PI / sin_pi(wide).abs();
    let divisor = log(reflected.select(reflection, product));
    let result = reflected.select(divisor - shifted, shifted - divisor);
    // The differences cancel only to the last place.
    let zero = wide.equal(1.0).or(wide.equal(2.0));
    let finite = zero.select(wide.constant(0.0), result);
    wide.abs().equal(f64::INFINITY).select(wide.abs(), finite).narrowed()
}

/// log Γ(y + 4) for y ≥ 0 in f64.
fn log_gamma_of_shifted<'ctx, 'm>(y: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let shifted = y + 4.0;
    let reciprocal = y.constant(1.0) / shifted;
    let tail = (reciprocal * reciprocal).polynomial(&STIRLING).fma(reciprocal, HALF_LOG_TWO_PI);
    (shifted - 0.5).fma(log(shifted), tail - shifted)
}

/// y·(y + 1)·(y + 2)·(y + 3).
fn rising_product<'ctx, 'm>(y: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    y * (y + 1.0) * ((y + 2.0) * (y + 3.0))
}

/// sin πx in f64, for x up to 0 in the range of f32. The reduced argument is exact.
fn sin_pi<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    // All numbers below this limit are even integers in f32.
    let limited = x.at_least(-(40f64.exp2()));
    let n = limited.round_scaled(1.0, 0);
    let r = limited - n.number;
    ((r * r).polynomial(&SIN_PI) * r).bits().xor(n.odd_sign()).float()
}
