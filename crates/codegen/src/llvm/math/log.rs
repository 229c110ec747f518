//! Emits the logarithms `log`, `log2`, `log10` and `log1p`.
//!
//! x = 2ᵏ·m with √½ ≤ m < √2, by integer arithmetic on the bits, and log x = k·ln 2 + log(1 + f)
//! with f = m - 1, which is exact. For arguments near 1, k is 0 and the second part alone is the
//! result, so its relative error matters; elsewhere the parts cancel by at most one bit. The other
//! bases scale log(1 + f) and keep k exact.
//!
//! **f32** uses log(1 + f) = f - f²/2 + f³·P(f). **f64**, for which this form would need 21
//! coefficients, divides once: with s = f/(2 + f), log(1 + f) = 2·artanh s = f - (f²/2 - s·(f²/2 +
//! R(s²))). This is the form of Ng (1986, in fdlibm's `e_log.c`), where only small terms are
//! rounded.
//!
//! **log1p** must not lose the x in 1 + x: k comes from the rounded sum, but f = x·2⁻ᵏ + (2⁻ᵏ - 1),
//! which is rounded once.

use super::exp::{LN2_F32, LN2_F64};
use super::lanes::{Bits, Lanes, Operand, Precision};

/// (log(1 + f) - f + f²/2) / f³ for √½ ≤ 1 + f ≤ √2. The relative error of the logarithm is
/// 2^-27.3.
const LOG_F32: [f64; 8] = [
    0.3333333134651184,
    -0.250008225440979,
    0.20001260936260223,
    -0.16623330116271973,
    0.14200939238071442,
    -0.13159574568271637,
    0.12767139077186584,
    -0.07643198221921921,
];

/// R(z) / z, where 2 artanh s = 2s + s·R(s²), for |s| ≤ 0.1717. The relative error of the logarithm
/// is 2^-59.5.
const LOG_F64: [f64; 7] = [
    0.6666666666666735,
    0.3999999999940914,
    0.2857142874378039,
    0.2222219841462598,
    0.1818357333746249,
    0.15313801216094192,
    0.14798624142470582,
];

/// log₁₀ 2 in two parts. The product of the first part and any k is exact.
const LOG10_2_F32: [f64; 2] = [0.301025390625, 4.605039066518657e-06];
const LOG10_2_F64: [f64; 2] = [0.3010299956640665, -8.532344317057107e-14];

/// log x.
pub(super) fn log<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (k, f) = exponent_and_fraction(x);
    select_special_cases(x, times_in_parts(k, x.precision.pick(&LN2_F32, &LN2_F64), log_of_one_plus(f)))
}

/// log₂ x.
pub(super) fn log2<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (k, f) = exponent_and_fraction(x);
    select_special_cases(x, log_of_one_plus(f).fma(std::f64::consts::LOG2_E, k))
}

/// log₁₀ x.
pub(super) fn log10<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (k, f) = exponent_and_fraction(x);
    let rest = log_of_one_plus(f) * std::f64::consts::LOG10_E;
    select_special_cases(x, times_in_parts(k, x.precision.pick(&LOG10_2_F32, &LOG10_2_F64), rest))
}

/// log(1 + x).
pub(super) fn log1p<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let sum = x + 1.0;
    let split = Split::new(sum);
    let k = split.exponent(split.zero());
    // 2⁻ᵏ overflows the format for the largest x, where the 1 in 1 + x no longer matters.
    let down = split.reciprocal_power();
    let f =
        x.greater(x.precision.integer_ulp() * 4.0).select(split.mantissa() - 1.0, x.fma(down, down - 1.0));
    let result = times_in_parts(k, x.precision.pick(&LN2_F32, &LN2_F64), log_of_one_plus(f));
    select_special_cases(sum, result).copysign(x)
}

/// k and f of the logarithm of x. Where x is not positive and finite, both are arbitrary but
/// harmless.
pub(super) fn exponent_and_fraction<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> (Lanes<'ctx, 'm>, Lanes<'ctx, 'm>) {
    let denormal = x.less(x.precision.min_normal());
    let scale_bits = f64::from(x.precision.mantissa_bits());
    let split = Split::new(denormal.select(x * scale_bits.exp2(), x));
    let k = split.exponent(denormal.select(x.constant(split.zero() + scale_bits), split.zero()));
    (k, split.mantissa() - 1.0)
}

/// A positive normal number as 2ᵏ·m.
pub(super) struct Split<'ctx, 'm> {
    /// The bits of the number, shifted so that the exponent changes at √½ and √2 instead of 1 and
    /// 2. The high bits hold k plus the format's bias. The low bits hold the distance of m from √½.
    shifted: Bits<'ctx, 'm>,
    precision: Precision,
}

impl<'ctx, 'm> Split<'ctx, 'm> {
    pub(super) fn new(x: Lanes<'ctx, 'm>) -> Self {
        let precision = x.precision;
        let shifted =
            x.bits().plus(precision.bits_of(1.0) - precision.bits_of(std::f64::consts::FRAC_1_SQRT_2));
        Split { shifted, precision }
    }

    /// m.
    pub(super) fn mantissa(&self) -> Lanes<'ctx, 'm> {
        let below = self.shifted.and((1 << self.precision.mantissa_bits()) - 1);
        below.plus(self.precision.bits_of(std::f64::consts::FRAC_1_SQRT_2)).float()
    }

    /// k, as the difference between the stored exponent and that of [`Split::zero`]. The integer
    /// becomes a float as the low bits of 2^p, whose last place is one.
    pub(super) fn exponent(&self, zero: impl Operand<'ctx, 'm>) -> Lanes<'ctx, 'm> {
        let biased = self.shifted.shift_right(self.precision.mantissa_bits());
        biased.or(self.precision.bits_of(self.precision.integer_ulp())).float() - zero
    }

    /// The subtrahend of [`Split::exponent`] for k = 0.
    pub(super) fn zero(&self) -> f64 {
        self.precision.integer_ulp() + f64::from(self.precision.bias())
    }

    /// 2⁻ᵏ, for -bias < k < bias.
    fn reciprocal_power(&self) -> Lanes<'ctx, 'm> {
        let places = self.precision.mantissa_bits();
        let power = self.shifted.shift_right(places).shift_left(places);
        power.subtracted_from(self.precision.bits_of(1.0) * 2).float()
    }
}

/// log(1 + f) for √½ ≤ 1 + f < √2.
fn log_of_one_plus<'ctx, 'm>(f: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    match f.precision {
        Precision::Single => (f * f).fma(f.polynomial(&LOG_F32).fma(f, -0.5), f),
        Precision::Double => {
            let half_square = f * f * 0.5;
            let s = f / (f + 2.0);
            let z = s * s;
            let r = z * z.polynomial(&LOG_F64);
            f - (half_square - s * (half_square + r))
        }
    }
}

/// k · (first part + second part) + rest, where k · first part is exact.
fn times_in_parts<'ctx, 'm>(k: Lanes<'ctx, 'm>, parts: &[f64; 2], rest: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    k.fma(parts[0], k.fma(parts[1], rest))
}

/// The logarithm's values at 0, below 0, at infinity and at NaN; `result` elsewhere.
fn select_special_cases<'ctx, 'm>(x: Lanes<'ctx, 'm>, result: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let outside = x.equal(0.0).select(x.constant(f64::NEG_INFINITY), f64::NAN);
    let infinite = x.equal(f64::INFINITY).select(x, result);
    x.greater(0.0).select(infinite, outside)
}
