//! Emits `pow`: powers whose exponent is not a suitable constant ([`super::constant_power`]).
//!
//! |x|ʸ = 2^(y·log₂|x|). The logarithm must be more accurate than the result, because y·log₂|x| is
//! as large as the format's greatest exponent, and its absolute error is the result's relative
//! error.
//!
//! **f32** computes in f64, with polynomials of the accuracy that f32 needs. Denormals of f32 are
//! normal numbers of f64, and the conversion back rounds once.
//!
//! **f64** computes the logarithm as the sum of two numbers ([`super::pair`]).

use super::exp::exp2_of_sum;
use super::lanes::{Lanes, Mask, Precision};
use super::log::{Split, exponent_and_fraction};
use super::pair::Pair;

/// log₂(1 + f) / f for √½ ≤ 1 + f ≤ √2, with a relative error of 2^-35.8.
const LOG2_FOR_F32: [f64; 13] = [
    1.4426950408687067,
    -0.721347520868791,
    0.4808983613955352,
    -0.3606736748270168,
    0.2885372934632471,
    -0.24045316553999432,
    0.20617535949151092,
    -0.1803006031347385,
    0.15876980561351434,
    -0.14315644586142806,
    0.1447484004514445,
    -0.1428393413276637,
    0.07737046813210853,
];

/// 2ʳ for |r| ≤ ½, with a relative error of 2^-27.9.
const EXP2_FOR_F32: [f64; 7] = [
    1.0,
    0.693147225395011,
    0.2402265108411731,
    0.05550297314199508,
    0.009618030782501487,
    0.0013410000966026828,
    0.0001546973197894213,
];

/// (artanh(s) / s - 1 - s²/3) / s⁴ in s² for |s| ≤ 0.1717. The relative error of the logarithm is
/// 2^-71.6.
const ARTANH: [f64; 8] = [
    0.19999999999999998,
    0.1428571428571648,
    0.11111111110167307,
    0.09090909274663811,
    0.07692288591949334,
    0.06667797913861369,
    0.05844154846844188,
    0.05942824684869502,
];

/// 1/3 and 2 / ln 2, as sums of two numbers.
const THIRD: [f64; 2] = [0.3333333333333333, 1.850371707708594e-17];
const TWO_LOG2_E: [f64; 2] = [2.0 * std::f64::consts::LOG2_E, 4.0710547481862066e-17];

/// xʸ, if the machine can compute it.
pub(super) fn pow<'ctx, 'm>(x: Lanes<'ctx, 'm>, y: Lanes<'ctx, 'm>) -> Option<Lanes<'ctx, 'm>> {
    // A finite exponent keeps 1 to the power of infinity at 1. Beyond the limit, the result is 0, 1
    // or infinity for every base.
    let limit = 100f64.exp2();
    let exponent = y.at_least(-limit).at_most(limit);
    let magnitude = match x.precision {
        Precision::Single => power_in_double(x.abs(), exponent),
        Precision::Double if x.m.has_fma => power_by_pair(x.abs(), exponent),
        Precision::Double => return None,
    };
    Some(select_special_cases(x, y, magnitude))
}

/// xʸ for f32 and x ≥ 0. Where y is 0, the result is arbitrary.
fn power_in_double<'ctx, 'm>(x: Lanes<'ctx, 'm>, y: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let x = x.widened();
    let split = Split::new(x);
    let f = split.mantissa() - 1.0;
    let logarithm = f.polynomial(&LOG2_FOR_F32).fma(f, split.exponent(split.zero()));
    // Beyond these limits, the result is 0 or infinity in f32, but still a normal number of f64.
    let product = (y.widened() * at_zero_and_infinity(x, logarithm)).at_least(-200.0).at_most(200.0);
    let n = product.round_scaled(1.0, x.precision.bias());
    ((product - n.number).polynomial(&EXP2_FOR_F32) * n.power_of_two()).narrowed()
}

/// xʸ for f64 and x ≥ 0, on machines with fused multiply-add. Where y is 0, the result is
/// arbitrary.
fn power_by_pair<'ctx, 'm>(x: Lanes<'ctx, 'm>, y: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let logarithm = log2_pair(x);
    let product = Pair::product(y, at_zero_and_infinity(x, logarithm.high));
    let low = y.fma(logarithm.low, product.low);
    // Beyond these limits, the result is 0 or infinity, and the low part may be large or NaN.
    let in_range = product.high.abs().less(1100.0);
    exp2_of_sum(product.high, in_range.select(low, 0.0))
}

/// log₂ x for a positive x, as a sum of two numbers with a relative error of about 2^-64.
fn log2_pair<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Pair<'ctx, 'm> {
    let (k, f) = exponent_and_fraction(x);
    let s = f_over_two_plus_f(f);
    let square = s.times(s);
    // artanh s = s + s·s²·(1/3 + s²·P(s²))
    let tail = square.high * square.high.polynomial(&ARTANH);
    let third = Pair::constant(x, THIRD);
    let cofactor = Pair::sum(third.high, tail).plus_low(third.low);
    let rest = s.times(square.times(cofactor));
    let artanh = Pair::sum(s.high, rest.high).plus_low(s.low + rest.low);
    let scaled = artanh.times(Pair::constant(x, TWO_LOG2_E));
    Pair::sum(k, scaled.high).plus_low(scaled.low)
}

/// f / (2 + f) as a sum of two numbers. The low part divides what the high part leaves over.
fn f_over_two_plus_f<'ctx, 'm>(f: Lanes<'ctx, 'm>) -> Pair<'ctx, 'm> {
    let sum = Pair::sum(f.constant(2.0), f);
    let reciprocal = f.constant(1.0) / sum.high;
    let high = f * reciprocal;
    let rest = (-high).fma(sum.low, (-high).fma(sum.high, f));
    Pair { high, low: rest * reciprocal }
}

/// The logarithm at 0, infinity and NaN; `logarithm` elsewhere.
fn at_zero_and_infinity<'ctx, 'm>(x: Lanes<'ctx, 'm>, logarithm: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let finite = x.less(f64::INFINITY).select(logarithm, x);
    x.equal(0.0).select(x.constant(f64::NEG_INFINITY), finite)
}

/// Gives the power its sign, and the values that C defines for a negative base and for an exponent
/// of 0.
fn select_special_cases<'ctx, 'm>(
    x: Lanes<'ctx, 'm>,
    y: Lanes<'ctx, 'm>,
    magnitude: Lanes<'ctx, 'm>,
) -> Lanes<'ctx, 'm> {
    let exponent = y.abs();
    let integer = is_integer(exponent);
    let odd = integer.and(is_integer(exponent * 0.5).not());
    let signed = odd.select(magnitude.copysign(x), magnitude);
    let complex = x.less(0.0).and(x.greater(f64::NEG_INFINITY)).and(integer.not());
    let real = complex.select(x.constant(f64::NAN), signed);
    // These two hold even if the other argument is NaN.
    x.equal(1.0).or(y.equal(0.0)).select(x.constant(1.0), real)
}

/// The lanes with an integer, for x ≥ 0. Infinity counts as one, and NaN does not.
pub(super) fn is_integer<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Mask<'ctx, 'm> {
    // From 2^p up to its double, the last place is 1, so the addition rounds to an integer.
    let limit = x.precision.integer_ulp();
    let limited = x.at_most(limit);
    ((limited + limit) - limit).equal(limited)
}
