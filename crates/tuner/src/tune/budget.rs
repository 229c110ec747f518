//! Divides the time budget of a run among ranking, search and final comparison.
//!
//! The budget counts from the moment when the user began to wait. A share of it goes to ranking
//! points before the search, and another is reserved for the final comparison. The size of a batch
//! follows from the duration of earlier proposals. So slow candidates are proposed one by one when
//! the end is near.
//!
//! The clock influences a run in no other way, and always through [`Measurer::decide`]. With the
//! same answers, a run is the same.

use std::time::{Duration, Instant};

use super::final_comparison::finalist_time;
use super::{FINALISTS, Run};
use crate::measure::Measurer;
use crate::worker::WorkerError;
use tilewright_search::strategy::beam;

/// The share of the remaining time for ranking points without measuring them, and the share where
/// a beam search has found first schedules.
const RANKING_SHARE: f64 = 0.25;
const RANKING_SHARE_AFTER_BEAM: f64 = 0.05;
/// The largest share of the whole budget that is reserved for the final comparison.
const FINAL_COMPARISON_SHARE: f64 = 0.2;
/// The longest call that is worth many samples, as a share of the remaining time.
const LONGEST_CALL_SHARE: f64 = 0.05;

impl Run<'_, '_> {
    /// The remaining time in seconds, or `None` without a limit.
    pub(super) fn time_left(&self) -> Option<f64> {
        self.options.time.map(|time| time.saturating_sub(self.options.started.elapsed()).as_secs_f64())
    }

    /// The remaining time in seconds before the final comparison should begin.
    pub(super) fn search_time_left(&self) -> Option<f64> {
        let whole = self.options.time?.as_secs_f64();
        let comparison =
            (FINALISTS + 1) as f64 * (self.candidate_time.seconds() + finalist_time(self.best_seconds()));
        Some((self.time_left()? - comparison.min(FINAL_COMPARISON_SHARE * whole)).max(0.0))
    }

    /// The time when the ranking of points should end.
    pub(super) fn ranking_deadline(&self) -> Option<Instant> {
        let share = match self.options.strategy.name == beam::ENTRY.name {
            true => RANKING_SHARE_AFTER_BEAM,
            false => RANKING_SHARE,
        };
        self.search_time_left().map(|left| Instant::now() + Duration::from_secs_f64(share * left))
    }

    /// Returns true if the search should end.
    pub(super) fn is_search_over(&mut self) -> Result<bool, WorkerError> {
        let over = self.search_time_left() == Some(0.0) || self.stop.is_requested();
        Ok(self.trials_left() == 0 || decide_by_clock(self.measurer, over)?)
    }

    /// Returns true if nothing more should be tried at all.
    pub(super) fn is_run_over(&mut self) -> Result<bool, WorkerError> {
        let late = self.time_left() == Some(0.0) || self.stop.is_requested();
        decide_by_clock(self.measurer, late)
    }

    /// The longest call, in seconds, that is worth many samples.
    pub(super) fn longest_well_sampled_call(&self) -> f64 {
        self.time_left()
            .map_or(f64::INFINITY, |left| LONGEST_CALL_SHARE * left)
            .min(super::REFERENCE_PLAN.call_limit)
    }

    /// The number of items of this pace that fit into the remaining time, from 1 to the size of a
    /// batch.
    pub(super) fn count_that_fits(&mut self, pace: TimePerItem) -> Result<usize, WorkerError> {
        let batch = self.machine_parameters.batch;
        let fit = self.search_time_left().map_or(batch, |left| (left / pace.seconds().max(1e-6)) as usize);
        self.measurer.decide(fit.clamp(1, batch))
    }
}

/// A decision by the clock between yes and no.
pub(super) fn decide_by_clock(measurer: &mut dyn Measurer, by_the_clock: bool) -> Result<bool, WorkerError> {
    Ok(measurer.decide(usize::from(by_the_clock))? != 0)
}

/// The recent time per item of a repeated task, in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimePerItem(f64);

impl TimePerItem {
    /// Updates the time with `count` more items. Slower items count at once, and faster ones
    /// gradually.
    pub(super) fn update(&mut self, count: usize, took: Duration) {
        if count > 0 {
            let one = took.as_secs_f64() / count as f64;
            self.0 = one.max(0.5 * (self.0 + one));
        }
    }

    pub(super) fn seconds(self) -> f64 {
        self.0
    }
}
