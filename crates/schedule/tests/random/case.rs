//! One program with one schedule, and the check that the loops compute the same as the program.

use std::fmt::{self, Display, Formatter};

use tilewright_interp::{Order, run, run_nest};
use tilewright_ir::{LoopNest, Program, print, verify_nest};
use tilewright_schedule::Schedule;
use tilewright_syntax::{Bindings, Code, check, parse};

use super::guarded;
use super::schedule::Machine;
use super::source::Source;
use crate::support::{compare, inputs};

/// A program and a schedule to try.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program.
    pub source: Source,
    /// The schedule.
    pub schedule: Schedule,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FailureKind {
    /// `apply` panics.
    Panics,
    /// The loops are not well-formed.
    Invalid,
    /// The loops cannot be run: an access leaves its buffer, or reads an element that nothing has
    /// written.
    Stuck,
    /// The loops compute a different result.
    Differs,
}

/// A failure and its details.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The kind of the failure.
    pub kind: FailureKind,
    /// Details.
    pub message: String,
}

impl Failure {
    /// The part of a failure that is equal for failures that most likely have the same cause.
    pub fn signature(&self) -> String {
        let first = self.message.lines().next().unwrap_or_default();
        let own = match self.kind {
            FailureKind::Panics | FailureKind::Invalid => {
                first.split(' ').filter(|word| word.len() > 4).collect()
            }
            // The numbers in the message say nothing about the cause.
            FailureKind::Stuck | FailureKind::Differs => self.message.clone(),
        };
        format!("{:?}: {}", self.kind, own)
    }
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let sizes: Vec<String> =
            self.source.sizes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, "{}--sizes {}\n--schedule\n{}", self.source, sizes.join(","), self.schedule)
    }
}

/// The program, if the checker accepts it and leaves nothing open, including sizes.
pub fn checked(source: &Source) -> Option<Program> {
    let parsed = parse(&source.to_string());
    let bindings: Bindings = source.sizes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let checked = check(&parsed.ast, "f", &bindings);
    let open =
        |code: Code| matches!(code, Code::OutOfBounds | Code::UndefinedElement | Code::ReadBeforeWrite);
    let certain = parsed.diagnostics.is_empty() && !checked.diagnostics.iter().any(|found| open(found.code));
    checked.program.filter(|program| certain && program.is_concrete())
}

impl Case {
    /// The failure of the case, if it fails. A refused schedule is no failure.
    pub fn failure_on(&self, machine: Machine) -> Option<Failure> {
        let program = checked(&self.source)?;
        match guarded(|| machine.apply(&program, &self.schedule)) {
            Err(message) => Some(Failure { kind: FailureKind::Panics, message }),
            Ok(Err(_)) => None,
            Ok(Ok(nest)) => disagreement(&program, &nest),
        }
    }
}

/// The failure if a program and its loops disagree on some data.
fn disagreement(program: &Program, nest: &LoopNest) -> Option<Failure> {
    let fail =
        |kind, message: String| Some(Failure { kind, message: format!("{message}\n{}", print::nest(nest)) });
    match guarded(|| verify_nest(nest)) {
        Ok(Ok(_)) => {}
        Ok(Err(invalid)) => return fail(FailureKind::Invalid, invalid.to_string()),
        Err(message) => return fail(FailureKind::Panics, message),
    }
    let inputs = inputs(program, 1);
    let wanted = run(program, inputs.clone()).ok()?;
    for order in [Order::Ascending, Order::Descending] {
        let found = match guarded(|| run_nest(nest, program, inputs.clone(), order)) {
            Ok(Ok(found)) => found,
            Ok(Err(error)) => return fail(FailureKind::Stuck, format!("{order:?}: {error}")),
            Err(message) => return fail(FailureKind::Panics, message),
        };
        if let Err(message) = guarded(|| compare(&wanted, &found, "")) {
            return fail(FailureKind::Differs, format!("{order:?}: {message}"));
        }
    }
    None
}
