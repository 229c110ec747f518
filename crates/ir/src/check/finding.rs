//! Defines [`Finding`], the result of a check: the part of an unchecked program that is at fault,
//! and the values of sizes and variables at which it is.

use super::witness::Witness;
use crate::program::{TensorId, VarId};

/// Why a comparison of sizes has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Undefined {
    /// A divisor is 0.
    DivisionByZero,
    /// A number exceeds 64 bits.
    TooLarge,
}

/// A mistake in an unchecked program, or a claim that is neither proved nor refuted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The precondition at this position fails at the given sizes.
    PreconditionFails(usize),
    /// The precondition at this position has no value at the given sizes.
    PreconditionUndefined(usize, Undefined),
    /// No sizes satisfy the precondition at this position together with the others.
    Unsatisfiable(usize),
    /// A number that does not fit 64-bit arithmetic.
    TooLarge(LargeNumber),
    /// A variable without any value, for all sizes.
    EmptyRange(VarId),
    /// A tensor without elements.
    EmptyTensor {
        /// The tensor.
        tensor: TensorId,
        /// The dimension.
        dimension: usize,
        /// The extent of the dimension.
        extent: i64,
    },
    /// An access that leaves its tensor.
    OutOfBounds {
        /// The access.
        access: AccessId,
        /// The dimension in which the access leaves the tensor.
        dimension: usize,
        /// The index there.
        index: i64,
        /// The extent there.
        extent: i64,
        /// The sizes and variables at which the access leaves the tensor.
        witness: Witness,
    },
    /// An access that was neither proved in bounds nor refuted. It is checked when the program
    /// runs.
    MaybeOutOfBounds {
        /// The access.
        access: AccessId,
        /// The dimension.
        dimension: usize,
    },
    /// An assignment whose value takes many values for one element.
    MissingReduction {
        /// The statement.
        statement: usize,
        /// The first variable that no index of the left-hand side mentions.
        var: VarId,
    },
    /// An assignment to an element whose index depends on data.
    ComputedWrite {
        /// The statement.
        statement: usize,
        /// The dimension whose index depends on data.
        dimension: usize,
    },
    /// An assignment that writes one element twice.
    RepeatedWrite {
        /// The statement.
        statement: usize,
        /// The element.
        element: Vec<i64>,
        /// The point that writes the element first.
        first: Witness,
        /// The point that writes the element again.
        second: Witness,
    },
    /// An assignment that was not proved to write each element once.
    MaybeRepeatedWrite {
        /// The statement.
        statement: usize,
    },
    /// A reduction that resets its target and reads the same tensor.
    ResetInPlace {
        /// The statement.
        statement: usize,
        /// The position of the read in the statement.
        read: usize,
        /// Whether the read is of the same element, and nothing is reduced.
        is_update: bool,
    },
    /// A statement that reads elements which it overwrites.
    InPlace {
        /// The statement.
        statement: usize,
        /// The position of the read in the statement.
        read: usize,
        /// Whether the read is of the same element that the statement reduces into.
        is_same: bool,
    },
    /// A temporary whose first use is a read.
    ReadBeforeWrite {
        /// The tensor.
        tensor: TensorId,
        /// The statement.
        statement: usize,
        /// The position of the read, or `None` where the statement reduces into the tensor.
        read: Option<usize>,
    },
    /// A result whose first use is a reduction into it, so that the caller supplies it.
    UninitializedReduction {
        /// The result.
        tensor: TensorId,
        /// The statement.
        statement: usize,
    },
    /// A read of an element that no earlier statement defines.
    UndefinedRead {
        /// The tensor.
        tensor: TensorId,
        /// The element.
        element: Vec<i64>,
        /// The access, which is the target where a statement reduces into the element.
        access: AccessId,
        /// The sizes and variables at which the element is read.
        witness: Witness,
    },
    /// A result with an element that no statement defines.
    UndefinedResult {
        /// The result.
        tensor: TensorId,
        /// The element.
        element: Vec<i64>,
        /// The sizes at which the element is undefined.
        witness: Witness,
    },
    /// A tensor that may have undefined elements: there is neither a proof nor a counterexample.
    MaybeUndefined(TensorId),
}

/// An access of an unchecked program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessId {
    /// The position of the statement in the unchecked program.
    pub statement: usize,
    /// The position of the read in the statement, or `None` for the element that it writes.
    pub read: Option<usize>,
}

/// The place of a number that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LargeNumber {
    /// The range of a variable.
    Range(VarId),
    /// An extent of a tensor.
    Extent(TensorId),
    /// A subscript of an access.
    Subscript(AccessId),
    /// An index in the statement at this position.
    Statement(usize),
}

impl Finding {
    /// Returns true when the finding refuses the program. Other findings are warnings: the compiler
    /// inserts a check at run time or a fill, or the caller supplies a tensor.
    pub fn is_error(&self) -> bool {
        !matches!(
            self,
            Finding::MaybeOutOfBounds { .. }
                | Finding::MaybeUndefined(_)
                | Finding::UninitializedReduction { .. }
        )
    }
}
