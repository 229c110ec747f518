//! Finds the instances of a reduction that add nothing: their value is the neutral element. A nest
//! need not reduce them.

use tilewright_ir::{Expr, ExprKind, Update, arithmetic};
use tilewright_isl::Set;

use crate::model::Instances;

/// The instances of a reduction whose value is the neutral element, everywhere or because of
/// conditions on indices.
pub fn neutral_instances(statement: &Instances) -> Option<Set> {
    let Update::Reduce { op, .. } = statement.statement.update else { return None };
    let value = &statement.statement.value;
    let neutral = Expr::literal(value.dtype, arithmetic::neutral(op, value.dtype));
    instances_with_value(statement, value, &neutral)
}

/// Checks whether a reduction that continues from the previous values of its elements may add
/// nothing to one of them, so that the nest need not store it.
pub fn keeps_some_element(statement: &Instances) -> bool {
    statement.needs_previous_value() && neutral_instances(statement).is_some()
}

/// The instances in which the choices of an expression select this literal; none if no choice is
/// known to.
fn instances_with_value(statement: &Instances, value: &Expr, literal: &Expr) -> Option<Set> {
    if value == literal {
        return Some(statement.domain.clone());
    }
    let ExprKind::Select(parts) = &value.kind else { return None };
    let holds = statement.coordinates.condition(&parts[0])?;
    let [then, otherwise] = [1, 2].map(|at: usize| instances_with_value(statement, &parts[at], literal));
    let (then, otherwise) =
        (then.map(|own| own.intersect(&holds)), otherwise.map(|own| own.subtract(&holds)));
    match (then, otherwise) {
        (Some(then), Some(otherwise)) => Some(then.union(&otherwise)),
        (then, otherwise) => then.or(otherwise),
    }
}
