//! Compares the vector math functions of one argument in `llvm/math` with the C library in double
//! precision. `math_accuracy_of_two.rs` tests the functions of two arguments.
//!
//! The test covers every function, both formats, and every vector set that this machine runs (the
//! baseline one has no fused instructions). Vectors have full and odd length, and scalars are
//! included. The results must lie within 4 units in the last place (ulp), and the special values
//! must be right.
//!
//! The test samples the points that were measured densely when the functions were written; the
//! figures are in `llvm/math/mod.rs`.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod harness;

use harness::accuracy::*;
use harness::*;
use tilewright_ir::{Builtin, DType};

unsafe extern "C" {
    // std lacks the C library's error and gamma functions.
    safe fn erf(x: f64) -> f64;
    safe fn erfc(x: f64) -> f64;
    safe fn lgamma(x: f64) -> f64;
    safe fn tgamma(x: f64) -> f64;
    // The functions of std with these names are less accurate.
    safe fn acosh(x: f64) -> f64;
    safe fn asinh(x: f64) -> f64;
    safe fn atanh(x: f64) -> f64;
}

/// A function and its reference.
type Function = (Builtin, fn(f64) -> f64);

/// The functions that have a vector version.
const FUNCTIONS: [Function; 25] = [
    (Builtin::Acos, f64::acos),
    (Builtin::Acosh, acosh_of),
    (Builtin::Asin, f64::asin),
    (Builtin::Asinh, asinh_of),
    (Builtin::Atan, f64::atan),
    (Builtin::Atanh, atanh_of),
    (Builtin::Cbrt, cbrt_of),
    (Builtin::Cos, f64::cos),
    (Builtin::Cosh, f64::cosh),
    (Builtin::Erf, erf_of),
    (Builtin::Erfc, erfc_of),
    (Builtin::Exp, f64::exp),
    (Builtin::Exp2, f64::exp2),
    (Builtin::Expm1, f64::exp_m1),
    (Builtin::Lgamma, lgamma_of),
    (Builtin::Log, f64::ln),
    (Builtin::Log10, f64::log10),
    (Builtin::Log1p, f64::ln_1p),
    (Builtin::Log2, f64::log2),
    (Builtin::Sigmoid, sigmoid),
    (Builtin::Sin, f64::sin),
    (Builtin::Sinh, f64::sinh),
    (Builtin::Tan, f64::tan),
    (Builtin::Tanh, f64::tanh),
    (Builtin::Tgamma, tgamma_of),
];

fn erf_of(x: f64) -> f64 {
    erf(x)
}

fn erfc_of(x: f64) -> f64 {
    erfc(x)
}

fn lgamma_of(x: f64) -> f64 {
    lgamma(x)
}

fn tgamma_of(x: f64) -> f64 {
    tgamma(x)
}

fn acosh_of(x: f64) -> f64 {
    acosh(x)
}

fn asinh_of(x: f64) -> f64 {
    asinh(x)
}

fn atanh_of(x: f64) -> f64 {
    atanh(x)
}

/// The cube root, with one step of Newton's, for the C library's is off by some ulp.
fn cbrt_of(x: f64) -> f64 {
    let root = x.cbrt();
    let square = root * root;
    let missing = root.mul_add(root, -square);
    let residual = root.mul_add(missing, root.mul_add(square, -x));
    let better = root - residual / (3.0 * square);
    if better.is_finite() && x != 0.0 { better } else { root }
}

fn sigmoid(x: f64) -> f64 {
    let e = (-x.abs()).exp();
    if x < 0.0 { e / (1.0 + e) } else { 1.0 / (1.0 + e) }
}

/// Numbers at which some function changes its method, overflows, has a zero or a pole, or is steep.
const TURNING_POINTS: [f64; 55] = [
    0.0,
    1e-320,
    1e-310,
    2.2250738585072014e-308,
    1e-45,
    1e-40,
    1.1754943508222875e-38,
    1.1102230246251565e-16,
    2.220446049250313e-16,
    5.960464477539063e-8,
    1.1920928955078125e-7,
    0.2928932188134524,
    0.34657359027997264,
    0.41421356237309503,
    0.5,
    std::f64::consts::FRAC_1_SQRT_2,
    1.0,
    std::f64::consts::SQRT_2,
    std::f64::consts::FRAC_PI_2,
    2.0,
    // Zeros of lgamma, negated.
    2.4570247382208006,
    2.7476826467274127,
    std::f64::consts::PI,
    3.14358088834998,
    3.93,
    3.955294284858598,
    4.039361839740537,
    4.991544640560048,
    6.0,
    9.02,
    10.05,
    17.3,
    26.55,
    27.2,
    35.04,
    40.0,
    88.72284,
    89.41599,
    103.97208,
    128.0,
    149.5,
    171.62,
    709.782712893384,
    710.4758600739439,
    745.1332191019412,
    1024.0,
    1075.0,
    12800.0,
    4e6,
    9007199254740992.0,
    1e22,
    1.7e38,
    3.4028234663852886e38,
    8.98846567431158e307,
    f64::INFINITY,
];

/// Every 65521st bit pattern, and the neighbourhoods of the turning points and of multiples of π/2.
fn points_f32() -> Vec<f32> {
    let mut points: Vec<f32> = (0..=u32::MAX).step_by(65521).map(f32::from_bits).collect();
    let multiples = (0..8000).step_by(7).map(|n| f64::from(n) * std::f64::consts::FRAC_PI_2);
    for center in TURNING_POINTS.into_iter().chain(multiples) {
        let bits = (center as f32).to_bits();
        let near = bits.saturating_sub(20)..=(bits + 20).min(f32::INFINITY.to_bits() + 1);
        points.extend(near.map(f32::from_bits).flat_map(|x| [x, -x]));
    }
    padded(points)
}

/// Equally spaced bit patterns, numbers of ordinary size, and the same neighbourhoods as for f32.
fn points_f64() -> Vec<f64> {
    let mut points: Vec<f64> = (0..20_000u64).map(|n| f64::from_bits(n * (u64::MAX / 20_000))).collect();
    for scale in [1.0, 8.0, 50.0, 750.0, 4e6] {
        points.extend((-10_000..10_000).map(|n| f64::from(n) * scale / 9_999.1));
    }
    let multiples = (0..2_000_000).step_by(1999).map(|n| f64::from(n) * std::f64::consts::FRAC_PI_2);
    for center in TURNING_POINTS.into_iter().chain(multiples) {
        let bits = center.to_bits();
        let near = bits.saturating_sub(20)..=(bits + 20).min(f64::INFINITY.to_bits() + 1);
        points.extend(near.map(f64::from_bits).flat_map(|x| [x, -x]));
    }
    padded(points)
}

/// Applies a builtin to all points with each vector set and lane count, and checks every result.
fn check<T: Copy + Default + Into<f64>>(
    (builtin, reference): Function,
    dtype: DType,
    points: &[T],
    error: &dyn Fn(T, f64) -> f64,
) {
    let exact: Vec<f64> = points.iter().map(|x| reference((*x).into())).collect();
    for vectors in runnable() {
        for lanes in lane_counts(vectors, dtype) {
            let results = elementwise(vectors, dtype, lanes, &[points], &|loads| call(builtin, loads));
            for ((x, y), exact) in points.iter().zip(&results).zip(&exact) {
                let (error, x, y) = (error(*y, *exact), (*x).into(), (*y).into());
                let name = builtin.name();
                assert!(
                    error <= BOUND_ULP,
                    "{name}({x:e}) is {y:e}, not {exact:e}: {error} ulp; {dtype:?}, {vectors:?}, {lanes} lanes"
                );
            }
        }
    }
}

#[test]
fn single_precision_is_within_the_bound() {
    let points = points_f32();
    FUNCTIONS.iter().for_each(|function| check(*function, DType::Float32, &points, &error_ulp_f32));
}

#[test]
fn double_precision_is_within_the_bound() {
    let points = points_f64();
    FUNCTIONS.iter().for_each(|function| check(*function, DType::Float64, &points, &error_ulp_f64));
}

/// The accuracy check itself must be able to fail.
#[test]
fn the_error_is_counted_in_units_in_the_last_place() {
    assert_eq!(error_ulp_f32(1.0, 1.0), 0.0);
    assert_eq!(error_ulp_f32(1.0 + f32::EPSILON, 1.0), 1.0);
    assert_eq!(error_ulp_f32(f32::from_bits(3), f64::from(f32::from_bits(1))), 2.0);
    assert_eq!(error_ulp_f32(f32::INFINITY, 1e300), 0.0);
    assert_eq!(error_ulp_f32(f32::MAX, f64::INFINITY), f64::INFINITY);
    assert!(error_ulp_f32(f32::INFINITY, 1e38) > 1e6);
    assert_eq!(error_ulp_f32(-0.0, 0.0), f64::INFINITY);
    assert_eq!(error_ulp_f32(1.0, f64::NAN), f64::INFINITY);
    assert_eq!(error_ulp_f64(f64::from_bits(6), f64::from_bits(1)), 4.0);
}
