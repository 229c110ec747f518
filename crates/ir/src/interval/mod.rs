//! Computes intervals that contain the values of index expressions.
//!
//! | file | result |
//! |---|---|
//! | `symbolic` | bounds over boxes of variables, as expressions of the sizes |
//! | `numeric` | bounds as numbers, from the numbers that bound each variable |
//! | `value` | bounds of the integers that a value expression can have |
//!
//! Programs have symbolic sizes, so the checker and the steps of schedules ask for symbolic bounds.
//! The sizes of a loop nest are numbers: code generators and proofs ask for numeric bounds.

mod numeric;
mod symbolic;
mod value;

pub use numeric::{Interval, Intervals, interval, interval_of_atom};
pub use symbolic::{Knowledge, is_nonnegative_by_least_values, lower_bound, upper_bound};
pub use value::interval_of_value;

/// An end of the interval of an expression's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The least value.
    Low,
    /// The greatest value.
    High,
}

impl End {
    /// The other end: that of the negated expression.
    pub fn flip(self) -> End {
        match self {
            End::Low => End::High,
            End::High => End::Low,
        }
    }
}
