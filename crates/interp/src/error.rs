//! Defines the errors that stop a run of a program or a loop nest ([`RunError`]), and describes
//! them in words.

use thiserror::Error;
use tilewright_ir::Origin;
use tilewright_ir::derived::DerivedMismatch;
use tilewright_ir::tensor::TensorError;

/// The reason why a run of a program or a loop nest stopped early.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RunError {
    /// The program still has sizes without a value.
    #[error("size `{0}` has no value")]
    UnknownSize(String),
    /// A tensor or scalar that the caller must supply is missing.
    #[error("`{0}` was not supplied: pass a tensor or a scalar with this name")]
    Missing(String),
    /// A supplied tensor does not have the type or the shape that the program declares.
    #[error("`{name}` must be {wanted}, and is {found}")]
    Mismatch {
        /// The tensor.
        name: String,
        /// The declared type and shape.
        wanted: String,
        /// The supplied type and shape.
        found: String,
    },
    /// The scalars do not belong to the sizes of the program.
    #[error(transparent)]
    Derived(#[from] Box<DerivedMismatch>),
    /// A tensor could not be allocated.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// An index was outside its tensor.
    #[error("{}", .0.describe())]
    OutOfBounds(Box<OutOfBounds>),
    /// An element was needed that nothing had defined.
    #[error("{}", .0.describe())]
    Undefined(Box<Undefined>),
    /// Two threads of a GPU accessed one element in conflict, and no barrier ordered the accesses.
    #[error("{}", .0.describe())]
    Race(Box<Race>),
    /// The caller stopped the run.
    #[error("the caller stopped the run")]
    Stopped,
}

/// An access outside its tensor, and the point at which it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutOfBounds {
    /// The tensor.
    pub tensor: String,
    /// The tensor's shape.
    pub shape: Vec<usize>,
    /// The accessed element.
    pub element: Vec<i64>,
    /// The dimension whose index is outside.
    pub dimension: usize,
    /// The lower and upper bound that a `where` clause declares, if the index violates that
    /// declaration.
    pub declared_bounds: Option<(i64, i64)>,
    /// The live variables and their values.
    pub point: Vec<(String, i64)>,
    /// The source position of the access.
    pub origin: Origin,
}

/// A race: two threads touch one element, at least one of them writes it, and no barrier is
/// between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Race {
    /// The buffer.
    pub tensor: String,
    /// The element.
    pub element: Vec<usize>,
    /// The thread of the first access, and the kind of access.
    pub first: String,
    /// The thread of the second access, and the kind of access.
    pub second: String,
}

impl Race {
    fn describe(&self) -> String {
        let Race { tensor, element, first, second } = self;
        format!(
            "race on {tensor}{element:?}: {first} the element, and {second} it with no barrier \
             in between"
        )
    }
}

/// An element that was needed before anything had defined it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undefined {
    /// The tensor.
    pub tensor: String,
    /// The element.
    pub element: Vec<usize>,
    /// The live variables and their values; empty for a result that was never defined.
    pub point: Vec<(String, i64)>,
    /// The source position of the access.
    pub origin: Origin,
}

impl Undefined {
    /// Describes the error in one sentence.
    pub fn describe(&self) -> String {
        let element: Vec<String> = self.element.iter().map(usize::to_string).collect();
        format!("`{}({})` is needed, but nothing has defined it", self.tensor, element.join(", "))
    }
}

impl OutOfBounds {
    /// Describes the error in one sentence.
    pub fn describe(&self) -> String {
        let element: Vec<String> = self.element.iter().map(i64::to_string).collect();
        let index = self.element[self.dimension];
        match self.declared_bounds {
            Some((from, to)) => {
                format!("a computed index is {index}, but `where` declares the range {from}:{to}")
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
