//! Reduces bounded numbers ([`Bounded`]). Kernels may reduce the terms in any order and any
//! grouping.
//!
//! The error of a sum of n terms in any order is at most `(n - 1) u` times the sum of their
//! magnitudes, for any n. Here u is the unit roundoff of the type of partial sums (Jeannerod and
//! Rump, Improved error bounds for inner products in floating-point arithmetic, 2013). No order
//! rounds at all if all terms are exact multiples of one power of two and every partial sum fits
//! the type's digits. A product of n factors is rounded n - 1 times. Minima and maxima are not
//! rounded.

use tilewright_ir::{DType, Number, ReduceOp, arithmetic};

use super::{Bounded, is_product, largest_finite, smallest_normal, unit_roundoff};
use crate::value::Value;

/// A reduction in progress.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total {
    /// The interpreter's total so far.
    number: Number,
    /// Whether a term is undecided.
    is_undecided: bool,
    statistics: TermStatistics,
}

/// The statistics of the terms so far that the error bound needs.
#[derive(Clone, Copy, Debug)]
enum TermStatistics {
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
    common_exponent: Option<i32>,
    has_infinity: bool,
}

#[derive(Clone, Copy, Debug)]
struct Product {
    factors: f64,
    /// The distance of the product of the kernel's factors, without its rounding.
    error: f64,
    /// Bounds on the largest and the smallest magnitude of a product of any subset of the factors.
    largest: f64,
    smallest: f64,
    /// Whether no product so far needed rounding.
    is_exact_so_far: bool,
    /// Whether a factor is infinite or NaN, and whether an inexact factor may be zero in some
    /// kernels.
    has_infinity: bool,
    may_be_zero: bool,
}

impl Total {
    pub(super) fn new(op: ReduceOp, first: Option<Bounded>, dtype: DType) -> Total {
        let neutral = arithmetic::neutral(op, dtype);
        let tally = match op {
            _ if !dtype.is_float() => TermStatistics::Integers,
            ReduceOp::Add => TermStatistics::Sum(Sum::default()),
            ReduceOp::Mul => TermStatistics::Product(Product::EMPTY),
            _ => TermStatistics::Extreme(Bounded::exact(neutral)),
        };
        let empty = Total { number: neutral, is_undecided: false, statistics: tally };
        first.map_or(empty, |first| empty.add_term(op, first, dtype))
    }

    pub(super) fn add_term(self, op: ReduceOp, term: Bounded, dtype: DType) -> Total {
        let number = arithmetic::reduce(op, self.number, term.number, dtype);
        let is_undecided = self.is_undecided || !term.is_decided();
        let tally = match self.statistics {
            _ if is_undecided => self.statistics,
            TermStatistics::Integers => TermStatistics::Integers,
            TermStatistics::Sum(sum) => TermStatistics::Sum(sum.add_term(term)),
            TermStatistics::Product(product) => {
                TermStatistics::Product(product.add_factor(self.number, term, number))
            }
            TermStatistics::Extreme(extreme) => {
                TermStatistics::Extreme(extreme.extreme(op.operator(), term, number))
            }
        };
        Total { number, is_undecided, statistics: tally }
    }

    /// The result of a reduction whose partial results kernels store in `partial_type`.
    pub(super) fn end(self, partial_type: DType) -> Bounded {
        let exact = Bounded::exact(self.number);
        if self.is_undecided {
            return exact.as_undecided();
        }
        match self.statistics {
            TermStatistics::Integers => exact,
            TermStatistics::Sum(sum) => sum.end(exact, partial_type),
            TermStatistics::Product(product) => product.end(exact, partial_type),
            TermStatistics::Extreme(extreme) => extreme,
        }
    }
}

impl Sum {
    fn add_term(self, term: Bounded) -> Sum {
        let value = term.value();
        if !value.is_finite() {
            return Sum { terms: self.terms + 1.0, has_infinity: true, ..self };
        }
        let grid = match (self.common_exponent, lowest_bit_exponent(value)) {
            (Some(grid), Some(own)) => Some(grid.min(own)),
            (grid, own) => grid.or(own),
        };
        Sum {
            terms: self.terms + 1.0,
            magnitude: self.magnitude + value.abs() + term.error,
            error: self.error + term.error,
            common_exponent: grid,
            ..self
        }
    }

    fn end(self, exact: Bounded, partial_type: DType) -> Bounded {
        if self.magnitude > largest_finite(partial_type) {
            // Partial sums may overflow in some order.
            return exact.as_undecided();
        }
        if self.has_infinity || self.terms <= 1.0 && self.error == 0.0 || self.is_exact(partial_type) {
            return exact;
        }
        let roundings = (self.terms - 1.0) * (unit_roundoff(partial_type) + unit_roundoff(DType::Float64));
        let flushed =
            if self.magnitude < smallest_normal(partial_type) { smallest_normal(partial_type) } else { 0.0 };
        Bounded { error: self.error + roundings * self.magnitude + flushed, ..exact }
    }

    /// Checks whether every partial sum, in any order, fits the digits of the type.
    fn is_exact(self, partial_type: DType) -> bool {
        let digits = 1.0 / unit_roundoff(partial_type);
        self.error == 0.0
            && self.common_exponent.is_none_or(|grid| self.magnitude <= digits * 2f64.powi(grid))
    }
}

/// The exponent of the lowest set bit; `None` for zero.
fn lowest_bit_exponent(value: f64) -> Option<i32> {
    let bits = value.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32 & 0x7ff, bits & ((1 << 52) - 1));
    let digits = if exponent == 0 { fraction } else { fraction | (1 << 52) };
    (digits != 0).then(|| exponent.max(1) - 1075 + digits.trailing_zeros() as i32)
}

impl Product {
    const EMPTY: Product = Product {
        factors: 0.0,
        error: 0.0,
        largest: 1.0,
        smallest: 1.0,
        is_exact_so_far: true,
        has_infinity: false,
        may_be_zero: false,
    };

    /// Adds a factor, which changes the interpreter's product from `before` to `after`.
    fn add_factor(self, before: Number, factor: Bounded, after: Number) -> Product {
        let (value, before, after) = (factor.value(), before.as_f64(), after.as_f64());
        let size = value.abs() + factor.error;
        let is_whole = self.is_exact_so_far
            && factor.error == 0.0
            && (before == 0.0 || value == 0.0 || is_product(before, value, after));
        Product {
            factors: self.factors + 1.0,
            error: before.abs() * factor.error + value.abs() * self.error + factor.error * self.error,
            largest: self.largest * size.max(1.0),
            smallest: self.smallest * (value.abs() - factor.error).clamp(0.0, 1.0),
            is_exact_so_far: is_whole,
            has_infinity: self.has_infinity || !value.is_finite(),
            may_be_zero: self.may_be_zero || (factor.error > 0.0 && factor.may_be_zero()),
        }
    }

    fn end(self, exact: Bounded, partial_type: DType) -> Bounded {
        if self.has_infinity {
            return if self.may_be_zero { exact.as_undecided() } else { exact };
        }
        if self.largest > largest_finite(partial_type) || self.largest.is_nan() {
            return exact.as_undecided();
        }
        let fits = exact.number.convert(partial_type) == exact.number;
        if self.error == 0.0 && (self.factors <= 1.0 || exact.value() == 0.0 || self.is_exact_so_far && fits)
        {
            return exact;
        }
        let rounding =
            ((self.factors - 1.0) * (unit_roundoff(partial_type) + unit_roundoff(DType::Float64))).exp_m1();
        let flushed = if self.smallest < smallest_normal(partial_type) {
            smallest_normal(partial_type) * self.largest
        } else {
            0.0
        };
        let error = self.error + rounding * (exact.value().abs() + self.error) + flushed;
        Bounded { error, ..exact }
    }
}
