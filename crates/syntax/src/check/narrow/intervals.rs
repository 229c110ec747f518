//! Bounds the values of integer expressions, to tell which operations may wrap.

use tilewright_ir::{BinaryOp, DType, ReduceOp, UnaryOp};

use crate::ast::AssignOp;
use crate::check::model::{Model, Statement};
use crate::check::number::{compute, number_of};
use crate::check::types::{PartialType, is_growing, type_of};
use crate::check::value::{Value, ValueKind};

/// The least and the greatest value.
type Interval = (i128, i128);

/// A comparison that holds: the first value is at least the second.
pub(super) struct Guard {
    larger: Value,
    smaller: Value,
}

impl Guard {
    /// Adds the comparisons that follow from a condition, or from its opposite.
    pub(super) fn add(condition: &Value, holds: bool, guards: &mut Vec<Guard>) {
        let ValueKind::Binary(op, operands) = &condition.kind else { return };
        let [left, right] = operands.as_ref();
        let is_larger = match op {
            BinaryOp::And if holds => {
                operands.iter().for_each(|operand| Guard::add(operand, true, guards));
                return;
            }
            BinaryOp::Or if !holds => {
                operands.iter().for_each(|operand| Guard::add(operand, false, guards));
                return;
            }
            BinaryOp::Less | BinaryOp::LessEqual => !holds,
            BinaryOp::Greater | BinaryOp::GreaterEqual => holds,
            _ => return,
        };
        let (larger, smaller) = if is_larger { (left, right) } else { (right, left) };
        guards.push(Guard { larger: larger.clone(), smaller: smaller.clone() });
    }
}

/// Returns true for an operation on integers whose exact result may lie outside of its type.
pub(super) fn may_wrap(value: &Value, model: &Model, guards: &[Guard]) -> bool {
    let PartialType::Definite(dtype) = type_of(value, model) else { return false };
    let is_arithmetic = match &value.kind {
        ValueKind::Binary(op, _) => is_growing(*op),
        // The negation of a signed number wraps for one number only.
        ValueKind::Unary(UnaryOp::Neg, _) => dtype.is_unsigned_integer(),
        _ => false,
    };
    is_arithmetic && dtype.is_integer() && !is_inside(exact(value, model, guards), dtype)
}

/// Returns true when a reduction over the terms of a statement may leave the type. A reduction over
/// a constant number of terms is bounded by that number.
pub(super) fn reduction_may_wrap(model: &Model, statement: &Statement, dtype: DType) -> bool {
    let Some(lowered) = &statement.lowered else { return false };
    let has_data = lowered.indices.iter().any(|index| index.has_data());
    let on_left = |var| lowered.indices.iter().any(|index| index.mentions(var));
    let reduced: Vec<_> = statement.vars.iter().copied().filter(|var| !on_left(*var)).collect();
    if reduced.is_empty() && !has_data {
        return false;
    }
    let terms = reduced.into_iter().try_fold(1i128, |terms, var| {
        let range = model.var(var).range.as_ref()?;
        let extent = range.to.sub(&range.from).as_constant()?;
        terms.checked_mul(extent.into())
    });
    let (low, high) = interval(&statement.resolved.value, model, &[]);
    match (statement.op, terms) {
        (AssignOp::Reduce { op: ReduceOp::Add, reset: true }, Some(terms)) if !has_data => {
            let end = |end: i128| end.saturating_mul(terms);
            !is_inside((end(low).min(low), end(high).max(high)), dtype)
        }
        _ => (low, high) != (0, 0),
    }
}

/// The type to compute in: the wider integer that the result is stored as, or else one that holds
/// the exact result.
pub(super) fn wide_enough(value: &Value, to: DType, model: &Model) -> DType {
    if to.is_integer() {
        return to;
    }
    let fits = is_inside(unwrapped(value, model), DType::Int32);
    if fits { DType::Int32 } else { DType::Int64 }
}

fn is_inside((low, high): Interval, dtype: DType) -> bool {
    dtype.integer_bounds().is_some_and(|(least, most)| least <= low && high <= most)
}

/// The bounds of a value in its own type.
fn interval(value: &Value, model: &Model, guards: &[Guard]) -> Interval {
    if let Some(number) = number_of(value) {
        return (number, number);
    }
    let dtype = type_of(value, model).or_default().unwrap_or(DType::Int64);
    let bounds = dtype.integer_bounds().unwrap_or((i64::MIN.into(), u64::MAX.into()));
    let exact = exact(value, model, guards);
    if bounds.0 <= exact.0 && exact.1 <= bounds.1 { exact } else { bounds }
}

/// The bounds of an operation if it does not wrap, on operands that may have wrapped.
fn exact(value: &Value, model: &Model, guards: &[Guard]) -> Interval {
    let everything = (i128::MIN, i128::MAX);
    let of = |operand: &Value| interval(operand, model, guards);
    match &value.kind {
        ValueKind::Binary(op, operands) => {
            let [left, right] = operands.as_ref();
            let bounds = operation(*op, of(left), of(right)).unwrap_or(everything);
            let is_ordered = *op == BinaryOp::Sub && is_ordered(left, right, guards);
            if is_ordered { (bounds.0.max(0), bounds.1) } else { bounds }
        }
        ValueKind::Unary(UnaryOp::Neg, operand) => {
            let (low, high) = of(operand);
            (high.saturating_neg(), low.saturating_neg())
        }
        ValueKind::Select(parts) => join(of(&parts[1]), of(&parts[2])),
        ValueKind::Bounded(parts) => of(&parts[0]),
        ValueKind::Cast(_, operand) => match type_of(operand, model).or_default() {
            Some(dtype) if dtype.is_integer() => of(operand),
            _ => everything,
        },
        _ => everything,
    }
}

/// The bounds of an operation if neither it nor the operations in it wrap.
fn unwrapped(value: &Value, model: &Model) -> Interval {
    match &value.kind {
        ValueKind::Binary(op, operands) if is_growing(*op) => {
            let [left, right] = operands.as_ref();
            operation(*op, unwrapped(left, model), unwrapped(right, model)).unwrap_or((i128::MIN, i128::MAX))
        }
        _ => interval(value, model, &[]),
    }
}

/// Returns true when the first value is at least the second: by a condition, or as in
/// `a - min(a, b)` and `max(a, b) - b`.
fn is_ordered(larger: &Value, smaller: &Value, guards: &[Guard]) -> bool {
    let has = |value: &Value, op: BinaryOp, part: &Value| match &value.kind {
        ValueKind::Binary(own, operands) => *own == op && operands.contains(part),
        _ => false,
    };
    let is_pair = match (&larger.kind, &smaller.kind) {
        (ValueKind::Binary(BinaryOp::Max, left), ValueKind::Binary(BinaryOp::Min, right)) => {
            left.iter().any(|value| right.contains(value))
        }
        _ => false,
    };
    is_pair
        || has(smaller, BinaryOp::Min, larger)
        || has(larger, BinaryOp::Max, smaller)
        || guards.iter().any(|guard| guard.larger == *larger && guard.smaller == *smaller)
}

fn join(left: Interval, right: Interval) -> Interval {
    (left.0.min(right.0), left.1.max(right.1))
}

/// The bounds of an operation on bounded operands, or `None` where nothing is known.
fn operation(op: BinaryOp, left: Interval, right: Interval) -> Option<Interval> {
    use BinaryOp::{Add, BitAnd, BitOr, Div, Max, Min, Mod, Mul, Power, ShiftLeft, ShiftRight, Sub};
    let is_natural = left.0 >= 0 && right.0 >= 0;
    Some(match op {
        Add => (left.0.checked_add(right.0)?, left.1.checked_add(right.1)?),
        Sub => (left.0.checked_sub(right.1)?, left.1.checked_sub(right.0)?),
        Min => (left.0.min(right.0), left.1.min(right.1)),
        Max => (left.0.max(right.0), left.1.max(right.1)),
        BitAnd if left.0 >= 0 || right.0 >= 0 => {
            let ends = [left, right].into_iter().filter(|end| end.0 >= 0).map(|end| end.1);
            (0, ends.min()?)
        }
        BitOr if is_natural => (0, all_ones(left.1.max(right.1))?),
        Mod if right.0 > 0 => (0, right.1 - 1),
        Mul => corners(op, left, right)?,
        Power | ShiftLeft | ShiftRight if right.0 >= 0 => corners(op, left, right)?,
        Div if right.0 > 0 => corners(op, left, right)?,
        _ => return None,
    })
}

/// The bounds from the ends of both operands, for operations that are monotonic in each.
fn corners(op: BinaryOp, left: Interval, right: Interval) -> Option<Interval> {
    let mut ends = Vec::new();
    for left in [left.0, left.1] {
        for right in [right.0, right.1] {
            ends.push(compute(op, left, right)?);
        }
    }
    // An even power of a negative number is least at 0.
    let zero = if left.0 <= 0 && left.1 >= 0 { Some(0) } else { None };
    ends.extend(zero);
    Some((*ends.iter().min()?, *ends.iter().max()?))
}

/// The greatest number with as many bits as this one, which is not negative.
fn all_ones(number: i128) -> Option<i128> {
    let bits = 128 - number.leading_zeros();
    1i128.checked_shl(bits)?.checked_sub(1)
}
