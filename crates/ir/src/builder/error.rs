//! Defines [`BuildError`], a mistake that a program builder reports, and [`TypeError`], a mistake
//! in the types of operands.

use thiserror::Error;

use crate::check::Finding;
use crate::verify::InvalidProgram;

/// A mistake that [`ProgramBuilder::build`](super::ProgramBuilder::build) found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum BuildError {
    /// A name that is not made of letters, digits and underscores.
    #[error("`{0}` is not a valid name: use letters, digits and `_`, and no digit first")]
    InvalidName(String),
    /// Two things of the same name.
    #[error("two sizes, scalars, tensors or variables are called `{0}`")]
    NameTaken(String),
    /// A value was given for a size that does not exist.
    #[error("there is no size or index scalar `{0}`")]
    UnknownSize(String),
    /// A size or scalar is below its least value.
    #[error("`{name}` must be at least {least}, and is {value}")]
    SizeTooSmall {
        /// The name of the size or scalar.
        name: String,
        /// The least value.
        least: i64,
        /// The given value.
        value: i64,
    },
    /// The wrong number of subscripts.
    #[error("`{tensor}` has {rank} dimensions, but {found} subscripts are given")]
    RankMismatch {
        /// The name of the tensor.
        tensor: String,
        /// The number of its dimensions.
        rank: usize,
        /// The number of subscripts.
        found: usize,
    },
    /// A value of the wrong type.
    #[error("in a statement of `{tensor}`: {error}")]
    TypeMismatch {
        /// The tensor that the statement writes.
        tensor: String,
        /// The mistake.
        error: TypeError,
    },
    /// A handle of another builder.
    #[error("a size, tensor, scalar or variable belongs to another builder")]
    ForeignHandle,
    /// The variable of an ordered loop, outside of the loop.
    #[error("`{0}` is the variable of an ordered loop that ends before this statement")]
    OutsideLoop(String),
    /// An output whose first use is a read.
    #[error("`{0}` is read before the program defines it: declare it with `in_out`")]
    ReadOutput(String),
    /// The parts of the program do not fit together.
    #[error(transparent)]
    InvalidForm(#[from] InvalidProgram),
    /// The program does not mean anything, or not the same for all orders of execution.
    #[error("{text}")]
    CheckFailed {
        /// The finding of the checks. Its positions are those of the statements in the order in
        /// which they were added.
        finding: Box<Finding>,
        /// The finding as a sentence.
        text: String,
    },
}

/// Operands whose types do not fit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct TypeError(pub(super) String);
