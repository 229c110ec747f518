//! Computes intervals for the values of index expressions, from the enclosing loops and from the
//! types of data.

use std::collections::BTreeMap;

use tilewright_ir::index::{Atom, IndexExpr, Term};
use tilewright_ir::{DType, VarId};

/// The least and the greatest value, both included.
pub(super) type Interval = (i128, i128);

/// The largest values of 32-bit and of 64-bit integers.
pub(super) const NARROW: i128 = i32::MAX as i128;
pub(super) const WIDE: i128 = i64::MAX as i128;

/// The interval of all values of a 64-bit index.
const ANY: Interval = (i64::MIN as i128, i64::MAX as i128);

/// The intervals of the variables of the enclosing loops.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges(BTreeMap<VarId, Interval>);

impl Ranges {
    /// Adds the variable of a loop that begins, with the values from 0 to the largest extent minus
    /// 1.
    pub(super) fn enter(&mut self, var: VarId, extent: &IndexExpr) {
        let (_, most) = self.of(extent);
        self.0.insert(var, (0, (most - 1).max(0)));
    }

    /// Removes the variable of a loop that ends.
    pub(super) fn leave(&mut self, var: VarId) {
        self.0.remove(&var);
    }

    /// The interval of an expression that is computed in 64 bits: all values, where an intermediate
    /// result may wrap.
    pub(super) fn of(&self, index: &IndexExpr) -> Interval {
        self.steps(index, WIDE).unwrap_or(ANY)
    }

    /// Whether every intermediate result of an expression, computed from the left, fits integers up
    /// to `most`.
    pub(super) fn steps_within(&self, index: &IndexExpr, most: i128) -> bool {
        self.steps(index, most).is_some()
    }

    /// The interval of an expression, if every intermediate result fits integers up to `most`.
    fn steps(&self, index: &IndexExpr, most: i128) -> Option<Interval> {
        let mut sum = (0, 0);
        for term in index.terms() {
            let product = self.term(term, most)?;
            sum = within((sum.0 + product.0, sum.1 + product.1), most)?;
        }
        let constant = i128::from(index.constant_part());
        within((constant, constant), most)?;
        within((sum.0 + constant, sum.1 + constant), most)
    }

    fn term(&self, term: &Term, most: i128) -> Option<Interval> {
        let coefficient = i128::from(term.coefficient);
        let size = within((coefficient.abs(), coefficient.abs()), most)?;
        let product = term.factors.iter().try_fold(size, |product, factor| {
            let factor = within(self.atom(factor)?, most)?;
            within(times(product, factor)?, most)
        })?;
        Some(if coefficient < 0 { (-product.1, -product.0) } else { product })
    }

    /// The interval of an atom. The expressions inside an atom are computed in their own type.
    fn atom(&self, atom: &Atom) -> Option<Interval> {
        let both = |pair: &(IndexExpr, IndexExpr)| (self.of(&pair.0), self.of(&pair.1));
        Some(match atom {
            Atom::Var(var) => self.0.get(var).copied().unwrap_or(ANY),
            Atom::Min(pair) => {
                let (left, right) = both(pair);
                (left.0.min(right.0), left.1.min(right.1))
            }
            Atom::Max(pair) => {
                let (left, right) = both(pair);
                (left.0.max(right.0), left.1.max(right.1))
            }
            Atom::FloorDiv(pair) => {
                let (left, right) = both(pair);
                quotient(left, right)
            }
            Atom::Mod(pair) => {
                let (left, right) = both(pair);
                remainder(left, right)
            }
            Atom::Data(data) => match data.value.dtype {
                // A value that does not fit 64 bits becomes the largest index.
                DType::UInt64 => (0, WIDE),
                dtype => dtype.integer_bounds()?,
            },
            Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => return None,
        })
    }
}

fn within(range: Interval, most: i128) -> Option<Interval> {
    (range.0 >= -most - 1 && range.1 <= most).then_some(range)
}

fn times(left: Interval, right: Interval) -> Option<Interval> {
    let products = [
        left.0.checked_mul(right.0)?,
        left.0.checked_mul(right.1)?,
        left.1.checked_mul(right.0)?,
        left.1.checked_mul(right.1)?,
    ];
    Some((*products.iter().min()?, *products.iter().max()?))
}

/// The interval of a quotient, rounded toward minus infinity. A division by 0 gives 0.
fn quotient(left: Interval, right: Interval) -> Interval {
    if right.0 < 1 {
        let most = left.0.abs().max(left.1.abs());
        return (-most - 1, most);
    }
    let ends = [left.0, left.1].map(|end| [end.div_euclid(right.0), end.div_euclid(right.1)]).concat();
    (ends.iter().copied().min().unwrap_or(0), ends.iter().copied().max().unwrap_or(0))
}

/// The interval of a remainder, which has the sign of the divisor. A remainder by 0 is 0.
fn remainder(left: Interval, right: Interval) -> Interval {
    if left.0 >= 0 && left.1 < right.0 {
        return left;
    }
    ((right.0 + 1).min(0), (right.1 - 1).max(0))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tilewright_ir::{Data, Expr, ExprKind, Number};

    use super::*;

    fn ranges() -> Ranges {
        Ranges([(VarId(0), (0, 99)), (VarId(1), (0, 999_999))].into())
    }

    fn var(at: u32) -> IndexExpr {
        IndexExpr::var(VarId(at))
    }

    fn data(dtype: DType) -> IndexExpr {
        let value = Expr { dtype, kind: ExprKind::Literal(Number::Int(1)) };
        IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared: None })))
    }

    #[test]
    fn steps_count_and_not_only_results() {
        let ranges = ranges();
        assert!(ranges.steps_within(&var(1).scale(2000), NARROW));
        assert!(!ranges.steps_within(&var(1).scale(3000), NARROW));
        // The dividend has a type of its own, so its size does not count.
        let quotient = var(1).scale(3000).floor_div(&IndexExpr::constant(7001));
        assert!(ranges.steps_within(&quotient, NARROW));
        let difference = var(1).scale(1500).sub(&var(0).scale(1 << 31));
        assert!(!ranges.steps_within(&difference, NARROW));
    }

    #[test]
    fn ranges_follow_the_operations() {
        let (ranges, seven) = (ranges(), IndexExpr::constant(7));
        assert_eq!(ranges.of(&var(0).scale(-3).offset(5)), (-292, 5));
        assert_eq!(ranges.of(&var(0).offset(-10).floor_div(&seven)), (-2, 12));
        assert_eq!(ranges.of(&var(0).offset(-10).modulo(&seven)), (0, 6));
        assert_eq!(ranges.of(&var(0).minimum(&seven)), (0, 7));
        // The divisor may be 0 or negative.
        let (low, high) = ranges.of(&var(0).floor_div(&var(1).offset(-3)));
        assert!(low <= -99 && high >= 99);
    }

    #[test]
    fn data_has_the_values_of_its_type() {
        let ranges = ranges();
        assert_eq!(ranges.of(&data(DType::UInt8).offset(1)), (1, 256));
        assert!(ranges.steps_within(&data(DType::Int32), NARROW));
        assert!(!ranges.steps_within(&data(DType::Int32).scale(-1), NARROW));
        assert!(!ranges.steps_within(&data(DType::UInt32), NARROW));
        assert!(ranges.steps_within(&data(DType::UInt32).scale(2), WIDE));
        let beyond = data(DType::Int64).offset(1);
        assert!(!ranges.steps_within(&beyond, WIDE));
        assert_eq!(ranges.of(&beyond), ANY);
        // A sum that wraps inside a remainder does not widen the remainder's interval.
        assert_eq!(ranges.of(&beyond.modulo(&IndexExpr::constant(10))), (0, 9));
    }
}
