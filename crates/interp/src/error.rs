//! Why a run did not come to its end.

use thiserror::Error;
use tilewright_ir::Origin;
use tilewright_ir::tensor::TensorError;

/// Why a program could not be run to its end.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RunError {
    /// The program still has sizes without a value.
    #[error("size `{0}` has no value")]
    OpenSize(String),
    /// A tensor or scalar that the caller must supply is missing.
    #[error("`{0}` was not supplied")]
    Missing(String),
    /// A supplied tensor does not have the type or shape that the program says.
    #[error("`{name}` must be {wanted}, and is {found}")]
    Mismatch {
        /// The tensor.
        name: String,
        /// What the program says.
        wanted: String,
        /// What was supplied.
        found: String,
    },
    /// A tensor could not be made.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An index left its tensor.
    #[error("{}", .0.describe())]
    OutOfBounds(Box<OutOfBounds>),
    /// An element was needed that nothing had defined.
    #[error("{}", .0.describe())]
    Undefined(Box<Undefined>),
    /// Two threads of a GPU touched one element, and nothing kept them apart.
    #[error("{}", .0.describe())]
    Race(Box<Race>),
    /// The caller asked to stop.
    #[error("stopped")]
    Stopped,
}

/// An access that left its tensor, and where the program was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The tensor.
    pub tensor: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// The element that was asked for.
    pub element: Vec<i64>,
    /// The dimension whose index is outside.
    pub dimension: usize,
    /// Lower and upper bound that a `where` clause declared, if that is what was broken.
    pub declared: Option<(i64, i64)>,
    /// The variables and their values.
    pub point: Vec<(String, i64)>,
    /// Where the access was written.
    pub origin: Origin,
}

/// Two threads that touch one element, of which at least one writes it, without a barrier between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The buffer.
    pub tensor: String,
    /// The element.
    pub element: Vec<usize>,
    /// Who touched it first, and how.
    pub first: String,
    /// Who touched it then, and how.
    pub second: String,
}

impl Race {
    fn describe(&self) -> String {
        let Race { tensor, element, first, second } = self;
        format!("a race for {tensor}{element:?}: {first} it, and {second} it without a barrier between")
    }
}

/// An element that was needed before anything defined it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The tensor.
    pub tensor: String,
    /// The element.
    pub element: Vec<usize>,
    /// The variables and their values; empty for a result that was never defined.
    pub point: Vec<(String, i64)>,
    /// Where the access was written.
    pub origin: Origin,
}

impl Undefined {
    /// What happened, in one sentence.
    pub fn describe(&self) -> String {
        let element: Vec<String> = self.element.iter().map(usize::to_string).collect();
        format!("`{}({})` is needed, but nothing has defined it", self.tensor, element.join(", "))
    }
}

impl OutOfBounds {
    /// What happened, in one sentence.
    pub fn describe(&self) -> String {
        let element: Vec<String> = self.element.iter().map(i64::to_string).collect();
        let index = self.element[self.dimension];
        match self.declared {
            Some((from, to)) => {
                format!("a computed index is {index}, but `where` says that it is in {from}:{to}")
            }
            None => {
                let last = self.shape[self.dimension] as i64 - 1;
                let place = if self.shape.len() == 1 {
                    String::new()
                } else {
                    format!(" of dimension {}", self.dimension)
                };
                format!(
                    "`{}({})` does not exist: index {index}{place} must be in 0 to {last}",
                    self.tensor,
                    element.join(", ")
                )
            }
        }
    }
}
