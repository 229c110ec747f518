//! The polyhedral side: which instances a program has, which of them depend on which, and whether a loop nest computes
//! what its program says.
//!
//! An *instance* is one execution of a statement: the statement, and a value for each variable of the ordered loops around
//! it and of its own box. [`Model`] holds the instances of all statements as sets of integer vectors, with the elements that
//! each reads and writes and the order in which they run. [`dependences()`] tells which instances must keep their order.
//! [`prove()`] says whether a loop nest computes what its program says, from the nest alone.
//!
//! Sets and relations are isl's. Subscripts of variables, numbers, `+`, `-`, `*` by numbers, `/`, `%`, `min` and `max` are
//! exact; a subscript that depends on data may be any element of its dimension, and what follows from that is marked as
//! not exact.
//!
//! In: a [`tilewright_ir::Program`] whose sizes are numbers. Read next: [`model`], then [`dependence`].

pub mod coordinates;
pub mod dependence;
pub mod model;
pub mod prove;
pub mod text;

pub use coordinates::Coordinates;
pub use dependence::{Dependence, Kind, dependences};
pub use model::{Instances, Model, Touch};
pub use prove::{Verdict, prove, prove_within};
pub use tilewright_isl as isl;
