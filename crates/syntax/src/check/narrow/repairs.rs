//! Makes the repaired text of an operation that may wrap: the user's own text, with conversions
//! around some operands.

use tilewright_ir::{BinaryOp, DType, UnaryOp};

use super::intervals::may_wrap;
use crate::check::model::Model;
use crate::check::number::is_of_numbers;
use crate::check::types::{is_growing, type_of};
use crate::check::value::{Value, ValueKind};
use crate::span::Span;

/// The longest text that a message shows.
const MOST_CHARACTERS: usize = 100;

/// The type to compute in, and the narrow type.
#[derive(Clone, Copy)]
pub(super) struct Conversion {
    pub to: DType,
    pub from: DType,
}

/// The text of an operation with its operands converted, so that no part of it wraps. Returns
/// `None` where the operands do not stand inside the text of the operation.
pub(super) fn widened_operands(
    value: &Value,
    conversion: Conversion,
    model: &Model,
    source: &str,
) -> Option<String> {
    let mut operands = Vec::new();
    collect_operands(value, conversion.from, model, &mut operands)?;
    operands.sort();
    operands.dedup();
    with_conversions(value.span, &operands, conversion.to, source)
}

/// `int32(a(i, j))`, unless the text of the value is not short.
pub(super) fn converted_operand(value: &Value, to: DType, source: &str) -> Option<String> {
    Some(converted(short_text(value.span, source)?, to))
}

/// `absd(a(i), b(i))`
pub(super) fn difference(operands: &[Value; 2], source: &str) -> Option<String> {
    let [left, right] = operands;
    (left.span != right.span).then(|| {
        Some(format!("absd({}, {})", short_text(left.span, source)?, short_text(right.span, source)?))
    })?
}

/// Collects one operand of each operation that may wrap, and of the operations around it.
fn collect_operands(value: &Value, from: DType, model: &Model, found: &mut Vec<Span>) -> Option<()> {
    match &value.kind {
        ValueKind::Binary(op, operands) if op.is_shift() => {
            collect_operands(&operands[0], from, model, found)
        }
        ValueKind::Binary(op, operands) if is_growing(*op) || is_exact(*op) => {
            let [left, right] = operands.as_ref();
            let (first, second) = if is_of_numbers(left) { (right, left) } else { (left, right) };
            collect_operands(first, from, model, found)?;
            if contains_wrap(second, model) {
                collect_operands(second, from, model, found)?;
            }
            Some(())
        }
        ValueKind::Unary(UnaryOp::Neg, operand) => collect_operands(operand, from, model, found),
        _ if contains_wrap(value, model) || type_of(value, model).or_default() != Some(from) => None,
        _ => {
            found.push(value.span);
            Some(())
        }
    }
}

fn is_exact(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Div | BinaryOp::Mod | BinaryOp::Min | BinaryOp::Max)
}

/// Returns true when a part of the value may wrap. Subscripts are not part of it.
fn contains_wrap(value: &Value, model: &Model) -> bool {
    let is_inner = !matches!(value.kind, ValueKind::Load(..) | ValueKind::Cast(..));
    may_wrap(value, model, &[])
        || (is_inner && value.operands().iter().any(|operand| contains_wrap(operand, model)))
}

fn with_conversions(whole: Span, operands: &[Span], to: DType, source: &str) -> Option<String> {
    let mut text = String::new();
    let mut at = whole.start;
    for operand in operands {
        if operand.start < at || operand.end > whole.end || *operand == whole {
            return None;
        }
        text += Span { start: at, end: operand.start }.text(source);
        text += &converted(operand.text(source), to);
        at = operand.end;
    }
    text += Span { start: at, end: whole.end }.text(source);
    is_short(&text).then_some(text)
}

/// `int32(a + b)`, for a text that may have its own parentheses.
fn converted(text: &str, to: DType) -> String {
    let inner = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    match inner.filter(|inner| is_balanced(inner)) {
        Some(inner) => format!("{to}({inner})"),
        None => format!("{to}({text})"),
    }
}

/// Returns true when no parenthesis closes before it opens.
fn is_balanced(text: &str) -> bool {
    let mut depth = 0i32;
    text.chars().all(|character| {
        depth += i32::from(character == '(') - i32::from(character == ')');
        depth >= 0
    })
}

fn short_text(span: Span, source: &str) -> Option<&str> {
    Some(span.text(source)).filter(|text| !text.is_empty() && is_short(text))
}

fn is_short(text: &str) -> bool {
    text.chars().count() <= MOST_CHARACTERS && !text.contains(['\n', '#'])
}
