//! Simplifies a loop nest by the ranges of its loops: resolves subscripts, conditions and selects
//! that the ranges decide, and drops statements that do nothing, such as loops that never run.

use tilewright_ir::nest::{Atom, Combine, Expr, ExprKind, For, If, IndexExpr, LoopKind, Stmt, Store};
use tilewright_ir::{BinaryOp, DType, LoopNest, Number, ReduceOp, walk};

use crate::draft::comparison::as_condition;
use crate::draft::simplify::{Ranges, split_minima};

/// Simplifies a nest in place.
pub(super) fn tidy(nest: &mut LoopNest) {
    for stmts in [&mut nest.setup, &mut nest.body] {
        *stmts = tidied(std::mem::take(stmts), &Ranges::default());
    }
}

/// Splits conditions on minima and simplifies the nest. If a minimum must be at least 0, so must
/// both its sides, and ranges often prove one of them. A thread inside its tile, for example, need
/// not check that it is. On a CPU the minima stay, because partial tiles are recognised by them.
pub(super) fn tidy_minima(nest: &mut LoopNest) {
    for stmts in [&mut nest.setup, &mut nest.body] {
        split_minima_in_conditions(stmts);
    }
    tidy(nest);
}

fn split_minima_in_conditions(stmts: &mut [Stmt]) {
    walk::visit_mut(stmts, &mut |stmt| {
        let Stmt::If(own) = stmt else { return };
        let all: Vec<IndexExpr> = own.conditions.iter().flat_map(split_minima).collect();
        let is_new = |at: &usize| !all[..*at].contains(&all[*at]);
        own.conditions = (0..all.len()).filter(is_new).map(|at| all[at].clone()).collect();
    });
}

fn tidied(stmts: Vec<Stmt>, ranges: &Ranges) -> Vec<Stmt> {
    stmts.into_iter().flat_map(|stmt| tidy_one(stmt, ranges)).collect()
}

fn tidy_one(stmt: Stmt, ranges: &Ranges) -> Vec<Stmt> {
    match stmt {
        Stmt::For(own) => tidy_for(own, ranges),
        Stmt::If(own) => tidy_if(own, ranges),
        Stmt::Allocate(mut own) => {
            own.body = tidied(own.body, ranges);
            if own.body.is_empty() { Vec::new() } else { vec![Stmt::Allocate(own)] }
        }
        Stmt::Store(own) => {
            let own = tidy_store(own, ranges);
            if adds_nothing(&own) { Vec::new() } else { vec![Stmt::Store(own)] }
        }
        Stmt::Prefetch(mut own) => {
            own.element.indices.iter_mut().for_each(|index| *index = ranges.simplify(index));
            vec![Stmt::Prefetch(own)]
        }
        Stmt::Combine(own) => vec![Stmt::Combine(Combine { store: tidy_store(own.store, ranges), ..own })],
        Stmt::Sync(_) => vec![stmt],
    }
}

fn tidy_for(mut own: For, ranges: &Ranges) -> Vec<Stmt> {
    own.extent = ranges.simplify(&own.extent);
    if ranges.greatest_value(&own.extent).is_some_and(|most| most < 1) {
        return Vec::new();
    }
    // Parallel and block loops determine where code runs, even if they run only once.
    let stays = matches!(own.kind, LoopKind::Parallel | LoopKind::Block(_));
    if own.extent == IndexExpr::constant(1) && !stays {
        let mut body: Vec<Stmt> = own.body.into_iter().map(without_combining).collect();
        walk::map_indices(&mut body, &mut |index| {
            index.substitute(&mut |atom| (*atom == Atom::Var(own.var)).then(|| IndexExpr::constant(0)))
        });
        return tidied(body, ranges);
    }
    let mut inside = ranges.clone();
    inside.add_loop(own.var, &own.extent);
    own.body = tidied(own.body, &inside);
    if own.body.is_empty() {
        return Vec::new();
    }
    vec![Stmt::For(own)]
}

/// The statement for a single thread, which has no other thread to combine with.
fn without_combining(stmt: Stmt) -> Stmt {
    match stmt {
        Stmt::Combine(own) => Stmt::Store(own.store),
        stmt => stmt,
    }
}

fn tidy_if(mut own: If, ranges: &Ranges) -> Vec<Stmt> {
    own.conditions = own.conditions.iter().map(|condition| ranges.simplify(condition)).collect();
    own.conditions.retain(|condition| !ranges.never_negative(condition));
    drop_implied_quotients(&mut own.conditions, ranges);
    if own.conditions.is_empty() {
        return tidied(own.then, ranges);
    }
    if own.conditions.iter().any(|condition| ranges.always_negative(condition)) {
        return tidied(own.otherwise, ranges);
    }
    let (holding, failing) = ranges.under_conditions(&own.conditions);
    own.then = tidied(own.then, &holding);
    own.otherwise = tidied(own.otherwise, &failing);
    if own.then.is_empty() && own.otherwise.is_empty() { Vec::new() } else { vec![Stmt::If(own)] }
}

/// Drops conditions on quotients that the other conditions imply: where `t <= 719` holds, `t/36` is
/// at most 19. Fused loops that are split into rounds have such conditions.
fn drop_implied_quotients(conditions: &mut Vec<IndexExpr>, ranges: &Ranges) {
    let is_quotient = |atom: &Atom| matches!(atom, Atom::FloorDiv(_));
    let mut at = 0;
    while at < conditions.len() && conditions.len() > 1 {
        let condition = conditions.remove(at);
        let is_implied = condition.any_atom(&mut { is_quotient })
            && ranges.under_conditions(conditions).0.never_negative(&condition);
        if !is_implied {
            conditions.insert(at, condition);
            at += 1;
        }
    }
}

fn tidy_store(mut own: Store, ranges: &Ranges) -> Store {
    own.target.indices = own.target.indices.iter().map(|index| ranges.simplify(index)).collect();
    tidy_value(&mut own.value, ranges);
    own
}

/// Returns true when a store adds 0, as a sum does where a condition excludes the term.
pub(super) fn adds_nothing(own: &Store) -> bool {
    let is_zero = |number: &Number| match number {
        Number::Int(value) => *value == 0,
        Number::Float(value) => *value == 0.0,
    };
    own.reduce == Some(ReduceOp::Add)
        && matches!(&own.value.kind, ExprKind::Literal(number) if is_zero(number))
}

fn tidy_value(expr: &mut Expr, ranges: &Ranges) {
    match &mut expr.kind {
        ExprKind::Index(index) => **index = ranges.simplify(index),
        ExprKind::Load(access) => {
            access.indices.iter_mut().for_each(|index| *index = ranges.simplify(index));
        }
        _ => expr.operands_mut().iter_mut().for_each(|operand| tidy_value(operand, ranges)),
    }
    if let Some(both) = equality(expr) {
        *expr = both;
        return tidy_value(expr, ranges);
    }
    if let Some(condition) = as_condition(expr, ranges) {
        if ranges.never_negative(&condition) {
            *expr = truth(true);
        } else if ranges.always_negative(&condition) {
            *expr = truth(false);
        }
    }
    if let Some(simpler) = decided(expr) {
        *expr = simpler;
    }
}

/// Rewrites an equality of indices as two comparisons, which ranges may decide and which can be
/// lifted.
fn equality(expr: &Expr) -> Option<Expr> {
    let ExprKind::Binary(BinaryOp::Equal, sides) = &expr.kind else { return None };
    let of_indices = |side: &Expr| matches!(side.kind, ExprKind::Index(_) | ExprKind::Literal(_));
    if !sides.iter().all(of_indices) || sides.iter().any(|side| side.dtype.is_float()) {
        return None;
    }
    let [left, right] = &**sides;
    let at_most = |left: &Expr, right: &Expr| {
        let sides = Box::new([left.clone(), right.clone()]);
        Expr { kind: ExprKind::Binary(BinaryOp::LessEqual, sides), ..expr.clone() }
    };
    let both = Box::new([at_most(left, right), at_most(right, left)]);
    Some(Expr { kind: ExprKind::Binary(BinaryOp::And, both), ..expr.clone() })
}

/// Simplifies a select or a logical operator with a constant operand.
fn decided(expr: &Expr) -> Option<Expr> {
    match &expr.kind {
        ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), sides) => {
            let absorbing = *op == BinaryOp::Or;
            match (as_truth(&sides[0]), as_truth(&sides[1])) {
                (Some(left), _) if left == absorbing => Some(truth(absorbing)),
                (Some(_), _) => Some(sides[1].clone()),
                (None, Some(right)) if right != absorbing => Some(sides[0].clone()),
                _ => None,
            }
        }
        ExprKind::Select(arms) => as_truth(&arms[0]).map(|chosen| arms[if chosen { 1 } else { 2 }].clone()),
        _ => None,
    }
}

fn as_truth(expr: &Expr) -> Option<bool> {
    match &expr.kind {
        ExprKind::Literal(number) if expr.dtype == DType::Bool => Some(number.is_true()),
        _ => None,
    }
}

/// A constant condition.
pub(super) fn truth(value: bool) -> Expr {
    Expr::literal(DType::Bool, Number::Int(value as i128))
}

#[cfg(test)]
mod tests {
    use tilewright_ir::nest::LoopVarId;

    use super::*;

    #[test]
    fn conditions_on_quotients_follow_from_their_dividends() {
        let [round, thread] = [0, 1].map(|at| IndexExpr::var(LoopVarId(at)));
        let flat = round.scale(128).add(&thread);
        let quotient = flat.floor_div(&IndexExpr::constant(36));
        let mut ranges = Ranges::default();
        ranges.add_loop(LoopVarId(0), &IndexExpr::constant(6));
        ranges.add_loop(LoopVarId(1), &IndexExpr::constant(128));
        let at_most = |value: &IndexExpr, most: i64| IndexExpr::constant(most).sub(value);
        let mut conditions = vec![at_most(&flat, 719), at_most(&quotient, 19)];
        drop_implied_quotients(&mut conditions, &ranges);
        assert_eq!(conditions, [at_most(&flat, 719)]);
        let mut conditions = vec![at_most(&quotient, 18), at_most(&flat, 719)];
        drop_implied_quotients(&mut conditions, &ranges);
        assert_eq!(conditions.len(), 2);
    }
}
