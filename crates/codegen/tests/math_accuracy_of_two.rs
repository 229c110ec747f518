//! Compares the vector math functions of two arguments in `llvm/math`, and powers with constant
//! exponents, with the C library in double precision.
//!
//! As in `math_accuracy.rs`, the test covers both formats, every vector set that this machine runs,
//! full and odd vector lengths, and scalars. `fmod` must be exact; the other results must lie
//! within 4 units in the last place (ulp), and the special values must be right.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod harness;

use harness::accuracy::*;
use harness::*;
use tilewright_ir::nest::Expr;
use tilewright_ir::{Builtin, DType, Number};

/// A function, its reference, and the greatest error in ulp.
type Function = (Builtin, fn(f64, f64) -> f64, f64);

const FUNCTIONS: [Function; 4] = [
    (Builtin::Atan2, f64::atan2, BOUND_ULP),
    (Builtin::Fmod, |x, y| x % y, 0.0),
    (Builtin::Hypot, f64::hypot, BOUND_ULP),
    (Builtin::Pow, f64::powf, BOUND_ULP),
];

/// The exponents that become products and square roots, and neighbours that do not.
const CONSTANT_EXPONENTS: [f64; 20] = [
    -4.0, -3.0, -2.0, -1.0, -0.5, 0.0, 0.25, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0,
];

/// Magnitudes at which some function changes its method, or has a special value.
const SPECIAL: [f64; 34] = [
    0.0,
    5e-324,
    1e-310,
    2.2250738585072014e-308,
    1e-200,
    1e-45,
    1e-40,
    1.1754943508222875e-38,
    1e-20,
    0.1,
    0.25,
    1.0 / 3.0,
    0.5,
    0.9999999403953552,
    0.9999999999999999,
    1.0,
    1.0000000000000002,
    1.0000001192092896,
    1.5,
    2.0,
    3.0,
    4.0,
    127.0,
    1023.5,
    8388609.0,
    16777215.0,
    268435457.0,
    4503599627370497.0,
    9007199254740991.0,
    1e20,
    3.4028234663852886e38,
    1e200,
    f64::MAX,
    f64::INFINITY,
];

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    /// 64 random bits (the generator of Steele et al. 2014).
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from -1 to 1.
    fn unit(&mut self) -> f64 {
        (self.bits() as i64) as f64 / 2f64.powi(63)
    }
}

/// Pairs of special numbers of both signs, of NaN, of arbitrary bit patterns and of ordinary
/// numbers, and pairs whose power fits the format. `any` makes a number from random bits, and
/// `exponent` is the greatest binary exponent.
fn pairs(any: &dyn Fn(u64) -> f64, exponent: f64) -> Vec<(f64, f64)> {
    let special: Vec<f64> = SPECIAL.iter().flat_map(|x| [*x, -x]).chain([f64::NAN]).collect();
    let mut pairs: Vec<_> = special.iter().flat_map(|x| special.iter().map(|y| (*x, *y))).collect();
    let mut random = Random(1);
    for _ in 0..20_000 {
        pairs.push((any(random.bits()), any(random.bits())));
        pairs.push((random.unit() * 100.0, random.unit() * 20.0));
        pairs.push((random.unit() * 1e6, random.unit()));
        pairs.push(((random.unit() * exponent).exp2(), random.unit() * 3.0));
        let power = random.unit() * exponent * 1.1;
        let base = 1.0 + random.unit() * 2f64.powi(-((random.bits() % 20) as i32));
        pairs.push((base, power / base.abs().log2()));
        pairs.push((-base * 4.0, (power / (base * 4.0).log2()).round()));
    }
    padded(pairs)
}

fn pairs_f32() -> Vec<(f32, f32)> {
    let pairs = pairs(&|bits| f64::from(f32::from_bits(bits as u32)), 149.0);
    pairs.into_iter().map(|(x, y)| (x as f32, y as f32)).collect()
}

fn pairs_f64() -> Vec<(f64, f64)> {
    // C lets a power of a signalling NaN be NaN even where the exponent is 0. A sum is never
    // signalling.
    pairs(&|bits| f64::from_bits(bits) + 0.0, 1074.0)
}

/// Applies a function to all pairs with each vector set and lane count, and checks every result.
fn check<T: Copy + Default + Into<f64>>(
    (builtin, reference, bound): Function,
    dtype: DType,
    pairs: &[(T, T)],
    error: &dyn Fn(T, f64) -> f64,
) {
    let (x, y): (Vec<T>, Vec<T>) = pairs.iter().copied().unzip();
    let exact: Vec<f64> = pairs.iter().map(|(x, y)| reference((*x).into(), (*y).into())).collect();
    for vectors in runnable() {
        for lanes in lane_counts(vectors, dtype) {
            let results = elementwise(vectors, dtype, lanes, &[&x, &y], &|loads| call(builtin, loads));
            for ((pair, found), exact) in pairs.iter().zip(&results).zip(&exact) {
                let (x, y): (f64, f64) = (pair.0.into(), pair.1.into());
                let (name, error, found) = (builtin.name(), error(*found, *exact), (*found).into());
                assert!(
                    error <= bound,
                    "{name}({x:e}, {y:e}) is {found:e}, not {exact:e}: {error} ulp; {dtype:?}, {vectors:?}, \
                     {lanes} lanes"
                );
            }
        }
    }
}

/// Raises all numbers to each constant exponent, and checks every result.
fn check_constant_powers<T: Copy + Default + Into<f64>>(
    dtype: DType,
    numbers: &[T],
    error: &dyn Fn(T, f64) -> f64,
) {
    for vectors in runnable() {
        for exponent in CONSTANT_EXPONENTS {
            let constant = Number::Float(exponent).convert(dtype);
            let lanes = lane_counts(vectors, dtype)[0];
            let results = elementwise(vectors, dtype, lanes, &[numbers], &|loads| {
                call(Builtin::Pow, vec![loads[0].clone(), Expr::literal(dtype, constant)])
            });
            for (x, found) in numbers.iter().zip(&results) {
                let x: f64 = (*x).into();
                let (error, found) = (error(*found, x.powf(constant.as_f64())), (*found).into());
                assert!(
                    error <= BOUND_ULP,
                    "{x:e} ** {exponent} is {found:e}: {error} ulp; {dtype:?}, {vectors:?}"
                );
            }
        }
    }
}

#[test]
fn single_precision_is_within_the_bound() {
    let pairs = pairs_f32();
    FUNCTIONS.iter().for_each(|function| check(*function, DType::Float32, &pairs, &error_ulp_f32));
}

#[test]
fn double_precision_is_within_the_bound() {
    let pairs = pairs_f64();
    FUNCTIONS.iter().for_each(|function| check(*function, DType::Float64, &pairs, &error_ulp_f64));
}

#[test]
fn powers_with_constant_exponents_are_within_the_bound() {
    let numbers: Vec<f32> = pairs_f32().iter().map(|(x, _)| *x).collect();
    check_constant_powers(DType::Float32, &numbers, &error_ulp_f32);
    let numbers: Vec<f64> = pairs_f64().iter().map(|(x, _)| *x).collect();
    check_constant_powers(DType::Float64, &numbers, &error_ulp_f64);
}
