//! Prints points as text, and parses them. The text has the values in the order of the knobs:
//! `tile_i=[8,4,32] order=[1,0,2] unroll=16 layout=packed`.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

use thiserror::Error;

use super::{Domain, Knob, Knobs, Point, Value};

/// Why a text is not a point of these knobs.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseError {
    /// The text does not continue with the expected knob.
    #[error("expected `{knob}=…`, found `{found}`")]
    Expected {
        /// The expected knob.
        knob: String,
        /// The text that stands there.
        found: String,
    },
    /// The value does not belong to the knob's domain.
    #[error("`{knob}` cannot be `{found}`")]
    BadValue {
        /// The knob.
        knob: String,
        /// The text of the value.
        found: String,
    },
    /// The text continues after the last knob.
    #[error("unexpected `{0}` after the value of the last knob")]
    Trailing(String),
}

/// A point together with its knobs, for printing.
#[derive(Clone, Copy, Debug)]
pub struct PrintedPoint<'a> {
    knobs: &'a Knobs,
    point: &'a Point,
}

impl Knobs {
    /// Returns `point` as a line of text that [`parse`](Knobs::parse) reads back.
    pub fn print<'a>(&'a self, point: &'a Point) -> PrintedPoint<'a> {
        PrintedPoint { knobs: self, point }
    }

    /// Parses a point.
    pub fn parse(&self, text: &str) -> Result<Point, ParseError> {
        let mut rest = text.trim();
        let mut values = Vec::with_capacity(self.len());
        for knob in self.iter() {
            values.push(parse_knob(knob, &mut rest)?);
        }
        if rest.is_empty() { Ok(Point(values)) } else { Err(ParseError::Trailing(rest.to_owned())) }
    }
}

impl Display for PrintedPoint<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (at, (knob, value)) in self.knobs.iter().zip(&self.point.0).enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{}=", knob.name)?;
            print_value(&knob.domain, value, f)?;
        }
        Ok(())
    }
}

fn print_value(domain: &Domain, value: &Value, f: &mut Formatter<'_>) -> fmt::Result {
    match value {
        Value::Factors(factors) => print_list(factors, f),
        Value::Order(order) => print_list(order, f),
        Value::Choice(at) => match choice_text(domain, *at) {
            Some(text) => f.write_str(&text),
            None => f.write_str("?"),
        },
    }
}

fn print_list<T: Display>(items: &[T], f: &mut Formatter<'_>) -> fmt::Result {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    write!(f, "[{}]", items.join(","))
}

/// The text of the choice at `at`, if there is such a choice.
fn choice_text(domain: &Domain, at: usize) -> Option<String> {
    match domain {
        Domain::Ordinal(ordinal) => ordinal.values().get(at).map(i64::to_string),
        Domain::Categorical(categorical) => categorical.choices().get(at).cloned(),
        Domain::Factorisation(_) | Domain::Permutation(_) => None,
    }
}

/// Parses `name=value` at the start of `rest` and advances `rest` past it.
fn parse_knob(knob: &Knob, rest: &mut &str) -> Result<Value, ParseError> {
    let after_name = rest.strip_prefix(knob.name.as_str()).and_then(|rest| rest.strip_prefix('='));
    let Some(text) = after_name else {
        return Err(ParseError::Expected { knob: knob.name.clone(), found: first_word(rest).to_owned() });
    };
    // A list may contain spaces; any other value ends at white space.
    let end = match text.find(']') {
        Some(end) if text.starts_with('[') => end + 1,
        _ => first_word(text).len(),
    };
    let (value, after) = text.split_at(end);
    *rest = after.trim_start();
    let parsed = parse_value(&knob.domain, value).filter(|value| knob.domain.contains(value));
    parsed.ok_or_else(|| ParseError::BadValue { knob: knob.name.clone(), found: value.to_owned() })
}

fn first_word(text: &str) -> &str {
    text.split(char::is_whitespace).next().unwrap_or_default()
}

fn parse_value(domain: &Domain, text: &str) -> Option<Value> {
    match domain {
        Domain::Factorisation(_) => parse_list(text).map(Value::Factors),
        Domain::Permutation(_) => parse_list(text).map(Value::Order),
        Domain::Ordinal(ordinal) => {
            let number: i64 = text.parse().ok()?;
            ordinal.values().binary_search(&number).ok().map(Value::Choice)
        }
        Domain::Categorical(categorical) => {
            categorical.choices().iter().position(|choice| choice == text).map(Value::Choice)
        }
    }
}

fn parse_list<T: FromStr>(text: &str) -> Option<Vec<T>> {
    let inside = text.strip_prefix('[')?.strip_suffix(']')?.trim();
    if inside.is_empty() {
        return Some(Vec::new());
    }
    inside.split(',').map(|item| item.trim().parse().ok()).collect()
}
