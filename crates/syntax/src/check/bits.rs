//! Lowers operators on bits, shifts, powers, and the functions on integers alone.
//!
//! In a value, each has the type of its operands and wraps. In a subscript, where arithmetic is
//! exact, `i << 3`, `i >> 3`, `i & 7` and `i ** 2` are products, quotients and remainders. A power
//! with a variable in its exponent has no such form: it is computed as a value, like data, and
//! bounded.

use std::sync::Arc;

use tilewright_ir::{Atom, BinaryOp, Builtin, DType, Data, Expr, ExprKind, IndexExpr, Number};

use super::lower::{index, index_parts, is_pure_subscript, lower_as};
use super::model::Model;
use super::number::number_of;
use super::types::{PartialType, type_of};
use super::value::{Value, ValueKind};
use crate::diagnostic::{Code, Diagnostic};

/// The greatest power with a variable exponent in a subscript. Sums and products of some of them do
/// not overflow 64 bits, and no tensor has as many elements.
const MOST_POWER: i128 = 1 << 40;

/// The form of an operation on bits in a subscript.
pub(super) enum IndexForm {
    /// The product with a number.
    Scale(i64),
    /// The quotient by a number.
    Divide(i64),
    /// The remainder by a number.
    Remainder(i64),
    /// The product of this many equal factors.
    Factors(u32),
}

/// The form of an operation in a subscript, and the number of its operand that is no number; `None`
/// where the operation has no such form.
pub(super) fn index_form(op: BinaryOp, operands: &[Value; 2]) -> Option<(IndexForm, usize)> {
    let small = |number: &i128| (0..=62).contains(number);
    let power_of_two = |exponent: i128| 1i64 << exponent;
    let right = number_of(&operands[1]);
    match op {
        BinaryOp::ShiftLeft => Some((IndexForm::Scale(power_of_two(right.filter(small)?)), 0)),
        BinaryOp::ShiftRight => Some((IndexForm::Divide(power_of_two(right.filter(small)?)), 0)),
        BinaryOp::Power => Some((IndexForm::Factors(right.filter(small)? as u32), 0)),
        BinaryOp::BitAnd => {
            let is_mask = |mask: &i128| *mask >= 0 && *mask < 1 << 62 && (mask + 1).count_ones() == 1;
            match (number_of(&operands[0]).filter(is_mask), right.filter(is_mask)) {
                (_, Some(mask)) => Some((IndexForm::Remainder(mask as i64 + 1), 0)),
                (Some(mask), None) => Some((IndexForm::Remainder(mask as i64 + 1), 1)),
                (None, None) => None,
            }
        }
        _ => None,
    }
}

impl IndexForm {
    fn apply(&self, operand: &IndexExpr) -> IndexExpr {
        match self {
            IndexForm::Scale(by) => operand.scale(*by),
            IndexForm::Divide(by) => operand.floor_div(&IndexExpr::constant(*by)),
            IndexForm::Remainder(by) => operand.modulo(&IndexExpr::constant(*by)),
            IndexForm::Factors(count) => {
                (0..*count).fold(IndexExpr::constant(1), |product, _| product.mul(operand))
            }
        }
    }
}

/// Lowers an operation on bits inside a subscript, or returns `None` after a report. The inner
/// `None` means that the operation is a value like data.
pub(super) fn bits_index(
    op: BinaryOp,
    operands: &[Value; 2],
    value: &Value,
    model: &mut Model,
) -> Option<Option<IndexExpr>> {
    let is_float = type_of(value, model).or_default().is_some_and(DType::is_float);
    let is_truth = type_of(value, model) == PartialType::Definite(DType::Bool);
    if is_float || is_truth {
        return Some(None);
    }
    if let Some((form, at)) = index_form(op, operands) {
        return Some(Some(form.apply(&index_parts(&operands[at], model)?)));
    }
    let base = number_of(&operands[0]).filter(|base| *base >= 1);
    match (op, base) {
        (BinaryOp::Power | BinaryOp::ShiftLeft, Some(base)) if is_pure_subscript(&operands[1], model) => {
            let exponent = index(&operands[1], model)?;
            Some(bounded_power(op, base, &exponent))
        }
        _ => Some(None),
    }
}

/// A power, or a shift of a number, with an exponent that is an index. A greater exponent than the
/// one that gives [`MOST_POWER`] counts as that one.
fn bounded_power(op: BinaryOp, base: i128, exponent: &IndexExpr) -> Option<IndexExpr> {
    let power = |exponent: i128| super::number::compute(op, base, exponent);
    let most =
        (0..=40).take_while(|exponent| power(*exponent).is_some_and(|power| power <= MOST_POWER)).last()?;
    let exponent = exponent.minimum(&IndexExpr::constant(most as i64));
    let exponent = Expr { dtype: DType::Int64, kind: ExprKind::Index(Box::new(exponent)) };
    let value = Expr::binary(op, Expr::literal(DType::Int64, Number::Int(base)), exponent);
    Some(IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared: None }))))
}

/// Lowers an operator on bits, a shift or a power of type `own`, or returns `None` after a report.
pub(super) fn operation(
    op: BinaryOp,
    operands: &[Value; 2],
    value: &Value,
    own: DType,
    model: &mut Model,
) -> Option<Expr> {
    match op {
        BinaryOp::Power => power(operands, value, own, model),
        _ if own.is_float() => refuse_float(op.symbol(), value, own, model),
        _ if op.is_shift() => shift(op, operands, value, own, model),
        _ => {
            let (left, right) = (lower_as(&operands[0], own, model), lower_as(&operands[1], own, model));
            // On truth values, the operators are those of logic.
            let op = match (own, op) {
                (DType::Bool, BinaryOp::BitAnd) => BinaryOp::And,
                (DType::Bool, BinaryOp::BitOr) => BinaryOp::Or,
                (DType::Bool, _) => BinaryOp::NotEqual,
                _ => op,
            };
            Some(Expr::binary(op, left?, right?))
        }
    }
}

fn refuse_float(symbol: &str, value: &Value, own: DType, model: &mut Model) -> Option<Expr> {
    let message = format!("`{symbol}` takes integers, and this is {own}");
    let help = match symbol {
        "&" => "logical and is `&&`; to use the bits of a number, convert it: `int32(…)`",
        "|" => "logical or is `||`; to use the bits of a number, convert it: `int32(…)`",
        "^" => "a power is `x ** y`; to use the bits of a number, convert it: `int32(…)`",
        "<<" | ">>" => "multiply or divide by a power of 2, or convert it: `int32(…)`",
        _ => "convert it: `int32(…)`",
    };
    model.report(Diagnostic::error(Code::TypeMismatch, value.span, message).help(help));
    None
}

/// Lowers a shift. The count has a type of its own, and any count beyond the width becomes the
/// width: the type of the value may not hold the count.
fn shift(op: BinaryOp, operands: &[Value; 2], value: &Value, own: DType, model: &mut Model) -> Option<Expr> {
    let left = lower_as(&operands[0], own, model)?;
    let width = i128::from(own.bits());
    if let Some(count) = number_of(&operands[1]) {
        if count < 0 {
            let other = if op == BinaryOp::ShiftLeft { ">>" } else { "<<" };
            let message = format!("a shift by the negative number {count}");
            let help = format!("to shift the other way write `{other}`");
            model.report(Diagnostic::error(Code::TypeMismatch, value.span, message).help(help));
            return None;
        }
        return Some(Expr::binary(op, left, Expr::literal(own, Number::Int(count.min(width)))));
    }
    let count = integer_type(&operands[1], op.symbol(), model)?;
    let right = lower_as(&operands[1], count, model)?;
    let right = match count.bits() > own.bits() {
        // A negative count is a large number without a sign.
        true => {
            let right = right.cast(unsigned(count));
            let most = Expr::literal(right.dtype, Number::Int(width));
            Expr::binary(BinaryOp::Min, right, most)
        }
        false => right,
    };
    Some(Expr::binary(op, left, right.cast(own)))
}

/// The type in which a value of integers is computed; a report for floats.
fn integer_type(value: &Value, what: &str, model: &mut Model) -> Option<DType> {
    match type_of(value, model) {
        PartialType::Index => Some(DType::Int64),
        PartialType::Definite(DType::Bool) => Some(DType::Int32),
        ty => {
            let dtype = ty.or_default().unwrap_or(DType::Int32);
            if dtype.is_float() {
                refuse_float(what, value, dtype, model);
                return None;
            }
            Some(dtype)
        }
    }
}

fn unsigned(dtype: DType) -> DType {
    match dtype {
        DType::Int8 => DType::UInt8,
        DType::Int16 => DType::UInt16,
        DType::Int32 => DType::UInt32,
        DType::Int64 => DType::UInt64,
        other => other,
    }
}

/// Lowers a power: of floats as `pow`, of integers as repeated products.
fn power(operands: &[Value; 2], value: &Value, own: DType, model: &mut Model) -> Option<Expr> {
    let compute = own.compute_type();
    let negative = number_of(&operands[1]).filter(|exponent| *exponent < 0);
    if let (false, Some(exponent)) = (own.is_float(), negative) {
        let message = format!("an integer to the power of {exponent} is a fraction");
        let help = "for a fraction make the base a float: `2.0 ** -1`, or `float(x) ** -1`";
        model.report(Diagnostic::error(Code::TypeMismatch, value.span, message).help(help));
        return None;
    }
    let (left, right) = (lower_as(&operands[0], compute, model), lower_as(&operands[1], compute, model));
    let (left, right) = (left?, right?);
    Some(match own.is_float() {
        true => Expr { dtype: compute, kind: ExprKind::Call(Builtin::Pow, vec![left, right]) },
        false => Expr::binary(BinaryOp::Power, left, right),
    })
}

/// Lowers the complement of an integer's bits, or the negation of a truth value.
pub(super) fn complement(operand: &Value, own: DType, model: &mut Model) -> Option<Expr> {
    use tilewright_ir::UnaryOp;
    if own.is_float() {
        return refuse_float("~", operand, own, model);
    }
    let lowered = lower_as(operand, own, model)?;
    let op = if own == DType::Bool { UnaryOp::Not } else { UnaryOp::Complement };
    Some(match lowered.kind {
        ExprKind::Literal(number) => Expr::literal(own, tilewright_ir::arithmetic::unary(op, number, own)),
        _ => Expr { dtype: own, kind: ExprKind::Unary(op, Box::new(lowered)) },
    })
}

/// Lowers a function on integers alone, of type `own`.
pub(super) fn integer_call(
    builtin: Builtin,
    arguments: &[Value],
    own: DType,
    model: &mut Model,
) -> Option<Expr> {
    let lowered: Option<Vec<Expr>> = arguments
        .iter()
        .map(|argument| {
            if let (Builtin::Philox, Some(number)) = (builtin, number_of(argument)) {
                return Some(Expr::literal(own, Number::Int(number)));
            }
            let dtype = integer_type(argument, builtin.name(), model)?;
            let dtype = if builtin == Builtin::Philox { dtype } else { own };
            Some(lower_as(argument, dtype, model)?.cast(own))
        })
        .collect();
    Some(Expr { dtype: own, kind: ExprKind::Call(builtin, lowered?) })
}

/// The type with twice the width of an integer type.
pub(super) fn widened(dtype: DType) -> Option<DType> {
    match dtype {
        DType::Int8 => Some(DType::Int16),
        DType::Int16 => Some(DType::Int32),
        DType::Int32 => Some(DType::Int64),
        DType::UInt8 => Some(DType::UInt16),
        DType::UInt16 => Some(DType::UInt32),
        DType::UInt32 => Some(DType::UInt64),
        _ => None,
    }
}

/// Lowers the product of two integers in a type of twice the width of their common type.
pub(super) fn widening_product(
    operands: &[Value; 2],
    value: &Value,
    own: DType,
    model: &mut Model,
) -> Option<Expr> {
    for operand in operands {
        let dtype = integer_type(operand, "widening_mul", model)?;
        if dtype.bits() == 64 && !matches!(type_of(operand, model), PartialType::Index) {
            let message = format!("`widening_mul` has no type for the product of {dtype} numbers");
            let help =
                "64 bits are the widest: convert the operands to a narrower type, or use `*`, which wraps";
            model.report(Diagnostic::error(Code::TypeMismatch, value.span, message).help(help));
            return None;
        }
    }
    let (left, right) = (lower_as(&operands[0], own, model), lower_as(&operands[1], own, model));
    Some(Expr::binary(BinaryOp::Mul, left?, right?))
}

/// Returns true when an operator on bits or a power decides the value, so that it is an integer
/// even where a float is wanted.
pub(super) fn has_bit_operation(value: &Value) -> bool {
    match &value.kind {
        ValueKind::Unary(op, operand) => {
            *op == tilewright_ir::UnaryOp::Complement || has_bit_operation(operand)
        }
        ValueKind::Binary(op, operands) => op.is_on_integers() || operands.iter().any(has_bit_operation),
        ValueKind::Select(operands) => operands[1..].iter().any(has_bit_operation),
        _ => false,
    }
}
