//! Why a variable has the range it has.

use std::fmt;

use crate::span::Span;

/// What determined the range of a variable, and where that stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The place in the text.
    pub span: Span,
    /// What it is.
    pub kind: ReasonKind,
}

/// What can determine a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReasonKind {
    /// A `where` clause.
    Where,
    /// The bounds of an ordered loop.
    Loop,
    /// An access that must stay in bounds.
    Access {
        /// The access as text.
        access: String,
        /// The variable's name.
        variable: String,
        /// The greatest value that the access allows.
        last: String,
    },
}

impl fmt::Display for ReasonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReasonKind::Where => f.write_str("`where` says so"),
            ReasonKind::Loop => f.write_str("the loop says so"),
            ReasonKind::Access { access, variable, last } => {
                write!(f, "`{access}` allows {variable} up to {last}")
            }
        }
    }
}
