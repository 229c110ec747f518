//! Emits `sin`, `cos` and `tan`.
//!
//! **sin, cos.** r = x - k·π, with k the nearest integer for the sine and the nearest half-integer
//! for the cosine. Both results are then ±sin r with r from -π/2 to π/2, so one polynomial is
//! enough, and the parity of k gives the sign. The subtraction follows Cody and Waite (1980,
//! chapter 8) with π in four parts, where k times each of the first three is exact. Up to the
//! limits below, the parts extend far enough for r to keep its relative accuracy next to the
//! multiples of π, where the result is as small as r.
//!
//! **tan.** r = x - n·π/2 with |r| ≤ π/4, and the result is sin r / cos r or its negated
//! reciprocal, by the parity of n.
//!
//! **Huge arguments** need some hundred digits of π. They are rare, so if a vector contains one,
//! the code branches to the C library for all lanes ([`super::library`]).

use super::exp::unless_tiny;
use super::lanes::{Lanes, Mask, Rounded};
use super::library::library_where;

/// Above these arguments, k needs more bits than the parts of π leave free.
const LIMIT_F32: f64 = 12_800.0;
const LIMIT_F64: f64 = 4_000_000.0;

/// π in parts of 11, 11, 11 and 24 bits for f32, and of 31, 31, 31 and 53 bits for f64. All parts
/// are positive, so that -0 stays -0.
const PI_F32: [f64; 4] = [3.140625, 0.0009675025939941406, 1.5099067240953445e-07, 5.126688136514179e-12];
const PI_F64: [f64; 4] =
    [3.1415926534682512, 1.215420100718692e-10, 5.8254641096454e-20, 2.5413117520279757e-29];

/// (sin(r) / r - 1) / r² in r² for |r| ≤ π/2. The relative errors of the sine are 2^-27.2 and
/// 2^-61.5.
const SIN_F32: [f64; 4] =
    [-0.16666659712791443, 0.008333067409694195, -0.00019809552759397775, 2.6054588033730397e-06];
const SIN_F64: [f64; 8] = [
    -0.16666666666666666,
    0.008333333333333205,
    -0.00019841269841211481,
    2.7557319211355284e-06,
    -2.5052106881853673e-08,
    1.6058939750013417e-10,
    -7.642984247407783e-13,
    2.7210269571641308e-15,
];

/// The same for |r| ≤ π/4. The relative errors of the sine are 2^-27.8 and 2^-57.8.
const QUARTER_SIN_F32: [f64; 3] = [-0.16666653752326965, 0.008332106284797192, -0.0001950788573594764];
const QUARTER_SIN_F64: [f64; 6] = [
    -0.1666666666666663,
    0.008333333333321787,
    -0.00019841269829290738,
    2.7557313509216444e-06,
    -2.505072913213965e-08,
    1.5895097998576133e-10,
];

/// (cos r - 1 + r²/2) / r⁴ in r² for |r| ≤ π/4. The relative errors of the cosine are 2^-32.9 and
/// 2^-63.8.
const QUARTER_COS_F32: [f64; 3] = [0.04166664555668831, -0.0013887305976822972, 2.4431650672340766e-05];
const QUARTER_COS_F64: [f64; 6] = [
    0.04166666666666659,
    -0.0013888888888872186,
    2.4801587288295427e-05,
    -2.755731401514605e-07,
    2.087567808967588e-09,
    -1.1357337049342357e-11,
];

/// sin x.
pub(super) fn sin<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let k = x.round_scaled(std::f64::consts::FRAC_1_PI, 0);
    let near = signed_sin(x.reduce(k.number, x.precision.pick(&PI_F32, &PI_F64)), k);
    or_library_if_huge(x, near, "sin")
}

/// cos x. With x = r + (n + ½)π, the result is -sin r for even n, so a bias of one inverts the
/// parity of n.
pub(super) fn cos<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let n = x.fma(std::f64::consts::FRAC_1_PI, -0.5).round_scaled(1.0, 1);
    let near = signed_sin(x.reduce(n.number + 0.5, x.precision.pick(&PI_F32, &PI_F64)), n);
    or_library_if_huge(x, near, "cos")
}

/// sin r for |r| ≤ π/2, negated where the integer is odd. The product with r comes last, which
/// preserves the sign of zero.
fn signed_sin<'ctx, 'm>(r: Lanes<'ctx, 'm>, parity: Rounded<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let square = r * r;
    let ratio = square.polynomial(r.precision.pick(&SIN_F32, &SIN_F64)).fma(square, 1.0);
    (ratio * r).bits().xor(parity.odd_sign()).float()
}

/// tan x.
pub(super) fn tan<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let n = x.round_scaled(std::f64::consts::FRAC_2_PI, 0);
    let half_pi = x.precision.pick(&PI_F32, &PI_F64).map(|part| part / 2.0);
    let r = x.reduce(n.number, &half_pi);
    let square = r * r;
    let sin = square.polynomial(x.precision.pick(&QUARTER_SIN_F32, &QUARTER_SIN_F64)).fma(r * square, r);
    let tail = square.polynomial(x.precision.pick(&QUARTER_COS_F32, &QUARTER_COS_F64)).fma(square, -0.5);
    let cos = tail.fma(square, 1.0);
    let odd = odd(n);
    let near = odd.select(-cos, sin) / odd.select(sin, cos);
    or_library_if_huge(x, unless_tiny(x, near), "tan")
}

/// The lanes where the integer is odd. This compares ±1 as floats, since not every machine compares
/// vectors of 64-bit integers.
fn odd<'ctx, 'm>(n: Rounded<'ctx, 'm>) -> Mask<'ctx, 'm> {
    n.number.constant(1.0).copysign(n.odd_sign().float()).less(0.0)
}

/// Returns `near`, or the C library's results for all lanes if any lane's argument is beyond the
/// limit.
fn or_library_if_huge<'ctx, 'm>(x: Lanes<'ctx, 'm>, near: Lanes<'ctx, 'm>, name: &str) -> Lanes<'ctx, 'm> {
    library_where(x.abs().greater(x.precision.pick(LIMIT_F32, LIMIT_F64)), name, &[x], near)
}
