//! The time budget of a run, and its division.
//!
//! The budget counts from the moment when the user began to wait. A share of it goes to ranking
//! points before the search, and another is reserved for the final comparison. The size of a batch
//! follows from the duration of earlier proposals. So slow candidates are proposed one by one when
//! the end is near.
//!
//! The clock influences a run in no other way, and always through [`Measurer::decide`]. With the
//! same answers, a run is the same.

use std::time::{Duration, Instant};

use super::finals::time_of_one;
use super::{FINALISTS, Run};
use crate::measure::Measurer;
use crate::worker::Lost;

/// The share of the remaining time for ranking points without measuring them.
const LOOKING: f64 = 0.25;
/// The largest share of the whole budget that is reserved for the final comparison.
const COMPARING: f64 = 0.2;
/// The longest call that is worth many samples, as a share of the remaining time.
const THOROUGH: f64 = 0.05;

impl Run<'_, '_> {
    /// The remaining time in seconds, or `None` without a limit.
    pub(super) fn left(&self) -> Option<f64> {
        self.options.time.map(|time| time.saturating_sub(self.options.started.elapsed()).as_secs_f64())
    }

    /// The remaining time in seconds before the final comparison should begin.
    pub(super) fn left_to_search(&self) -> Option<f64> {
        let whole = self.options.time?.as_secs_f64();
        let comparison =
            (FINALISTS + 1) as f64 * (self.candidate.seconds() + time_of_one(self.best_seconds()));
        Some((self.left()? - comparison.min(COMPARING * whole)).max(0.0))
    }

    /// The time when the ranking of points should end.
    pub(super) fn end_of_looking(&self) -> Option<Instant> {
        self.left_to_search().map(|left| Instant::now() + Duration::from_secs_f64(LOOKING * left))
    }

    /// Returns true if the search should end.
    pub(super) fn is_over(&mut self) -> Result<bool, Lost> {
        let over = self.left_to_search() == Some(0.0) || self.stop.is_asked();
        Ok(self.trials_left() == 0 || decide(self.measurer, over)?)
    }

    /// Returns true if nothing more should be tried at all.
    pub(super) fn is_late(&mut self) -> Result<bool, Lost> {
        let late = self.left() == Some(0.0) || self.stop.is_asked();
        decide(self.measurer, late)
    }

    /// The longest call, in seconds, that is worth many samples.
    pub(super) fn worth_many_samples(&self) -> f64 {
        self.left().map_or(f64::INFINITY, |left| THOROUGH * left).min(super::REFERENCE_PLAN.promising)
    }

    /// The number of items of this pace that fit into the remaining time, from 1 to the size of a
    /// batch.
    pub(super) fn as_many_as_fit(&mut self, pace: Pace) -> Result<usize, Lost> {
        let batch = self.machine_parameters.batch;
        let fit = self.left_to_search().map_or(batch, |left| (left / pace.seconds().max(1e-6)) as usize);
        self.measurer.decide(fit.clamp(1, batch))
    }
}

/// A decision by the clock between yes and no.
pub(super) fn decide(measurer: &mut dyn Measurer, by_the_clock: bool) -> Result<bool, Lost> {
    Ok(measurer.decide(usize::from(by_the_clock))? != 0)
}

/// The recent time per item of a repeated task, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace(f64);

impl Pace {
    /// Updates the time with `count` more items. Slower items count at once, and faster ones
    /// gradually.
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
