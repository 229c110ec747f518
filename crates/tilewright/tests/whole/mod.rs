//! Generates random whole programs and runs them under many schedules: every way to run them must
//! agree with the interpreter.
//!
//! [`builder`] makes the text of a program; read it first. A [`case`] is a program under a
//! schedule, which runs in the interpreter of loops, as compiled code and on a device. [`examine`]
//! makes the schedules of a program. [`mod@shrink`] makes a failing case smaller. A [`campaign`]
//! sends cases to processes, each of them a [`worker`].

pub mod builder;
pub mod call;
pub mod campaign;
pub mod case;
pub mod cpu_call;
pub mod element;
pub mod examine;
pub mod expression;
pub mod recurrence;
pub mod scope;
pub mod shrink;
pub mod source;
pub mod statement;
pub mod subscript;
pub mod worker;
