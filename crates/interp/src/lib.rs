//! Naive evaluation of programs and of loop nests: the oracle for everything else.
//!
//! In a program, every statement is a loop over all points of its box that walks the expression tree. Nothing is
//! reordered, cached or vectorised, so what it computes can be seen from the code. Integers are computed exactly and
//! wrapped to their type after every operation; floats are computed in double precision and rounded to their type
//! after every operation, which for float32 gives the same bits as float32 arithmetic. Reductions accumulate in
//! double precision or in wide integers and are rounded once, so the oracle is more exact than any order of
//! summation.
//!
//! A loop nest is run as it is written, by [`run_nest()`], which says what differs: it is there to show that a nest
//! computes what its program says.
//!
//! Every access is checked against its tensor, and every element that is read must have been written, also where
//! the checker has proved it: what depends on data can fail here, and any other failure is a bug of the checker or
//! of who built the loop nest.
//!
//! [`expect`] runs a program with a bound for every value: how far that of a legal kernel may be from it (`bounded/`).
//!
//! What operators and functions do to single numbers is in [`tilewright_ir::arithmetic`]. Read `program.rs` or
//! `nest.rs` first, then `state.rs`, which both evaluate expressions with, and `value.rs`, which says what these are made of.
//! [`seed`] makes inputs, and [`compare`] judges results of others by the oracle's.

mod bounded;
pub mod compare;
mod error;
mod memory;
mod nest;
mod program;
mod races;
pub mod seed;
mod state;
mod value;

pub use compare::{Difference, Doubt, Expected};
pub use error::{OutOfBounds, Race, RunError, Undefined};
pub use memory::Inputs;
pub use nest::{Order, run_nest};
pub use program::{
    bytes_needed, bytes_to_expect, expect, expect_with_progress, points, run, run_with_progress,
};
