//! Takes the value of a recurrence apart, in terms of the value of the iteration before: an
//! operator that combines values in any order, or `factor * before + term`.

use tilewright_ir::{BinaryOp, DType, Expr, ExprKind, Number, UnaryOp};

/// The value of a recurrence.
#[derive(Clone)]
pub enum Form {
    /// `before op operand`.
    Commutative(BinaryOp, Expr),
    /// `factor * before + term`.
    Affine(Expr, Expr),
}

/// The form of a value, if it has one.
pub fn form(value: &Expr, before: &Expr) -> Option<Form> {
    if let ExprKind::Binary(op, _) = &value.kind
        && matches!(op, BinaryOp::Min | BinaryOp::Max | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor)
    {
        return Some(Form::Commutative(*op, combined_with(*op, value, before)?));
    }
    let (factor, term) = linear(value, before)?;
    Some(match (factor, term) {
        (None, term) => Form::Commutative(BinaryOp::Add, term.unwrap_or_else(|| whole(value.dtype, 0))),
        (Some(factor), None) => Form::Commutative(BinaryOp::Mul, factor),
        (Some(factor), Some(term)) => Form::Affine(factor, term),
    })
}

/// Whether an expression reads the value before.
fn reads(value: &Expr, before: &Expr) -> bool {
    let ExprKind::Load(element) = &before.kind else { return true };
    let mut found = false;
    value.visit_reads(&mut |read| found |= read.tensor == element.tensor);
    found
}

/// The operand that a chain of one operator combines with the value before.
fn combined_with(op: BinaryOp, value: &Expr, before: &Expr) -> Option<Expr> {
    let ExprKind::Binary(own, sides) = &value.kind else { return None };
    let (inner, other) = match (reads(&sides[0], before), reads(&sides[1], before)) {
        (true, false) => (&sides[0], &sides[1]),
        (false, true) => (&sides[1], &sides[0]),
        _ => return None,
    };
    match (*own == op, inner == before) {
        (false, _) => None,
        (true, true) => Some(other.clone()),
        (true, false) => Some(Expr::binary(op, combined_with(op, inner, before)?, other.clone())),
    }
}

/// The factor of the value before, or `None` for 1, and what is added, or `None` for 0.
type Linear = (Option<Expr>, Option<Expr>);

fn linear(value: &Expr, before: &Expr) -> Option<Linear> {
    if value == before {
        return Some((None, None));
    }
    let dtype = value.dtype;
    let of = |value: &Expr| linear(value, before);
    let one = |factor: Option<Expr>| factor.unwrap_or_else(|| whole(dtype, 1));
    let both = |map: &dyn Fn(Expr) -> Expr, (factor, term): Linear| (Some(map(one(factor))), term.map(map));
    match &value.kind {
        ExprKind::Unary(UnaryOp::Neg, inner) => Some(both(&negated, of(inner)?)),
        ExprKind::Binary(op, sides) => {
            let [left, right] = &**sides;
            let by = |op: BinaryOp, other: &Expr| {
                let other = other.clone();
                move |value: Expr| Expr::binary(op, value, other.clone())
            };
            match (op, reads(left, before), reads(right, before)) {
                (BinaryOp::Add, true, false) => Some(plus(of(left)?, right.clone())),
                (BinaryOp::Add, false, true) => Some(plus(of(right)?, left.clone())),
                (BinaryOp::Sub, true, false) => Some(plus(of(left)?, negated(right.clone()))),
                (BinaryOp::Sub, false, true) => Some(plus(both(&negated, of(right)?), left.clone())),
                (BinaryOp::Add | BinaryOp::Sub, true, true) => {
                    let ((left, more), (right, other)) = (of(left)?, of(right)?);
                    let factor = Expr::binary(*op, one(left), one(right));
                    let term = match (more, other) {
                        (Some(more), Some(other)) => Some(Expr::binary(*op, more, other)),
                        (None, Some(other)) if *op == BinaryOp::Sub => Some(negated(other)),
                        (more, other) => more.or(other),
                    };
                    Some((Some(factor), term))
                }
                (BinaryOp::Mul, true, false) => Some(scaled(of(left)?, right)),
                (BinaryOp::Mul, false, true) => Some(scaled(of(right)?, left)),
                (BinaryOp::Div, true, false) if dtype.is_float() => {
                    Some(both(&by(BinaryOp::Div, right), of(left)?))
                }
                _ => None,
            }
        }
        ExprKind::Select(parts) if !reads(&parts[0], before) => {
            let side = |value: &Expr| match reads(value, before) {
                true => of(value),
                // `0 * before` is not 0 where a float is infinite.
                false if dtype.is_float() => None,
                false => Some((Some(whole(dtype, 0)), Some(value.clone()))),
            };
            let ((then, more), (otherwise, other)) = (side(&parts[1])?, side(&parts[2])?);
            let choice = |then: Expr, otherwise: Expr| Expr {
                dtype,
                kind: ExprKind::Select(Box::new([parts[0].clone(), then, otherwise])),
            };
            let zero = |term: Option<Expr>| term.unwrap_or_else(|| whole(dtype, 0));
            let term = (more.is_some() || other.is_some()).then(|| choice(zero(more), zero(other)));
            let factor = (then.is_some() || otherwise.is_some()).then(|| choice(one(then), one(otherwise)));
            Some((factor, term))
        }
        _ => None,
    }
}

fn plus((factor, term): Linear, more: Expr) -> Linear {
    let sum = match term {
        Some(term) => Expr::binary(BinaryOp::Add, term, more),
        None => more,
    };
    (factor, Some(sum))
}

fn scaled((factor, term): Linear, by: &Expr) -> Linear {
    let times = |value: Expr| Expr::binary(BinaryOp::Mul, value, by.clone());
    (Some(factor.map_or_else(|| by.clone(), times)), term.map(times))
}

fn negated(value: Expr) -> Expr {
    Expr { dtype: value.dtype, kind: ExprKind::Unary(UnaryOp::Neg, Box::new(value)) }
}

fn whole(dtype: DType, value: i128) -> Expr {
    let number = if dtype.is_float() { Number::Float(value as f64) } else { Number::Int(value) };
    Expr::literal(dtype, number)
}
