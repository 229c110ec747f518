//! Reductions of bounded numbers, whose terms kernels may reduce in any order and any grouping.
//!
//! The error of a sum of n terms in any order is at most `(n - 1) u` times the sum of their
//! magnitudes, for any n. Here u is the unit roundoff of the type of partial sums (Jeannerod and
//! Rump, Improved error bounds for inner products in floating-point arithmetic, 2013). No order
//! rounds at all if all terms are exact multiples of one power of two and every partial sum fits
//! the type's digits. A product of n factors is rounded n - 1 times. Minima and maxima are not
//! rounded.

use tilewright_ir::{DType, Number, ReduceOp, arithmetic};

use super::{Bounded, is_product, largest, smallest, unit};
use crate::value::Value;

/// A reduction in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total {
    /// The interpreter's total so far.
    number: Number,
    /// Whether a term is undecided.
    is_undecided: bool,
    tally: Tally,
}

/// The statistics of the terms so far that the error bound needs.
#[derive(Clone, Copy, Debug)]
enum Tally {
    Integers,
    Sum(Sum),
    Product(Product),
    Extreme(Bounded),
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    terms: f64,
    /// The sum of the magnitudes of all finite terms, each including its distance.
    magnitude: f64,
    /// The sum of the distances of all terms.
    error: f64,
    /// The exponent of a power of two that divides all terms.
    grid: Option<i32>,
    has_infinity: bool,
}

#[derive(Clone, Copy, Debug)]
struct Product {
    factors: f64,
    /// The distance of the product of the kernel's factors, without its rounding.
    error: f64,
    /// Bounds on the largest and the smallest magnitude of a product of any subset of the factors.
    most: f64,
    least: f64,
    /// Whether no product so far needed rounding.
    is_whole: bool,
    /// Whether a factor is infinite or NaN, and whether an inexact factor may be zero in some
    /// kernels.
    has_infinity: bool,
    may_vanish: bool,
}

impl Total {
    pub(super) fn new(op: ReduceOp, first: Option<Bounded>, dtype: DType) -> Total {
        let neutral = arithmetic::neutral(op, dtype);
        let tally = match op {
            _ if !dtype.is_float() => Tally::Integers,
            ReduceOp::Add => Tally::Sum(Sum::default()),
            ReduceOp::Mul => Tally::Product(Product::NONE),
            _ => Tally::Extreme(Bounded::exact(neutral)),
        };
        let empty = Total { number: neutral, is_undecided: false, tally };
        first.map_or(empty, |first| empty.with(op, first, dtype))
    }

    pub(super) fn with(self, op: ReduceOp, term: Bounded, dtype: DType) -> Total {
        let number = arithmetic::reduce(op, self.number, term.number, dtype);
        let is_undecided = self.is_undecided || !term.is_decided();
        let tally = match self.tally {
            _ if is_undecided => self.tally,
            Tally::Integers => Tally::Integers,
            Tally::Sum(sum) => Tally::Sum(sum.with(term)),
            Tally::Product(product) => Tally::Product(product.with(self.number, term, number)),
            Tally::Extreme(extreme) => Tally::Extreme(extreme.extreme(op.operator(), term, number)),
        };
        Total { number, is_undecided, tally }
    }

    /// The result of a reduction whose partial results kernels store in the type `kept_in`.
    pub(super) fn end(self, kept_in: DType) -> Bounded {
        let exact = Bounded::exact(self.number);
        if self.is_undecided {
            return exact.undecided();
        }
        match self.tally {
            Tally::Integers => exact,
            Tally::Sum(sum) => sum.end(exact, kept_in),
            Tally::Product(product) => product.end(exact, kept_in),
            Tally::Extreme(extreme) => extreme,
        }
    }
}

impl Sum {
    fn with(self, term: Bounded) -> Sum {
        let value = term.value();
        if !value.is_finite() {
            return Sum { terms: self.terms + 1.0, has_infinity: true, ..self };
        }
        let grid = match (self.grid, last_bit(value)) {
            (Some(grid), Some(own)) => Some(grid.min(own)),
            (grid, own) => grid.or(own),
        };
        Sum {
            terms: self.terms + 1.0,
            magnitude: self.magnitude + value.abs() + term.error,
            error: self.error + term.error,
            grid,
            ..self
        }
    }

    fn end(self, exact: Bounded, kept_in: DType) -> Bounded {
        if self.magnitude > largest(kept_in) {
            // Partial sums may overflow in some order.
            return exact.undecided();
        }
        if self.has_infinity || self.terms <= 1.0 && self.error == 0.0 || self.is_exact(kept_in) {
            return exact;
        }
        let roundings = (self.terms - 1.0) * (unit(kept_in) + unit(DType::Float64));
        let flushed = if self.magnitude < smallest(kept_in) { smallest(kept_in) } else { 0.0 };
        Bounded { error: self.error + roundings * self.magnitude + flushed, ..exact }
    }

    /// Checks whether every partial sum, in any order, fits the digits of the type.
    fn is_exact(self, kept_in: DType) -> bool {
        let digits = 1.0 / unit(kept_in);
        self.error == 0.0 && self.grid.is_none_or(|grid| self.magnitude <= digits * 2f64.powi(grid))
    }
}

/// The exponent of the lowest set bit; `None` for zero.
fn last_bit(value: f64) -> Option<i32> {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32 & 0x7ff, bits & ((1 << 52) - 1));
    let digits = if exponent == 0 { fraction } else { fraction | (1 << 52) };
    (digits != 0).then(|| exponent.max(1) - 1075 + digits.trailing_zeros() as i32)
}

impl Product {
    const NONE: Product = Product {
        factors: 0.0,
        error: 0.0,
        most: 1.0,
        least: 1.0,
        is_whole: true,
        has_infinity: false,
        may_vanish: false,
    };

    /// Adds a factor, which changes the interpreter's product from `before` to `after`.
    fn with(self, before: Number, factor: Bounded, after: Number) -> Product {
        let (value, before, after) = (factor.value(), before.as_f64(), after.as_f64());
        let size = value.abs() + factor.error;
        let is_whole = self.is_whole
            && factor.error == 0.0
            && (before == 0.0 || value == 0.0 || is_product(before, value, after));
        Product {
            factors: self.factors + 1.0,
            error: before.abs() * factor.error + value.abs() * self.error + factor.error * self.error,
            most: self.most * size.max(1.0),
            least: self.least * (value.abs() - factor.error).clamp(0.0, 1.0),
            is_whole,
            has_infinity: self.has_infinity || !value.is_finite(),
            may_vanish: self.may_vanish || (factor.error > 0.0 && factor.may_be_zero()),
        }
    }

    fn end(self, exact: Bounded, kept_in: DType) -> Bounded {
        if self.has_infinity {
            return if self.may_vanish { exact.undecided() } else { exact };
        }
        if self.most > largest(kept_in) || self.most.is_nan() {
            return exact.undecided();
        }
        let fits = exact.number.convert(kept_in) == exact.number;
        if self.error == 0.0 && (self.factors <= 1.0 || exact.value() == 0.0 || self.is_whole && fits) {
            return exact;
        }
        let rounding = ((self.factors - 1.0) * (unit(kept_in) + unit(DType::Float64))).exp_m1();
        let flushed = if self.least < smallest(kept_in) { smallest(kept_in) * self.most } else { 0.0 };
        let error = self.error + rounding * (exact.value().abs() + self.error) + flushed;
        Bounded { error, ..exact }
    }
}
