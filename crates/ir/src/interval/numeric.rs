//! Computes bounds of an index expression as numbers ([`Interval`]), from the known intervals of
//! its variables and data.

use crate::ids::{Ids, InProgram};
use crate::index::{Atom, Data, IndexExpr, Term};

/// The least and the greatest value, both included. Products of two 64-bit numbers fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The least value.
    pub low: i128,
    /// The greatest value.
    pub high: i128,
}

/// The known intervals of variables and data.
pub trait Intervals<I: Ids = InProgram> {
    /// The interval of a variable, if it is known.
    fn var(&self, var: I::Var) -> Option<Interval>;

    /// The interval of a value that is read from data, if it is known.
    fn data(&self, data: &Data<I>) -> Option<Interval>;

    /// The interval of an expression inside a quotient, remainder, minimum or maximum. The default
    /// computes with exact integers.
    fn interval_of_part(&self, expr: &IndexExpr<I>) -> Option<Interval> {
        interval(expr, self)
    }
}

/// The interval of an expression, or `None` where an atom has none.
pub fn interval<I: Ids>(expr: &IndexExpr<I>, known: &(impl Intervals<I> + ?Sized)) -> Option<Interval> {
    let constant = Interval::point(expr.constant_part());
    expr.terms().iter().try_fold(constant, |sum, term| sum.plus(interval_of_term(term, known)?))
}

fn interval_of_term<I: Ids>(term: &Term<I>, known: &(impl Intervals<I> + ?Sized)) -> Option<Interval> {
    let coefficient = Interval::point(term.coefficient);
    term.factors
        .iter()
        .try_fold(coefficient, |product, factor| product.times(interval_of_atom(factor, known)?))
}

/// The interval of an atom, or `None` where its parts have none.
pub fn interval_of_atom<I: Ids>(atom: &Atom<I>, known: &(impl Intervals<I> + ?Sized)) -> Option<Interval> {
    match atom {
        Atom::Var(var) => known.var(*var),
        Atom::Data(data) => known.data(data),
        Atom::Min(pair) => Some(known.interval_of_part(&pair.0)?.minimum(known.interval_of_part(&pair.1)?)),
        Atom::Max(pair) => Some(known.interval_of_part(&pair.0)?.maximum(known.interval_of_part(&pair.1)?)),
        Atom::FloorDiv(pair) => {
            Some(known.interval_of_part(&pair.0)?.quotient(known.interval_of_part(&pair.1)?))
        }
        Atom::Mod(pair) => {
            let by = known.interval_of_part(&pair.1)?;
            Some(known.interval_of_part(&pair.0).map_or(by.remainders(), |value| value.remainder(by)))
        }
        Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => None,
    }
}

impl Interval {
    /// The interval of all 64-bit integers.
    pub const ALL: Interval = Interval { low: i64::MIN as i128, high: i64::MAX as i128 };

    /// The interval of one number.
    pub fn point(value: i64) -> Interval {
        Interval { low: value.into(), high: value.into() }
    }

    /// The interval of the sum; `None` if an end overflows.
    pub fn plus(self, other: Interval) -> Option<Interval> {
        Some(Interval { low: self.low.checked_add(other.low)?, high: self.high.checked_add(other.high)? })
    }

    /// The interval of the product; `None` if an end overflows.
    pub fn times(self, other: Interval) -> Option<Interval> {
        let products = [
            self.low.checked_mul(other.low)?,
            self.low.checked_mul(other.high)?,
            self.high.checked_mul(other.low)?,
            self.high.checked_mul(other.high)?,
        ];
        Some(Interval { low: products.into_iter().min()?, high: products.into_iter().max()? })
    }

    /// The interval of the negated value. The ends are far from the least 128-bit integer.
    pub fn negated(self) -> Interval {
        Interval { low: -self.high, high: -self.low }
    }

    /// The interval of the smaller of two values.
    pub fn minimum(self, other: Interval) -> Interval {
        Interval { low: self.low.min(other.low), high: self.high.min(other.high) }
    }

    /// The interval of the larger of two values.
    pub fn maximum(self, other: Interval) -> Interval {
        Interval { low: self.low.max(other.low), high: self.high.max(other.high) }
    }

    /// The interval of the quotient, rounded toward minus infinity. A division by 0 gives 0.
    pub fn quotient(self, by: Interval) -> Interval {
        if by.low < 1 {
            let most = self.greatest_magnitude();
            return Interval { low: -most - 1, high: most };
        }
        let [low, high] = [self.low, self.high].map(|end| [end.div_euclid(by.low), end.div_euclid(by.high)]);
        Interval { low: low[0].min(low[1]), high: high[0].max(high[1]) }
    }

    /// The interval of the remainder, which has the sign of the divisor. A remainder by 0 is 0.
    pub fn remainder(self, by: Interval) -> Interval {
        if self.low >= 0 && self.high < by.low { self } else { by.remainders() }
    }

    /// The interval of the remainders of any number by a divisor in this interval.
    fn remainders(self) -> Interval {
        Interval { low: (self.low + 1).min(0), high: (self.high - 1).max(0) }
    }

    /// The greatest absolute value.
    pub fn greatest_magnitude(self) -> i128 {
        self.low.abs().max(self.high.abs())
    }

    /// Returns true when all values are between `-most - 1` and `most`.
    pub fn is_within(self, most: i128) -> bool {
        self.low >= -most - 1 && self.high <= most
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::VarId;

    /// The variables `0..100` and `0..1_000_000`, and no data.
    struct Loops;

    impl Intervals for Loops {
        fn var(&self, var: VarId) -> Option<Interval> {
            [99, 999_999].get(var.index()).map(|high| Interval { low: 0, high: *high })
        }

        fn data(&self, _: &Data) -> Option<Interval> {
            None
        }
    }

    fn of(expr: &IndexExpr) -> Option<(i128, i128)> {
        interval(expr, &Loops).map(|found| (found.low, found.high))
    }

    #[test]
    fn intervals_follow_the_operations() {
        let [x, y, unknown] = [0, 1, 2].map(|at| IndexExpr::var(VarId(at)));
        let seven = IndexExpr::constant(7);
        assert_eq!(of(&x.scale(-3).offset(5)), Some((-292, 5)));
        assert_eq!(of(&x.sub(&y)), Some((-999_999, 99)));
        assert_eq!(of(&x.mul(&y)), Some((0, 99 * 999_999)));
        assert_eq!(of(&x.offset(-10).floor_div(&seven)), Some((-2, 12)));
        assert_eq!(of(&x.offset(-10).modulo(&seven)), Some((0, 6)));
        assert_eq!(of(&x.minimum(&seven)), Some((0, 7)));
        assert_eq!(of(&x.maximum(&seven)), Some((7, 99)));
        assert_eq!(of(&unknown), None);
        // Any number has a remainder.
        assert_eq!(of(&unknown.modulo(&seven)), Some((0, 6)));
    }

    #[test]
    fn a_divisor_may_be_0_or_negative() {
        let [x, y] = [0, 1].map(|at| IndexExpr::var(VarId(at)));
        let by = y.offset(-3);
        assert_eq!(of(&x.floor_div(&by)), Some((-100, 99)));
        assert_eq!(of(&x.modulo(&by)), Some((-2, 999_995)));
    }
}
