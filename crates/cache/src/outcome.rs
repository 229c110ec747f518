//! Defines the outcome of trying a candidate ([`Outcome`]) and a trial, which adds the sampled
//! times ([`Trial`]). Computes medians and quartiles of samples.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The outcome of trying a candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// The candidate computes the right results and was timed.
    Measured,
    /// A step was refused or a limit exceeded, with the reason.
    Illegal(String),
    /// The code generator refused the candidate.
    CompileError(String),
    /// The candidate computes wrong results.
    WrongResult(String),
    /// A proof shows that the candidate is wrong, although its results were right. Holds a
    /// counterexample.
    Refuted(String),
    /// The candidate ended the worker process or failed while it ran.
    Crashed(String),
    /// The candidate exceeded its time limit.
    TimedOut,
}

/// The kind of an outcome, in the order of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OutcomeKind {
    /// [`Outcome::CompileError`].
    CompileError,
    /// [`Outcome::Crashed`].
    Crashed,
    /// [`Outcome::Illegal`].
    Illegal,
    /// [`Outcome::Measured`].
    Measured,
    /// [`Outcome::Refuted`].
    Refuted,
    /// [`Outcome::TimedOut`].
    TimedOut,
    /// [`Outcome::WrongResult`].
    WrongResult,
}

impl OutcomeKind {
    /// All kinds, in the order of their names.
    pub const ALL: [OutcomeKind; 7] = [
        OutcomeKind::CompileError,
        OutcomeKind::Crashed,
        OutcomeKind::Illegal,
        OutcomeKind::Measured,
        OutcomeKind::Refuted,
        OutcomeKind::TimedOut,
        OutcomeKind::WrongResult,
    ];

    /// The outcome of this kind with this detail, as far as the kind has one.
    pub fn with_detail(self, detail: String) -> Outcome {
        match self {
            OutcomeKind::CompileError => Outcome::CompileError(detail),
            OutcomeKind::Crashed => Outcome::Crashed(detail),
            OutcomeKind::Illegal => Outcome::Illegal(detail),
            OutcomeKind::Measured => Outcome::Measured,
            OutcomeKind::Refuted => Outcome::Refuted(detail),
            OutcomeKind::TimedOut => Outcome::TimedOut,
            OutcomeKind::WrongResult => Outcome::WrongResult(detail),
        }
    }

    /// Its name, in files and in counts.
    pub fn name(self) -> &'static str {
        match self {
            OutcomeKind::CompileError => "compile-error",
            OutcomeKind::Crashed => "crashed",
            OutcomeKind::Illegal => "illegal",
            OutcomeKind::Measured => "measured",
            OutcomeKind::Refuted => "refuted",
            OutcomeKind::TimedOut => "timed-out",
            OutcomeKind::WrongResult => "wrong-result",
        }
    }
}

impl fmt::Display for OutcomeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An outcome with the sampled times of calls, in seconds. There are no samples unless the
/// candidate was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The outcome.
    pub outcome: Outcome,
    /// The time of every sample, in seconds.
    pub samples: Vec<f64>,
    /// The slowdown of the machine during the measurement: 2 if everything took twice its usual
    /// time.
    #[serde(rename = "pace", default = "no_slowdown")]
    pub slowdown: f64,
    /// The time that the trial took.
    #[serde(default)]
    pub effort: Effort,
    /// The device resources that the kernels use, as the compiler reports them; empty if it reports
    /// nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub resources: String,
}

/// The time that a trial took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Effort {
    /// The time to compile the candidate on one core. Other candidates may have been compiled at
    /// the same time.
    pub compiling: f64,
    /// The time to run, check and measure the candidate.
    pub measuring: f64,
}

fn no_slowdown() -> f64 {
    1.0
}

impl Trial {
    /// A trial without samples.
    pub fn failed(outcome: Outcome) -> Trial {
        Trial {
            outcome,
            samples: Vec::new(),
            slowdown: no_slowdown(),
            effort: Effort::default(),
            resources: String::new(),
        }
    }

    /// A trial that was timed.
    pub fn measured(samples: Vec<f64>) -> Trial {
        Trial { samples, ..Trial::failed(Outcome::Measured) }
    }

    /// The same trial, measured on a machine slowed down by this factor.
    pub fn with_slowdown(self, pace: f64) -> Trial {
        Trial { slowdown: pace, ..self }
    }

    /// The undisturbed time of a call at the machine's usual pace, if the candidate was measured.
    pub fn seconds(&self) -> Option<f64> {
        let time = lower_quartile(&self.samples).filter(|_| self.outcome == Outcome::Measured);
        time.map(|time| time / self.slowdown)
    }

    /// Checks whether the values are possible. A trial from another process or a file may be
    /// nonsense.
    pub fn is_plausible(&self) -> bool {
        let effort = [self.effort.compiling, self.effort.measuring];
        let samples = match self.outcome {
            Outcome::Measured => are_times(&self.samples),
            _ => self.samples.is_empty(),
        };
        let pace = self.slowdown.is_finite() && self.slowdown > 0.0;
        samples && pace && effort.iter().all(|seconds| seconds.is_finite() && *seconds >= 0.0)
    }
}

/// The median of the samples; for an even number, the upper of the two middle samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// The lower quartile of the samples. It estimates the undisturbed time, since disturbances make a
/// kernel slower, never faster.
pub fn lower_quartile(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 4).copied()
}

/// Checks whether the samples are positive finite times, and at least one.
pub fn are_times(samples: &[f64]) -> bool {
    !samples.is_empty() && samples.iter().all(|sample| sample.is_finite() && *sample > 0.0)
}

impl Outcome {
    /// The kind of outcome, without its detail.
    pub fn kind(&self) -> OutcomeKind {
        match self {
            Outcome::Measured => OutcomeKind::Measured,
            Outcome::Illegal(_) => OutcomeKind::Illegal,
            Outcome::CompileError(_) => OutcomeKind::CompileError,
            Outcome::WrongResult(_) => OutcomeKind::WrongResult,
            Outcome::Refuted(_) => OutcomeKind::Refuted,
            Outcome::Crashed(_) => OutcomeKind::Crashed,
            Outcome::TimedOut => OutcomeKind::TimedOut,
        }
    }

    /// The name of the kind of outcome, in files and in counts.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// The reason, message or counterexample; empty if there is none.
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
