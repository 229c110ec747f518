//! Finds fast schedules by measurements on the real hardware, and records the measurements.
//!
//! | module | contents |
//! |---|---|
//! | [`search`] | a whole search: inputs, cache, workers, the tuning loop, records |
//! | [`task`] | the task: a function at given sizes, on some threads or on a device |
//! | [`input_files`] | the user's inputs, on their way to a worker |
//! | [`tune`](mod@tune) | the loop: propose → check legality → build → compare results → measure |
//! | [`schedule_features`] | the features that cost models learn from |
//! | [`measure`] | the interface of measurers, and a worker process that is replaced if lost |
//! | [`fleet`] | several workers, for several devices |
//! | [`worker`] | the worker process, and its handle |
//! | `fixture` | a program with its data and expected results, inside the worker |
//! | [`bench`](mod@bench) | kernels run on that data: checked, timed and compared |
//! | [`note`] | notes to the user on how results were compared |
//! | `race_statistics` | times of kernels that were measured alternately |
//! | `parallel` | independent work on all cores |
//! | [`peak`] | the peak rates of the machine |
//! | [`work`], [`roofline`] | a program's operations and bytes, and its distance from the peaks |
//! | [`recording`] | a run in a file, and a measurer that replays it |
//! | [`compare`] | a comparison of strategies with the same measurements |
//! | [`cache_recorder`] | the connection of a search with the cache |

pub mod bench;
pub mod cache_recorder;
pub mod compare;
mod fixture;
pub mod fleet;
pub mod input_files;
pub mod measure;
pub mod note;
mod parallel;
pub mod peak;
mod race_statistics;
pub mod recording;
pub mod roofline;
pub mod schedule_features;
pub mod search;
pub mod task;
pub mod tune;
pub mod work;
pub mod worker;
