//! Defines [`Span`], a position in the source text as a range of bytes.

use tilewright_ir::Origin;

/// A range of bytes of the source text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` to `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// The span from the start of this span to the end of the other.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns true when the other span lies inside this one.
    pub fn contains(self, other: Span) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// The same byte range as an `Origin` of the intermediate representation.
    pub fn origin(self) -> Origin {
        Origin { start: self.start, end: self.end }
    }

    /// The text that the span covers.
    pub fn text(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl From<Origin> for Span {
    fn from(origin: Origin) -> Span {
        Span { start: origin.start, end: origin.end }
    }
}
