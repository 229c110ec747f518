//! Keeps all trials of a search in their order, for its report ([`History`]).

use tilewright_cache::outcome::Trial;

use crate::tune::Progress;

/// A candidate that was tried.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    /// The steps, as text.
    pub schedule: String,
    /// Seconds since the start of the search.
    pub after: f64,
    /// The number of counted trials so far, including this one.
    pub trials: usize,
    /// The outcome, with its reason.
    pub outcome: String,
    /// The seconds of a call, if the candidate was measured.
    pub seconds: Option<f64>,
    /// The seconds of the best candidate so far. The best candidate is measured again from time to
    /// time, and may turn out slower.
    pub best: f64,
}

/// All trials, the default schedule first.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The trials, in the order in which they were made.
    pub trials: Vec<HistoryEntry>,
}

impl History {
    /// Adds a trial.
    pub(crate) fn add(&mut self, schedule: &str, trial: &Trial, progress: &Progress) {
        self.trials.push(HistoryEntry {
            schedule: schedule.to_owned(),
            after: progress.elapsed.as_secs_f64(),
            trials: progress.trials,
            outcome: trial.outcome.to_string(),
            seconds: trial.seconds(),
            best: progress.best_seconds,
        });
    }

    /// The seconds of all candidates that were measured, in order.
    pub fn times(&self) -> impl Iterator<Item = f64> {
        self.trials.iter().filter_map(|tried| tried.seconds)
    }
}
