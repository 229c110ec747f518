//! The reference kernel that candidates are compared with.
//!
//! The reference is not simply the best candidate so far. The best of many noisy times is too
//! optimistic, and measuring each new best against the last one would accumulate errors. The
//! reference stays the same until a candidate is clearly faster. Then the two are compared well.

use super::MachineParameters;
use crate::bench::ReferenceSchedule;
use crate::measure::Measurer;
use crate::worker::Lost;
use tilewright_cache::outcome::undisturbed;

/// The number of samples of each in that comparison.
const SAMPLES: usize = 15;
/// The largest time of the samples, in seconds.
const MOST_TIME: f64 = 0.5;

/// A schedule whose time is known well.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reference {
    pub schedule: String,
    pub seconds: f64,
}

impl Reference {
    /// The reference in the form of a plan.
    pub fn rival(&self) -> ReferenceSchedule {
        ReferenceSchedule { schedule: self.schedule.clone(), seconds: self.seconds }
    }

    /// Replaces the reference by the best candidate if that is clearly faster. Returns true if it
    /// did.
    pub fn reconsider(
        &mut self,
        measurer: &mut dyn Measurer,
        best: &str,
        seconds: f64,
        machine_parameters: &MachineParameters,
    ) -> Result<bool, Lost> {
        if self.schedule == best || self.seconds < machine_parameters.clearly * seconds {
            return Ok(false);
        }
        let Some(seconds) = self.well_compared(measurer, best, seconds)? else { return Ok(false) };
        *self = Reference { schedule: best.to_owned(), seconds };
        Ok(true)
    }

    /// The time in seconds of a schedule that should take about `seconds`, measured in turn with
    /// the reference. `None` if the measurement fails.
    pub fn well_compared(
        &self,
        measurer: &mut dyn Measurer,
        schedule: &str,
        seconds: f64,
    ) -> Result<Option<f64>, Lost> {
        let schedules = [self.schedule.clone(), schedule.to_owned()];
        let times = match measurer.race(&schedules, SAMPLES, (SAMPLES as f64 * seconds).min(MOST_TIME)) {
            Err(error @ Lost::NotRecorded(_)) => return Err(error),
            // The run can continue without this comparison.
            Err(_) => return Ok(None),
            Ok(times) => times,
        };
        let [before, after] = [0, 1].map(|at| times.get(at).and_then(|own| undisturbed(own)));
        Ok(before.zip(after).map(|(before, after)| self.seconds * after / before))
    }
}
