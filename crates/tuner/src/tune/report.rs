//! How a run goes, and how it went.

use std::collections::BTreeMap;
use std::time::Duration;

use tilewright_search::space::Rejections;

use super::finals::Raced;
use super::proofs::{Proof, Refuted};
use super::spent::TimeSpent;
use super::{Run, Tried};
use tilewright_cache::outcome::{Outcome, Trial};

/// Why a candidate was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It is the default schedule, which all others are compared with.
    Default,
    /// It is the first choice of the cost model.
    OneShot,
    /// It was good for a similar program, or in an earlier run.
    Hint,
    /// A strategy has proposed it.
    Search,
}

impl Kind {
    /// The word for it in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Default => "default",
            Kind::OneShot => "one-shot",
            Kind::Hint => "hint",
            Kind::Search => "search",
        }
    }

    /// Whether it counts as a trial.
    pub fn counts(self) -> bool {
        matches!(self, Kind::Hint | Kind::Search)
    }
}

/// A candidate that was tried.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Its schedule, as text.
    pub schedule: &'a str,
    /// What models learn from it.
    pub features: &'a [f32],
    /// What became of it.
    pub trial: &'a Trial,
}

/// How far a run has come.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Why the last candidate was tried.
    pub kind: Kind,
    /// Trials so far: candidates without the default schedule and the first choice of the cost model.
    pub trials: usize,
    /// Time since the start.
    pub elapsed: Duration,
    /// Seconds of the default schedule.
    pub default: f64,
    /// Seconds of the best so far.
    pub best: f64,
    /// How many trials ended how.
    pub outcomes: BTreeMap<&'static str, usize>,
}

/// A candidate in the last comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Finalist {
    /// Its schedule, as text.
    pub schedule: String,
    /// Its times.
    pub samples: Vec<f64>,
    /// What its kernels take of a device.
    pub resources: String,
}

/// What came out of a run.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The winner, as text.
    pub schedule: String,
    /// Whether the winner is the default schedule.
    pub is_default: bool,
    /// What its kernels take of a device, as the compiler says; empty where it says nothing.
    pub resources: String,
    /// What was proved of the winner.
    pub proof: Proof,
    /// Finalists that were refuted, in the order in which they were asked about.
    pub refuted: Vec<Refuted>,
    /// Everybody in the last comparison, without those that were refuted. Nobody if there was no time for one.
    pub finalists: Vec<Finalist>,
    /// Its median, in seconds.
    pub seconds: f64,
    /// The default schedule's median from the same comparison.
    pub default: f64,
    /// The first choice of the cost model, from the same comparison if there was one, if it is another than the default
    /// schedule and works.
    pub one_shot: Option<f64>,
    /// What became of that choice, if it does not work.
    pub one_shot_failure: Option<Outcome>,
    /// Candidates that were tried, without these two.
    pub trials: usize,
    /// How many of them ended how.
    pub outcomes: BTreeMap<&'static str, usize>,
    /// Points that were refused before anything was compiled, by reason.
    pub rejections: Rejections,
    /// Points that the cost model refused.
    pub too_slow: usize,
    /// Workers that were lost.
    pub replaced: usize,
    /// Whenever there was a new best: after how many trials and how long, and its seconds.
    pub curve: Vec<(usize, Duration, f64)>,
    /// How long it all took.
    pub elapsed: Duration,
    /// Where that went.
    pub spent: TimeSpent,
}

impl Run<'_, '_> {
    pub(super) fn progress(&self, kind: Kind) -> Progress {
        Progress {
            kind,
            trials: self.counted,
            elapsed: self.elapsed(),
            default: self.default,
            best: self.best_seconds(),
            outcomes: self.outcomes.clone(),
        }
    }

    pub(super) fn report(self, (winner, proof): (Raced, Proof), raced: Vec<Raced>, default: f64) -> Tuned {
        let elapsed = self.elapsed();
        let mut curve = Vec::new();
        let mut best = f64::INFINITY;
        for tried in &self.trials {
            if let Some(seconds) = tried.trial.seconds().filter(|seconds| *seconds < best) {
                best = seconds;
                curve.push((tried.number, tried.after, seconds));
            }
        }
        let one_shot = self.one_shot_seconds(&raced);
        let one_shot_failure = self
            .one_shot
            .as_ref()
            .filter(|trial| trial.seconds().is_none())
            .map(|trial| trial.outcome.clone());
        let finalist = |raced: Raced| {
            let Tried { schedule, trial, .. } = self.trials[raced.trial].clone();
            Finalist { schedule, samples: raced.samples, resources: trial.resources }
        };
        Tuned {
            resources: self.trials[winner.trial].trial.resources.clone(),
            finalists: raced.into_iter().filter(|raced| self.may_win(raced)).map(finalist).collect(),
            schedule: self.trials[winner.trial].schedule.clone(),
            is_default: winner.trial == 0,
            seconds: winner.median,
            proof,
            refuted: self.proofs.refuted,
            default,
            one_shot,
            one_shot_failure,
            trials: self.counted,
            outcomes: self.outcomes,
            rejections: self.candidates.rejections,
            too_slow: self.candidates.too_slow,
            replaced: self.measurer.replaced(),
            curve,
            elapsed,
            spent: self.spent.of(elapsed),
        }
    }
}
