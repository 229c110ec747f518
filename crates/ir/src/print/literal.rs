//! Prints a [`Number`] as a literal of the language, with or without its type.

use super::{Precedence, parenthesised};
use crate::dtype::DType;
use crate::number::Number;

/// How much of a literal its text shows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Only the number, for a reader.
    Short,
    /// Text that parses to the same literal where its surroundings give it the type.
    Exact,
    /// Text that also shows the type, by a suffix or a conversion.
    Typed,
}

/// A literal as text.
pub(super) fn literal(number: Number, dtype: DType, style: Style, at_least: Precedence) -> String {
    let text = plain(number, dtype);
    // A minus before a float is an operator, but one before an integer is part of the number. An
    // integer becomes a float where its surroundings say so.
    if style != Style::Short && dtype.is_float() && text.starts_with('-') && is_integer(number.as_f64()) {
        let integer = format!("{:.0}", number.as_f64());
        return match style {
            Style::Typed => format!("{dtype}({integer})"),
            _ => parenthesised(integer, Precedence::Unary, at_least),
        };
    }
    let suffix = if style == Style::Typed { suffix(dtype) } else { Some("") };
    match suffix {
        // `inf` and `nan` take no suffix.
        Some(suffix) if !suffix.is_empty() && !number.as_f64().is_finite() => format!("{dtype}({text})"),
        Some(suffix) if text.starts_with('-') => {
            parenthesised(format!("{text}{suffix}"), Precedence::Unary, at_least)
        }
        Some(suffix) => format!("{text}{suffix}"),
        _ => format!("{dtype}({text})"),
    }
}

/// Returns true if the language can write the float as an integer. It has no negative zero.
fn is_integer(float: f64) -> bool {
    float.fract() == 0.0 && float != 0.0 && float.abs() < 2f64.powi(63)
}

/// The digits of a number.
fn plain(number: Number, dtype: DType) -> String {
    match number {
        Number::Int(truth) if dtype == DType::Bool => (truth != 0).to_string(),
        Number::Int(integer) => integer.to_string(),
        Number::Float(float) if float.is_nan() => "nan".to_owned(),
        Number::Float(float) if dtype == DType::Float64 => format!("{float:?}"),
        Number::Float(float) => format!("{:?}", float as f32),
    }
}

/// The suffix that gives a literal its type, if there is one.
fn suffix(dtype: DType) -> Option<&'static str> {
    match dtype {
        DType::Bool => Some(""),
        DType::UInt32 => Some("u"),
        DType::Int64 => Some("l"),
        DType::UInt64 => Some("ul"),
        DType::Float32 => Some("f"),
        _ => None,
    }
}
