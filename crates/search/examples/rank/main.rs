//! Evaluates how well the cost model ranks schedules: measures random schedules and compares their
//! times with the estimates.
//!
//! ```text
//! cargo run --release -p tilewright-search --example rank -- measure FILE SECONDS [OPERATOR...]
//! cargo run --release -p tilewright-search --example rank -- evaluate FILE [OPERATOR...]
//! ```
//!
//! `measure` appends lines to a file until the time is up: operator, threads, seconds of a call,
//! and the schedule. `evaluate` reads these lines, so that a change of the model needs no new
//! measurements.

mod evaluate;
mod measure;
mod operators;
mod sample;

use std::error::Error;
use std::time::Duration;

use operators::{OPERATORS, Operator};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["measure", file, seconds, names @ ..] => {
            measure::measure(file, Duration::from_secs(seconds.parse()?), &chosen(names))
        }
        ["repeat", file, names @ ..] => measure::repeat(file, &chosen(names)),
        ["evaluate", file, names @ ..] => evaluate::evaluate(file, &chosen(names), false),
        ["explain", file, names @ ..] => evaluate::evaluate(file, &chosen(names), true),
        _ => Err("usage: rank measure FILE SECONDS [OPERATOR...]\n       \
                  rank repeat|evaluate|explain FILE [OPERATOR...]"
            .into()),
    }
}

/// The operators with these names, or all operators if no name is given.
fn chosen(names: &[&str]) -> Vec<&'static Operator> {
    OPERATORS.iter().filter(|own| names.is_empty() || names.contains(&own.name)).collect()
}
