//! Trains cost models with schedules that were measured on a machine.
//!
//! | module | what it does |
//! |---|---|
//! | [`data`] | the file of measured schedules, one compressed record for each program |
//! | [`samples`] | random schedules of a program: by rules, by searches with a disturbed model |
//! | [`tuned`] | adds what `tune` has measured |
//! | [`collect`] | measures the schedules of random pipelines, and of given programs |
//! | [`examples`] | records as features and times |
//! | [`boosting`], [`descent`] | training of trees and of the network, for one loss |
//! | [`judge`] | how well models predict kinds of programs that they have not seen |
//! | [`model`] | which cost model a search gets |
//! | [`folder`] | where a user's files are |
//!
//! Programs come from [`tilewright_pipelines`]. Schedules are measured by the worker processes of
//! [`tilewright_tuner`], in turn with the default schedule of their program. The models themselves
//! are in [`tilewright_search::cost`], since searches use them.

pub mod boosting;
pub mod collect;
pub mod data;
pub mod descent;
pub mod examples;
pub mod folder;
pub mod judge;
mod loss;
pub mod model;
pub mod samples;
pub mod tuned;
