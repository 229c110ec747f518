//! Finding fast schedules on the real hardware, and keeping what was measured.
//!
//! | module | is |
//! |---|---|
//! | [`task`] | what is tuned: a function at given sizes, with so many threads |
//! | [`given`] | inputs that the user gives, on their way to a worker |
//! | [`tune`](mod@tune) | the loop: ask → legality and limits → build → check → measure → tell |
//! | [`measure`] | who measures: a worker process that is replaced when it is lost |
//! | [`worker`] | that process, and the handle on it |
//! | [`rig`] | a program with its data and what it should compute, inside the worker |
//! | [`outcome`] | what became of a candidate |
//! | [`cache`] | every candidate that was tried, so that no program is tuned twice and no measurement is lost |

pub mod cache;
pub mod given;
pub mod measure;
pub mod outcome;
mod parallel;
pub mod rig;
pub mod task;
pub mod tune;
pub mod worker;
