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
    /// A proof shows that it computes something else, whatever its results were: a counterexample.
    Refuted(String),
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
    /// How many times as long as usual things took just then.
    #[serde(default = "usual")]
    pub pace: f64,
    /// What finding that out took.
    #[serde(default)]
    pub effort: Effort,
    /// What its kernels take of a device, as the compiler says; empty where it says nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resources: String,
}

/// What a candidate took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// Compiling it, on one core: others may have been compiled at the same time.
    pub compiling: f64,
    /// Running, checking and measuring it.
    pub measuring: f64,
}

fn usual() -> f64 {
    1.0
}

impl Trial {
    /// A candidate without a time.
    pub fn failed(outcome: Outcome) -> Trial {
        Trial {
            outcome,
            samples: Vec::new(),
            pace: usual(),
            effort: Effort::default(),
            resources: String::new(),
        }
    }

    /// A candidate that was timed.
    pub fn measured(samples: Vec<f64>) -> Trial {
        Trial { samples, ..Trial::failed(Outcome::Measured) }
    }

    /// The same when things took so many times as long as usual.
    pub fn at_pace(self, pace: f64) -> Trial {
        Trial { pace, ..self }
    }

    /// The time that it takes undisturbed, at the usual pace, if it was timed.
    pub fn seconds(&self) -> Option<f64> {
        let time = undisturbed(&self.samples).filter(|_| self.outcome == Outcome::Measured);
        time.map(|time| time / self.pace)
    }

    /// Whether this can have happened: what comes from another process or from a file may be nonsense.
    pub fn is_plausible(&self) -> bool {
        let effort = [self.effort.compiling, self.effort.measuring];
        let samples = match self.outcome {
            Outcome::Measured => are_times(&self.samples),
            _ => self.samples.is_empty(),
        };
        let pace = self.pace.is_finite() && self.pace > 0.0;
        samples && pace && effort.iter().all(|seconds| seconds.is_finite() && *seconds >= 0.0)
    }
}

/// The middle one of the samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// The lower quartile of the samples: what disturbs a kernel makes it slower, never faster.
pub fn undisturbed(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 4).copied()
}

/// Whether times are times.
pub fn are_times(samples: &[f64]) -> bool {
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
            Outcome::Refuted(_) => "refuted",
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
            | Outcome::Refuted(detail)
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
