//! Parses the tokens of one line into a step.
//!
//! If an error leaves the rest of the line without a meaning, parsing of the line ends. After other
//! errors, such as a number that is too small, the error is recorded and the rest of the line is
//! parsed. Either way the step is lost, and parsing goes on with the next line.
//!
//! This file has the cursor and the parts that steps are made of; `step` has the steps.

mod step;

use std::collections::HashMap;

use tilewright_syntax::{Code, Diagnostic, Span};

use super::keyword::Keyword;
use super::token::{Kind, Token};
use super::{MOST_MESSAGES, StepSpans};
use crate::step::{LoopName, StatementName, Step};

/// The result of parsing a line.
pub(super) struct Line {
    /// The step, if the line has no errors.
    pub(super) step: Option<(Step, StepSpans)>,
    /// Errors and warnings.
    pub(super) diagnostics: Vec<Diagnostic>,
}

/// Parses the tokens of a line.
pub(super) fn parse(source: &str, tokens: &[Token]) -> Line {
    let mut cursor = Cursor {
        source,
        tokens,
        at: 0,
        keyword: None,
        names: Vec::new(),
        layout: Vec::new(),
        diagnostics: Vec::new(),
    };
    let read = cursor.step();
    let refused = cursor.diagnostics.iter().any(Diagnostic::is_error);
    let step = read.ok().filter(|_| !refused).map(|step| (step, cursor.spans()));
    Line { step, diagnostics: cursor.diagnostics }
}

/// Signals that an error has been reported, and that the rest of the line has no meaning.
struct Reported;

type Parse<T> = Result<T, Reported>;

struct Cursor<'a> {
    source: &'a str,
    tokens: &'a [Token],
    at: usize,
    /// The kind of the current step, as soon as it is known.
    keyword: Option<Keyword>,
    names: Vec<(String, Span)>,
    layout: Vec<Span>,
    diagnostics: Vec<Diagnostic>,
}

/// Reading: `kind` and `span` of the next token, and consuming it.
impl<'a> Cursor<'a> {
    fn kind(&self) -> Kind {
        self.tokens.get(self.at).map_or(Kind::End, |token| token.kind)
    }

    fn kind_after_next(&self) -> Kind {
        self.tokens.get(self.at + 1).map_or(Kind::End, |token| token.kind)
    }

    /// The place of the next token; at the end of the line, the place right after the last token.
    fn span(&self) -> Span {
        let end = self.previous().end;
        self.tokens.get(self.at).map_or(Span { start: end, end }, |token| token.span)
    }

    fn previous(&self) -> Span {
        let before = self.at.min(self.tokens.len()).saturating_sub(1);
        self.tokens.get(before).map_or(Span::default(), |token| token.span)
    }

    fn text(&self) -> &'a str {
        self.span().text(self.source)
    }

    fn advance(&mut self) -> Span {
        let span = self.span();
        self.at += 1;
        span
    }

    fn eat(&mut self, kind: Kind) -> bool {
        let found = self.kind() == kind;
        self.at += found as usize;
        found
    }

    fn is_at_word(&self, word: &str) -> bool {
        self.kind() == Kind::Word && self.text() == word
    }

    fn spans(&self) -> StepSpans {
        let start = self.tokens.first().map_or(Span::default(), |token| token.span);
        StepSpans { step: start.to(self.previous()), names: self.names.clone(), layout: self.layout.clone() }
    }
}

/// Reporting.
impl Cursor<'_> {
    fn report<T>(&mut self, diagnostic: Diagnostic) -> Parse<T> {
        self.diagnostics.push(diagnostic);
        Err(Reported)
    }

    /// Reports an error after which the line can be parsed further.
    fn report_and_continue(&mut self, diagnostic: Diagnostic) -> Parse<()> {
        self.diagnostics.push(diagnostic);
        if self.diagnostics.len() < MOST_MESSAGES { Ok(()) } else { Err(Reported) }
    }

    /// An error at a place, with an example of the step.
    fn error(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.with_example(Diagnostic::error(Code::Syntax, span, message))
    }

    fn with_example(&self, diagnostic: Diagnostic) -> Diagnostic {
        match self.keyword {
            Some(keyword) => diagnostic.note(format!("the step is written like `{}`", keyword.example())),
            None => diagnostic,
        }
    }

    /// The next token, as quoted in messages.
    fn found(&self) -> String {
        match self.kind() {
            Kind::End => "the end of the line".to_owned(),
            _ => format!("`{}`", quoted(self.text())),
        }
    }

    /// An error that says what was expected here.
    fn unexpected(&self, what: &str) -> Diagnostic {
        let message = format!("expected {what}, found {}", self.found());
        self.error(self.span(), message).label(format!("expected {what}"))
    }

    fn expected<T>(&mut self, what: &str) -> Parse<T> {
        let diagnostic = self.unexpected(what);
        self.report(diagnostic)
    }

    fn expect(&mut self, kind: Kind, what: &str) -> Parse<Span> {
        if self.kind() == kind { Ok(self.advance()) } else { self.expected(what) }
    }

    /// Reports anything left on the line. `or` names what could have come instead.
    fn expect_end(&mut self, or: &str) -> Parse<()> {
        if self.kind() == Kind::End {
            return Ok(());
        }
        let diagnostic = self.unexpected(&format!("{or}the end of the line"));
        let text = &self.source[self.span().start as usize..];
        let diagnostic = if text.starts_with("//") {
            diagnostic.help("comments begin with `#`")
        } else if self.kind() == Kind::Word && Keyword::named(self.text()).is_some() || text.starts_with(';')
        {
            diagnostic.help("put every step on a line of its own")
        } else {
            diagnostic
        };
        self.report(diagnostic)
    }
}

/// The parts that steps are made of.
impl Cursor<'_> {
    /// A word: the name of something that exists, or a part of such a name.
    fn word(&mut self, what: &str) -> Parse<&str> {
        if self.kind() != Kind::Word {
            return self.expected(what);
        }
        let span = self.advance();
        Ok(span.text(self.source))
    }

    /// A name that the step gives, without a statement.
    fn new_name(&mut self, what: &str) -> Parse<(String, Span)> {
        let start = self.span();
        let mut name = self.word(what)?.to_owned();
        while self.eat(Kind::Dot) {
            name = self.word("a name after the dot")?.to_owned();
        }
        let span = start.to(self.previous());
        if span.text(self.source) != name {
            let diagnostic = self
                .error(span, format!("{what} is one word"))
                .label("expected one word")
                .help(format!("write `{}`", quoted(&name)));
            self.report_and_continue(diagnostic)?;
        }
        self.names.push((name.clone(), span));
        Ok((name, span))
    }

    /// A tensor or a buffer.
    fn tensor(&mut self) -> Parse<String> {
        let start = self.span();
        let tensor = self.path("the name of a tensor")?.join(".");
        if self.kind() == Kind::LeftBracket {
            let diagnostic = self
                .error(self.span(), "this step takes a tensor, not one of its statements")
                .label(format!("not part of the name `{}`", quoted(&tensor)));
            return self.report(diagnostic);
        }
        self.names.push((tensor.clone(), start.to(self.previous())));
        Ok(tensor)
    }

    /// Words separated by dots.
    fn path(&mut self, what: &str) -> Parse<Vec<String>> {
        let mut words = vec![self.word(what)?.to_owned()];
        while self.eat(Kind::Dot) {
            words.push(self.word("a name after the dot")?.to_owned());
        }
        Ok(words)
    }

    /// One or more different statements, such as `C` or `C[2]`, separated by commas.
    fn statements(&mut self) -> Parse<Vec<StatementName>> {
        let mut statements = Vec::new();
        let mut seen = HashMap::new();
        loop {
            let start = self.span();
            let tensor = self.path("a statement, by the name of the tensor that it writes")?.join(".");
            let ordinal = if self.kind() == Kind::LeftBracket { self.ordinal()? } else { 1 };
            let name = StatementName { tensor, ordinal };
            let span = start.to(self.previous());
            self.names.push((name.to_string(), span));
            self.expect_distinct(&mut seen, name.to_string(), span)?;
            statements.push(name);
            if !self.eat(Kind::Comma) {
                return Ok(statements);
            }
        }
    }

    /// A loop. `near` is another loop of the step, which probably belongs to the same statement.
    fn loop_name(&mut self, near: Option<&LoopName>) -> Parse<LoopName> {
        let start = self.span();
        let mut words = self.path("a loop, `STATEMENT.LOOP`")?;
        let (ordinal, name) = if self.kind() == Kind::LeftBracket {
            let ordinal = self.ordinal()?;
            self.expect(Kind::Dot, "`.` and the name of a loop")?;
            (ordinal, Some(self.word("the name of a loop")?.to_owned()))
        } else {
            (1, words.pop())
        };
        let span = start.to(self.previous());
        let name = match name {
            Some(name) if !words.is_empty() => name,
            _ => return self.report_missing_statement(span, near),
        };
        let name = StatementName { tensor: words.join("."), ordinal }.loop_named(name);
        self.names.push((name.to_string(), span));
        Ok(name)
    }

    /// Reports a loop that does not name its statement.
    fn report_missing_statement<T>(&mut self, span: Span, near: Option<&LoopName>) -> Parse<T> {
        let text = quoted(span.text(self.source));
        let diagnostic = self
            .error(span, format!("`{text}` does not name the statement of the loop"))
            .label("expected `STATEMENT.LOOP`");
        let help = match near {
            Some(near) => format!("write `{}.{text}`", near.statement),
            None => format!("if it is a loop around the statement that writes `C`, write `C.{text}`"),
        };
        self.report(diagnostic.help(help))
    }

    /// `[2]`: the number of the statement among those that write a tensor.
    fn ordinal(&mut self) -> Parse<usize> {
        self.advance();
        let ordinal = self.number("the number of a statement, counted from 1")?;
        self.expect(Kind::RightBracket, "`]`")?;
        self.as_usize(ordinal)
    }

    /// Two or more different loops, separated by commas.
    fn loops(&mut self) -> Parse<Vec<LoopName>> {
        let mut loops: Vec<LoopName> = Vec::new();
        let mut seen = HashMap::new();
        loop {
            let name = self.loop_name(loops.last())?;
            self.expect_distinct(&mut seen, name.to_string(), self.previous_argument())?;
            loops.push(name);
            if !self.eat(Kind::Comma) {
                break;
            }
        }
        if loops.len() < 2 {
            let diagnostic = self.error(self.previous_argument(), "this step takes two loops or more");
            self.report_and_continue(diagnostic.label("the only one"))?;
        }
        Ok(loops)
    }

    /// The place of the last name.
    fn previous_argument(&self) -> Span {
        self.names.last().map_or(self.previous(), |(_, span)| *span)
    }

    /// Reports a name that the list already has.
    fn expect_distinct(&mut self, seen: &mut HashMap<String, Span>, name: String, span: Span) -> Parse<()> {
        let Some(first) = seen.get(&name) else {
            seen.insert(name, span);
            return Ok(());
        };
        let message = format!("`{}` is listed twice", quoted(&name));
        let diagnostic = Diagnostic::error(Code::NameCollision, span, message)
            .secondary_label(*first, "the first is here");
        self.report_and_continue(diagnostic)
    }

    /// A number that is at least 1.
    fn number(&mut self, what: &str) -> Parse<i64> {
        if self.kind() != Kind::Integer {
            let diagnostic = self.unexpected(what);
            let negative = self.text().starts_with('-') && self.kind_after_next() == Kind::Integer;
            return self.report(if negative { diagnostic.help("it is at least 1") } else { diagnostic });
        }
        let value = self.integer()?;
        if value < 1 {
            let diagnostic = self.error(self.previous(), format!("expected {what}, found 0"));
            self.report_and_continue(diagnostic.label("it is at least 1"))?;
        }
        Ok(value.max(1))
    }

    /// Decimal digits.
    fn integer(&mut self) -> Parse<i64> {
        let span = self.advance();
        self.value(span.text(self.source), span)
    }

    /// The value of decimal digits, or 1 if the number is too large, which is reported.
    fn value(&mut self, digits: &str, span: Span) -> Parse<i64> {
        if let Ok(value) = digits.parse() {
            return Ok(value);
        }
        let diagnostic = Diagnostic::error(Code::Syntax, span, "this number is too large");
        self.report_and_continue(diagnostic.help(format!("the largest is {}", i64::MAX)))?;
        Ok(1)
    }

    /// Converts a number to `usize`, or reports that it is too large.
    fn as_usize(&mut self, value: i64) -> Parse<usize> {
        match usize::try_from(value) {
            Ok(value) => Ok(value),
            Err(_) => {
                let diagnostic = self.error(self.previous(), "this number is too large");
                self.report(diagnostic)
            }
        }
    }
}

/// A part of the text as quoted in messages: not too long, and without control characters.
fn quoted(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut start: String = text.chars().take(40).map(clean).collect();
    if start.len() < text.len() && text.chars().nth(40).is_some() {
        start.push('…');
    }
    start
}
