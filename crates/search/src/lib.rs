//! Searches for a good schedule of a program, as far as this needs no hardware.
//!
//! - [`knob`]: one open choice, its values and their neighbours; the product of all choices and its
//!   points.
//! - [`strategy`]: which points to try next, given the results of earlier points.
//! - [`space`]: the schedules of a program as points.
//! - [`cost`]: the predicted times of schedules.
//! - [`beam`]: whole programs, stage by stage.
//! - [`mod@explain`]: why the stages of a scheduled program are where they are.
//! - [`default_schedule`]: the schedule of a program that nobody has tuned.
//! - [`kind`]: which space, cost model and strategy a kind of target has.
//!
//! Nothing here compiles, measures or reads a clock. A strategy proposes points and receives their
//! costs. The tuner measures the points and decides when to stop. The same seed and the same
//! results give the same points.

pub mod beam;
pub mod cost;
mod default;
pub mod explain;
pub mod kind;
pub mod knob;
pub mod parallel;
pub mod space;
pub mod strategy;

pub use default::default_schedule;
