//! Evaluates static expressions: numbers, static parameters and the variables of loops over stages.

use std::collections::HashMap;

use tilewright_ir::{BinaryOp, DType, Number, UnaryOp, arithmetic};

use crate::ast::{Expr, ExprKind, Function, Param};

/// The values of static parameters, by name.
pub(in crate::check) type Statics = HashMap<String, i64>;

/// The value of an expression of numbers and static parameters.
pub(in crate::check) fn static_value(expr: &Expr, statics: &Statics) -> Option<i64> {
    Some(match &expr.kind {
        ExprKind::Int(number, _) => i64::try_from(*number).ok()?,
        ExprKind::Bool(truth) => i64::from(*truth),
        ExprKind::Name(text) => *statics.get(text)?,
        ExprKind::Unary(UnaryOp::Neg, operand) => static_value(operand, statics)?.checked_neg()?,
        ExprKind::Unary(UnaryOp::Not, operand) => i64::from(static_value(operand, statics)? == 0),
        ExprKind::Binary(op, operands) => {
            static_binary(*op, static_value(&operands[0], statics)?, static_value(&operands[1], statics)?)?
        }
        ExprKind::Ternary(operands) => {
            let chosen = if static_value(&operands[0], statics)? != 0 { 1 } else { 2 };
            static_value(&operands[chosen], statics)?
        }
        ExprKind::Apply(name, arguments) => {
            let values: Option<Vec<i64>> =
                arguments.iter().map(|argument| static_value(argument, statics)).collect();
            match name.text.as_str() {
                "min" => values?.into_iter().min()?,
                "max" => values?.into_iter().max()?,
                _ => return None,
            }
        }
        _ => return None,
    })
}

fn static_binary(op: BinaryOp, left: i64, right: i64) -> Option<i64> {
    let is_undefined = matches!(op, BinaryOp::Div | BinaryOp::Mod) && right == 0;
    // Arithmetic in 64 bits wraps, and a number of stages must not.
    let exact = match op {
        BinaryOp::Add => left.checked_add(right).is_some(),
        BinaryOp::Sub => left.checked_sub(right).is_some(),
        BinaryOp::Mul => left.checked_mul(right).is_some(),
        BinaryOp::Power => u32::try_from(right).is_ok_and(|right| left.checked_pow(right).is_some()),
        BinaryOp::ShiftLeft => (0..63).contains(&right) && left.checked_mul(1 << right).is_some(),
        _ => true,
    };
    if is_undefined || !exact {
        return None;
    }
    let number = |value: i64| Number::Int(value.into());
    match op {
        BinaryOp::And => return Some(i64::from(left != 0 && right != 0)),
        BinaryOp::Or => return Some(i64::from(left != 0 || right != 0)),
        _ => {}
    }
    match arithmetic::binary(op, number(left), number(right), DType::Int64) {
        Number::Int(value) => i64::try_from(value).ok(),
        Number::Float(_) => None,
    }
}

/// The values of the static parameters of a called function, as far as they are known. Arguments
/// that are left out have the default.
pub(in crate::check) fn call_statics(function: &Function, arguments: &[Expr], outside: &Statics) -> Statics {
    let mut statics = Statics::new();
    for (at, param) in function.params.iter().enumerate().filter(|(_, param)| param.is_static) {
        let value = match arguments.get(at) {
            Some(argument) => static_value(argument, outside),
            None => list_length(function, arguments, &param.name.text)
                .or_else(|| param.default.as_ref().and_then(|default| static_value(default, &statics))),
        };
        if let Some(value) = value {
            statics.insert(param.name.text.clone(), value);
        }
    }
    statics
}

/// Returns true when a static parameter is the length of a list that is a parameter too, so that
/// the list determines it.
pub(in crate::check) fn is_length_of_list(function: &Function, name: &str) -> bool {
    function.params.iter().any(|param| is_length(param, name))
}

fn is_length(param: &Param, name: &str) -> bool {
    matches!(param.name.element.as_deref(), Some(Expr { kind: ExprKind::Name(text), .. }) if text == name)
}

/// The length of a list that is an argument, if the parameter is declared with this name for it.
fn list_length(function: &Function, arguments: &[Expr], name: &str) -> Option<i64> {
    function.params.iter().zip(arguments).find_map(|(param, argument)| match &argument.kind {
        ExprKind::List(_, elements) if is_length(param, name) => Some(elements.len() as i64),
        _ => None,
    })
}
