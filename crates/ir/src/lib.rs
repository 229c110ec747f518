//! What to compute, apart from any surface language.
//!
//! A [`Program`] holds its tensors, its symbolic sizes and its stages in order; a stage defines one tensor by
//! statements over boxes of index variables. Subscripts are [`IndexExpr`]s, kept in one normal form so that
//! equal subscripts compare equal; values are [`Expr`]s with a data type on every node.
//!
//! What holds everywhere:
//! - every node of a [`Program`] that [`verify()`] accepts is typed, and every id points into its own table;
//! - sizes are at least 1, and integer scalars that multiply or divide an index are positive;
//! - integer division and remainder round toward minus infinity, and integer arithmetic wraps.
//!
//! A [`LoopNest`] says how to compute a program: its loops, buffers and stores spelled out.
//!
//! [`arithmetic`] says what operators and functions do to single numbers. Read next: [`program`] for the shape of a
//! program, [`index`] for subscripts, [`prove`] for what can be shown about them, [`nest`] for loops.

pub mod arithmetic;
pub mod dtype;
pub mod expr;
pub mod index;
pub mod interval;
pub mod nest;
pub mod print;
pub mod program;
pub mod prove;
pub mod tensor;
pub mod verify;
pub mod verify_nest;

pub use dtype::DType;
pub use expr::{Access, BinaryOp, Builtin, Expr, ExprKind, Number, Origin, UnaryOp};
pub use index::{Atom, Data, IndexExpr, Term};
pub use nest::LoopNest;
pub use program::{
    ForLoop, Node, Program, Range, ReduceOp, Role, Scalar, ScalarId, Stage, Statement, Symbol, SymbolId,
    SymbolKind, TensorDecl, TensorId, Update, Var, VarId, VarKind,
};
pub use tensor::Tensor;
pub use verify::verify;
pub use verify_nest::verify_nest;
