//! Applies mathematical functions to bounded numbers ([`Bounded`]).
//!
//! The effect of an inexact argument is read from the ends of the argument's interval, on which
//! most functions are monotone. For other functions this module defines which points count instead.
//! The accuracy that kernels promise is added: 4 units in the last place for Tilewright's own
//! functions (`codegen/src/llvm/math`), and the documented accuracy of device libraries for the
//! rest.

use tilewright_ir::{Builtin, DType, Number, arithmetic};

use super::{Bounded, largest_finite};
use crate::value::Value;

/// The position of the gamma function's only positive minimum, the minimum, and its logarithm.
const GAMMA_MINIMUM: (f64, f64, f64) =
    (1.461_632_144_968_362_2, 0.885_603_194_410_888_7, -0.121_486_290_535_849_6);

/// The most arguments that a function takes.
const MOST_ARGUMENTS: usize = 6;

/// Applies a function to bounded arguments.
pub(super) fn call(builtin: Builtin, arguments: &[Bounded], dtype: DType) -> Bounded {
    let mut numbers = [Number::Int(0); MOST_ARGUMENTS];
    arguments.iter().zip(&mut numbers).for_each(|(argument, number)| *number = argument.number);
    let numbers = &numbers[..arguments.len()];
    let exact = Bounded::exact(arithmetic::call(builtin, numbers, dtype));
    if arguments.iter().any(|argument| !argument.is_decided()) {
        return exact.as_undecided();
    }
    // `pow` of any number and 0 is 1, even of NaN.
    let is_power_of_nan = builtin == Builtin::Pow && arguments[0].is_nan();
    if is_power_of_nan && arguments[1].error > 0.0 && arguments[1].may_be_zero() {
        return exact.as_undecided();
    }
    if !dtype.is_float() || arguments[0].is_nan() {
        // Predicates are exact: an interval of finite numbers contains no infinity, because
        // `Bounded::new` marks values that may overflow as undecided.
        return exact;
    }
    if let Some(unrounded) = unrounded(builtin, arguments, exact) {
        return unrounded;
    }
    match argument_spread(builtin, arguments, exact) {
        None => exact.as_undecided(),
        Some(_) if exact.is_nan() => exact,
        Some(_) if exact.value().is_infinite() => decide_infinite(builtin, arguments, exact, dtype),
        Some(spread) => with_rounding(builtin, exact, spread, dtype),
    }
}

/// The value of a function that every kernel computes without rounding; `None` for other functions.
fn unrounded(builtin: Builtin, arguments: &[Bounded], exact: Bounded) -> Option<Bounded> {
    let x = arguments[0];
    let (is_decided, error) = match builtin {
        Builtin::Abs => (true, x.error),
        Builtin::Floor | Builtin::Ceil | Builtin::Trunc | Builtin::Round | Builtin::Rint => {
            let [low, high] = [x.low(), x.high()].map(|end| evaluate(builtin, &[end]));
            (x.error == 0.0 || low == high, 0.0)
        }
        Builtin::Copysign => {
            let y = arguments[1];
            // A negative zero may come from rounding and be a positive zero in kernels.
            let is_usual = y.error == 0.0 && (y.value() != 0.0 || y.value().is_sign_positive());
            (is_usual || !y.may_be_zero(), x.error)
        }
        Builtin::Fmod if arguments.iter().all(|argument| argument.error == 0.0) => (true, 0.0),
        _ => return None,
    };
    Some(if is_decided { Bounded { error, ..exact } } else { exact.as_undecided() })
}

fn with_rounding(builtin: Builtin, exact: Bounded, spread: f64, dtype: DType) -> Bounded {
    let own = Bounded::rounded(exact.number, spread, 2.0 * error_in_ulps(builtin), dtype);
    // All implementations of the gamma function's logarithm lose digits near its zeros at 1 and 2.
    let lost = if builtin == Builtin::Lgamma {
        super::unit_roundoff(dtype) * 2.0 * error_in_ulps(builtin)
    } else {
        0.0
    };
    Bounded { error: own.error + lost, ..own }
}

/// The error of a kernel's function, in units in the last place.
fn error_in_ulps(builtin: Builtin) -> f64 {
    match builtin {
        Builtin::Fma => 0.5,
        Builtin::Sqrt => 3.0,
        Builtin::Fmod => 1.0,
        Builtin::Pow | Builtin::Erf | Builtin::Erfc | Builtin::Tgamma | Builtin::Lgamma => 16.0,
        // Devices compute the sigmoid as 1 / (1 + exp(-x)).
        Builtin::Sigmoid => 8.0,
        Builtin::Tan | Builtin::Atan2 => 6.0,
        _ => 4.0,
    }
}

/// The value of the function in double precision.
fn evaluate(builtin: Builtin, arguments: &[f64]) -> f64 {
    let mut numbers = [Number::Int(0); MOST_ARGUMENTS];
    arguments.iter().zip(&mut numbers).for_each(|(argument, number)| *number = Number::Float(*argument));
    arithmetic::call(builtin, &numbers[..arguments.len()], DType::Float64).as_f64()
}

/// How far the function's value may be off because of inexact arguments; `None` if it is unknown.
fn argument_spread(builtin: Builtin, arguments: &[Bounded], exact: Bounded) -> Option<f64> {
    if arguments.iter().all(|argument| argument.error == 0.0) {
        return Some(0.0);
    }
    let x = arguments[0];
    let value = evaluate(builtin, &arguments.iter().map(|argument| argument.value()).collect::<Vec<_>>());
    let farthest = |ends: &[f64]| {
        let distances = ends.iter().map(|end| if *end == value { 0.0 } else { (end - value).abs() });
        let farthest = distances.fold(0.0, |most: f64, own| if own.is_nan() { own } else { most.max(own) });
        (!farthest.is_nan()).then_some(farthest)
    };
    match builtin {
        Builtin::Sin | Builtin::Cos => Some(x.error.min(2.0)),
        Builtin::Cosh => farthest(&magnitudes(x).map(|end| evaluate(builtin, &[end]))),
        Builtin::Tan => {
            let branch = |end: f64| (end / std::f64::consts::PI + 0.5).floor();
            let is_whole = branch(x.low()) == branch(x.high());
            is_whole.then(|| farthest(&[x.low(), x.high()].map(|end| evaluate(builtin, &[end]))))?
        }
        Builtin::Tgamma | Builtin::Lgamma => {
            let (turn, least, least_log) = GAMMA_MINIMUM;
            let least = if builtin == Builtin::Tgamma { least } else { least_log };
            let turns = (x.low()..=x.high()).contains(&turn).then_some(least);
            let ends = [x.low(), x.high()].map(|end| evaluate(builtin, &[end]));
            (x.low() > 0.0).then(|| farthest(&[ends[0], ends[1], turns.unwrap_or(value)]))?
        }
        Builtin::Fma => {
            let [x, y, z] = [arguments[0], arguments[1], arguments[2]];
            let product = x.value().abs() * y.error + y.value().abs() * x.error + x.error * y.error;
            Some(product + z.error)
        }
        Builtin::Fmod => {
            let own = x.remainder(arguments[1], exact.number, f64::trunc, DType::Float64);
            own.is_decided().then_some(own.error)
        }
        Builtin::Hypot => {
            let (x, y) = (magnitudes(x), magnitudes(arguments[1]));
            farthest(&[evaluate(builtin, &[x[0], y[0]]), evaluate(builtin, &[x[1], y[1]])])
        }
        Builtin::Pow => farthest(&powers(x, arguments[1])?),
        Builtin::Atan2 => {
            // The arguments are y, then x. The branch cut is at y = 0 for negative x.
            let (y, x) = (x, arguments[1]);
            let is_cut = x.low() <= 0.0 && y.may_be_zero();
            (!is_cut).then(|| farthest(&corners(builtin, y, x)))?
        }
        _ => {
            let (from, to) = domain(builtin);
            if x.high() < from || x.low() > to {
                return Some(0.0);
            }
            let is_inside = x.low() >= from && x.high() <= to;
            is_inside.then(|| farthest(&[x.low(), x.high()].map(|end| evaluate(builtin, &[end]))))?
        }
    }
}

/// The domain of a monotone function.
fn domain(builtin: Builtin) -> (f64, f64) {
    match builtin {
        Builtin::Acos | Builtin::Asin | Builtin::Atanh => (-1.0, 1.0),
        Builtin::Acosh => (1.0, f64::INFINITY),
        Builtin::Log1p => (-1.0, f64::INFINITY),
        Builtin::Log | Builtin::Log2 | Builtin::Log10 | Builtin::Sqrt | Builtin::Rsqrt => {
            (0.0, f64::INFINITY)
        }
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    }
}

/// The least and the largest magnitude in an interval.
fn magnitudes(x: Bounded) -> [f64; 2] {
    [(x.value().abs() - x.error).max(0.0), x.value().abs() + x.error]
}

fn corners(builtin: Builtin, x: Bounded, y: Bounded) -> [f64; 4] {
    let [a, b, c, d] = [x.low(), x.high(), y.low(), y.high()];
    [[a, c], [a, d], [b, c], [b, d]].map(|corner| evaluate(builtin, &corner))
}

/// The values of `pow` at the ends of its arguments' intervals, if `pow` is monotone in each
/// argument there.
fn powers(x: Bounded, y: Bounded) -> Option<[f64; 4]> {
    let is_whole = y.error == 0.0 && y.value().fract() == 0.0;
    if x.low() > 0.0
        || (is_whole && !x.may_be_zero())
        || (is_whole && y.value() > 0.0 && y.value() % 2.0 != 0.0)
    {
        return Some(corners(Builtin::Pow, x, y));
    }
    if is_whole && y.value() >= 0.0 {
        let ends = magnitudes(x).map(|end| evaluate(Builtin::Pow, &[end, y.value()]));
        return Some([ends[0], ends[1], ends[0], ends[1]]);
    }
    None
}

/// Decides an infinite result. It is decided if the values at both ends of the interval are far
/// beyond the type's range. In addition, all arguments must be exact, or the function must have one
/// argument and be monotone. Poles at exact arguments are therefore decided.
fn decide_infinite(builtin: Builtin, arguments: &[Bounded], exact: Bounded, dtype: DType) -> Bounded {
    let ends = |sign: f64| {
        let ends: Vec<f64> =
            arguments.iter().map(|argument| argument.value() + sign * argument.error).collect();
        evaluate(builtin, &ends)
    };
    let far = largest_finite(dtype) * (1.0 + 1e-4);
    let is_beyond = |value: f64| value.abs() > far && value.signum() == exact.value().signum();
    let is_monotone = arguments.len() == 1 && builtin != Builtin::Tan;
    let is_exact = arguments.iter().all(|argument| argument.error == 0.0);
    if (is_monotone || is_exact) && is_beyond(ends(-1.0)) && is_beyond(ends(1.0)) {
        return exact;
    }
    exact.as_undecided()
}
