//! Schedules as text, the form that people read, write and edit, and that is stored.
//!
//! One step a line; `#` begins a comment; blank lines are ignored.
//!
//! ```text
//! step      = "split" loop "->" NAME { "," NAME ":" NUMBER }
//!           | "fuse" loops "->" NAME
//!           | "reorder" loops
//!           | ( "unroll" | "vectorize" | "parallel" ) loop
//!           | "inline" tensor
//!           | "compute_at" tensor "," loop
//!           | "bind" loop "->" ( "block" | "thread" ) "." ( "x" | "y" | "z" )
//!           | "promote" tensor "at" ( loop | "root" ) "->" NAME
//!             ( "packed" | "shared" | "registers" ) [ "gathered" ] [ layout ] [ "pad" NUMBER ]
//!           | "pipeline" loop "stages" NUMBER
//!           | "rfactor" loop "->" NAME
//!           | "scan" loop "->" NAME
//!           | "prefetch" tensor "at" loop "ahead" NUMBER [ "of" loop ] .
//! loops     = loop "," loop { "," loop } .
//! loop      = statement "." NAME .
//! statement = tensor [ "[" NUMBER "]" ] .
//! tensor    = NAME { "." NAME } .                     (a temporary of a called function is `function.name`; of its second call, `function_2.name`)
//! layout    = "(" dimension { "," dimension } ")" .
//! dimension = "d" NUMBER [ "%" NUMBER ] [ "/" NUMBER ] .
//! ```
//!
//! A `NAME` is a name of the language. A `NUMBER` is decimal and, except in `d0`, at least 1.
//! Keywords are recognised by their place, so that a tensor may be called `split` or `at`.
//!
//! [`parse`] reads; `Display` of [`Step`](crate::Step) and [`Schedule`] writes. Written text reads
//! back as the same schedule if its names are valid names, its numbers are at least 1, its lists of
//! loops have two or more entries, and no name is twice in a list. No other schedule is legal. This
//! module judges only the text. Whether a step can be applied to a program is decided later, and
//! [`StepSpans`] then gives the place in the text for the message.
//!
//! `keyword` has the words that begin a step, `token` splits a line into tokens, `line` parses a
//! line, `print` writes.

mod keyword;
mod line;
mod print;
mod token;

use tilewright_syntax::{Code, Diagnostic, Span};

use crate::step::Schedule;

/// The most steps of a schedule.
pub const MOST_STEPS: usize = 10_000;
/// The longest text, in bytes.
pub const LONGEST_TEXT: usize = 16 << 20;
/// The most messages that are listed.
const MOST_MESSAGES: usize = 50;

/// A schedule that was read, with the errors in its text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedSchedule {
    /// The steps of the lines without an error.
    pub schedule: Schedule,
    /// The places of these steps in the text.
    pub spans: Vec<StepSpans>,
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// The places in the text of a step and of everything it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepSpans {
    /// The step, without the white space and the comment around it.
    pub step: Span,
    /// The tensors and loops that the step takes and the names that it gives, in the order of the
    /// text. Each is written as by `Display`: `C[2].io`, `root`, `Bp`.
    pub names: Vec<(String, Span)>,
    /// The dimensions of the step's layout.
    pub layout: Vec<Span>,
}

impl ParsedSchedule {
    /// Returns true when a line could not be read, so that `schedule` is not the intended one.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

impl StepSpans {
    /// The place of a name, written as by `Display`; the whole step if it does not contain the
    /// name.
    pub fn span_of(&self, name: &str) -> Span {
        self.names.iter().find(|(text, _)| text == name).map_or(self.step, |(_, span)| *span)
    }
}

/// Reads a schedule. Every line with an error is reported and left out.
///
/// ```
/// let parsed = tilewright_schedule::text::parse("split C.j -> jo, ji:8   # a vector\nvectorize C.ji\n");
/// assert_eq!(parsed.schedule.steps.len(), 2);
/// assert!(parsed.diagnostics.is_empty());
/// assert_eq!(parsed.schedule.to_string(), "split C.j -> jo, ji:8\nvectorize C.ji\n");
/// ```
pub fn parse(source: &str) -> ParsedSchedule {
    let mut parsed = ParsedSchedule::default();
    if source.len() > LONGEST_TEXT {
        let message = format!("the schedule has {} bytes", source.len());
        let diagnostic = Diagnostic::error(Code::TooComplex, Span::default(), message);
        parsed.diagnostics.push(diagnostic.help(format!("at most {LONGEST_TEXT} are allowed")));
        return parsed;
    }
    let mut steps = 0;
    let mut at = 0;
    let mut left_out = 0;
    for line in source.split_inclusive('\n') {
        let tokens = token::tokens(line, at);
        at += line.len();
        let Some(first) = tokens.first() else { continue };
        steps += 1;
        if steps > MOST_STEPS {
            let message = format!("the schedule has more than {MOST_STEPS} steps");
            parsed.diagnostics.push(Diagnostic::error(Code::TooComplex, first.span, message));
            break;
        }
        let read = line::parse(source, &tokens);
        parsed.diagnostics.extend(read.diagnostics);
        left_out += shorten(&mut parsed.diagnostics);
        if let Some((step, spans)) = read.step {
            parsed.schedule.steps.push(step);
            parsed.spans.push(spans);
        }
    }
    if let Some(last) = parsed.diagnostics.last_mut().filter(|_| left_out > 0) {
        last.notes.push(format!("{left_out} further messages are not shown"));
    }
    parsed
}

/// Keeps at most `MOST_MESSAGES` messages, errors rather than warnings, and returns the number of
/// dropped ones.
fn shorten(diagnostics: &mut Vec<Diagnostic>) -> usize {
    let left_out = diagnostics.len().saturating_sub(MOST_MESSAGES);
    if left_out > 0 {
        diagnostics.sort_by_key(|diagnostic| diagnostic.severity);
        diagnostics.truncate(MOST_MESSAGES);
        diagnostics.sort_by_key(|diagnostic| diagnostic.primary.0);
    }
    left_out
}
