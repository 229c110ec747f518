//! Keeps the reference kernel that candidates are compared with ([`ReferenceKernel`]).
//!
//! The reference is not simply the best candidate so far. The best of many noisy times is too
//! optimistic, and measuring each new best against the last one would accumulate errors. The
//! reference stays the same until a candidate is clearly faster. Then both are measured
//! alternately, and the candidate becomes the reference with its new time.

use super::MachineParameters;
use crate::bench::ReferenceSchedule;
use crate::measure::Measurer;
use crate::worker::WorkerError;
use tilewright_cache::outcome::lower_quartile;

/// The number of samples of each in that comparison.
const SAMPLES: usize = 15;
/// The largest time of the samples, in seconds.
const LONGEST_SAMPLING: f64 = 0.5;

/// A schedule whose time is known well.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ReferenceKernel {
    pub schedule: String,
    pub seconds: f64,
}

impl ReferenceKernel {
    /// The reference in the form of a plan.
    pub fn reference_schedule(&self) -> ReferenceSchedule {
        ReferenceSchedule { schedule: self.schedule.clone(), seconds: self.seconds }
    }

    /// Replaces the reference by the best candidate if that is clearly faster. Returns true if it
    /// did.
    pub fn replace_if_slower(
        &mut self,
        measurer: &mut dyn Measurer,
        best: &str,
        seconds: f64,
        machine_parameters: &MachineParameters,
    ) -> Result<bool, WorkerError> {
        if self.schedule == best || self.seconds < machine_parameters.reference_gain * seconds {
            return Ok(false);
        }
        let Some(seconds) = self.measure_against_reference(measurer, best, seconds)? else {
            return Ok(false);
        };
        *self = ReferenceKernel { schedule: best.to_owned(), seconds };
        Ok(true)
    }

    /// The time in seconds of a schedule that should take about `seconds`, measured in turn with
    /// the reference. `None` if the measurement fails.
    pub fn measure_against_reference(
        &self,
        measurer: &mut dyn Measurer,
        schedule: &str,
        seconds: f64,
    ) -> Result<Option<f64>, WorkerError> {
        let schedules = [self.schedule.clone(), schedule.to_owned()];
        let times = match measurer.race(&schedules, SAMPLES, (SAMPLES as f64 * seconds).min(LONGEST_SAMPLING))
        {
            Err(error @ WorkerError::NotRecorded(_)) => return Err(error),
            // The run can continue without this comparison.
            Err(_) => return Ok(None),
            Ok(times) => times,
        };
        let [before, after] = [0, 1].map(|at| times.get(at).and_then(|own| lower_quartile(own)));
        Ok(before.zip(after).map(|(before, after)| self.seconds * after / before))
    }
}
