//! Emits `asin`, `acos`, `atan` and `atan2`.
//!
//! **atan.** x + x³·P(x²) up to 1, and π/2 - atan(1/x) beyond.
//!
//! **atan2.** The quotient of the smaller and the larger magnitude is at most 1. Its arctangent is
//! reflected at π/4 where |y| is the larger, and at π/2 where x is negative.
//!
//! **asin, acos.** asin s = s + s³·P(s²) up to ½. Beyond, with s = √((1 - |x|)/2), which is at most
//! ½ too, acos|x| = 2·asin s and asin|x| = π/2 - 2·asin s. The difference 1 - |x| is exact there.

use super::lanes::{Lanes, Mask};

/// (atan(x) / x - 1) / x² in x² for |x| ≤ 1. The relative errors of the arctangent are 2^-28.2 and
/// 2^-56.6.
const ATAN_F32: [f64; 9] = [
    -0.33333298563957214,
    0.1999852955341339,
    -0.1426401436328888,
    0.10950860381126404,
    -0.08399201929569244,
    0.05787868797779083,
    -0.031093263998627663,
    0.01086607575416565,
    -0.0017820891225710511,
];
const ATAN_F64: [f64; 20] = [
    -0.3333333333333307,
    0.1999999999995175,
    -0.14285714282588158,
    0.11111111007343441,
    -0.0909090700781303,
    0.07692279888975312,
    -0.06666404423186448,
    0.058805298046030345,
    -0.05253526759963509,
    0.047223482879212075,
    -0.04219243413721278,
    0.036643157770982565,
    -0.029905746103292323,
    0.02198707871950208,
    -0.013902579990270187,
    0.0071978864778734965,
    -0.0028856093828063967,
    0.0008315592581076282,
    -0.00015221101900895565,
    1.3229984467873141e-05,
];

/// π/2 rounded to the format, and the remainder.
const HALF_PI_F32: [f64; 2] = [1.5707963705062866, -4.3711390001862426e-08];
const HALF_PI_F64: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17];

/// (asin(s) / s - 1) / s² in s² for |s| ≤ ½. The relative errors of the arcsine are 2^-26.8 and
/// 2^-55.0.
const ASIN_F32: [f64; 5] = [
    0.16666731238365173,
    0.07495668530464172,
    0.04546570032835007,
    0.024057045578956604,
    0.04255359619855881,
];
const ASIN_F64: [f64; 12] = [
    0.16666666666666174,
    0.07500000000189315,
    0.04464285692673743,
    0.030381955906319185,
    0.022371818553389988,
    0.01735901155435836,
    0.013890221612585888,
    0.012147011027490271,
    0.006584550621323711,
    0.019467184974221945,
    -0.0162566313958063,
    0.03201133505277728,
];

/// atan x.
pub(super) fn atan<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let magnitude = x.abs();
    let steep = magnitude.greater(1.0);
    let t = steep.select(x.constant(1.0) / magnitude, magnitude);
    let near = atan_up_to_one(t);
    steep.select(subtracted_from_half_pi(near), near).copysign(x)
}

/// The angle of the point (x, y).
pub(super) fn atan2<'ctx, 'm>(y: Lanes<'ctx, 'm>, x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (height, width) = (y.abs(), x.abs());
    let steep = height.greater(width);
    let near = atan_up_to_one(quotient(steep.select(width, height), steep.select(height, width)));
    let right = steep.select(subtracted_from_half_pi(near), near);
    is_negative(x).select(subtracted_from_pi(right), right).copysign(y)
}

/// small / large, which is 0 where both are 0, and 1 where both are infinite.
fn quotient<'ctx, 'm>(small: Lanes<'ctx, 'm>, large: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let one = small.constant(1.0);
    let ratio = small / large.equal(0.0).select(one, large);
    small.equal(f64::INFINITY).and(large.equal(f64::INFINITY)).select(one, ratio)
}

/// The lanes with a sign, including those of -0.
fn is_negative<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Mask<'ctx, 'm> {
    x.constant(1.0).copysign(x).less(0.0)
}

/// atan t for 0 ≤ t ≤ 1.
fn atan_up_to_one<'ctx, 'm>(t: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let square = t * t;
    (square * square.polynomial(t.precision.pick(&ATAN_F32, &ATAN_F64))).fma(t, t)
}

/// π/2 - angle, which is not negative.
fn subtracted_from_half_pi<'ctx, 'm>(angle: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let [half_pi, missing] = angle.precision.pick(HALF_PI_F32, HALF_PI_F64);
    (angle - missing - half_pi).abs()
}

/// π - angle, which is not negative.
fn subtracted_from_pi<'ctx, 'm>(angle: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let [half_pi, missing] = angle.precision.pick(HALF_PI_F32, HALF_PI_F64);
    (angle - 2.0 * missing - 2.0 * half_pi).abs()
}

/// asin x.
pub(super) fn asin<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (steep, near) = asin_of_reduced(x.abs());
    steep.select(subtracted_from_half_pi(near * 2.0), near).copysign(x)
}

/// acos x.
pub(super) fn acos<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (steep, near) = asin_of_reduced(x.abs());
    let twice = near * 2.0;
    let outer = x.less(0.0).select(subtracted_from_pi(twice), twice);
    steep.select(outer, subtracted_from_half_pi(near.copysign(x)))
}

/// The lanes where the magnitude is above ½, and asin s, where s is √((1 - magnitude)/2) in these
/// lanes and the magnitude itself in the others.
fn asin_of_reduced<'ctx, 'm>(magnitude: Lanes<'ctx, 'm>) -> (Mask<'ctx, 'm>, Lanes<'ctx, 'm>) {
    let steep = magnitude.greater(0.5);
    let square = steep.select((magnitude.constant(1.0) - magnitude) * 0.5, magnitude * magnitude);
    let s = steep.select(square.sqrt(), magnitude);
    let p = square.polynomial(s.precision.pick(&ASIN_F32, &ASIN_F64));
    (steep, (square * p).fma(s, s))
}
