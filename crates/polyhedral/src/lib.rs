//! Polyhedral analysis: the instances of a program, the dependences between them, and a proof that
//! a loop nest computes what its program says.
//!
//! An *instance* is one execution of a statement: the statement, and a value for each variable of
//! the ordered loops around it and of its own box. [`Model`] holds the instances of all statements
//! as sets of integer vectors, with the elements that each instance reads and writes and the order
//! in which instances run. [`dependences()`] finds the instances that must keep their order.
//! [`prove()`] checks whether a loop nest computes what its program says, from the nest alone.
//!
//! isl represents the sets and relations. Subscripts of variables, numbers, `+`, `-`, `*` by
//! numbers, `/`, `%`, `min` and `max` are exact. A subscript that depends on data may be any
//! element of its dimension, and every result that follows from such a subscript is marked as not
//! exact.
//!
//! In: a [`tilewright_ir::Program`] whose sizes are numbers. Read next: [`model`], then
//! [`dependence`].

pub mod coordinates;
pub mod dependence;
pub mod model;
pub mod prove;
mod statements;
pub mod text;

pub use coordinates::Coordinates;
pub use dependence::{Dependence, DependenceKind, dependences};
pub use model::{AccessRelation, Instances, Model};
pub use prove::{Verdict, prove, prove_patiently, prove_within};
pub use tilewright_isl as isl;
