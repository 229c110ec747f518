//! What became of a candidate.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What became of a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It computes what it should, and was timed.
    Measured,
    /// A step is refused, or a limit broken: this one.
    Illegal(String),
    /// The code generator refused.
    CompileError(String),
    /// It computes something else.
    WrongResult(String),
    /// It ended the worker, or failed while it ran.
    Crashed(String),
    /// It took too long.
    TimedOut,
}

/// An outcome with the times of its calls, in seconds; none unless it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What became of it.
    pub outcome: Outcome,
    /// The time of every sample.
    pub samples: Vec<f64>,
    /// What finding that out took.
    #[serde(default)]
    pub effort: Effort,
}

/// What a candidate took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Compiling it, on one core: others may have been compiled at the same time.
    pub compiling: f64,
    /// Running, checking and measuring it.
    pub measuring: f64,
}

impl Trial {
    /// A candidate without a time.
    pub fn failed(outcome: Outcome) -> Trial {
        Trial { outcome, samples: Vec::new(), effort: Effort::default() }
    }

    /// A candidate that was timed.
    pub fn measured(samples: Vec<f64>) -> Trial {
        Trial { outcome: Outcome::Measured, samples, effort: Effort::default() }
    }

    /// Its median time, if it was timed.
    pub fn seconds(&self) -> Option<f64> {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        (self.outcome == Outcome::Measured).then(|| sorted.get(sorted.len() / 2).copied()).flatten()
    }

    /// Whether this can have happened: what comes from another process or from a file may be nonsense.
    pub fn is_plausible(&self) -> bool {
        let effort = [self.effort.compiling, self.effort.measuring];
        let samples = match self.outcome {
            Outcome::Measured => are_times(&self.samples),
            _ => self.samples.is_empty(),
        };
        samples && effort.iter().all(|seconds| seconds.is_finite() && *seconds >= 0.0)
    }
}

/// Whether times are times.
pub(crate) fn are_times(samples: &[f64]) -> bool {
    !samples.is_empty() && samples.iter().all(|sample| sample.is_finite() && *sample > 0.0)
}

impl Outcome {
    /// The word for its kind, in files and for counting.
    pub fn name(&self) -> &'static str {
        match self {
            Outcome::Measured => "measured",
            Outcome::Illegal(_) => "illegal",
            Outcome::CompileError(_) => "compile-error",
            Outcome::WrongResult(_) => "wrong-result",
            Outcome::Crashed(_) => "crashed",
            Outcome::TimedOut => "timed-out",
        }
    }

    /// The reason, message or detail; empty where there is none.
    pub fn detail(&self) -> &str {
        match self {
            Outcome::Measured | Outcome::TimedOut => "",
            Outcome::Illegal(detail)
            | Outcome::CompileError(detail)
            | Outcome::WrongResult(detail)
            | Outcome::Crashed(detail) => detail,
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.detail() {
            "" => f.write_str(self.name()),
            detail => write!(f, "{}: {detail}", self.name()),
        }
    }
}
