//! What expressions compute with: plain numbers, or numbers with a bound on how far kernels may be from them.
//!
//! `state.rs` and `program.rs` walk a program once for both. For plain numbers every decision is certain and nothing is kept
//! beside the elements of a tensor, so that the compiler leaves no trace of the other kind in the plain interpreter.

use tilewright_ir::{BinaryOp, Builtin, DType, Number, ReduceOp, Tensor, UnaryOp, arithmetic};

/// A value of an expression.
pub(crate) trait Value: Copy {
    /// What a tensor keeps beside its elements.
    type Beside: Default;
    /// A reduction that is not over.
    type Total: Copy;

    /// A number that every kernel agrees on.
    fn exact(number: Number) -> Self;
    /// What the interpreter computes.
    fn number(self) -> Number;
    /// Whether every kernel finds the same of this value: true, or false.
    fn has_certain_truth(self) -> bool;
    /// Whether every kernel has this very number.
    fn is_exact(self) -> bool;
    /// The same number, of which nothing is known in kernels.
    fn undecided(self) -> Self;

    /// `op self`, as a value of `dtype`.
    fn unary(self, op: UnaryOp, dtype: DType) -> Self;
    /// `self op right`; `dtype` is the type of the result.
    fn binary(self, op: BinaryOp, right: Self, dtype: DType) -> Self;
    /// A mathematical function.
    fn call(builtin: Builtin, arguments: &[Self], dtype: DType) -> Self;
    /// The value as one of another type.
    fn convert(self, dtype: DType) -> Self;
    /// This value, or the other in kernels that decide a condition otherwise; `None` if the other cannot be computed.
    fn or_other(self, other: Option<Self>) -> Self;

    /// A reduction that begins with a value, or with the neutral element.
    fn begin(op: ReduceOp, first: Option<Self>, dtype: DType) -> Self::Total;
    /// One more value reduced into a total.
    fn reduce(total: Self::Total, op: ReduceOp, value: Self, dtype: DType) -> Self::Total;
    /// The result of a reduction whose partial results kernels keep in a type.
    fn end(total: Self::Total, kept_in: DType) -> Self;

    /// The element at a place.
    fn load(tensor: &Tensor, beside: &Self::Beside, place: usize) -> Self;
    /// Stores a value, converted to the type of the elements, at a place.
    fn store(self, tensor: &mut Tensor, beside: &mut Self::Beside, place: usize);
    /// Makes every element undecided: one of them was stored to, and it is not known which.
    fn blur(tensor: &Tensor, beside: &mut Self::Beside);
}

impl Value for Number {
    type Beside = ();
    type Total = Number;

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

    fn undecided(self) -> Number {
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

    fn or_other(self, _: Option<Number>) -> Number {
        self
    }

    fn begin(op: ReduceOp, first: Option<Number>, dtype: DType) -> Number {
        first.unwrap_or_else(|| arithmetic::neutral(op, dtype))
    }

    fn reduce(total: Number, op: ReduceOp, value: Number, dtype: DType) -> Number {
        arithmetic::reduce(op, total, value, dtype)
    }

    fn end(total: Number, _: DType) -> Number {
        total
    }

    fn load(tensor: &Tensor, (): &(), place: usize) -> Number {
        tensor.get(place)
    }

    fn store(self, tensor: &mut Tensor, (): &mut (), place: usize) {
        tensor.set(place, self);
    }

    fn blur(_: &Tensor, (): &mut ()) {}
}
