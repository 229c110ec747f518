//! Compiles and runs candidates in a process of their own, the worker.
//!
//! A candidate may crash, hang or write to wrong addresses. Then only the worker process is lost.
//! [`serve`] is the main loop of that process, behind a command of the front end. [`Worker`] is the
//! tuner's handle on the process. Tuner and worker exchange lines of JSON over pipes (`protocol`).
//!
//! In `session`, a batch is first compiled on all cores and then run, one candidate after the
//! other. So nothing compiles while a candidate is measured, unless it runs on a CUDA device. If an
//! error makes the device unusable for this process, the process ends and the tuner starts another.

mod client;
mod protocol;
mod serve;
mod session;
mod stderr_tail;

pub use client::{Worker, WorkerCommand, WorkerError};
pub use serve::serve;
