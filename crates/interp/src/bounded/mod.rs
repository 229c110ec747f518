//! Computes with numbers that have an error bound: how far the value of any legal kernel may be
//! from the interpreter's. This is a running error analysis.
//!
//! [`Bounded`] is the number that the interpreter computes and a distance; no kernel's value is
//! further away. Every operation propagates the distances of its operands, by its derivative or
//! from the ends of their intervals. It adds the rounding errors, once for the kernel and once for
//! the interpreter. The model of a kernel:
//!
//! - sums, differences and products are rounded to nearest once, to their type. Products that are
//!   contracted with a sum to a fused multiply-add are not rounded;
//! - recurrences in ordered loops may be computed in parts (`recurrence.rs`);
//! - quotients and functions are accurate to some units in the last place (`functions.rs`), and
//!   reductions run in any order (`total.rs`);
//! - results below the smallest normal number may be flushed to zero;
//! - conversions round to nearest, and integers are exact.
//!
//! An operation on exact operands whose result needs no rounding is exact. A sum of two exact
//! operands is exact, too, because every kernel rounds it in the same way. Therefore counts and
//! other whole numbers in floats stay exact.
//!
//! If a discontinuity lies inside the interval, nothing is known about the value. Discontinuities
//! are comparisons, conversions to integer, `floor`, the end of a domain, poles, and the end of the
//! type's range. Such a value is *undecided*: its distance is infinite. All values that depend on
//! it are undecided, too, unless it does not matter: both sides of a `?:` agree, or the other
//! operand of `&&` is false.
//!
//! The numbers are bit by bit those of the plain interpreter. The distances are computed in double
//! precision without directed rounding. They are bounds up to parts in 10^15, which
//! [`SLACK`](crate::compare::SLACK) covers.
//!
//! The rules are those of N. J. Higham, Accuracy and Stability of Numerical Algorithms, chapters 2
//! to 4, with the bound on sums in any order by C.-P. Jeannerod and S. M. Rump.

mod functions;
mod total;

use tilewright_ir::{BinaryOp, Builtin, DType, Number, ReduceOp, Tensor, UnaryOp, arithmetic};

use crate::value::Value;
use total::Total;

/// The error of a kernel's quotient in units in the last place, as OpenCL allows for float32.
const DIVISION_ULPS: f64 = 2.5;

/// The number that the interpreter computes, and the greatest distance of a kernel's value from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bounded {
    number: Number,
    /// The distance: infinite if the value is undecided; for integers, 0 or infinite.
    error: f64,
}

/// The distances of a tensor's elements; empty if all elements are exact.
#[derive(Clone, Debug, Default)]
pub(crate) struct Errors(pub Vec<f64>);

/// The unit roundoff of a float type: half the distance from 1 to the next number.
pub(crate) fn unit_roundoff(dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => 2f64.powi(-11),
        DType::BFloat16 => 2f64.powi(-8),
        DType::Float64 => f64::EPSILON / 2.0,
        _ => f64::from(f32::EPSILON) / 2.0,
    }
}

/// The largest finite number of a float type.
fn largest_finite(dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => 65504.0,
        DType::BFloat16 => f64::from_bits(0x47ef_e000_0000_0000),
        DType::Float64 => f64::MAX,
        _ => f64::from(f32::MAX),
    }
}

/// The smallest normal number of a float type.
fn smallest_normal(dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => 2f64.powi(-14),
        DType::Float64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    }
}

impl Bounded {
    /// A float of a type and its distance. The value is undecided if a kernel's value may overflow
    /// to infinity.
    fn new(number: Number, error: f64, dtype: DType) -> Bounded {
        let value = number.as_f64();
        let leaves_type = error > 0.0 && value.abs() + error > largest_finite(dtype);
        Bounded { number, error: if leaves_type || error.is_nan() { f64::INFINITY } else { error } }
    }

    /// A float that is the rounded result of a value which is at most `spread` off. The kernel's
    /// rounding error is `units` unit roundoffs, and the interpreter's is one.
    fn rounded(number: Number, spread: f64, units: f64, dtype: DType) -> Bounded {
        let value = number.as_f64().abs();
        let flushed = if value - spread < smallest_normal(dtype) { smallest_normal(dtype) } else { 0.0 };
        Bounded::new(
            number,
            spread + unit_roundoff(dtype) * (units * (value + spread) + value) + flushed,
            dtype,
        )
    }

    fn value(self) -> f64 {
        self.number.as_f64()
    }

    fn is_decided(self) -> bool {
        self.error < f64::INFINITY
    }

    fn is_nan(self) -> bool {
        self.value().is_nan()
    }

    fn low(self) -> f64 {
        self.value() - self.error
    }

    fn high(self) -> f64 {
        self.value() + self.error
    }

    /// Checks whether a kernel's value may be zero or have the other sign.
    fn may_be_zero(self) -> bool {
        self.value().abs() <= self.error
    }

    fn float_binary(self, op: BinaryOp, right: Bounded, dtype: DType) -> Bounded {
        let number = arithmetic::binary(op, self.number, right.number, dtype);
        if !self.is_decided() || !right.is_decided() {
            return Bounded::exact(number).as_undecided();
        }
        let is_finite = self.value().is_finite() && right.value().is_finite();
        match op {
            BinaryOp::Min | BinaryOp::Max => self.extreme(op, right, number),
            _ if op.is_comparison() => self.comparison(right, number),
            _ if !is_finite => self.nonfinite_binary(op, right, number),
            BinaryOp::Mul => self.product(right, number, dtype),
            BinaryOp::Div => self.quotient(right, number, dtype),
            BinaryOp::Mod => self.remainder(right, number, f64::floor, dtype),
            _ => self.sum(right, number, dtype),
        }
    }

    /// The sum or difference. Every kernel rounds the sum of exact operands in the same way.
    fn sum(self, right: Bounded, number: Number, dtype: DType) -> Bounded {
        match self.error + right.error {
            0.0 => Bounded::exact(number),
            spread => Bounded::rounded(number, spread, 1.0, dtype),
        }
    }

    fn product(self, right: Bounded, number: Number, dtype: DType) -> Bounded {
        let (a, b) = (self.value(), right.value());
        let spread = a.abs() * right.error + b.abs() * self.error + self.error * right.error;
        if spread == 0.0 && (a == 0.0 || b == 0.0 || is_product(a, b, number.as_f64())) {
            return Bounded::exact(number);
        }
        // The product overflows here, but a kernel that contracts it with a sum may have a finite
        // value.
        if number.as_f64().is_infinite() {
            return Bounded::exact(number).as_undecided();
        }
        Bounded::rounded(number, spread, 1.0, dtype)
    }

    fn quotient(self, right: Bounded, number: Number, dtype: DType) -> Bounded {
        let (b, quotient) = (right.value(), number.as_f64());
        let is_exact = self.error == 0.0 && right.error == 0.0;
        if right.may_be_zero() {
            // A negative zero may come from rounding and be a positive zero in kernels. The sign
            // does not matter if the quotient is NaN.
            let is_known = is_exact && (b.is_sign_positive() || quotient.is_nan());
            return if is_known { Bounded::exact(number) } else { Bounded::exact(number).as_undecided() };
        }
        if is_exact && (self.value() == 0.0 || is_product(quotient, b, self.value())) {
            return Bounded::exact(number);
        }
        if quotient.is_infinite() {
            return Bounded::exact(number).as_undecided();
        }
        let spread = (self.error + quotient.abs() * right.error) / (b.abs() - right.error);
        Bounded::rounded(number, spread, 2.0 * DIVISION_ULPS, dtype)
    }

    /// The remainder that belongs to a quotient rounded by `whole`. It is decided only if the
    /// rounded quotient is the same in every kernel.
    fn remainder(self, right: Bounded, number: Number, whole: fn(f64) -> f64, dtype: DType) -> Bounded {
        if self.error == 0.0 && right.error == 0.0 {
            return Bounded::exact(number);
        }
        if right.may_be_zero() {
            return Bounded::exact(number).as_undecided();
        }
        let ends = [right.low(), right.high()].map(|b| [self.low() / b, self.high() / b]);
        let times = whole(self.value() / right.value());
        if ends.iter().flatten().any(|end| whole(*end) != times) {
            return Bounded::exact(number).as_undecided();
        }
        Bounded::rounded(number, self.error + times.abs() * right.error, 1.0, dtype)
    }

    /// The minimum or maximum, which ignores a NaN operand.
    fn extreme(self, op: BinaryOp, right: Bounded, number: Number) -> Bounded {
        if self.is_nan() || right.is_nan() {
            return if self.is_nan() { right } else { self };
        }
        let value = number.as_f64();
        if value.is_infinite() {
            return Bounded::exact(number);
        }
        let of = |a: f64, b: f64| if op == BinaryOp::Min { a.min(b) } else { a.max(b) };
        let (low, high) = (of(self.low(), right.low()), of(self.high(), right.high()));
        Bounded { number, error: (value - low).max(high - value) }
    }

    fn comparison(self, right: Bounded, number: Number) -> Bounded {
        let (a, b) = (self.value(), right.value());
        let spread = self.error + right.error;
        let is_certain = spread == 0.0 || a.is_nan() || b.is_nan() || (a - b).abs() > spread;
        if is_certain { Bounded::exact(number) } else { Bounded::exact(number).as_undecided() }
    }

    /// Arithmetic with an operand that is infinite or NaN, which it then is in every kernel.
    fn nonfinite_binary(self, op: BinaryOp, right: Bounded, number: Number) -> Bounded {
        let is_exact = self.error == 0.0 && right.error == 0.0;
        let is_certain = match op {
            _ if self.is_nan() || right.is_nan() => true,
            BinaryOp::Add | BinaryOp::Sub => true,
            BinaryOp::Mul => is_exact || !(self.may_be_zero() || right.may_be_zero()),
            BinaryOp::Div => is_exact || !right.may_be_zero(),
            _ => is_exact,
        };
        if is_certain { Bounded::exact(number) } else { Bounded::exact(number).as_undecided() }
    }
}

/// Checks whether `a * b` is exactly `product`.
fn is_product(a: f64, b: f64, product: f64) -> bool {
    product.is_normal() && a.mul_add(b, -product) == 0.0
}

impl Value for Bounded {
    type Annotations = Errors;
    type Total = Total;
    const HAS_BOUNDS: bool = true;

    fn exact(number: Number) -> Bounded {
        Bounded { number, error: 0.0 }
    }

    fn number(self) -> Number {
        self.number
    }

    fn has_certain_truth(self) -> bool {
        self.error == 0.0 || !self.may_be_zero()
    }

    fn is_exact(self) -> bool {
        self.error == 0.0
    }

    fn magnitude(self) -> f64 {
        self.value().abs() + self.error
    }

    fn widened(self, by: f64, dtype: DType) -> Bounded {
        match self.is_decided() && self.value().is_finite() {
            true => Bounded::new(self.number, self.error + by, dtype),
            false => self,
        }
    }

    fn as_undecided(self) -> Bounded {
        Bounded { error: f64::INFINITY, ..self }
    }

    fn unary(self, op: UnaryOp, dtype: DType) -> Bounded {
        let number = arithmetic::unary(op, self.number, dtype);
        match op {
            UnaryOp::Neg | UnaryOp::Complement => Bounded { number, ..self },
            UnaryOp::Not if self.has_certain_truth() => Bounded::exact(number),
            UnaryOp::Not => Bounded::exact(number).as_undecided(),
        }
    }

    fn binary(self, op: BinaryOp, right: Bounded, dtype: DType) -> Bounded {
        if op.is_logical() {
            return self.logical(op, right);
        }
        match (self.number, right.number) {
            (Number::Int(_), Number::Int(_)) => Bounded {
                number: arithmetic::binary(op, self.number, right.number, dtype),
                error: self.error.max(right.error),
            },
            _ => self.float_binary(op, right, dtype),
        }
    }

    fn call(builtin: Builtin, arguments: &[Bounded], dtype: DType) -> Bounded {
        functions::call(builtin, arguments, dtype)
    }

    /// Conversions are monotone: the ends of the interval become the ends of the result's interval.
    fn convert(self, dtype: DType) -> Bounded {
        let number = self.number.convert(dtype);
        if self.error == 0.0 || !self.is_decided() {
            return Bounded { number, ..self };
        }
        if dtype == DType::Bool {
            let own = Bounded::exact(number);
            return if self.has_certain_truth() { own } else { own.as_undecided() };
        }
        let [low, high] = [self.low(), self.high()].map(|end| Number::Float(end).convert(dtype));
        if !dtype.is_float() {
            return if low == high { Bounded::exact(number) } else { Bounded::exact(number).as_undecided() };
        }
        let error = (high.as_f64() - number.as_f64()).max(number.as_f64() - low.as_f64());
        Bounded::new(number, if number.as_f64().is_finite() { error } else { f64::INFINITY }, dtype)
    }

    /// If both sides of a condition agree within their distances, the condition does not matter.
    fn or_alternative(self, other: Option<Bounded>) -> Bounded {
        let Some(other) = other.filter(|other| other.is_decided() && self.is_decided()) else {
            return self.as_undecided();
        };
        if self.is_nan() && other.is_nan() || self.value() == other.value() {
            return Bounded { error: self.error.max(other.error), ..self };
        }
        let apart = (self.value() - other.value()).abs();
        if apart <= self.error + other.error {
            return Bounded { error: self.error.max(apart + other.error), ..self };
        }
        self.as_undecided()
    }

    fn begin_reduction(op: ReduceOp, first: Option<Bounded>, dtype: DType) -> Total {
        Total::new(op, first, dtype)
    }

    fn reduce(total: Total, op: ReduceOp, value: Bounded, dtype: DType) -> Total {
        total.add_term(op, value, dtype)
    }

    fn end_reduction(total: Total, partial_type: DType) -> Bounded {
        total.end(partial_type)
    }

    fn load(tensor: &Tensor, annotations: &Errors, index: usize) -> Bounded {
        Bounded { number: tensor.get(index), error: annotations.0.get(index).copied().unwrap_or(0.0) }
    }

    fn store(self, tensor: &mut Tensor, Errors(errors): &mut Errors, index: usize) {
        let value = self.convert(tensor.dtype());
        tensor.set(index, value.number);
        if errors.is_empty() && value.error > 0.0 {
            errors.resize(tensor.len(), 0.0);
        }
        if let Some(error) = errors.get_mut(index) {
            *error = value.error;
        }
    }

    fn mark_undecided(tensor: &Tensor, errors: &mut Errors) {
        errors.0 = vec![f64::INFINITY; tensor.len()];
    }
}

impl Bounded {
    /// `&&` and `||`: one operand with a certain truth value may decide the result.
    fn logical(self, op: BinaryOp, right: Bounded) -> Bounded {
        let decides = op == BinaryOp::Or;
        let (a, b) = (self.number.is_true(), right.number.is_true());
        let value = if decides { a || b } else { a && b };
        let own = Bounded::exact(Number::Int(value as i128));
        let is_certain = match [self, right].map(Self::has_certain_truth) {
            [true, true] => true,
            [true, false] => a == decides,
            [false, true] => b == decides,
            [false, false] => false,
        };
        if is_certain { own } else { own.as_undecided() }
    }
}

#[cfg(test)]
mod tests;
