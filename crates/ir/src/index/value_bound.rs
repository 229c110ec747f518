//! Finds the greatest value of an integer expression that is never negative, without reading data.

use super::{Atom, IndexExpr};
use crate::arithmetic;
use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::ids::Ids;
use crate::number::Number;
use crate::operators::{BinaryOp, Builtin};

/// The greatest value of an expression of an integer type or of truth values, where it is at least
/// 0 and less than 2^62 whatever the data are. Returns `None` where the expression may be negative,
/// or greater.
pub(super) fn greatest_value<I: Ids>(value: &Expr<I>) -> Option<i64> {
    let by_type = match value.dtype {
        DType::Bool => Some(1),
        narrow @ (DType::UInt8 | DType::UInt16) => Some((1 << narrow.bits()) - 1),
        _ => None,
    };
    let by_value = match &value.kind {
        ExprKind::Literal(Number::Int(number)) => i64::try_from(*number).ok().filter(|own| *own >= 0),
        ExprKind::Cast(inner) if !inner.dtype.is_float() => {
            // A value that the wider or narrower type holds does not change.
            greatest_value(inner).filter(|most| fits(*most, value.dtype))
        }
        ExprKind::Binary(op, operands) => greatest_result(*op, operands, value.dtype),
        ExprKind::Call(Builtin::Popcount | Builtin::Clz | Builtin::Ctz, _) => Some(value.dtype.bits().into()),
        _ => None,
    };
    by_type.into_iter().chain(by_value).min().filter(|most| *most < 1 << 62)
}

fn fits(number: i64, dtype: DType) -> bool {
    dtype.integer_bounds().is_some_and(|(_, high)| i128::from(number) <= high)
}

fn greatest_result<I: Ids>(op: BinaryOp, operands: &[Expr<I>; 2], dtype: DType) -> Option<i64> {
    let [left, right] = operands;
    match op {
        // The result has no bit that an operand lacks. One operand without a sign is enough.
        BinaryOp::BitAnd => greatest_value(left).into_iter().chain(greatest_value(right)).min(),
        BinaryOp::BitOr | BinaryOp::BitXor => {
            let most = greatest_value(left)?.max(greatest_value(right)?);
            Some(((most as u64 + 1).next_power_of_two() - 1) as i64)
        }
        BinaryOp::ShiftRight => {
            let least_count = match &right.kind {
                ExprKind::Literal(Number::Int(count)) => i64::try_from(*count).ok()?,
                _ => 0,
            };
            greatest_value(left)?.checked_shr(u32::try_from(least_count).ok()?).or(Some(0))
        }
        BinaryOp::Mod => greatest_value(right).filter(|_| is_positive_literal(right)).map(|by| by - 1),
        BinaryOp::ShiftLeft | BinaryOp::Power => greatest_power(op, left, right, dtype),
        _ => None,
    }
}

fn is_positive_literal<I: Ids>(value: &Expr<I>) -> bool {
    matches!(value.kind, ExprKind::Literal(Number::Int(number)) if number > 0)
}

/// The greatest value of `left ** right` or `left << right` with a literal on the left and a
/// greatest exponent with which nothing wraps. A negative exponent or count gives 0.
fn greatest_power<I: Ids>(op: BinaryOp, left: &Expr<I>, right: &Expr<I>, dtype: DType) -> Option<i64> {
    let ExprKind::Literal(base @ Number::Int(1..)) = left.kind else { return None };
    let exponent = match &right.kind {
        // An index in a narrower type may have wrapped to a greater number.
        ExprKind::Index(index) if right.dtype == DType::Int64 => greatest_index(index)?,
        _ => greatest_value(right)?,
    };
    if !(0..=62).contains(&exponent) {
        return None;
    }
    // In 64 bits the result cannot wrap unless it exceeds the limit that is tested here.
    let greatest = arithmetic::binary(op, base, Number::Int(exponent.into()), DType::Int64).as_i128();
    let is_small = match op {
        BinaryOp::ShiftLeft => base.as_i128() << exponent < 1 << 62,
        _ => base.as_i128().checked_pow(exponent as u32).is_some_and(|power| power < 1 << 62),
    };
    i64::try_from(greatest).ok().filter(|most| is_small && fits(*most, dtype))
}

/// The greatest value of an index that is a number, or a minimum with a number.
fn greatest_index<I: Ids>(index: &IndexExpr<I>) -> Option<i64> {
    match index.terms() {
        [] => Some(index.constant_part()),
        [term] if index.constant_part() == 0 && term.coefficient == 1 => match term.factors.as_slice() {
            [Atom::Min(pair)] => pair.0.as_constant().into_iter().chain(pair.1.as_constant()).min(),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::VarId;

    fn int64(number: i64) -> Expr {
        Expr::literal(DType::Int64, Number::Int(number.into()))
    }

    fn index(index: IndexExpr) -> Expr {
        Expr { dtype: DType::Int64, kind: ExprKind::Index(Box::new(index)) }
    }

    #[test]
    fn operators_bound_their_results() {
        let unknown = || index(IndexExpr::var(VarId(0)));
        let of = |op, left: Expr, right: Expr| greatest_value(&Expr::binary(op, left, right));
        assert_eq!(greatest_value(&unknown()), None);
        assert_eq!(of(BinaryOp::BitAnd, unknown(), int64(12)), Some(12));
        assert_eq!(of(BinaryOp::BitAnd, int64(-1), unknown()), None);
        assert_eq!(of(BinaryOp::BitOr, unknown(), int64(12)), None);
        assert_eq!(of(BinaryOp::BitOr, int64(9), int64(4)), Some(15));
        assert_eq!(of(BinaryOp::BitXor, int64(8), int64(4)), Some(15));
        assert_eq!(of(BinaryOp::ShiftRight, int64(100), int64(3)), Some(12));
        assert_eq!(of(BinaryOp::ShiftRight, int64(100), int64(99)), Some(0));
        assert_eq!(of(BinaryOp::ShiftRight, int64(100), unknown()), Some(100));
        assert_eq!(of(BinaryOp::ShiftRight, unknown(), int64(3)), None);
        assert_eq!(of(BinaryOp::Mod, unknown(), int64(8)), Some(7));
        assert_eq!(of(BinaryOp::Mod, unknown(), int64(-8)), None);
        let popcount = ExprKind::Call(Builtin::Popcount, vec![unknown()]);
        assert_eq!(greatest_value(&Expr { dtype: DType::Int64, kind: popcount }), Some(64));
    }

    #[test]
    fn a_power_is_bounded_where_it_cannot_wrap() {
        let of = |op, base: i64, most: i64| {
            let exponent = IndexExpr::var(VarId(0)).minimum(&IndexExpr::constant(most));
            greatest_value(&Expr::binary(op, int64(base), index(exponent)))
        };
        assert_eq!(of(BinaryOp::Power, 2, 40), Some(1 << 40));
        assert_eq!(of(BinaryOp::ShiftLeft, 1, 40), Some(1 << 40));
        assert_eq!(of(BinaryOp::ShiftLeft, 3, 4), Some(48));
        assert_eq!(of(BinaryOp::Power, 2, 62), None);
        assert_eq!(of(BinaryOp::Power, 3, 40), None);
        assert_eq!(of(BinaryOp::ShiftLeft, 5, 61), None);
        assert_eq!(of(BinaryOp::Power, -2, 3), None);
        let free = Expr::binary(BinaryOp::Power, int64(2), index(IndexExpr::var(VarId(0))));
        assert_eq!(greatest_value(&free), None);
        // An int8 wraps long before.
        let narrow = |number| Expr::literal(DType::Int8, Number::Int(number));
        assert_eq!(
            greatest_value(&Expr::<crate::ids::InProgram>::binary(BinaryOp::Power, narrow(2), narrow(7))),
            None
        );
    }
}
