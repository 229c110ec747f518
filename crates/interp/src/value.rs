//! Defines the interface of the values of expressions ([`Value`]). There are two kinds: plain
//! numbers, and numbers with a bound on the error of kernels (`bounded/`).
//!
//! The code in `state.rs` and `program.rs` is generic over the kind. For plain numbers every
//! decision is certain and a tensor stores nothing but its elements. The compiler therefore removes
//! all code for bounds from the plain interpreter.

use tilewright_ir::{BinaryOp, Builtin, DType, Number, ReduceOp, Tensor, UnaryOp, arithmetic};

/// A value of an expression.
pub(crate) trait Value: Copy {
    /// The data that a tensor stores in addition to its elements.
    type Annotations: Default;
    /// The state of a reduction in progress.
    type Total: Copy;

    /// Whether values have a bound on the error of kernels.
    const HAS_BOUNDS: bool;

    /// A number that is the same in every kernel.
    fn exact(number: Number) -> Self;
    /// The number that the interpreter computes.
    fn number(self) -> Number;
    /// Checks whether this value has the same truth value in every kernel.
    fn has_certain_truth(self) -> bool;
    /// Checks whether this value is exactly the same number in every kernel.
    fn is_exact(self) -> bool;
    /// The greatest absolute value in any kernel.
    fn magnitude(self) -> f64;
    /// The same float of a type, which in kernels may be this much further away.
    fn widened(self, by: f64, dtype: DType) -> Self;
    /// The same number, marked as unknown in kernels.
    fn as_undecided(self) -> Self;

    /// `op self`, as a value of `dtype`.
    fn unary(self, op: UnaryOp, dtype: DType) -> Self;
    /// `self op right`; `dtype` is the type of the result.
    fn binary(self, op: BinaryOp, right: Self, dtype: DType) -> Self;
    /// A mathematical function.
    fn call(builtin: Builtin, arguments: &[Self], dtype: DType) -> Self;
    /// The value converted to another type.
    fn convert(self, dtype: DType) -> Self;
    /// This value, or `other` in kernels that decide a condition differently. `other` is `None` if
    /// it cannot be computed.
    fn or_alternative(self, other: Option<Self>) -> Self;

    /// Begins a reduction with a value, or with the neutral element.
    fn begin_reduction(op: ReduceOp, first: Option<Self>, dtype: DType) -> Self::Total;
    /// Reduces one more value into a total.
    fn reduce(total: Self::Total, op: ReduceOp, value: Self, dtype: DType) -> Self::Total;
    /// The result of a reduction whose partial results kernels store in `partial_type`.
    fn end_reduction(total: Self::Total, partial_type: DType) -> Self;

    /// The element at `index` in row-major order.
    fn load(tensor: &Tensor, annotations: &Self::Annotations, index: usize) -> Self;
    /// Stores a value, converted to the type of the elements, at `index`.
    fn store(self, tensor: &mut Tensor, annotations: &mut Self::Annotations, index: usize);
    /// Marks every element as unknown in kernels, because it is not certain which element was
    /// stored to.
    fn mark_undecided(tensor: &Tensor, annotations: &mut Self::Annotations);
}

impl Value for Number {
    type Annotations = ();
    type Total = Number;
    const HAS_BOUNDS: bool = false;

    fn exact(number: Number) -> Number {
        number
    }

    fn number(self) -> Number {
        self
    }

    fn has_certain_truth(self) -> bool {
        true
    }

    fn is_exact(self) -> bool {
        true
    }

    fn magnitude(self) -> f64 {
        self.as_f64().abs()
    }

    fn widened(self, _: f64, _: DType) -> Number {
        self
    }

    fn as_undecided(self) -> Number {
        self
    }

    fn unary(self, op: UnaryOp, dtype: DType) -> Number {
        arithmetic::unary(op, self, dtype)
    }

    fn binary(self, op: BinaryOp, right: Number, dtype: DType) -> Number {
        arithmetic::binary(op, self, right, dtype)
    }

    fn call(builtin: Builtin, arguments: &[Number], dtype: DType) -> Number {
        arithmetic::call(builtin, arguments, dtype)
    }

    fn convert(self, dtype: DType) -> Number {
        Number::convert(self, dtype)
    }

    fn or_alternative(self, _: Option<Number>) -> Number {
        self
    }

    fn begin_reduction(op: ReduceOp, first: Option<Number>, dtype: DType) -> Number {
        first.unwrap_or_else(|| arithmetic::neutral(op, dtype))
    }

    fn reduce(total: Number, op: ReduceOp, value: Number, dtype: DType) -> Number {
        arithmetic::reduce(op, total, value, dtype)
    }

    fn end_reduction(total: Number, _: DType) -> Number {
        total
    }

    fn load(tensor: &Tensor, (): &(), place: usize) -> Number {
        tensor.get(place)
    }

    fn store(self, tensor: &mut Tensor, (): &mut (), place: usize) {
        tensor.set(place, self);
    }

    fn mark_undecided(_: &Tensor, (): &mut ()) {}
}
