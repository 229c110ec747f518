//! Whom candidates are compared with.
//!
//! Not the best so far: the best of many noisy times is too good to be true, and with each new one measured against the
//! last, the error would grow from one to the next. The reference stays the same until something is clearly faster;
//! then the two are compared well.

use super::Habits;
use crate::bench::Rival;
use crate::measure::Measurer;
use crate::worker::Lost;
use tilewright_cache::outcome::undisturbed;

/// Samples of both then.
const SAMPLES: usize = 15;
/// And the time of them, in seconds, at most.
const MOST_TIME: f64 = 0.5;

/// A schedule whose time is known well.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reference {
    pub schedule: String,
    pub seconds: f64,
}

impl Reference {
    /// The same for a plan.
    pub fn rival(&self) -> Rival {
        Rival { schedule: self.schedule.clone(), seconds: self.seconds }
    }

    /// Takes the best so far in its place if that is clearly faster, and says whether it did.
    pub fn reconsider(
        &mut self,
        measurer: &mut dyn Measurer,
        best: &str,
        seconds: f64,
        habits: &Habits,
    ) -> Result<bool, Lost> {
        if self.schedule == best || self.seconds < habits.clearly * seconds {
            return Ok(false);
        }
        let Some(seconds) = self.well_compared(measurer, best, seconds)? else { return Ok(false) };
        *self = Reference { schedule: best.to_owned(), seconds };
        Ok(true)
    }

    /// The time of a schedule that should take about so many seconds, measured in turn with the reference; none where that
    /// cannot be done.
    pub fn well_compared(
        &self,
        measurer: &mut dyn Measurer,
        schedule: &str,
        seconds: f64,
    ) -> Result<Option<f64>, Lost> {
        let schedules = [self.schedule.clone(), schedule.to_owned()];
        let times = match measurer.race(&schedules, SAMPLES, (SAMPLES as f64 * seconds).min(MOST_TIME)) {
            Err(error @ Lost::NotRecorded(_)) => return Err(error),
            // It can do without.
            Err(_) => return Ok(None),
            Ok(times) => times,
        };
        let [before, after] = [0, 1].map(|at| times.get(at).and_then(|own| undisturbed(own)));
        Ok(before.zip(after).map(|(before, after)| self.seconds * after / before))
    }
}
