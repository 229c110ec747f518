//! What the schedules of a program cost: known from before, or measured and known from then on.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::CompareError;
use crate::measure::Measurer;
use crate::tune::{Habits, Reference, THOROUGHLY};
use crate::worker::Lost;

/// What is known of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Known {
    /// Seconds of a call; none where it does not work.
    pub seconds: Option<f64>,
    /// The seconds that it took to find that out.
    pub took: f64,
}

/// Keeps what was measured.
pub type Keep<'m> = dyn FnMut(&str, Known) -> std::io::Result<()> + 'm;

/// Who measures, and who keeps it.
struct Source<'m> {
    measurer: &'m mut dyn Measurer,
    keep: &'m mut Keep<'m>,
}

/// The costs of schedules.
pub struct Landscape<'m> {
    known: HashMap<String, Known>,
    source: Option<Source<'m>>,
    default: String,
    reference: Reference,
    /// What was asked for, is not known, and cannot be measured.
    unknown: HashSet<String>,
}

impl<'m> Landscape<'m> {
    /// What was measured before, and nothing else.
    pub fn recorded(known: HashMap<String, Known>) -> Landscape<'m> {
        Landscape {
            known,
            source: None,
            default: String::new(),
            reference: Reference::default(),
            unknown: HashSet::new(),
        }
    }

    /// The same, and what is measured where it is not known. That is kept by `keep`.
    pub fn measured(
        known: HashMap<String, Known>,
        measurer: &'m mut dyn Measurer,
        keep: &'m mut Keep<'m>,
    ) -> Landscape<'m> {
        Landscape { source: Some(Source { measurer, keep }), ..Landscape::recorded(known) }
    }

    /// How many schedules were asked for that are not known.
    pub fn unknown(&self) -> usize {
        self.unknown.len()
    }

    /// The least seconds of a call of anything that a search can have found.
    pub(super) fn best_found(&self, with_default: bool) -> Option<f64> {
        let found = self.known.iter().filter(|(schedule, _)| with_default || **schedule != self.default);
        found.filter_map(|(_, known)| known.seconds).reduce(f64::min)
    }

    fn fastest(&self) -> Option<(&str, f64)> {
        let measured =
            self.known.iter().filter_map(|(schedule, known)| Some((schedule.as_str(), known.seconds?)));
        measured.min_by(|left, right| left.1.total_cmp(&right.1).then_with(|| left.0.cmp(right.0)))
    }

    /// All that is known, in an order that is always the same.
    pub(super) fn measured_so_far(&self) -> Vec<(&str, Option<f64>)> {
        let all = self.known.iter().map(|(schedule, known)| (schedule.as_str(), known.seconds));
        let mut all: Vec<(&str, Option<f64>)> = all.collect();
        all.sort_by_key(|(schedule, _)| xxh3_64(schedule.as_bytes()));
        all
    }

    /// The default schedule, and what it costs.
    pub(super) fn default(&self) -> (&str, Known) {
        (&self.default, self.known.get(&self.default).copied().unwrap_or_default())
    }

    /// Makes the default schedule known, which others are compared with. Its seconds.
    pub(super) fn begin(&mut self, default: String) -> Result<f64, CompareError> {
        if let (None, Some(source)) = (self.known.get(&default), &mut self.source) {
            let begun = Instant::now();
            let tried = source.measurer.try_all(std::slice::from_ref(&default), &THOROUGHLY)?;
            let (_, trial) = tried.into_iter().next().ok_or(CompareError::Stopped)?;
            let seconds = trial.seconds().ok_or(CompareError::Default(trial.outcome))?;
            let known = Known { seconds: Some(seconds), took: begun.elapsed().as_secs_f64() };
            (source.keep)(&default, known)?;
            self.known.insert(default.clone(), known);
        }
        let known = self.known.get(&default).and_then(|known| known.seconds);
        let seconds = known.ok_or_else(|| {
            Lost::NotRecorded("the recording does not have the default schedule of this program".to_owned())
        })?;
        self.default.clone_from(&default);
        self.reference = Reference { schedule: default, seconds };
        self.reconsider()?;
        Ok(seconds)
    }

    /// What schedules cost, in their order.
    pub(super) fn costs(
        &mut self,
        schedules: &[String],
        habits: &Habits,
    ) -> Result<Vec<Known>, CompareError> {
        let new: Vec<String> =
            schedules.iter().filter(|schedule| !self.known.contains_key(*schedule)).cloned().collect();
        if self.source.is_some() && !new.is_empty() {
            self.measure(&new, habits)?;
        } else {
            self.unknown.extend(new);
        }
        Ok(schedules.iter().map(|own| self.known.get(own).copied().unwrap_or_default()).collect())
    }

    fn measure(&mut self, schedules: &[String], habits: &Habits) -> Result<(), CompareError> {
        let plan = habits.plan(
            &self.reference,
            self.fastest().map_or(self.reference.seconds, |(_, seconds)| seconds),
            None,
        );
        let Some(source) = &mut self.source else { return Ok(()) };
        let begun = Instant::now();
        let trials = source.measurer.try_all(schedules, &plan)?;
        let took = begun.elapsed().as_secs_f64() / trials.len().max(1) as f64;
        let complete = trials.len() == schedules.len();
        for (at, trial) in trials {
            let mut known = Known { seconds: trial.seconds(), took };
            // The best of many noisy times is too good to be true, and everybody is compared with it in the end.
            if let Some(seconds) = known
                .seconds
                .filter(|seconds| *seconds < plan.best && schedules[at] != self.reference.schedule)
            {
                let again = self.reference.well_compared(source.measurer, &schedules[at], seconds)?;
                known.seconds = again.or(known.seconds);
            }
            (source.keep)(&schedules[at], known)?;
            self.known.insert(schedules[at].clone(), known);
        }
        self.reconsider()?;
        if complete { Ok(()) } else { Err(CompareError::Stopped) }
    }

    /// Compares candidates with the best from now on, if it is clearly faster.
    fn reconsider(&mut self) -> Result<(), CompareError> {
        let Some((schedule, seconds)) =
            self.fastest().map(|(schedule, seconds)| (schedule.to_owned(), seconds))
        else {
            return Ok(());
        };
        let Some(source) = &mut self.source else { return Ok(()) };
        if self.reference.reconsider(source.measurer, &schedule, seconds)?
            && let Some(known) = self.known.get_mut(&schedule)
        {
            // Now it is known better.
            known.seconds = Some(self.reference.seconds);
            (source.keep)(&schedule, *known)?;
        }
        Ok(())
    }
}
