//! Emits the exponential and functions that follow directly from it: `exp`, `exp2`, `expm1`,
//! `sinh`, `cosh`, `sigmoid`.
//!
//! **exp.** With h = round(x / 2ln2) and r = x - h·2ln2 (Cody and Waite 1980, chapter 6), eˣ = eʳ ·
//! 2ʰ · 2ʰ. Steps of 2ln2 instead of ln2 cost two degrees of the polynomial, but leave two equal
//! factors. Each factor is a normal number for every result from the smallest denormal to infinity:
//! there are no special cases, and a denormal result is rounded once. AVX-512 multiplies by 2ⁿ in
//! one instruction with the same effect, so the AVX-512 code takes steps of ln2.
//!
//! **expm1.** With n = round(x / ln2), eˣ - 1 = 2ⁿ·(eʳ - 1) + (2ⁿ - 1). For n = 0, the second part
//! vanishes and the relative error is that of the polynomial. For every other n, the parts cannot
//! cancel by more than one bit. The code computes a quarter of the result, since 2ⁿ itself can
//! overflow where the result (or `sinh`, which is half of it) does not.

use super::lanes::Lanes;

/// The range of arguments for which the exponential fits the format. Below it the result is 0.
/// Above it the result is infinity, even when halved as in `cosh`.
const EXP_RANGE_F32: (f64, f64) = (-104.0, 90.0);
const EXP_RANGE_F64: (f64, f64) = (-746.0, 711.0);

/// 2 ln 2 in two parts. The product of the first part and any h that occurs is exact.
const TWO_LN2_F32: [f64; 2] = [1.38629150390625, 2.857213530660374e-06];
const TWO_LN2_F64: [f64; 2] = [1.3862943611202354, -3.447888905122967e-13];

/// ln 2 in two parts, in the same way.
pub(super) const LN2_F32: [f64; 2] = [0.693145751953125, 1.428606765330187e-06];
pub(super) const LN2_F64: [f64; 2] = [0.6931471805601177, -1.7239444525614835e-13];

/// eʳ for |r| ≤ ln 2, with relative errors of 2^-25.1 and 2^-55.4.
const EXP_F32: [f64; 8] = [
    1.0,
    1.0,
    0.5000008940696716,
    0.1666673719882965,
    0.04165732488036156,
    0.008327873423695564,
    0.0014165138127282262,
    0.0002082826104015112,
];
const EXP_F64: [f64; 14] = [
    1.0,
    0.9999999999999999,
    0.4999999999999989,
    0.16666666666667407,
    0.04166666666671258,
    0.008333333333203751,
    0.0013888888882604478,
    0.00019841269935300937,
    2.4801591234895337e-05,
    2.7557286932915233e-06,
    2.755607953287829e-07,
    2.5057181918197878e-08,
    2.1068102392895498e-09,
    1.5806250258185862e-10,
];

/// 2ʳ for |r| ≤ 1, with relative errors of 2^-26.0 and 2^-55.7.
const EXP2_F32: [f64; 8] = [
    1.0,
    0.6931472420692444,
    0.24022674560546875,
    0.05550356209278107,
    0.009616651572287083,
    0.0013344426406547427,
    0.00015659522614441812,
    1.4740689039172139e-05,
];
const EXP2_F64: [f64; 14] = [
    1.0,
    std::f64::consts::LN_2,
    0.24022650695909978,
    0.055504108664821854,
    0.009618129107644847,
    0.0013333558146432984,
    0.00015403530383815815,
    1.5252733795666622e-05,
    1.321548938240979e-06,
    1.017808830555889e-07,
    7.054552040204602e-09,
    4.4452730915811897e-10,
    2.5926931688508433e-11,
    1.3835241624362824e-12,
];

/// (eʳ - 1 - r) / r² for |r| ≤ ln 2 / 2. The relative errors of eʳ - 1 are 2^-26.1 and 2^-61.3.
const EXPM1_F32: [f64; 5] = [
    0.4999999701976776,
    0.16666537523269653,
    0.04166773334145546,
    0.008367282338440418,
    0.0013840070459991693,
];
const EXPM1_F64: [f64; 11] = [
    0.5,
    0.1666666666666668,
    0.04166666666666672,
    0.008333333333318937,
    0.0013888888888842397,
    0.00019841269893331468,
    2.4801587427276854e-05,
    2.7557236772968287e-06,
    2.7557178556675895e-07,
    2.5111649398223587e-08,
    2.094452526247135e-09,
];

/// eˣ.
pub(super) fn exp<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (low, high) = x.precision.pick(EXP_RANGE_F32, EXP_RANGE_F64);
    unless_vanishing(x, low, |x| {
        let x = x.at_most(high);
        if x.can_be_scaled() { exp_scaled(x) } else { exp_in_range(x) }
    })
}

/// A power of x that rounds to 0 below a limit, and is computed elsewhere. Processors take a
/// hundred times as long for products that are too small for a number, and masks such as those of
/// attention make many: `exp(-inf)`.
fn unless_vanishing<'ctx, 'm>(
    x: Lanes<'ctx, 'm>,
    low: f64,
    power: impl FnOnce(Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm>,
) -> Lanes<'ctx, 'm> {
    let vanishes = x.less(low);
    let value = power(vanishes.select(x.constant(0.0), x));
    vanishes.select(x.constant(0.0), value)
}

/// eˣ for x within the range, on machines with a multiplication by 2ⁿ. Steps of ln2 need a
/// polynomial of two degrees less.
fn exp_scaled<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let n = x.round_scaled(std::f64::consts::LOG2_E, 0).number;
    let r = x.reduce(n, x.precision.pick(&LN2_F32, &LN2_F64));
    let rest: &[f64] = x.precision.pick(&EXPM1_F32, &EXPM1_F64);
    let coefficients: Vec<f64> = [1.0, 1.0].iter().chain(rest).copied().collect();
    r.polynomial(&coefficients).scaled(n)
}

/// eˣ for x within the range.
pub(super) fn exp_in_range<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (value, scale) = exp_and_scale(x);
    value * scale
}

/// Splits eˣ into value · scale for x within the range. Only this product can overflow or become
/// denormal.
fn exp_and_scale<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> (Lanes<'ctx, 'm>, Lanes<'ctx, 'm>) {
    let half = x.round_scaled(0.5 * std::f64::consts::LOG2_E, x.precision.bias());
    let r = x.reduce(half.number, x.precision.pick(&TWO_LN2_F32, &TWO_LN2_F64));
    let scale = half.power_of_two();
    (r.polynomial(x.precision.pick(&EXP_F32, &EXP_F64)) * scale, scale)
}

/// e^(-x²) for x ≥ 0 in f64. With x = h + l, where h has so few bits that h² is exact, -x² is
/// -h² - l·(x + h). Steps of ln2 leave a smaller argument, and so a smaller rounding error, than
/// [`exp`] has. The power of two is split in two factors.
pub(super) fn exp_of_negated_square<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let h = x.bits().and(!((1 << 27) - 1)).float();
    let (low, _) = EXP_RANGE_F64;
    let exponent = (-(h * h)).at_least(low);
    let n = exponent.round_scaled(std::f64::consts::LOG2_E, 0).number;
    let r = exponent.reduce(n, &LN2_F64) + (h - x) * (h + x);
    let power = (r * r).fma(r.polynomial(&EXPM1_F64), r) + 1.0;
    let half = n.round_scaled(0.5, x.precision.bias());
    let other_half = (n - half.number).round_scaled(1.0, x.precision.bias());
    power * half.power_of_two() * other_half.power_of_two()
}

/// 2ˣ, by the same scheme. The reduction is exact.
pub(super) fn exp2<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    // Adding -0 changes no number, so LLVM drops the addition.
    exp2_of_sum(x, x.constant(-0.0))
}

/// 2^(x + rest), where the rest is small against 1. It joins the reduced argument, which is below 1
/// too.
pub(super) fn exp2_of_sum<'ctx, 'm>(x: Lanes<'ctx, 'm>, rest: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (low, high) = x.precision.pick((-151.0, 129.0), (-1076.0, 1025.0));
    unless_vanishing(x, low, |x| {
        let x = x.at_most(high);
        let half = x.round_scaled(0.5, x.precision.bias());
        let r = x.reduce(half.number, &[2.0]) + rest;
        let scale = half.power_of_two();
        r.polynomial(x.precision.pick(&EXP2_F32, &EXP2_F64)) * scale * scale
    })
}

/// eˣ - 1.
pub(super) fn expm1<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    // Below -18 (f32) or -40 (f64), the result rounds to -1.
    let low = x.precision.pick(-18.0, -40.0);
    unless_tiny(x, quarter_expm1(x.at_least(low)) * 4.0)
}

/// (eˣ - 1) / 4 for x not below -40, finite for every x that is not NaN. The result lacks the last
/// bits for the smallest arguments, where [`unless_tiny`] replaces it.
pub(super) fn quarter_expm1<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    // Beyond this limit, a quarter of 2ⁿ would overflow, and even half of the result has
    // overflowed.
    let x = x.at_most(x.precision.pick(89.7, 710.6));
    let n = x.round_scaled(std::f64::consts::LOG2_E, x.precision.bias() - 2);
    let r = x.reduce(n.number, x.precision.pick(&LN2_F32, &LN2_F64));
    let quarter = n.power_of_two();
    let p = (r * r).fma(r.polynomial(x.precision.pick(&EXPM1_F32, &EXPM1_F64)), r);
    quarter.fma(p, quarter - 0.25)
}

/// Returns `x` where x is so small that f(x) = x to the last place, for an f with slope 1 at 0, and
/// `result` elsewhere. This also preserves the sign of zero, and denormals.
pub(super) fn unless_tiny<'ctx, 'm>(x: Lanes<'ctx, 'm>, result: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    x.abs().less(0.5 / x.precision.integer_ulp()).select(x, result)
}

/// (eˣ - e⁻ˣ) / 2 from t = e^|x| - 1 as (t + t / (t + 1)) / 2.
pub(super) fn sinh<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let quarter = quarter_expm1(x.abs());
    let magnitude = (quarter + quarter / quarter.fma(4.0, 1.0)) * 2.0;
    unless_tiny(x, magnitude.copysign(x))
}

/// (eˣ + e⁻ˣ) / 2 from e = e^|x| / 2 as e + 1 / (4 e).
pub(super) fn cosh<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (_, high) = x.precision.pick(EXP_RANGE_F32, EXP_RANGE_F64);
    let (value, scale) = exp_and_scale(x.abs().at_most(high));
    let e = value * (scale * 0.5);
    e + e.constant(0.25) / e
}

/// 1 / (1 + e⁻ˣ). For negative x the code computes eˣ / (1 + eˣ), which preserves denormal results.
pub(super) fn sigmoid<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let (low, _) = x.precision.pick(EXP_RANGE_F32, EXP_RANGE_F64);
    let e = unless_vanishing(-x.abs(), low, exp_in_range);
    x.less(0.0).select(e, 1.0) / (e + 1.0)
}
