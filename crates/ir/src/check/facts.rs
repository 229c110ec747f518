//! Derives facts about indices from the conditions around an access. The result is a list of
//! alternatives, and each alternative is a list of expressions that are not negative.
//!
//! Where the conditions hold, at least one alternative holds in full. Conditions that cannot be
//! expressed this way are left out: comparisons of floats, and conditions that need too many
//! alternatives. Fewer claims can then be proved, but never a false one.

use std::sync::Arc;

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::index::{Atom, Data, IndexExpr};
use crate::number::Number;
use crate::operators::{BinaryOp, UnaryOp};
use crate::unchecked::Guard;

/// One alternative: all of these expressions are at least 0.
pub type Facts = Vec<IndexExpr>;

/// The maximal number of alternatives; a condition that would exceed it contributes no facts.
const MOST_ALTERNATIVES: usize = 16;

/// The alternatives of a conjunction of guards: where all guards hold, at least one alternative
/// holds.
pub fn fact_alternatives(guards: &[Guard]) -> Vec<Facts> {
    guards.iter().fold(vec![Vec::new()], |all, guard| {
        conjunction(all, facts_of_condition(&guard.condition, guard.holds))
    })
}

fn facts_of_condition(condition: &Expr, holds: bool) -> Vec<Facts> {
    match &condition.kind {
        ExprKind::Unary(UnaryOp::Not, inner) => facts_of_condition(inner, !holds),
        ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), operands) => {
            let [left, right] = operands.as_ref();
            let (left, right) = (facts_of_condition(left, holds), facts_of_condition(right, holds));
            if (*op == BinaryOp::And) == holds { conjunction(left, right) } else { disjunction(left, right) }
        }
        ExprKind::Binary(op, operands) if op.is_comparison() => {
            match (as_index(&operands[0]), as_index(&operands[1])) {
                (Some(left), Some(right)) => facts_of_comparison(*op, holds, &left, &right),
                _ => vec![Vec::new()],
            }
        }
        ExprKind::Literal(Number::Int(value)) if (*value != 0) != holds => {
            vec![vec![IndexExpr::constant(-1)]]
        }
        _ => vec![Vec::new()],
    }
}

fn facts_of_comparison(op: BinaryOp, holds: bool, left: &IndexExpr, right: &IndexExpr) -> Vec<Facts> {
    let at_least = |big: &IndexExpr, small: &IndexExpr| big.sub(small);
    let above = |big: &IndexExpr, small: &IndexExpr| big.sub(small).offset(-1);
    match (op, holds) {
        (BinaryOp::Less, true) | (BinaryOp::GreaterEqual, false) => vec![vec![above(right, left)]],
        (BinaryOp::LessEqual, true) | (BinaryOp::Greater, false) => vec![vec![at_least(right, left)]],
        (BinaryOp::Greater, true) | (BinaryOp::LessEqual, false) => vec![vec![above(left, right)]],
        (BinaryOp::GreaterEqual, true) | (BinaryOp::Less, false) => vec![vec![at_least(left, right)]],
        (BinaryOp::Equal, true) | (BinaryOp::NotEqual, false) => {
            vec![vec![at_least(left, right), at_least(right, left)]]
        }
        _ => vec![vec![above(left, right)], vec![above(right, left)]],
    }
}

/// The value as an index, where it is an integer: an exact index or data.
fn as_index(value: &Expr) -> Option<IndexExpr> {
    match &value.kind {
        // An index in a narrower type may have wrapped.
        ExprKind::Index(index) if matches!(value.dtype, DType::Int32 | DType::Int64) => {
            Some((**index).clone())
        }
        ExprKind::Literal(Number::Int(number)) => i64::try_from(*number).ok().map(IndexExpr::constant),
        ExprKind::Cast(inner) if !inner.dtype.is_float() && inner.dtype.fits_in(value.dtype) => {
            as_index(inner)
        }
        _ if value.dtype.is_float() => None,
        _ => Some(IndexExpr::atom(Atom::Data(Arc::new(Data { value: value.clone(), declared: None })))),
    }
}

fn conjunction(left: Vec<Facts>, right: Vec<Facts>) -> Vec<Facts> {
    if left.len() * right.len() > MOST_ALTERNATIVES {
        // Fewer conditions make fewer claims provable, but never a false one.
        return left;
    }
    left.iter()
        .flat_map(|first| right.iter().map(move |second| first.iter().chain(second).cloned().collect()))
        .collect()
}

fn disjunction(mut left: Vec<Facts>, right: Vec<Facts>) -> Vec<Facts> {
    left.extend(right);
    if left.len() > MOST_ALTERNATIVES { vec![Vec::new()] } else { left }
}
