//! Defines the progress of a run ([`Progress`]) and its report ([`TuningReport`]), and makes
//! both from the state of the run.

use std::collections::BTreeMap;
use std::time::Duration;

use tilewright_search::space::Rejections;

use super::final_comparison::FinalistTimes;
use super::proofs::{Proof, RefutedSchedule};
use super::time_spent::TimeSpent;
use super::{Run, TriedSchedule};
use tilewright_cache::outcome::{Outcome, OutcomeKind, Trial};

/// Why a candidate was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialKind {
    /// The default schedule, which all others are compared with.
    Default,
    /// The first choice of the cost model.
    OneShot,
    /// A schedule that a beam search over whole programs has found.
    Beam,
    /// A schedule that was good for a similar program, or in an earlier run.
    Hint,
    /// A proposal of the strategy.
    Search,
}

impl TrialKind {
    /// The name of the kind in JSON.
    pub fn name(self) -> &'static str {
        match self {
            TrialKind::Default => "default",
            TrialKind::OneShot => "one-shot",
            TrialKind::Beam => "beam",
            TrialKind::Hint => "hint",
            TrialKind::Search => "search",
        }
    }

    /// Whether a candidate of this kind counts as a trial.
    pub fn counts_as_trial(self) -> bool {
        matches!(self, TrialKind::Beam | TrialKind::Hint | TrialKind::Search)
    }
}

/// A candidate that was tried.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The text of the schedule.
    pub schedule: &'a str,
    /// The features for cost models.
    pub features: &'a [f32],
    /// The trial.
    pub trial: &'a Trial,
}

/// The progress of a run.
#[derive(Clone, Debug)]
pub struct Progress {
    /// Why the last candidate was tried.
    pub kind: TrialKind,
    /// The number of counted trials so far, without the default schedule and the cost model's first
    /// choice.
    pub trials: usize,
    /// The time since the start.
    pub elapsed: Duration,
    /// The time of the default schedule, in seconds.
    pub default_seconds: f64,
    /// The time of the best candidate so far, in seconds.
    pub best_seconds: f64,
    /// The number of trials by kind of outcome.
    pub outcomes: BTreeMap<OutcomeKind, usize>,
}

/// A candidate of the final comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Finalist {
    /// The text of the schedule.
    pub schedule: String,
    /// The samples, in seconds.
    pub samples: Vec<f64>,
    /// The device resources that the kernels use.
    pub resources: String,
}

/// The report of a run.
#[derive(Clone, Debug)]
pub struct TuningReport {
    /// The text of the winner's schedule.
    pub schedule: String,
    /// Whether the winner is the default schedule.
    pub is_default: bool,
    /// The device resources that the winner's kernels use, as the compiler reports them; empty if
    /// it reports nothing.
    pub resources: String,
    /// The result of proving the winner.
    pub proof: Proof,
    /// The finalists that were refuted, in the order of their proofs.
    pub refuted: Vec<RefutedSchedule>,
    /// The candidates of the final comparison, without the refuted ones. Empty if there was no time
    /// for a comparison.
    pub finalists: Vec<Finalist>,
    /// The winner's median time, in seconds.
    pub seconds: f64,
    /// The default schedule's median time from the same comparison, in seconds.
    pub default_seconds: f64,
    /// The time of the cost model's first choice in seconds, from the same comparison if there was
    /// one. `None` if the choice is the default schedule or does not work.
    pub one_shot_seconds: Option<f64>,
    /// The outcome of that choice, if it does not work.
    pub one_shot_failure: Option<Outcome>,
    /// The number of trials, without the default schedule and the cost model's first choice.
    pub trials: usize,
    /// The number of trials by kind of outcome.
    pub outcomes: BTreeMap<OutcomeKind, usize>,
    /// The number of points that were refused before compilation, by reason.
    pub rejections: Rejections,
    /// The number of points that the cost model refused as too slow.
    pub predicted_too_slow: usize,
    /// The number of workers that were lost.
    pub lost_workers: usize,
    /// The improvements: after how many trials and how much time, and the new best time in seconds.
    pub improvements: Vec<(usize, Duration, f64)>,
    /// The duration of the run.
    pub elapsed: Duration,
    /// The time spent on each kind of work.
    pub time_spent: TimeSpent,
}

impl Run<'_, '_> {
    pub(super) fn progress(&self, kind: TrialKind) -> Progress {
        Progress {
            kind,
            trials: self.counted_trials,
            elapsed: self.elapsed(),
            default_seconds: self.default_seconds,
            best_seconds: self.best_seconds(),
            outcomes: self.outcomes.clone(),
        }
    }

    pub(super) fn report(
        self,
        (winner, proof): (FinalistTimes, Proof),
        raced: Vec<FinalistTimes>,
        default: f64,
    ) -> TuningReport {
        let elapsed = self.elapsed();
        let mut curve = Vec::new();
        let mut best = f64::INFINITY;
        for tried in &self.trials {
            if let Some(seconds) = tried.trial.seconds().filter(|seconds| *seconds < best) {
                best = seconds;
                curve.push((tried.number, tried.elapsed, seconds));
            }
        }
        let one_shot = self.one_shot_seconds(&raced);
        let one_shot_failure = self
            .one_shot
            .as_ref()
            .filter(|trial| trial.seconds().is_none())
            .map(|trial| trial.outcome.clone());
        let finalist = |raced: FinalistTimes| {
            let TriedSchedule { schedule, trial, .. } = self.trials[raced.trial].clone();
            Finalist { schedule, samples: raced.samples, resources: trial.resources }
        };
        TuningReport {
            resources: self.trials[winner.trial].trial.resources.clone(),
            finalists: raced.into_iter().filter(|raced| self.is_not_refuted(raced)).map(finalist).collect(),
            schedule: self.trials[winner.trial].schedule.clone(),
            is_default: winner.trial == 0,
            seconds: winner.median,
            proof,
            refuted: self.proofs.refuted,
            default_seconds: default,
            one_shot_seconds: one_shot,
            one_shot_failure,
            trials: self.counted_trials,
            outcomes: self.outcomes,
            rejections: self.candidates.rejections,
            predicted_too_slow: self.candidates.too_slow,
            lost_workers: self.measurer.lost_workers(),
            improvements: curve,
            elapsed,
            time_spent: self.time_spent.with_total(elapsed),
        }
    }
}
