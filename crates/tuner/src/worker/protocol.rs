//! What tuner and worker say to each other, one message a line.

use serde::{Deserialize, Serialize};

use crate::bench::Plan;
use crate::note::Note;
use crate::task::Task;
use tilewright_cache::outcome::Trial;

/// What the tuner asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Get ready for a program.
    Open(Task),
    /// Compile schedules, check what they compute, and measure them.
    Try {
        /// Schedules as text.
        schedules: Vec<String>,
        /// How much to measure.
        plan: Plan,
    },
    /// Measure schedules in turn.
    Race {
        /// Schedules as text.
        schedules: Vec<String>,
        /// Samples of each.
        samples: usize,
        /// Time of the samples of each together, in seconds.
        time: f64,
    },
}

/// What the worker answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// It is ready; and what the user should know of how results are compared.
    Ready(Vec<Note>),
    /// It cannot do what was asked for, and says why.
    Failed(String),
    /// It begins to run this candidate: if it goes away now, that one is at fault.
    Running(usize),
    /// What became of a candidate.
    Done(usize, Trial),
    /// All of the batch are done.
    End,
    /// The samples of a race, in its order.
    Raced(Vec<Vec<f64>>),
}
