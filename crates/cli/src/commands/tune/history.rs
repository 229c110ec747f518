//! All trials of a run, for its report.

use tilewright_cache::outcome::Trial;
use tilewright_tuner::tune::Progress;

/// A candidate that was tried.
pub struct Tried {
    /// Seconds since the start of the run.
    pub after: f64,
    /// The outcome, with its reason.
    pub outcome: String,
    /// The seconds of a call, if the candidate was measured.
    pub seconds: Option<f64>,
}

/// All trials, the default schedule first.
#[derive(Default)]
pub struct History {
    /// The trials, in the order in which they were made.
    pub trials: Vec<Tried>,
}

impl History {
    /// Adds a trial.
    pub fn tried(&mut self, trial: &Trial, progress: &Progress) {
        self.trials.push(Tried {
            after: progress.elapsed.as_secs_f64(),
            outcome: trial.outcome.to_string(),
            seconds: trial.seconds(),
        });
    }
}
