//! Defines the messages between tuner and worker, one line of JSON each: [`Request`] and
//! [`Reply`].

use serde::{Deserialize, Serialize};

use crate::bench::Plan;
use crate::note::Note;
use crate::task::Task;
use tilewright_cache::outcome::Trial;

/// A request of the tuner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Prepare for a program.
    Open(Box<Task>),
    /// Compile schedules, check their results, and measure them.
    Try {
        /// The texts of the schedules.
        schedules: Vec<String>,
        /// How much to measure.
        plan: Plan,
    },
    /// Measure schedules in turn.
    Race {
        /// The texts of the schedules.
        schedules: Vec<String>,
        /// The least number of samples of each.
        samples: usize,
        /// The time of the samples of each together, in seconds.
        time: f64,
    },
}

/// A reply of the worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The worker is ready. Holds the notes on how results are compared.
    Ready(Vec<Note>),
    /// The worker cannot do what was requested, with the reason.
    Failed(String),
    /// The worker begins to run this candidate. If the worker is lost now, the candidate is at
    /// fault.
    Running(usize),
    /// The trial of a candidate.
    Done(usize, Trial),
    /// The whole batch is done.
    End,
    /// The samples of a race, in the order of its schedules.
    Raced(Vec<Vec<f64>>),
}
