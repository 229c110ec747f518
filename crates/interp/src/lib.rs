//! Evaluates programs and loop nests naively. The results are the reference for all other tests,
//! also called the oracle.
//!
//! The interpreter runs a statement of a program as a loop over all points of its box, and
//! evaluates the expression tree at each point. Nothing is reordered, cached or vectorised, so the
//! code itself shows what is computed. Integers are computed exactly and wrapped to their type
//! after every operation. Floats are computed in double precision and rounded to their type after
//! every operation, which for float32 gives the same bits as float32 arithmetic. Reductions
//! accumulate in double precision or in wide integers and are rounded once, so the oracle is more
//! exact than any order of summation.
//!
//! [`run_nest()`] runs a loop nest as it is written, to show that the nest computes what its
//! program says. The head of `nest.rs` lists the differences to the evaluation of programs.
//!
//! Every access is checked against its tensor, and every element that is read must have been
//! written, even where the checker has proved it. An access that depends on data can fail here. Any
//! other failure is a bug of the checker or of the code that built the loop nest.
//!
//! [`expect`] runs a program and computes an error bound for every value: how far the value of a
//! legal kernel may be from the interpreter's (`bounded/`).
//!
//! [`tilewright_ir::arithmetic`] defines operators and functions on single numbers. Read
//! `program.rs` or `nest.rs` first, then `state.rs`, with which both evaluate expressions, and
//! `value.rs`, which defines the values of expressions. [`seed`] makes inputs, and [`compare`]
//! compares the results of kernels with those of the oracle.

mod bounded;
pub mod compare;
mod error;
mod memory;
mod nest;
mod program;
mod races;
mod recurrence;
pub mod seed;
mod state;
mod value;

pub use compare::{Difference, Expected, NotCompared};
pub use error::{OutOfBounds, Race, RunError, Undefined};
pub use memory::Inputs;
pub use nest::{Order, run_nest};
pub use program::{
    bytes_to_expect, bytes_to_run, count_points, expect, expect_with_progress, run, run_with_progress,
};
