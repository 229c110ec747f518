//! Simplifies the subscripts that views make, once ranges are known.
//!
//! A view of `x` with a repeated edge turns `f(y, x - 1)` into `x(clamp(y, 0, H - 1), clamp(x - 1,
//! 0, W - 1))`. Where the range of `y` is `0:H`, the first clamp changes nothing, and this pass
//! removes it. So a later pass sees the plain subscript, and only the accesses that do reach beyond
//! the edge pay for it.

use tilewright_ir::prove::{can_prove_nonnegative, larger, smaller};
use tilewright_ir::unchecked::{Parts, Read};
use tilewright_ir::{Atom, BinaryOp, DType, Expr, ExprKind, IndexExpr, Number};

use super::model::Model;

/// Simplifies the statements that read through views.
pub(super) fn simplify(model: &mut Model) {
    for at in 0..model.statements.len() {
        if model.statements[at].view_reads.is_empty() {
            continue;
        }
        let Some(parts) = model.statements[at].lowered.take() else { continue };
        model.statements[at].lowered = Some(simplify_parts(parts, model));
    }
}

fn simplify_parts(mut parts: Parts, model: &Model) -> Parts {
    parts.map_indices(&mut |index| simplify_index(index, model));
    drop_conditions(&mut parts.value, model);
    let named: Vec<Read> = parts.reads.into_iter().filter(|read| read.is_existence_only).collect();
    let mut simplified = Parts::new(parts.indices, parts.value);
    simplified.reads.extend(named);
    simplified
}

/// The same index without minima, maxima and remainders that change nothing.
fn simplify_index(index: &IndexExpr, model: &Model) -> IndexExpr {
    let inner = |side: &IndexExpr| simplify_index(side, model);
    index.substitute(&mut |atom| match atom {
        Atom::Min(pair) => Some(smaller(&inner(&pair.0), &inner(&pair.1), model)),
        Atom::Max(pair) => Some(larger(&inner(&pair.0), &inner(&pair.1), model)),
        Atom::Mod(pair) => {
            let (value, by) = (inner(&pair.0), inner(&pair.1));
            let is_inside = can_prove_nonnegative(&value, &[], model)
                && can_prove_nonnegative(&by.offset(-1).sub(&value), &[], model);
            Some(if is_inside { value } else { value.modulo(&by) })
        }
        _ => None,
    })
}

/// Replaces each choice whose condition always holds by its first value, and drops the parts of
/// other conditions that always hold.
fn drop_conditions(value: &mut Expr, model: &Model) {
    value.operands_mut().iter_mut().for_each(|operand| drop_conditions(operand, model));
    let ExprKind::Select(operands) = &mut value.kind else { return };
    match open_part(&operands[0], model) {
        Some(condition) => operands[0] = condition,
        None => *value = operands[1].clone(),
    }
}

/// The part of a condition that does not always hold, if there is one.
fn open_part(condition: &Expr, model: &Model) -> Option<Expr> {
    match &condition.kind {
        ExprKind::Binary(BinaryOp::And, operands) => {
            match (open_part(&operands[0], model), open_part(&operands[1], model)) {
                (Some(left), Some(right)) => Some(Expr::binary(BinaryOp::And, left, right)),
                (one, other) => one.or(other),
            }
        }
        ExprKind::Binary(op, operands) => {
            let sides = (index_of(&operands[0]), index_of(&operands[1]));
            let slack = match (op, sides) {
                (BinaryOp::LessEqual, (Some(left), Some(right))) => right.sub(&left),
                (BinaryOp::Less, (Some(left), Some(right))) => right.sub(&left).offset(-1),
                _ => return Some(condition.clone()),
            };
            (!can_prove_nonnegative(&slack, &[], model)).then(|| condition.clone())
        }
        _ => Some(condition.clone()),
    }
}

/// The index that a side of a comparison is. Indices are compared in 64 bits; narrower types wrap.
fn index_of(value: &Expr) -> Option<IndexExpr> {
    match &value.kind {
        _ if value.dtype != DType::Int64 => None,
        ExprKind::Index(index) => Some((**index).clone()),
        ExprKind::Literal(Number::Int(number)) => i64::try_from(*number).ok().map(IndexExpr::constant),
        _ => None,
    }
}
