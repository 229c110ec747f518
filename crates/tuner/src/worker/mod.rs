//! The process in which candidates are compiled and run.
//!
//! A candidate may crash, hang or write where it should not: then a process is lost, and no more. [`serve`] is what that
//! process does, behind a command of the front end; [`Worker`] is the handle on it. They speak in lines of JSON over
//! pipes, by `protocol`.
//!
//! A batch is first compiled, on all cores, and then run, one candidate after the other: nothing compiles while
//! something is measured, unless that is on a GPU. `session` is where that happens. A device that an error has left unusable
//! to this process ends it, and the tuner starts another.

mod client;
mod last_words;
mod protocol;
mod serve;
mod session;

pub use client::{Launch, Lost, Worker};
pub use serve::serve;
