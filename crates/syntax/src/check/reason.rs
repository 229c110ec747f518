//! Defines [`Reason`], the origin of a variable's range: a `where` clause, an ordered loop, an
//! access, or an access through a view.

use std::fmt;

use crate::span::Span;

/// The origin of a variable's range, and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The position in the text.
    pub span: Span,
    /// The kind of reason.
    pub kind: ReasonKind,
}

/// The origins that a range can have.
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
    /// An access through a view, which could be anywhere.
    View {
        /// The access as text.
        access: String,
        /// The variable's name.
        variable: String,
        /// The greatest value of the variable inside the tensor, without the offset of the access.
        last: String,
    },
}

impl fmt::Display for ReasonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReasonKind::Where => f.write_str("declared by `where`"),
            ReasonKind::Loop => f.write_str("declared by the loop"),
            ReasonKind::Access { access, variable, last } => {
                write!(f, "`{access}` allows {variable} up to {last}")
            }
            ReasonKind::View { access, variable, last } => {
                write!(f, "the view `{access}` takes {variable} up to {last}")
            }
        }
    }
}
