//! Computes the exact value of an expression of integer literals.

use tilewright_ir::{BinaryOp, UnaryOp};

use super::value::{Value, ValueKind};
use crate::lexer::Suffix;

/// The value of an expression that consists of integer literals without a type. Returns `None` for
/// other expressions, and where a number needs more than 64 bits or has no value.
pub(super) fn number_of(value: &Value) -> Option<i128> {
    match &value.kind {
        ValueKind::Int(number, Suffix::None) => Some(*number),
        ValueKind::Unary(UnaryOp::Neg, operand) => in_64_bits(-number_of(operand)?),
        ValueKind::Unary(UnaryOp::Complement, operand) => in_64_bits(!number_of(operand)?),
        ValueKind::Binary(op, operands) => compute(*op, number_of(&operands[0])?, number_of(&operands[1])?),
        ValueKind::Select(operands) if is_of_numbers(value) => number_of(chosen(operands)?),
        _ => None,
    }
}

/// The operand that a `?:` selects, if its condition is known: a comparison of integer literals, or
/// several. Such a condition comes from a static argument of a function on numbers.
pub(super) fn chosen(operands: &[Value; 3]) -> Option<&Value> {
    let [condition, if_true, if_false] = operands;
    Some(if truth_of(condition)? { if_true } else { if_false })
}

/// The truth of a condition on integer literals without a type.
fn truth_of(condition: &Value) -> Option<bool> {
    match &condition.kind {
        ValueKind::Bool(truth) => Some(*truth),
        ValueKind::Unary(UnaryOp::Not, operand) => Some(!truth_of(operand)?),
        ValueKind::Binary(BinaryOp::And, operands) => {
            Some(truth_of(&operands[0])? && truth_of(&operands[1])?)
        }
        ValueKind::Binary(BinaryOp::Or, operands) => Some(truth_of(&operands[0])? || truth_of(&operands[1])?),
        ValueKind::Binary(op, operands) if op.is_comparison() => {
            let order = number_of(&operands[0])?.cmp(&number_of(&operands[1])?);
            Some(op.holds(Some(order)))
        }
        _ => None,
    }
}

/// Returns true when the expression consists of integer literals without a type, even if it has no
/// value.
pub(super) fn is_of_numbers(value: &Value) -> bool {
    match &value.kind {
        ValueKind::Int(_, suffix) => *suffix == Suffix::None,
        ValueKind::Unary(UnaryOp::Neg | UnaryOp::Complement, operand) => is_of_numbers(operand),
        ValueKind::Binary(op, operands) => {
            !op.is_comparison() && !op.is_logical() && operands.iter().all(is_of_numbers)
        }
        // The other operand matters for the type.
        ValueKind::Select(operands) => chosen(operands).is_some() && operands[1..].iter().all(is_of_numbers),
        _ => false,
    }
}

/// The exact result of an operator, or `None` where it needs more than 64 bits, divides by zero, or
/// has a negative count or exponent.
pub(super) fn compute(op: BinaryOp, left: i128, right: i128) -> Option<i128> {
    let small = || u32::try_from(right).ok();
    in_64_bits(match op {
        BinaryOp::Add => left + right,
        BinaryOp::Sub => left - right,
        BinaryOp::Mul => left.checked_mul(right)?,
        BinaryOp::Div if right != 0 => (left - floor_mod(left, right)) / right,
        BinaryOp::Mod if right != 0 => floor_mod(left, right),
        BinaryOp::Min => left.min(right),
        BinaryOp::Max => left.max(right),
        BinaryOp::BitAnd => left & right,
        BinaryOp::BitOr => left | right,
        BinaryOp::BitXor => left ^ right,
        BinaryOp::ShiftLeft if left == 0 && right >= 0 => 0,
        BinaryOp::ShiftLeft => left.checked_mul(1i128.checked_shl(small()?)?)?,
        BinaryOp::ShiftRight if right >= 0 => left >> right.min(64),
        BinaryOp::Power if right >= 0 && (-1..=1).contains(&left) => {
            left.pow((right % 2 + 2 * i128::from(right > 0)) as u32)
        }
        BinaryOp::Power => left.checked_pow(small()?)?,
        _ => return None,
    })
}

/// The remainder with the sign of the divisor.
fn floor_mod(left: i128, right: i128) -> i128 {
    let remainder = left % right;
    if remainder != 0 && (remainder < 0) != (right < 0) { remainder + right } else { remainder }
}

fn in_64_bits(number: i128) -> Option<i128> {
    (i128::from(i64::MIN)..=i128::from(u64::MAX)).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_on_numbers_are_exact() {
        use BinaryOp as Op;
        let cases = [
            (Op::Power, 2, 10, Some(1024)),
            (Op::Power, 2, 63, Some(1 << 63)),
            (Op::Power, 2, 64, None),
            (Op::Power, -2, 63, Some(i64::MIN.into())),
            (Op::Power, 0, 0, Some(1)),
            (Op::Power, 0, 5, Some(0)),
            (Op::Power, 1, 1 << 40, Some(1)),
            (Op::Power, -1, 1 << 40, Some(1)),
            (Op::Power, -1, (1 << 40) + 1, Some(-1)),
            (Op::Power, 2, -1, None),
            (Op::ShiftLeft, 1, 63, Some(1 << 63)),
            (Op::ShiftLeft, 1, 64, None),
            (Op::ShiftLeft, -1, 63, Some(i64::MIN.into())),
            (Op::ShiftLeft, 0, 1000, Some(0)),
            (Op::ShiftLeft, 1, -1, None),
            (Op::ShiftRight, -5, 1, Some(-3)),
            (Op::ShiftRight, -5, 1000, Some(-1)),
            (Op::ShiftRight, 5, 1000, Some(0)),
            (Op::ShiftRight, 5, -1, None),
            (Op::BitAnd, -2, 7, Some(6)),
            (Op::BitOr, 8, 3, Some(11)),
            (Op::BitXor, 12, 10, Some(6)),
            (Op::Div, -7, 2, Some(-4)),
            (Op::Mod, -7, 2, Some(1)),
            (Op::Div, 7, 0, None),
        ];
        for (op, left, right, expected) in cases {
            assert_eq!(compute(op, left, right), expected, "{left} {} {right}", op.symbol());
        }
    }
}
