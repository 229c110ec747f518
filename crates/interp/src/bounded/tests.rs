//! Tests that the results of kernels stay within the error bounds of [`Bounded`]. Kernels are
//! simulated: in single precision, with fused or separate products, with functions that are some
//! units in the last place off, and with sums in any order.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;

const F32: DType = DType::Float32;

fn float(value: f64) -> Bounded {
    Bounded::exact(Number::Float(value))
}

/// A value with a distance.
fn with_error(value: f64, error: f64) -> Bounded {
    Bounded { number: Number::Float(value), error }
}

fn below(rng: &mut Pcg64Mcg, limit: u64) -> u64 {
    rng.next_u64() % limit
}

/// A random number in single precision: often of ordinary size, sometimes small, large, or whole.
fn random_float(rng: &mut Pcg64Mcg) -> f32 {
    let unit = (rng.next_u64() >> 40) as f32 / (1u32 << 23) as f32 - 1.0;
    match below(rng, 6) {
        0 => unit * 1e-3,
        1 => unit * 1e3,
        2 => (unit * 8.0).round(),
        _ => unit,
    }
}

#[derive(Debug)]
enum Tree {
    Leaf(f32),
    Binary(BinaryOp, Box<[Tree; 2]>),
    Call(Builtin, Box<Tree>),
    /// `a < b ? c : d`
    Select(Box<[Tree; 4]>),
}

const OPERATORS: [BinaryOp; 9] = [
    BinaryOp::Add,
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Min,
    BinaryOp::Max,
];

const FUNCTIONS: [Builtin; 14] = [
    Builtin::Sqrt,
    Builtin::Exp,
    Builtin::Log,
    Builtin::Tanh,
    Builtin::Sin,
    Builtin::Cos,
    Builtin::Tan,
    Builtin::Abs,
    Builtin::Floor,
    Builtin::Rint,
    Builtin::Cosh,
    Builtin::Sigmoid,
    Builtin::Rsqrt,
    Builtin::Asin,
];

fn tree(rng: &mut Pcg64Mcg, depth: usize) -> Tree {
    let choice = if depth == 0 { 0 } else { below(rng, 10) };
    let mut inner = || tree(rng, depth - 1);
    match choice {
        0 | 1 => Tree::Leaf(random_float(rng)),
        2..=6 => {
            let pair = Box::new([inner(), inner()]);
            Tree::Binary(OPERATORS[below(rng, OPERATORS.len() as u64) as usize], pair)
        }
        7 | 8 => {
            let operand = Box::new(inner());
            Tree::Call(FUNCTIONS[below(rng, FUNCTIONS.len() as u64) as usize], operand)
        }
        _ => Tree::Select(Box::new([inner(), inner(), inner(), inner()])),
    }
}

fn bounded(tree: &Tree) -> Bounded {
    match tree {
        Tree::Leaf(value) => float(f64::from(*value)),
        Tree::Binary(op, pair) => bounded(&pair[0]).binary(*op, bounded(&pair[1]), F32),
        Tree::Call(builtin, operand) => Bounded::call(*builtin, &[bounded(operand)], F32),
        Tree::Select(parts) => {
            let [a, b, then, otherwise] = [0, 1, 2, 3].map(|at| bounded(&parts[at]));
            let condition = a.binary(BinaryOp::Less, b, DType::Bool);
            let (chosen, other) =
                if condition.number().is_true() { (then, otherwise) } else { (otherwise, then) };
            if condition.has_certain_truth() { chosen } else { chosen.or_alternative(Some(other)) }
        }
    }
}

/// The value, moved by some units in the last place.
fn shifted_by_ulps(value: f32, by: i64) -> f32 {
    if !value.is_finite() || value == 0.0 {
        return value;
    }
    f32::from_bits((i64::from(value.to_bits()) + by) as u32)
}

fn kernel(tree: &Tree, rng: &mut Pcg64Mcg) -> f32 {
    let mut off = |units: u64| below(rng, 2 * units + 1) as i64 - units as i64;
    match tree {
        Tree::Leaf(value) => *value,
        Tree::Binary(BinaryOp::Div, pair) => {
            let by = off(2);
            let (a, b) = (kernel(&pair[0], rng), kernel(&pair[1], rng));
            // A quotient that needs no rounding is exact in every kernel.
            let is_exact = f64::from(a / b) * f64::from(b) == f64::from(a);
            if is_exact { a / b } else { shifted_by_ulps(a / b, by) }
        }
        Tree::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), pair) if off(1) > 0 => match &pair[0] {
            Tree::Binary(BinaryOp::Mul, factors) => {
                let last = kernel(&pair[1], rng);
                let last = if *op == BinaryOp::Add { last } else { -last };
                kernel(&factors[0], rng).mul_add(kernel(&factors[1], rng), last)
            }
            first => binary_f32(*op, kernel(first, rng), kernel(&pair[1], rng)),
        },
        Tree::Binary(op, pair) => binary_f32(*op, kernel(&pair[0], rng), kernel(&pair[1], rng)),
        Tree::Call(builtin, operand) => {
            let value = arithmetic::call(*builtin, &[Number::Float(kernel(operand, rng).into())], F32)
                .as_f64() as f32;
            let is_free = matches!(builtin, Builtin::Abs | Builtin::Floor | Builtin::Rint);
            if is_free { value } else { shifted_by_ulps(value, below(rng, 5) as i64 - 2) }
        }
        Tree::Select(parts) => {
            let is_less = kernel(&parts[0], rng) < kernel(&parts[1], rng);
            kernel(&parts[if is_less { 2 } else { 3 }], rng)
        }
    }
}

fn binary_f32(op: BinaryOp, left: f32, right: f32) -> f32 {
    let [left, right] = [left, right].map(|value| Number::Float(value.into()));
    arithmetic::binary(op, left, right, F32).as_f64() as f32
}

fn is_within(found: f64, bound: Bounded) -> bool {
    let wanted = bound.value();
    found == wanted || (found.is_nan() && wanted.is_nan()) || (found - wanted).abs() <= bound.error
}

#[test]
fn kernels_stay_within_the_bound() {
    let mut rng = Pcg64Mcg::seed_from_u64(1);
    let (mut decided, mut inexact) = (0, 0);
    for _ in 0..20_000 {
        let tree = tree(&mut rng, 5);
        let bound = bounded(&tree);
        if !bound.is_decided() {
            continue;
        }
        decided += 1;
        for _ in 0..8 {
            let found = f64::from(kernel(&tree, &mut rng));
            inexact += usize::from(found != bound.value() && !found.is_nan());
            assert!(is_within(found, bound), "{found} is not {bound:?}: {tree:?}");
        }
    }
    // Guards against an empty test: most trees are decided, and kernels do differ.
    assert!(decided > 14_000 && inexact > 20_000, "{decided} {inexact}");
}

/// The terms of a dot product.
fn pairs(rng: &mut Pcg64Mcg, count: usize, positive: bool) -> Vec<[f32; 2]> {
    let own = |value: f32| if positive { value.abs() } else { value };
    (0..count).map(|_| [own(random_float(rng)), own(random_float(rng))]).collect()
}

fn dot(pairs: &[[f32; 2]]) -> Bounded {
    let term = |pair: &[f32; 2]| float(pair[0].into()).binary(BinaryOp::Mul, float(pair[1].into()), F32);
    let empty = Bounded::begin_reduction(ReduceOp::Add, None, DType::Float64);
    let total = pairs
        .iter()
        .fold(empty, |total, pair| Bounded::reduce(total, ReduceOp::Add, term(pair), DType::Float64));
    Bounded::end_reduction(total, F32).convert(F32)
}

#[test]
fn sums_stay_within_the_bound_in_any_order() {
    let mut rng = Pcg64Mcg::seed_from_u64(2);
    for count in [1, 2, 3, 17, 100, 1000] {
        for positive in [false, true] {
            let mut pairs = pairs(&mut rng, count, positive);
            let bound = dot(&pairs);
            let exact: f64 = pairs.iter().map(|pair| f64::from(pair[0]) * f64::from(pair[1])).sum();
            assert!(is_within(exact, bound));
            for _ in 0..20 {
                for at in (1..count).rev() {
                    pairs.swap(at, below(&mut rng, at as u64 + 1) as usize);
                }
                let fused = pairs.iter().fold(0.0f32, |total, [a, b]| a.mul_add(*b, total));
                let plain = pairs.iter().fold(0.0f32, |total, [a, b]| total + a * b);
                let lanes = [0, 1, 2].map(|lane| {
                    pairs.iter().skip(lane).step_by(3).fold(0.0f32, |total, [a, b]| total + a * b)
                });
                for found in [fused, plain, lanes[0] + (lanes[1] + lanes[2])] {
                    assert!(is_within(found.into(), bound), "{found} is not {bound:?}");
                }
            }
        }
    }
}

#[test]
fn the_bound_of_a_sum_is_useful() {
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    let bound = dot(&pairs(&mut rng, 1000, true));
    assert!(bound.error > 0.0 && bound.error < 1e-4 * bound.value(), "{bound:?}");
    // A sum without one of its terms is far outside the bound.
    let mut rng = Pcg64Mcg::seed_from_u64(4);
    let pairs: Vec<[f32; 2]> =
        (0..1000).map(|_| [0.5 + random_float(&mut rng).abs().min(1.0), 1.0]).collect();
    assert!(!is_within(dot(&pairs[1..]).value(), dot(&pairs)));
}

#[test]
fn whole_numbers_stay_exact() {
    let ones = vec![[1.0, 3.0]; 5000];
    assert_eq!(dot(&ones), float(15_000.0));
    // A sum that exceeds the digits of the type is inexact in some order.
    assert!(dot(&[[1e8, 1.0], [1.0, 1.0], [-1e8, 1.0]]).error >= 1.0);
    let sum = float(0.1f32.into()).binary(BinaryOp::Add, float(0.7f32.into()), F32);
    assert!(sum.is_exact(), "every kernel rounds it in the same way");
    let product = float(0.1f32.into()).binary(BinaryOp::Mul, float(0.7f32.into()), F32);
    assert!(!product.is_exact(), "it may be fused with a sum");
    assert!(float(6.0).binary(BinaryOp::Div, float(3.0), F32).is_exact());
    assert!(!float(1.0).binary(BinaryOp::Div, float(3.0), F32).is_exact());
}

#[test]
fn products_of_many_stay_within_the_bound() {
    let mut rng = Pcg64Mcg::seed_from_u64(5);
    for _ in 0..500 {
        let factors: Vec<f32> =
            (0..20).map(|_| 1.0 + 0.3 * random_float(&mut rng).clamp(-1.0, 1.0)).collect();
        let empty = Bounded::begin_reduction(ReduceOp::Mul, None, DType::Float64);
        let step = |total, factor: &f32| {
            Bounded::reduce(total, ReduceOp::Mul, float(f64::from(*factor)), DType::Float64)
        };
        let bound = Bounded::end_reduction(factors.iter().fold(empty, step), F32).convert(F32);
        let found = factors.iter().rev().product::<f32>();
        assert!(is_within(found.into(), bound) && bound.error < 1e-5 * bound.value().abs(), "{bound:?}");
    }
}

#[test]
fn values_that_depend_on_rounding_are_undecided() {
    let near = with_error(1e-9, 1e-7);
    let decided = [
        near.binary(BinaryOp::Less, float(1.0), DType::Bool),
        near.binary(BinaryOp::Mul, float(3.0), F32),
        Bounded::call(Builtin::Floor, &[with_error(1.5, 0.25)], F32),
        with_error(1.5, 0.25).convert(DType::Int32),
        Bounded::call(Builtin::Sqrt, &[with_error(1.5, 0.25)], F32),
        Bounded::call(Builtin::Pow, &[near, float(2.0)], F32),
        // `pow` of NaN is NaN unless the exponent is 0.
        Bounded::call(Builtin::Pow, &[float(f64::NAN), with_error(1.0, 0.5)], F32),
        Bounded::call(Builtin::Pow, &[float(f64::NAN), float(0.0)], F32),
        // The argument is certainly outside the domain.
        Bounded::call(Builtin::Log, &[with_error(-1.0, 0.5)], F32),
        float(1.0).binary(BinaryOp::Div, float(0.0), F32),
        float(0.0).binary(BinaryOp::Div, float(0.0), F32),
        Bounded::call(Builtin::Exp, &[with_error(200.0, 1.0)], F32),
    ];
    decided.iter().for_each(|own| assert!(own.is_decided(), "{own:?}"));
    let undecided = [
        near.binary(BinaryOp::Less, float(0.0), DType::Bool),
        near.binary(BinaryOp::Equal, float(0.0), DType::Bool),
        float(1.0).binary(BinaryOp::Div, near, F32),
        near.convert(DType::Bool),
        with_error(2.0, 1e-7).convert(DType::Int32),
        Bounded::call(Builtin::Floor, &[with_error(2.0, 1e-7)], F32),
        Bounded::call(Builtin::Sqrt, &[near], F32),
        Bounded::call(Builtin::Log, &[near], F32),
        Bounded::call(Builtin::Acos, &[with_error(1.0, 1e-7)], F32),
        Bounded::call(Builtin::Acos, &[with_error(1.5, 3.0)], F32),
        Bounded::call(Builtin::Tan, &[with_error(std::f64::consts::FRAC_PI_2, 1e-7)], F32),
        Bounded::call(Builtin::Pow, &[near, float(0.5)], F32),
        Bounded::call(Builtin::Pow, &[float(f64::NAN), near], F32),
        Bounded::call(Builtin::Pow, &[float(f64::NAN), with_error(0.0, 1e-7)], F32),
        Bounded::call(Builtin::Atan2, &[near, float(-1.0)], F32),
        Bounded::call(Builtin::Copysign, &[float(1.0), near], F32),
        with_error(4.0, 1e-6).binary(BinaryOp::Mod, float(2.0), F32),
        // The type's range ends inside the interval, or a kernel's fused sum may be finite.
        Bounded::call(Builtin::Exp, &[with_error(88.722_839, 1e-4)], F32),
        float(1e30).binary(BinaryOp::Mul, float(1e30), F32),
        near.binary(BinaryOp::Mul, float(f64::INFINITY), F32),
    ];
    undecided.iter().for_each(|own| assert!(!own.is_decided(), "{own:?}"));
    assert!(undecided[0].binary(BinaryOp::And, Bounded::exact(Number::Int(0)), DType::Bool).is_decided());
    assert!(!undecided[0].binary(BinaryOp::And, Bounded::exact(Number::Int(1)), DType::Bool).is_decided());
}

#[test]
fn a_condition_does_not_matter_where_both_sides_agree() {
    let near = with_error(1e-9, 1e-7);
    let sides = near.or_alternative(Some(float(0.0)));
    assert!(sides.is_decided() && sides.error >= 1e-7 && sides.error < 2e-7);
    assert!(!float(1.0).or_alternative(Some(float(0.0))).is_decided());
    assert!(!float(1.0).or_alternative(None).is_decided());
}

#[test]
fn half_precision_is_rounded_at_the_ends() {
    // All numbers between two neighbours of the type round the same way, except near the middle.
    assert!(with_error(1.0001, 1e-5).convert(DType::Float16).is_exact());
    let middle = with_error(1.0 + 2f64.powi(-11), 1e-5).convert(DType::Float16);
    assert_eq!(middle.error, 2f64.powi(-10));
}
