//! Defines the intermediate representation of programs, independent of any surface language.
//!
//! A [`Program`] holds its tensors, its symbolic sizes and its stages in order. A stage defines one
//! tensor by statements over boxes of index variables. Subscripts are [`IndexExpr`]s in one normal
//! form, so that equal subscripts compare equal. Values are [`Expr`]s with a data type on every
//! node.
//!
//! Invariants:
//! - every node of a [`Program`] that [`verify()`] accepts is typed, and every id points into its
//!   own table; its accesses are in bounds or are checked when it runs, and its elements are
//!   written once and defined before they are read;
//! - sizes are at least 1, sizes that are [`Derived`] from scalars at least 0, and integer scalars
//!   and derived sizes that multiply or divide an index are positive;
//! - integer division and remainder round toward minus infinity, and integer arithmetic wraps.
//!
//! An [`UncheckedProgram`](unchecked::UncheckedProgram) is a program before its checks.
//! [`mod@check`] checks its meaning, by the same rules for every front end.
//!
//! A [`LoopNest`] says how to compute a program, with explicit loops, buffers and stores. Its
//! expressions are those of programs with other [`ids`], and so of other types.
//!
//! [`arithmetic`] defines operators and functions on single numbers. Read next: [`program`] for the
//! structure of a program, [`index`] for subscripts, [`prove`] for proofs about subscripts,
//! [`nest`] for loops, [`walk`] for passes over loops.

pub mod arithmetic;
mod at_sizes;
pub mod builder;
pub mod check;
pub mod derived;
pub mod dtype;
pub mod expr;
pub mod ids;
pub mod index;
pub mod interval;
pub mod nest;
pub mod number;
pub mod operators;
pub mod precondition;
pub mod print;
pub mod program;
pub mod prove;
pub mod tensor;
pub mod unchecked;
pub mod verify;
pub mod verify_nest;
pub mod walk;

pub use builder::ProgramBuilder;
pub use derived::Derived;
pub use dtype::DType;
pub use expr::{Access, Expr, ExprKind, Origin};
pub use index::{Atom, Data, IndexExpr, Term};
pub use nest::LoopNest;
pub use number::Number;
pub use operators::{BinaryOp, Builtin, UnaryOp};
pub use precondition::Precondition;
pub use program::{
    ForLoop, Node, Program, Range, ReduceOp, Role, Scalar, ScalarId, Stage, Statement, Symbol, SymbolId,
    SymbolKind, TensorDecl, TensorId, Update, Var, VarId, VarKind,
};
pub use tensor::Tensor;
pub use verify::{verify, verify_form};
pub use verify_nest::{VerifiedNest, verify_nest};
