//! Gives searches the costs of a program's schedules ([`Landscape`]). A cost was recorded
//! earlier, or is measured on demand and then recorded.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::CompareError;
use crate::measure::Measurer;
use crate::race_statistics::{self, geometric_mean};
use crate::tune::{MachineParameters, REFERENCE_PLAN, ReferenceKernel};
use crate::worker::WorkerError;

/// The number of rounds in which the schedules that searches found are measured again.
const ROUNDS: usize = 25;
/// The near-best schedules are measured again in further races: those within
/// `NEAR_BEST_FACTOR` times the best time, at most `MOST_NEAR_BEST` of them, in `RACES` races of
/// `ROUNDS` rounds.
const NEAR_BEST_FACTOR: f64 = 1.15;
const MOST_NEAR_BEST: usize = 120;
const RACES: usize = 3;

/// The known cost of a schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KnownCost {
    /// The time of one call in seconds, or `None` if the schedule failed.
    pub seconds: Option<f64>,
    /// The time that this trial took, in seconds.
    #[serde(rename = "took")]
    pub trial_seconds: f64,
    /// The time of one call in seconds from the final race, in turn with the best schedules of all
    /// searches.
    #[serde(rename = "confirmed")]
    pub final_seconds: Option<f64>,
}

/// Records measurements.
pub trait CostRecorder {
    /// Records the cost of a schedule.
    fn record_cost(&mut self, schedule: &str, known: KnownCost) -> std::io::Result<()>;
    /// Records the time of a schedule from the final race.
    fn record_final_time(&mut self, schedule: &str, seconds: f64) -> std::io::Result<()>;
}

/// The measurer, and the recorder of its measurements.
struct MeasurementSource<'m> {
    measurer: &'m mut dyn Measurer,
    recorder: &'m mut dyn CostRecorder,
}

/// The costs of schedules.
pub struct Landscape<'m> {
    known: HashMap<String, KnownCost>,
    source: Option<MeasurementSource<'m>>,
    default: String,
    reference: ReferenceKernel,
    /// Schedules that searches asked for, whose cost is unknown and cannot be measured.
    unknown: HashSet<String>,
    /// The reason why the final race did not take place.
    final_race_error: Option<String>,
}

impl<'m> Landscape<'m> {
    /// A landscape of recorded costs only.
    pub fn recorded(known: HashMap<String, KnownCost>) -> Landscape<'m> {
        Landscape {
            known,
            source: None,
            default: String::new(),
            reference: ReferenceKernel::default(),
            unknown: HashSet::new(),
            final_race_error: None,
        }
    }

    /// A landscape of recorded costs that measures and records unknown schedules.
    pub fn measured(
        known: HashMap<String, KnownCost>,
        measurer: &'m mut dyn Measurer,
        recorder: &'m mut dyn CostRecorder,
    ) -> Landscape<'m> {
        Landscape { source: Some(MeasurementSource { measurer, recorder }), ..Landscape::recorded(known) }
    }

    /// The number of schedules that searches asked for and whose cost is unknown.
    pub fn unknown_count(&self) -> usize {
        self.unknown.len()
    }

    /// The time of one call in seconds from the last final race, if the schedule took part.
    pub(super) fn final_time(&self, schedule: &str) -> Option<f64> {
        self.known.get(schedule)?.final_seconds
    }

    /// The time of one call in seconds, as reported to searches.
    pub(super) fn first_time(&self, schedule: &str) -> Option<f64> {
        self.known.get(schedule)?.seconds
    }

    /// Measures schedules again, all in turn, unless all of them have a time from a final race. If
    /// the race fails, the known times stay.
    ///
    /// The best of many noisy times is too optimistic even then. So the schedules near the best are
    /// measured in further races, and only these times count for them. They are compiled again each
    /// time, since the placement of data and code matters too.
    pub(super) fn measure_final_times(&mut self, schedules: &[String]) -> Result<(), CompareError> {
        if schedules.iter().all(|own| self.final_time(own).is_some()) {
            return Ok(());
        }
        let Some(mut seconds) = self.race_times(schedules)? else { return Ok(()) };
        let near = near_best(&seconds);
        let chosen: Vec<String> = near.iter().map(|at| schedules[*at].clone()).collect();
        let mut again = Vec::new();
        for _ in 0..RACES {
            let Some(times) = self.race_times(&chosen)? else { return Ok(()) };
            again.push(times);
        }
        let again: Vec<f64> =
            (0..near.len()).map(|at| geometric_mean(again.iter().map(|times| times[at]))).collect();
        // The machine may have become faster or slower since the first race. The times of all other
        // schedules are scaled by that change.
        let pace = geometric_mean(near.iter().zip(&again).map(|(at, again)| again / seconds[*at]));
        seconds.iter_mut().for_each(|own| *own *= pace);
        near.iter().zip(again).for_each(|(at, again)| seconds[*at] = again);
        let Some(source) = self.source.as_mut() else { return Ok(()) };
        for (schedule, seconds) in schedules.iter().zip(seconds) {
            if let Some(known) = self.known.get_mut(schedule) {
                known.final_seconds = Some(seconds);
                source.recorder.record_final_time(schedule, seconds)?;
            }
        }
        Ok(())
    }

    /// Drops the final-race times of all other schedules. They come from earlier races against
    /// other schedules.
    pub(super) fn clear_other_final_times(&mut self, schedules: &[String]) {
        let stays: HashSet<&String> = schedules.iter().collect();
        let others = self.known.iter_mut().filter(|(own, _)| !stays.contains(own));
        others.for_each(|(_, known)| known.final_seconds = None);
    }

    /// The times of schedules that run in turn, in seconds, or `None` if the race fails.
    fn race_times(&mut self, schedules: &[String]) -> Result<Option<Vec<f64>>, CompareError> {
        let fastest = schedules.iter().filter_map(|own| self.first_time(own)).reduce(f64::min);
        let Some((source, fastest)) = self.source.as_mut().zip(fastest) else { return Ok(None) };
        match source.measurer.race(schedules, ROUNDS, ROUNDS as f64 * fastest) {
            Err(error @ WorkerError::NotRecorded(_)) => Err(error.into()),
            Err(lost) => {
                self.final_race_error = Some(lost.to_string());
                Ok(None)
            }
            Ok(times) => Ok(Some(race_statistics::race_seconds(&times))),
        }
    }

    /// The reason why the final race did not take place.
    pub fn final_race_error(&self) -> Option<&str> {
        self.final_race_error.as_deref()
    }

    /// All schedules that work, with their times as reported to searches.
    pub(super) fn working_schedules(&self) -> impl Iterator<Item = (&str, f64)> {
        self.known.iter().filter_map(|(schedule, known)| Some((schedule.as_str(), known.seconds?)))
    }

    fn fastest(&self) -> Option<(&str, f64)> {
        self.working_schedules()
            .min_by(|left, right| left.1.total_cmp(&right.1).then_with(|| left.0.cmp(right.0)))
    }

    /// All known schedules with their times, in a fixed order.
    pub(super) fn known_times(&self) -> Vec<(&str, Option<f64>)> {
        let all = self.known.iter().map(|(schedule, known)| (schedule.as_str(), known.seconds));
        let mut all: Vec<(&str, Option<f64>)> = all.collect();
        all.sort_by_key(|(schedule, _)| xxh3_64(schedule.as_bytes()));
        all
    }

    /// The default schedule and its cost.
    pub(super) fn default_schedule(&self) -> (&str, KnownCost) {
        (&self.default, self.known.get(&self.default).copied().unwrap_or_default())
    }

    /// Measures the default schedule if its cost is unknown, and makes it the first reference.
    /// Returns its time in seconds.
    pub(super) fn measure_default(
        &mut self,
        default: String,
        machine_parameters: &MachineParameters,
    ) -> Result<f64, CompareError> {
        if let (None, Some(source)) = (self.known.get(&default), &mut self.source) {
            let begun = Instant::now();
            let tried = source.measurer.try_all(std::slice::from_ref(&default), &REFERENCE_PLAN)?;
            let (_, trial) = tried.into_iter().next().ok_or(CompareError::Stopped)?;
            let seconds = trial.seconds().ok_or(CompareError::Default(trial.outcome))?;
            let took = begun.elapsed().as_secs_f64();
            let known = KnownCost { seconds: Some(seconds), trial_seconds: took, final_seconds: None };
            source.recorder.record_cost(&default, known)?;
            self.known.insert(default.clone(), known);
        }
        let known = self.known.get(&default).and_then(|known| known.seconds);
        let seconds = known.ok_or_else(|| {
            WorkerError::NotRecorded(
                "the recording has no cost of this program's default schedule".to_owned(),
            )
        })?;
        self.default.clone_from(&default);
        self.reference = ReferenceKernel { schedule: default, seconds };
        self.update_reference(machine_parameters)?;
        Ok(seconds)
    }

    /// The costs of schedules, in their order.
    pub(super) fn costs(
        &mut self,
        schedules: &[String],
        machine_parameters: &MachineParameters,
    ) -> Result<Vec<KnownCost>, CompareError> {
        // Several searches may ask for the same schedule.
        let mut asked = HashSet::new();
        let new = schedules.iter().filter(|own| !self.known.contains_key(*own) && asked.insert(*own));
        let new: Vec<String> = new.cloned().collect();
        if self.source.is_some() && !new.is_empty() {
            self.measure(&new, machine_parameters)?;
        } else {
            self.unknown.extend(new);
        }
        Ok(schedules.iter().map(|own| self.known.get(own).copied().unwrap_or_default()).collect())
    }

    fn measure(
        &mut self,
        schedules: &[String],
        machine_parameters: &MachineParameters,
    ) -> Result<(), CompareError> {
        let plan = machine_parameters.plan(
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
            let known = KnownCost { seconds: trial.seconds(), trial_seconds: took, final_seconds: None };
            source.recorder.record_cost(&schedules[at], known)?;
            self.known.insert(schedules[at].clone(), known);
        }
        self.update_reference(machine_parameters)?;
        if complete { Ok(()) } else { Err(CompareError::Stopped) }
    }

    /// Makes the fastest schedule the reference of further candidates, if it is clearly faster.
    fn update_reference(&mut self, machine_parameters: &MachineParameters) -> Result<(), CompareError> {
        let Some((schedule, seconds)) =
            self.fastest().map(|(schedule, seconds)| (schedule.to_owned(), seconds))
        else {
            return Ok(());
        };
        let Some(source) = &mut self.source else { return Ok(()) };
        self.reference.replace_if_slower(source.measurer, &schedule, seconds, machine_parameters)?;
        Ok(())
    }
}

/// The indices of the schedules that may be the best, fastest first.
fn near_best(seconds: &[f64]) -> Vec<usize> {
    let best = seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let mut near: Vec<usize> =
        (0..seconds.len()).filter(|at| seconds[*at] <= NEAR_BEST_FACTOR * best).collect();
    near.sort_by(|left, right| seconds[*left].total_cmp(&seconds[*right]));
    near.truncate(MOST_NEAR_BEST);
    near
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;
    use crate::bench::Plan;
    use tilewright_cache::outcome::Trial;

    /// A machine on which one schedule is fast by chance in the first race.
    struct Lucky {
        races: Vec<usize>,
    }

    impl Measurer for Lucky {
        fn try_all(&mut self, _: &[String], _: &Plan) -> Result<Vec<(usize, Trial)>, WorkerError> {
            Ok(Vec::new())
        }

        fn race(
            &mut self,
            schedules: &[String],
            samples: usize,
            _: f64,
        ) -> Result<Vec<Vec<f64>>, WorkerError> {
            let is_first = self.races.is_empty();
            self.races.push(schedules.len());
            // Everything takes twice as long in later races.
            let pace = if is_first { 1.0 } else { 2.0 };
            let seconds = |own: &String| match own.as_str() {
                "lucky" => {
                    if is_first {
                        0.9
                    } else {
                        1.1
                    }
                }
                "good" => 1.0,
                _ => 1.5,
            };
            Ok(schedules.iter().map(|own| vec![pace * seconds(own); samples]).collect())
        }
    }

    #[derive(Default)]
    struct Kept(Vec<(String, f64)>);

    impl CostRecorder for Kept {
        fn record_cost(&mut self, _: &str, _: KnownCost) -> std::io::Result<()> {
            Ok(())
        }

        fn record_final_time(&mut self, schedule: &str, seconds: f64) -> std::io::Result<()> {
            self.0.push((schedule.to_owned(), seconds));
            Ok(())
        }
    }

    #[test]
    fn luck_in_one_race_is_not_what_counts() {
        let names = ["lucky", "good", "slow"].map(str::to_owned);
        let known =
            |seconds: f64| KnownCost { seconds: Some(seconds), trial_seconds: 1.0, final_seconds: None };
        let told = HashMap::from([0, 1, 2].map(|at| (names[at].clone(), known(1.0))));
        let (mut machine, mut kept) = (Lucky { races: Vec::new() }, Kept::default());
        let mut landscape = Landscape::measured(told, &mut machine, &mut kept);
        landscape.measure_final_times(&names).unwrap();
        let [lucky, good, slow] = [0, 1, 2].map(|at| landscape.final_time(&names[at]).unwrap());
        assert!((lucky - 2.2).abs() < 1e-9 && (good - 2.0).abs() < 1e-9, "{lucky} {good}");
        // A schedule that took part in the first race only is scaled to the pace of the later
        // races.
        assert!((3.0..3.6).contains(&slow), "{slow}");
        landscape.measure_final_times(&names).unwrap();
        assert_eq!(machine.races, [3, 2, 2, 2]);
        assert_eq!(kept.0.len(), 3);
    }
}
