//! Bounds the integers that a value expression can have, from its operators and types, whatever the
//! data.
//!
//! Data-dependent subscripts need no check where these bounds are inside the dimension, as in
//! `table(x(i) & 15)`. Arithmetic of fixed width wraps: where the exact result may leave its type,
//! the bounds are those of the type.

use super::numeric::{Interval, Intervals, interval};
use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::ids::Ids;
use crate::number::Number;
use crate::operators::BinaryOp;

/// The interval of an integer or truth value; `None` for floats.
pub fn interval_of_value<I: Ids>(expr: &Expr<I>, known: &(impl Intervals<I> + ?Sized)) -> Option<Interval> {
    let of_type = interval_of_type(expr.dtype)?;
    let inside = |range: &Interval| range.low >= of_type.low && range.high <= of_type.high;
    Some(exact_interval(expr, known).filter(inside).unwrap_or(of_type))
}

fn interval_of_type(dtype: DType) -> Option<Interval> {
    let (low, high) = dtype.integer_bounds()?;
    Some(Interval { low, high })
}

/// The interval before the result is wrapped to its type, as far as it is known.
fn exact_interval<I: Ids>(expr: &Expr<I>, known: &(impl Intervals<I> + ?Sized)) -> Option<Interval> {
    match &expr.kind {
        ExprKind::Literal(Number::Int(value)) => Some(Interval { low: *value, high: *value }),
        ExprKind::Index(index) => interval(index, known),
        ExprKind::Select(operands) => {
            let [then, otherwise] = [&operands[1], &operands[2]].map(|side| interval_of_value(side, known));
            let (then, otherwise) = (then?, otherwise?);
            Some(Interval { low: then.low.min(otherwise.low), high: then.high.max(otherwise.high) })
        }
        ExprKind::Cast(operand) => interval_of_value(operand, known),
        ExprKind::Binary(op, operands) if operands[0].dtype == expr.dtype => {
            let left = interval_of_value(&operands[0], known)?;
            let right = interval_of_value(&operands[1], known)?;
            interval_of_operation(*op, left, right)
        }
        _ => None,
    }
}

fn interval_of_operation(op: BinaryOp, left: Interval, right: Interval) -> Option<Interval> {
    match op {
        BinaryOp::Add => left.plus(right),
        BinaryOp::Sub => left.plus(right.negated()),
        BinaryOp::Mul => left.times(right),
        BinaryOp::Min => Some(left.minimum(right)),
        BinaryOp::Max => Some(left.maximum(right)),
        BinaryOp::Div if right.low > 0 => Some(left.quotient(right)),
        BinaryOp::Mod if right.low > 0 => Some(left.remainder(right)),
        // No bit of the result is set that is clear in an operand.
        BinaryOp::BitAnd if right.low >= 0 => Some(Interval { low: 0, high: right.high }),
        BinaryOp::BitAnd if left.low >= 0 => Some(Interval { low: 0, high: left.high }),
        BinaryOp::ShiftRight if (0..64).contains(&right.low) && right.low == right.high => {
            Some(left.quotient(Interval { low: 1 << right.low, high: 1 << right.low }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arithmetic;
    use crate::index::{Data, IndexExpr};
    use crate::program::VarId;

    /// One variable, `0..10`, and no data.
    struct Loops;

    impl Intervals for Loops {
        fn var(&self, _: VarId) -> Option<Interval> {
            Some(Interval { low: 0, high: 9 })
        }

        fn data(&self, _: &Data) -> Option<Interval> {
            None
        }
    }

    fn value(dtype: DType, kind: ExprKind) -> Expr {
        Expr { dtype, kind }
    }

    fn number(dtype: DType, value: i128) -> Expr {
        Expr { dtype, kind: ExprKind::Literal(Number::Int(value)) }
    }

    /// A value of which only the type is known.
    fn unknown(dtype: DType) -> Expr {
        value(dtype, ExprKind::Scalar(crate::program::ScalarId(0)))
    }

    fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
        value(left.dtype, ExprKind::Binary(op, Box::new([left, right])))
    }

    fn ends(expr: &Expr) -> Option<(i128, i128)> {
        interval_of_value(expr, &Loops).map(|range| (range.low, range.high))
    }

    #[test]
    fn operators_narrow_the_interval_of_their_type() {
        let byte = || unknown(DType::UInt8);
        assert_eq!(ends(&byte()), Some((0, 255)));
        assert_eq!(ends(&binary(BinaryOp::BitAnd, byte(), number(DType::UInt8, 15))), Some((0, 15)));
        assert_eq!(ends(&binary(BinaryOp::ShiftRight, byte(), number(DType::UInt8, 4))), Some((0, 15)));
        assert_eq!(ends(&binary(BinaryOp::Div, byte(), number(DType::UInt8, 100))), Some((0, 2)));
        assert_eq!(ends(&binary(BinaryOp::Mod, byte(), number(DType::UInt8, 7))), Some((0, 6)));
        let wide = value(DType::Int32, ExprKind::Cast(Box::new(byte())));
        assert_eq!(ends(&binary(BinaryOp::Sub, wide, number(DType::Int32, 5))), Some((-5, 250)));
        let at = value(DType::Int64, ExprKind::Index(Box::new(IndexExpr::var(VarId(0)).scale(3))));
        let choice = ExprKind::Select(Box::new([unknown(DType::Bool), at, number(DType::Int64, -1)]));
        assert_eq!(ends(&value(DType::Int64, choice)), Some((-1, 27)));
    }

    #[test]
    fn a_result_that_may_wrap_has_the_interval_of_its_type() {
        let byte = || unknown(DType::UInt8);
        assert_eq!(ends(&binary(BinaryOp::Add, byte(), number(DType::UInt8, 1))), Some((0, 255)));
        let wide = binary(BinaryOp::Add, unknown(DType::Int32), number(DType::Int32, 1));
        let narrow = value(DType::Int8, ExprKind::Cast(Box::new(wide)));
        assert_eq!(ends(&narrow), Some((-128, 127)));
        assert_eq!(ends(&unknown(DType::Float32)), None);
        let rounded = value(DType::Int16, ExprKind::Cast(Box::new(unknown(DType::Float32))));
        assert_eq!(ends(&rounded), Some((-32768, 32767)));
    }

    /// Every operation on small ranges of 8-bit integers, against the arithmetic of the language.
    #[test]
    fn no_result_is_outside_its_interval() {
        let operators = [
            BinaryOp::Add,
            BinaryOp::Sub,
            BinaryOp::Mul,
            BinaryOp::Div,
            BinaryOp::Mod,
            BinaryOp::Min,
            BinaryOp::Max,
            BinaryOp::BitAnd,
            BinaryOp::BitOr,
            BinaryOp::ShiftRight,
        ];
        for dtype in [DType::Int8, DType::UInt8] {
            let (low, high) = dtype.integer_bounds().unwrap();
            for op in operators {
                for constant in [low, -1, 0, 1, 2, 7, 100, high] {
                    let Number::Int(constant) = Number::Int(constant).convert(dtype) else { unreachable!() };
                    let whole = binary(op, unknown(dtype), number(dtype, constant));
                    let (least, most) = ends(&whole).unwrap();
                    for own in low..=high {
                        let found =
                            arithmetic::binary(op, Number::Int(own), Number::Int(constant), dtype).as_i128();
                        assert!((least..=most).contains(&found), "{own} {op:?} {constant}: {found}");
                    }
                }
            }
        }
    }
}
