//! Whom candidates are compared with.
//!
//! Not the best so far: the best of many noisy times is too good to be true, and with each new one measured against the
//! last, the error would grow from one to the next. The reference stays the same until something is clearly faster;
//! then the two are compared well.

use super::{Run, TuneError};
use crate::bench::Rival;
use crate::outcome::undisturbed;
use crate::worker::Lost;

/// So many times as fast as the reference is clearly faster.
const CLEARLY: f64 = 1.4;
/// Samples of both then.
const SAMPLES: usize = 15;
/// And the time of them, in seconds, at most.
const MOST_TIME: f64 = 0.5;

impl Run<'_, '_> {
    /// The reference and its time.
    pub(super) fn rival(&self) -> Rival {
        let (at, seconds) = self.reference;
        Rival { schedule: self.trials[at].schedule.clone(), seconds }
    }

    /// Takes the best so far for a reference, if it is clearly faster.
    pub(super) fn reconsider_reference(&mut self) -> Result<(), TuneError> {
        let Some((at, best)) = self.best else { return Ok(()) };
        let (old, seconds) = self.reference;
        if at == old || seconds < CLEARLY * best {
            return Ok(());
        }
        let schedules = [old, at].map(|at| self.trials[at].schedule.clone());
        let times = match self.measurer.race(&schedules, SAMPLES, (SAMPLES as f64 * best).min(MOST_TIME)) {
            Err(error @ Lost::NotRecorded(_)) => return Err(error.into()),
            // It can do without.
            Err(_) => return Ok(()),
            Ok(times) => times,
        };
        let [Some(before), Some(after)] = [0, 1].map(|at| times.get(at).and_then(|own| undisturbed(own)))
        else {
            return Ok(());
        };
        self.reference = (at, seconds * after / before);
        self.best = Some((at, seconds * after / before));
        Ok(())
    }
}
