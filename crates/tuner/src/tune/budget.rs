//! How much time there is, and how it is shared out.
//!
//! The budget counts from when the user began to wait. Looking at points before the search gets a part of it, and a part
//! is kept for the last comparison. Batches are as large as what proposals have taken so far allows, so that slow
//! candidates are proposed one by one when the end is near.
//!
//! The clock has no other say in what a run does, and its say always goes through [`Measurer::decide`]: with the same
//! answers, a run is the same.

use std::time::{Duration, Instant};

use super::finals::time_of_one;
use super::{FINALISTS, Run};
use crate::measure::Measurer;
use crate::worker::Lost;

/// The part of what is left that looking at points without measuring them may take.
const LOOKING: f64 = 0.25;
/// The part of the whole that is kept for the last comparison, at most.
const COMPARING: f64 = 0.2;
/// The part of what is left that a single call may take and still be worth many samples.
const THOROUGH: f64 = 0.05;

impl Run<'_, '_> {
    /// Seconds that are left; none where there is no limit.
    pub(super) fn left(&self) -> Option<f64> {
        self.options.time.map(|time| time.saturating_sub(self.options.started.elapsed()).as_secs_f64())
    }

    /// Seconds that are left before the last comparison should begin.
    pub(super) fn left_to_search(&self) -> Option<f64> {
        let whole = self.options.time?.as_secs_f64();
        let comparison =
            (FINALISTS + 1) as f64 * (self.candidate.seconds() + time_of_one(self.best_seconds()));
        Some((self.left()? - comparison.min(COMPARING * whole)).max(0.0))
    }

    /// When looking at points should end.
    pub(super) fn end_of_looking(&self) -> Option<Instant> {
        self.left_to_search().map(|left| Instant::now() + Duration::from_secs_f64(LOOKING * left))
    }

    /// Whether the search should end.
    pub(super) fn is_over(&mut self) -> Result<bool, Lost> {
        let over = self.left_to_search() == Some(0.0) || self.stop.is_asked();
        Ok(self.trials_left() == 0 || decide(self.measurer, over)?)
    }

    /// Whether nothing at all should be tried any more.
    pub(super) fn is_late(&mut self) -> Result<bool, Lost> {
        let late = self.left() == Some(0.0) || self.stop.is_asked();
        decide(self.measurer, late)
    }

    /// The longest call, in seconds, that is worth many samples.
    pub(super) fn worth_many_samples(&self) -> f64 {
        self.left().map_or(f64::INFINITY, |left| THOROUGH * left).min(super::THOROUGHLY.promising)
    }

    /// As many things of this pace as there is time for, and of a batch at most.
    pub(super) fn as_many_as_fit(&mut self, pace: Pace) -> Result<usize, Lost> {
        let batch = self.habits.batch;
        let fit = self.left_to_search().map_or(batch, |left| (left / pace.seconds().max(1e-6)) as usize);
        self.measurer.decide(fit.clamp(1, batch))
    }
}

/// What the clock decides, where that is yes or no.
pub(super) fn decide(measurer: &mut dyn Measurer, by_the_clock: bool) -> Result<bool, Lost> {
    Ok(measurer.decide(usize::from(by_the_clock))? != 0)
}

/// Seconds that one of many things takes, by those so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace(f64);

impl Pace {
    /// Learns from some more. Slower ones count at once, faster ones little by little.
    pub(super) fn learn(&mut self, count: usize, took: Duration) {
        if count > 0 {
            let one = took.as_secs_f64() / count as f64;
            self.0 = one.max(0.5 * (self.0 + one));
        }
    }

    pub(super) fn seconds(self) -> f64 {
        self.0
    }
}
