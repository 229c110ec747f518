//! Defines [`Diagnostic`], an error or warning about a position in the source text, and prints it.
//!
//! A [`Diagnostic`] is data: a [`Code`], a sentence, labelled positions in the source, notes and
//! suggestions. `annotate-snippets`, which the Rust compiler's own messages use, draws it.

use std::fmt;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::span::Span;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The program is refused.
    Error,
    /// The program is accepted, but may not mean what its author thinks.
    Warning,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident $name:literal,)*) => {
        /// The kind of a diagnostic; its name is printed and stays the same between releases.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[$doc])* $variant,)* }

        impl Code {
            /// Every kind.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)*];

            /// The printed name.
            pub fn name(self) -> &'static str {
                match self { $(Code::$variant => $name,)* }
            }
        }
    };
}

codes! {
    /// The text does not follow the grammar.
    Syntax "syntax",
    /// Nesting or size beyond the limits.
    TooComplex "too-complex",
    /// A name that nothing defines.
    UndefinedName "undefined-name",
    /// Two definitions with the same name.
    NameCollision "name-collision",
    /// A function that calls itself.
    Recursion "recursion",
    /// The wrong number of subscripts or arguments.
    RankMismatch "rank-mismatch",
    /// A value of the wrong type.
    TypeMismatch "type-mismatch",
    /// Two extents that must be equal and are not.
    SizeMismatch "size-mismatch",
    /// A range that the accesses do not determine.
    AmbiguousRange "ambiguous-range",
    /// A range without any value.
    EmptyRange "empty-range",
    /// A bound of a range that depends on more than sizes and integer scalars.
    InvalidRange "invalid-range",
    /// An access outside its tensor.
    OutOfBounds "out-of-bounds",
    /// A statement that reads elements which it overwrites.
    InPlace "in-place",
    /// A reduction that resets its target and reads the same tensor.
    ResetInPlace "reset-in-place",
    /// A variable that occurs only on the right-hand side, without a reduction operator.
    MissingReduction "missing-reduction",
    /// A left-hand side that names one element more than once.
    RepeatedWrite "repeated-write",
    /// An assignment to a name that cannot be assigned.
    InvalidTarget "invalid-target",
    /// An element that no statement defines.
    UndefinedElement "undefined-element",
    /// A tensor that is read before anything defines it.
    ReadBeforeWrite "read-before-write",
    /// A reduction into elements that nothing initialised.
    UninitializedReduction "uninitialized-reduction",
    /// A temporary that nothing reads.
    UnusedTensor "unused-tensor",
    /// A size that is missing, not positive or too large.
    InvalidSize "invalid-size",
    /// A condition on the sizes that fails, or that is no comparison of sizes.
    Precondition "precondition",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A message about a position in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The kind of diagnostic.
    pub code: Code,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The main position, and the label there.
    pub primary: (Span, String),
    /// Positions that explain the message, with their labels.
    pub secondary: Vec<(Span, String)>,
    /// The inferred facts behind the message, and their origins.
    pub notes: Vec<String>,
    /// Suggestions of what to write instead.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// Creates an error at a position.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            primary: (span, String::new()),
            secondary: Vec::new(),
            notes: Vec::new(),
            help: Vec::new(),
        }
    }

    /// Creates a warning at a position.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// Sets the label of the main position.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.primary.1 = text.into();
        self
    }

    /// Adds another position that explains the message.
    pub fn secondary_label(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push((span, text.into()));
        self
    }

    /// Adds an inferred fact.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// Adds a suggestion of what to write instead.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }

    /// Replaces every text of the message.
    pub(crate) fn map_texts(&mut self, map: impl Fn(&str) -> String) {
        let labels = self.secondary.iter_mut().chain([&mut self.primary]).map(|(_, text)| text);
        let all = labels.chain(&mut self.notes).chain(&mut self.help).chain([&mut self.message]);
        all.for_each(|text| *text = map(text));
    }

    /// Returns true when the diagnostic refuses the program.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Draws the message with the source lines that it is about.
    pub fn render(&self, path: &str, source: &str, style: Style) -> String {
        let level = if self.is_error() { Level::ERROR } else { Level::WARNING };
        let near = |span: &Span| !far_apart_on_one_line(source, &self.primary.0, span);
        let secondary = self.secondary.iter().filter(|(span, _)| near(span));
        let labels: Vec<(&Span, &String)> =
            std::iter::once(&self.primary).chain(secondary).map(|(span, text)| (span, text)).collect();
        let window = window(source, &labels);
        let place = |span: &Span| clamp_to_window(source, span, &window);
        let line_start = source[..window.start].matches('\n').count() + 1;
        let mut snippet =
            Snippet::source(&source[window.clone()]).path(path).line_start(line_start).fold(true);
        for (at, (span, text)) in labels.iter().enumerate() {
            let kind = if at == 0 { AnnotationKind::Primary } else { AnnotationKind::Context };
            let annotation = kind.span(place(span));
            snippet = snippet.annotation(if text.is_empty() {
                annotation
            } else {
                annotation.label(text.as_str())
            });
        }
        let mut group: Group<'_> = level.primary_title(&self.message).id(self.code.name()).element(snippet);
        for note in &self.notes {
            group = group.element(Level::NOTE.message(note));
        }
        for help in &self.help {
            group = group.element(Level::HELP.message(help));
        }
        let renderer = match style.color {
            true => Renderer::styled(),
            false => Renderer::plain(),
        };
        renderer.decor_style(DecorStyle::Ascii).term_width(style.width).render(&[group])
    }
}

/// The drawing style.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether to use terminal colours.
    pub color: bool,
    /// The width of the output in columns; longer source lines are trimmed.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style { color: false, width: 140 }
    }
}

/// Returns true when two positions are so far apart on one line that drawing both would fill the
/// screen.
fn far_apart_on_one_line(source: &str, left: &Span, right: &Span) -> bool {
    let (first, last) = (left.start.min(right.start) as usize, left.end.max(right.end) as usize);
    let between = source.as_bytes().get(first..last.min(source.len())).unwrap_or_default();
    between.len() > 1000 && !between.contains(&b'\n')
}

/// The lines around the labels. With this window, the cost of drawing does not depend on the length
/// of the file.
fn window(source: &str, labels: &[(&Span, &String)]) -> Range<usize> {
    let first = labels.iter().map(|(span, _)| span.start as usize).min().unwrap_or(0);
    let last = labels.iter().map(|(span, _)| span.end as usize).max().unwrap_or(0);
    let first = floor_boundary(source, first);
    let last = floor_boundary(source, last.max(first));
    let start = source[..first].rfind('\n').map_or(0, |at| at + 1);
    let end = source[last..].find('\n').map_or(source.len(), |at| last + at);
    start..end
}

fn clamp_to_window(source: &str, span: &Span, window: &Range<usize>) -> Range<usize> {
    let start = floor_boundary(source, span.start as usize).clamp(window.start, window.end);
    let end = floor_boundary(source, span.end as usize).clamp(start, window.end);
    start - window.start..end - window.start
}

fn floor_boundary(source: &str, at: usize) -> usize {
    let at = at.min(source.len());
    (0..=at).rev().find(|at| source.is_char_boundary(*at)).unwrap_or(0)
}

/// The candidate that a mistyped `name` most likely meant.
pub fn most_similar<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length < 3 {
        // By edit distance, any other short name would be as close.
        return candidates
            .into_iter()
            .find(|candidate| candidate.eq_ignore_ascii_case(name) && *candidate != name);
    }
    let limit = (length / 3).max(1);
    candidates
        .into_iter()
        .filter(|candidate| *candidate != name)
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}
