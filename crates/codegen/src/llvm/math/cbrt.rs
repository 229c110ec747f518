//! Emits the cube root, `cbrt`.
//!
//! x = 2³ᵠ·z with z from √½/2 to 2√2, by integer arithmetic on the bits, and ∛x = 2ᵠ·∛z. A
//! polynomial estimates t = z^-⅓, which needs no division to improve: with e = 1 - z·t³, the factor
//! 1 + e/3 + 2e²/9 triples the correct bits. Then ∛z = z·t², and a last step of Newton's removes
//! the rounding errors that have added up.

use super::lanes::Lanes;
use super::log::Split;

/// z^-⅓ for √½/2 ≤ z ≤ 2√2, with relative errors of 2^-7.2 and 2^-9.6.
const ESTIMATE_F32: [f64; 5] =
    [1.8917864561080933, -1.7633073329925537, 1.2275627851486206, -0.41556456685066223, 0.05297386646270752];
const ESTIMATE_F64: [f64; 7] = [
    2.12477941077965,
    -3.0516967322067043,
    3.7898524902794475,
    -2.8170038825788337,
    1.1986780337952385,
    -0.26892426912419953,
    0.024614357414985057,
];

/// The cube root of x.
pub(super) fn cbrt<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let magnitude = x.abs();
    let denormal = magnitude.less(x.precision.min_normal());
    // A power of 8 that makes denormals normal, and its cube root.
    let (up, down) = x.precision.pick((24f64.exp2(), (-8f64).exp2()), (54f64.exp2(), (-18f64).exp2()));
    let (z, power) = cube_and_root_of_power(denormal.select(magnitude * up, magnitude));
    let root = root_of_reduced(z) * power * denormal.select(x.constant(down), 1.0);
    let finite = magnitude.less(f64::INFINITY).select(root.copysign(x), x);
    x.equal(0.0).select(x, finite)
}

/// z and 2ᵠ of a positive normal number 2³ᵠ·z.
fn cube_and_root_of_power<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> (Lanes<'ctx, 'm>, Lanes<'ctx, 'm>) {
    let precision = x.precision;
    let split = Split::new(x);
    let q = split.exponent(split.zero()).round_scaled(1.0 / 3.0, precision.bias());
    let places = precision.mantissa_bits();
    let shifted = q.biased.shift_left(places);
    let unbiased = x.bits().plus(u64::from(3 * precision.bias()) << places);
    (unbiased.minus(shifted).minus(shifted).minus(shifted).float(), q.power_of_two())
}

/// ∛z for √½/2 ≤ z ≤ 2√2.
fn root_of_reduced<'ctx, 'm>(z: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let estimate: &[f64] = z.precision.pick(&ESTIMATE_F32, &ESTIMATE_F64);
    let steps = z.precision.pick(1, 2);
    let t = (0..steps).fold(z.polynomial(estimate), |t, _| {
        let e = -(z * t).fma(t * t, -1.0);
        (t * e).fma(e.fma(2.0 / 9.0, 1.0 / 3.0), t)
    });
    let square = t * t;
    let root = z * square;
    (root * root).fma(root, -z).fma(square * (-1.0 / 3.0), root)
}
