//! Computes intervals for the values of index expressions, from the enclosing loops and from the
//! types of data.
//!
//! Kernels compute in 32 or 64 bits, so an intermediate result may wrap. [`Ranges::fits`] checks
//! whether every intermediate result fits. The expressions inside a quotient, remainder, minimum or
//! maximum have a type of their own.

use std::collections::BTreeMap;

use tilewright_ir::DType;
use tilewright_ir::ids::InNest;
use tilewright_ir::interval::{Interval, Intervals, interval_of_atom};
use tilewright_ir::nest::{Data, IndexExpr, LoopVarId, Term};

/// The largest values of 32-bit and of 64-bit integers.
pub(super) const MAX_INT32: i128 = i32::MAX as i128;
pub(super) const MAX_INT64: i128 = i64::MAX as i128;

/// The intervals of the variables of the enclosing loops.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges(BTreeMap<LoopVarId, Interval>);

impl Intervals<InNest> for Ranges {
    fn var(&self, var: LoopVarId) -> Option<Interval> {
        Some(self.0.get(&var).copied().unwrap_or(Interval::ALL))
    }

    fn data(&self, data: &Data) -> Option<Interval> {
        let (low, high) = match data.value.dtype {
            // A value that does not fit 64 bits becomes the largest index.
            DType::UInt64 => (0, MAX_INT64),
            dtype => dtype.integer_bounds()?,
        };
        Some(Interval { low, high })
    }

    fn interval_of_part(&self, expr: &IndexExpr) -> Option<Interval> {
        Some(self.interval(expr))
    }
}

impl Ranges {
    /// Adds the variable of a loop that begins, with the values from 0 to the largest extent minus
    /// 1.
    pub(super) fn enter(&mut self, var: LoopVarId, extent: &IndexExpr) {
        let extent_limit = self.interval(extent).high;
        self.0.insert(var, Interval { low: 0, high: (extent_limit - 1).max(0) });
    }

    /// Removes the variable of a loop that ends.
    pub(super) fn leave(&mut self, var: LoopVarId) {
        self.0.remove(&var);
    }

    /// The interval of an expression that is computed in 64 bits: all values, where an intermediate
    /// result may wrap.
    pub(super) fn interval(&self, index: &IndexExpr) -> Interval {
        self.checked_interval(index, MAX_INT64).unwrap_or(Interval::ALL)
    }

    /// Whether every intermediate result of an expression, computed from the left, fits integers up
    /// to `limit`.
    pub(super) fn fits(&self, index: &IndexExpr, limit: i128) -> bool {
        self.checked_interval(index, limit).is_some()
    }

    /// The interval of an expression, if every intermediate result fits integers up to `limit`.
    fn checked_interval(&self, index: &IndexExpr, limit: i128) -> Option<Interval> {
        let mut sum = Interval::point(0);
        for term in index.terms() {
            sum = within(sum.plus(self.term(term, limit)?)?, limit)?;
        }
        let constant = within(Interval::point(index.constant_part()), limit)?;
        within(sum.plus(constant)?, limit)
    }

    fn term(&self, term: &Term, limit: i128) -> Option<Interval> {
        let magnitude = i128::from(term.coefficient).abs();
        let size = within(Interval { low: magnitude, high: magnitude }, limit)?;
        let product = term.factors.iter().try_fold(size, |product, factor| {
            let factor = within(interval_of_atom(factor, self)?, limit)?;
            within(product.times(factor)?, limit)
        })?;
        Some(if term.coefficient < 0 { product.negated() } else { product })
    }
}

fn within(interval: Interval, limit: i128) -> Option<Interval> {
    interval.is_within(limit).then_some(interval)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tilewright_ir::Number;
    use tilewright_ir::nest::{Atom, Expr, ExprKind};

    use super::*;

    fn ranges() -> Ranges {
        let below = |extent: i128| Interval { low: 0, high: extent - 1 };
        Ranges([(LoopVarId(0), below(100)), (LoopVarId(1), below(1_000_000))].into())
    }

    fn var(at: u32) -> IndexExpr {
        IndexExpr::var(LoopVarId(at))
    }

    fn ends(ranges: &Ranges, index: &IndexExpr) -> (i128, i128) {
        let Interval { low, high } = ranges.interval(index);
        (low, high)
    }

    fn data(dtype: DType) -> IndexExpr {
        let value = Expr { dtype, kind: ExprKind::Literal(Number::Int(1)) };
        IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared: None })))
    }

    #[test]
    fn intermediate_results_must_fit_too() {
        let ranges = ranges();
        assert!(ranges.fits(&var(1).scale(2000), MAX_INT32));
        assert!(!ranges.fits(&var(1).scale(3000), MAX_INT32));
        // The dividend has a type of its own, so its size does not count.
        let quotient = var(1).scale(3000).floor_div(&IndexExpr::constant(7001));
        assert!(ranges.fits(&quotient, MAX_INT32));
        let difference = var(1).scale(1500).sub(&var(0).scale(1 << 31));
        assert!(!ranges.fits(&difference, MAX_INT32));
    }

    #[test]
    fn data_has_the_values_of_its_type() {
        let ranges = ranges();
        assert_eq!(ends(&ranges, &data(DType::UInt8).offset(1)), (1, 256));
        assert!(ranges.fits(&data(DType::Int32), MAX_INT32));
        assert!(!ranges.fits(&data(DType::Int32).scale(-1), MAX_INT32));
        assert!(!ranges.fits(&data(DType::UInt32), MAX_INT32));
        assert!(ranges.fits(&data(DType::UInt32).scale(2), MAX_INT64));
        let beyond = data(DType::Int64).offset(1);
        assert!(!ranges.fits(&beyond, MAX_INT64));
        assert_eq!(ranges.interval(&beyond), Interval::ALL);
        // A sum that wraps inside a remainder does not widen the remainder's interval.
        assert_eq!(ends(&ranges, &beyond.modulo(&IndexExpr::constant(10))), (0, 9));
    }
}
