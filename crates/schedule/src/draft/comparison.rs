//! Converts comparisons of indices in values to expressions that are at least 0 where the
//! comparison holds.

use tilewright_ir::ids::Ids;
use tilewright_ir::{BinaryOp, Expr, ExprKind, IndexExpr};

use super::simplify::Ranges;

/// The operands of a chain of `&&`.
pub(crate) fn conjuncts<I: Ids>(condition: &Expr<I>) -> Vec<&Expr<I>> {
    match &condition.kind {
        ExprKind::Binary(BinaryOp::And, sides) => sides.iter().flat_map(conjuncts).collect(),
        _ => vec![condition],
    }
}

/// Converts a comparison of indices to an expression that is at least 0 where the comparison holds.
/// Neither side may overflow its type, so that the comparison is that of the exact numbers.
pub(crate) fn as_condition<I: Ids>(expr: &Expr<I>, ranges: &Ranges<I>) -> Option<IndexExpr<I>> {
    let fits = |side: &Expr<I>, index: &IndexExpr<I>| {
        let (low, high) = side.dtype.integer_bounds()?;
        let (least, most) = (ranges.least_value(index)? as i128, ranges.greatest_value(index)? as i128);
        (least >= low && most <= high && !index.has_data()).then_some(())
    };
    as_condition_if(expr, &|side, index| fits(side, index).is_some())
}

/// Converts a comparison as `as_condition` does, when its sides have been checked for overflow
/// before.
pub(crate) fn as_condition_unchecked<I: Ids>(expr: &Expr<I>) -> Option<IndexExpr<I>> {
    as_condition_if(expr, &|_, _| true)
}

fn as_condition_if<I: Ids>(
    expr: &Expr<I>,
    fits: &dyn Fn(&Expr<I>, &IndexExpr<I>) -> bool,
) -> Option<IndexExpr<I>> {
    let ExprKind::Binary(op, sides) = &expr.kind else { return None };
    let side = |expr: &Expr<I>| {
        let index = match &expr.kind {
            ExprKind::Index(index) => (**index).clone(),
            ExprKind::Literal(number) if !expr.dtype.is_float() => {
                IndexExpr::constant(i64::try_from(number.as_i128()).ok()?)
            }
            _ => return None,
        };
        fits(expr, &index).then_some(index)
    };
    let (left, right) = (side(&sides[0])?, side(&sides[1])?);
    match op {
        BinaryOp::Less => Some(right.sub(&left).offset(-1)),
        BinaryOp::LessEqual => Some(right.sub(&left)),
        BinaryOp::Greater => Some(left.sub(&right).offset(-1)),
        BinaryOp::GreaterEqual => Some(left.sub(&right)),
        _ => None,
    }
}
