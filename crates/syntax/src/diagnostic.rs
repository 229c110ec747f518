//! What went wrong, where, and what to write instead.
//!
//! A [`Diagnostic`] is data: a [`Code`], a sentence, labelled places in the source, notes and suggestions. Drawing
//! it is left to `annotate-snippets`, which the Rust compiler's own messages use.

use std::fmt;
use std::ops::Range;

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::span::Span;

/// How bad it is.
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
    /// Nesting or size beyond what is accepted.
    TooComplex "too-complex",
    /// A name that nothing defines.
    UndefinedName "undefined-name",
    /// Two things with one name.
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
    /// A range without a value.
    EmptyRange "empty-range",
    /// A bound of a range that is not of sizes alone.
    InvalidRange "invalid-range",
    /// An access outside its tensor.
    OutOfBounds "out-of-bounds",
    /// A statement that reads elements which it overwrites.
    InPlace "in-place",
    /// A reduction that starts anew and reads the tensor it resets.
    ResetInPlace "reset-in-place",
    /// A variable on the right alone, without a reduction operator.
    MissingReduction "missing-reduction",
    /// A left-hand side that names one element more than once.
    RepeatedWrite "repeated-write",
    /// An assignment to something that cannot be assigned.
    InvalidTarget "invalid-target",
    /// An element that no statement defines.
    UndefinedElement "undefined-element",
    /// A tensor that is read before anything defines it.
    ReadBeforeWrite "read-before-write",
    /// A reduction over what nothing initialised.
    UninitializedReduction "uninitialized-reduction",
    /// A temporary that nothing reads.
    UnusedTensor "unused-tensor",
    /// A size that is missing, not positive or too large.
    InvalidSize "invalid-size",
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A message about a place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Which kind.
    pub code: Code,
    /// What is wrong, in one sentence.
    pub message: String,
    /// The place it is about, and what to say there.
    pub primary: (Span, String),
    /// Places that explain it.
    pub secondary: Vec<(Span, String)>,
    /// What was inferred, and from where.
    pub notes: Vec<String>,
    /// What to write instead.
    pub help: Vec<String>,
}

impl Diagnostic {
    /// An error at a place.
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

    /// A warning at a place.
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, span, message) }
    }

    /// What to say at the place itself.
    pub fn label(mut self, text: impl Into<String>) -> Diagnostic {
        self.primary.1 = text.into();
        self
    }

    /// Another place that explains it.
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Diagnostic {
        self.secondary.push((span, text.into()));
        self
    }

    /// What was inferred.
    pub fn note(mut self, text: impl Into<String>) -> Diagnostic {
        self.notes.push(text.into());
        self
    }

    /// What to write instead.
    pub fn help(mut self, text: impl Into<String>) -> Diagnostic {
        self.help.push(text.into());
        self
    }

    /// Whether the program is refused.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// The message drawn with the lines of source it is about.
    pub fn render(&self, path: &str, source: &str, style: Style) -> String {
        let level = if self.is_error() { Level::ERROR } else { Level::WARNING };
        let near = |span: &Span| !on_one_endless_line(source, &self.primary.0, span);
        let secondary = self.secondary.iter().filter(|(span, _)| near(span));
        let labels: Vec<(&Span, &String)> =
            std::iter::once(&self.primary).chain(secondary).map(|(span, text)| (span, text)).collect();
        let window = window(source, &labels);
        let place = |span: &Span| clamp(source, span, &window);
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

/// How to draw.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// With terminal colours.
    pub color: bool,
    /// Longer source lines are trimmed.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style { color: false, width: 140 }
    }
}

/// Whether two places are so far apart on one line that drawing both would fill the screen.
fn on_one_endless_line(source: &str, left: &Span, right: &Span) -> bool {
    let (first, last) = (left.start.min(right.start) as usize, left.end.max(right.end) as usize);
    let between = source.as_bytes().get(first..last.min(source.len())).unwrap_or_default();
    between.len() > 1000 && !between.contains(&b'\n')
}

/// The lines around the labels, so that drawing does not depend on the length of the file.
fn window(source: &str, labels: &[(&Span, &String)]) -> Range<usize> {
    let first = labels.iter().map(|(span, _)| span.start as usize).min().unwrap_or(0);
    let last = labels.iter().map(|(span, _)| span.end as usize).max().unwrap_or(0);
    let first = floor_boundary(source, first);
    let last = floor_boundary(source, last.max(first));
    let start = source[..first].rfind('\n').map_or(0, |at| at + 1);
    let end = source[last..].find('\n').map_or(source.len(), |at| last + at);
    start..end
}

fn clamp(source: &str, span: &Span, window: &Range<usize>) -> Range<usize> {
    let start = floor_boundary(source, span.start as usize).clamp(window.start, window.end);
    let end = floor_boundary(source, span.end as usize).clamp(start, window.end);
    start - window.start..end - window.start
}

fn floor_boundary(source: &str, at: usize) -> usize {
    let at = at.min(source.len());
    (0..=at).rev().find(|at| source.is_char_boundary(*at)).unwrap_or(0)
}

/// The name among `candidates` that a mistyped `name` most likely meant.
pub fn similar<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let length = name.chars().count();
    if length < 3 {
        // Any other short name is as close.
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
