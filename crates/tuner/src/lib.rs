//! Finding fast schedules on the real hardware, and keeping what was measured.
//!
//! | module | is |
//! |---|---|
//! | [`task`] | what is tuned: a function at given sizes, with so many threads or on a device |
//! | [`given`] | inputs that the user gives, on their way to a worker |
//! | [`tune`](mod@tune) | the loop: ask → legality and limits → build → check → measure → tell |
//! | [`lessons`] | what models learn from |
//! | [`measure`] | who measures: a worker process that is replaced when it is lost |
//! | [`fleet`] | several of them, for several devices |
//! | [`worker`] | that process, and the handle on it |
//! | `rig` | a program with its data and what it should compute, inside the worker |
//! | [`bench`](mod@bench) | kernels run on that data: checked, timed, and compared with each other |
//! | [`note`] | what the user should know of how results were compared |
//! | `turns` | times of kernels that took turns |
//! | [`peak`] | what the machine can do at most |
//! | [`work`], [`roofline`] | how much a program computes, and how near it comes to the peaks |
//! | [`recording`] | a run on file, and a measurer that answers from it |
//! | [`compare`] | strategies side by side, with the same measurements |
//! | [`keeper`] | what a search takes from the cache, and leaves there |

pub mod bench;
pub mod compare;
pub mod fleet;
pub mod given;
pub mod keeper;
pub mod lessons;
pub mod measure;
pub mod note;
mod parallel;
pub mod peak;
pub mod recording;
mod rig;
pub mod roofline;
pub mod task;
pub mod tune;
mod turns;
pub mod work;
pub mod worker;
