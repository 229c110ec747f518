//! Ends a run: measures the fastest candidates again alternately, as far as time allows,
//! chooses the winner, and returns the [`TuningReport`].

use super::proofs::Proof;
use super::report::TuningReport;
use super::time_spent::time_work;
use super::{FINALISTS, Run, TuneError};
use crate::race_statistics::{self, RelativeTime};
use crate::worker::WorkerError;
use tilewright_cache::outcome::median;

/// The index of the trial of the cost model's first choice, if there is one. It is tried right
/// after the default schedule.
pub(super) const ONE_SHOT_TRIAL: usize = 1;
/// The number of calls whose time the samples of a finalist may take.
const SAMPLED_CALLS: f64 = 40.0;
/// The least number of samples for a comparison.
const FEWEST_SAMPLES: f64 = 5.0;
/// The number of calls of every finalist before its samples.
const WARM_UP_CALLS: f64 = 2.0;
/// The default schedule stays the winner unless another schedule is faster by more than this share.
/// A smaller gain may vanish in another process, where data lies elsewhere.
const DEFAULT_MARGIN: f64 = 0.02;
/// The least and the largest time of the fastest finalist's samples, in seconds.
const SAMPLING_TIME: (f64, f64) = (0.1, 0.6);

/// The time for the samples of a finalist whose call takes `seconds`, in seconds.
pub(super) fn finalist_time(seconds: f64) -> f64 {
    (SAMPLED_CALLS * seconds).clamp(SAMPLING_TIME.0, SAMPLING_TIME.1)
}

/// The plan of the final comparison.
struct FinalComparison {
    /// The indices of the finalists among the trials.
    finalists: Vec<usize>,
    samples: usize,
    /// The time for the samples of the fastest finalist, in seconds.
    time: f64,
}

impl Run<'_, '_> {
    /// Chooses the winner and reports the run.
    pub(super) fn finish(mut self) -> Result<TuningReport, TuneError> {
        let raced = match self.plan_comparison()? {
            Some(comparison) => self.race(&comparison)?,
            None => Vec::new(),
        };
        let known = if raced.is_empty() { self.best_from_trials() } else { raced.clone() };
        let default =
            known.iter().find(|raced| raced.trial == 0).map_or(self.default_seconds, |raced| raced.median);
        let winner = self.find_proved_winner(&raced)?;
        Ok(self.report(winner, raced, default))
    }

    /// The best finalist with its proof, or the next best if the proof refutes it. If no finalist
    /// is left or there was no comparison, the known times of trials count. Finalists with shorter
    /// times than the winner, within the noise, are proved as well: the cache returns the schedule
    /// with the shortest time.
    fn find_proved_winner(&mut self, raced: &[FinalistTimes]) -> Result<(FinalistTimes, Proof), TuneError> {
        loop {
            let mut left: Vec<FinalistTimes> =
                raced.iter().filter(|own| self.is_not_refuted(own)).cloned().collect();
            if left.is_empty() {
                left = self.best_from_trials();
                left.retain(|own| self.is_not_refuted(own));
            }
            let winner = choose_winner(&left).ok_or_else(|| self.all_refuted())?;
            let ahead = left.iter().filter(|own| own.median < winner.median).map(|own| own.trial).collect();
            if let Some(proof) = self.prove_winner(winner.trial, ahead)? {
                return Ok((winner, proof));
            }
        }
    }

    /// Returns true if a finalist was not refuted.
    pub(super) fn is_not_refuted(&self, raced: &FinalistTimes) -> bool {
        self.trials[raced.trial].trial.seconds().is_some()
    }

    /// The default schedule and the best other one, with the samples of their trials.
    fn best_from_trials(&self) -> Vec<FinalistTimes> {
        self.finalists(1).into_iter().map(|at| self.with_trial_samples(at)).collect()
    }

    /// Measures the finalists in turn. Returns nothing if the time is over or workers are lost
    /// again and again. Then the known times count.
    fn race(&mut self, comparison: &FinalComparison) -> Result<Vec<FinalistTimes>, TuneError> {
        let FinalComparison { finalists, samples, time } = comparison;
        let schedules: Vec<String> = finalists.iter().map(|at| self.trials[*at].schedule.clone()).collect();
        let times = match time_work(&mut self.time_spent.finals, || {
            self.measurer.race(&schedules, *samples, *time)
        }) {
            Err(error @ WorkerError::NotRecorded(_)) => return Err(error.into()),
            Err(_) => return Ok(Vec::new()),
            Ok(times) => times,
        };
        Ok(finalists.iter().zip(times).map(|(at, times)| FinalistTimes::new(*at, times)).collect())
    }

    /// Plans a comparison with as many finalists as there is time for, or `None` if there is no
    /// time for the fewest.
    fn plan_comparison(&mut self) -> Result<Option<FinalComparison>, WorkerError> {
        let most = FINALISTS.min(self.trials.len().saturating_sub(1));
        let affordable = |others: &usize| self.rounds(&self.finalists(*others)) >= FEWEST_SAMPLES;
        let others = (1..=most).rev().find(affordable).filter(|_| !self.stop.is_urgent());
        let others = self.measurer.decide(others.unwrap_or(0))?;
        Ok((others > 0).then(|| {
            let finalists = self.finalists(others);
            let rounds = self.rounds(&finalists).max(FEWEST_SAMPLES);
            let time = rounds * self.fastest(&finalists);
            FinalComparison {
                finalists,
                samples: rounds.min(self.machine_parameters.final_samples) as usize,
                time,
            }
        }))
    }

    /// The number of rounds that are useful and that fit into the time, after building and warming
    /// up. A round calls every finalist once.
    fn rounds(&self, finalists: &[usize]) -> f64 {
        let fastest = self.fastest(finalists);
        let round: f64 = finalists.iter().filter_map(|at| self.trials[*at].trial.seconds()).sum();
        let builds = finalists.len() as f64 * self.candidate_time.seconds();
        let most = (FINALISTS + 1) as f64 * SAMPLING_TIME.1;
        let time = self.time_left().map_or(most, |left| (left - builds - WARM_UP_CALLS * round).min(most));
        (finalist_time(fastest) / fastest).min(time / round)
    }

    fn fastest(&self, finalists: &[usize]) -> f64 {
        let seconds = finalists.iter().filter_map(|at| self.trials[*at].trial.seconds());
        seconds.fold(f64::INFINITY, f64::min)
    }

    /// The default schedule, the cost model's first choice, and the `most` fastest others, in the
    /// order of their trials. The reported times of these three kinds must come from one
    /// comparison.
    fn finalists(&self, most: usize) -> Vec<usize> {
        let mut others: Vec<usize> =
            (1..self.trials.len()).filter(|at| self.trials[*at].trial.seconds().is_some()).collect();
        let seconds = |at: &usize| self.trials[*at].trial.seconds().unwrap_or(f64::INFINITY);
        others.sort_by(|left, right| seconds(left).total_cmp(&seconds(right)));
        let works = self.one_shot.as_ref().is_some_and(|trial| trial.seconds().is_some());
        others.truncate(most);
        if works && !others.contains(&ONE_SHOT_TRIAL) {
            others.push(ONE_SHOT_TRIAL);
        }
        others.sort_unstable();
        std::iter::once(0).chain(others).collect()
    }

    /// A trial with its own samples.
    fn with_trial_samples(&self, at: usize) -> FinalistTimes {
        FinalistTimes::new(at, self.trials[at].trial.samples.clone())
    }

    /// The time of the cost model's first choice, from the final comparison if there was one.
    pub(super) fn one_shot_seconds(&self, raced: &[FinalistTimes]) -> Option<f64> {
        let tried = self.one_shot.as_ref()?.seconds();
        raced.iter().find(|raced| raced.trial == ONE_SHOT_TRIAL).map(|raced| raced.median).or(tried)
    }
}

/// The times of a finalist.
#[derive(Clone, Debug)]
pub(super) struct FinalistTimes {
    pub trial: usize,
    /// The median time in seconds.
    pub median: f64,
    pub samples: Vec<f64>,
}

impl FinalistTimes {
    fn new(trial: usize, samples: Vec<f64>) -> FinalistTimes {
        FinalistTimes { trial, median: median(&samples).unwrap_or(f64::INFINITY), samples }
    }
}

/// The first finalist that is as fast as the fastest within the noise, or `None` without finalists.
fn choose_winner(raced: &[FinalistTimes]) -> Option<FinalistTimes> {
    let samples: Vec<&[f64]> = raced.iter().map(|own| own.samples.as_slice()).collect();
    let relative = race_statistics::relative_times(&samples);
    let all = || raced.iter().zip(&relative);
    let (_, best) = all().min_by(|left, right| left.1.median.total_cmp(&right.1.median))?;
    let equal = |(raced, own): &(&FinalistTimes, &RelativeTime)| {
        let margin = if raced.trial == 0 { DEFAULT_MARGIN * own.median } else { 0.0 };
        own.median <= best.median + own.error.max(best.error) + margin
    };
    all().find(equal).map(|(raced, _)| raced.clone())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    fn raced(trial: usize, times: &[f64]) -> FinalistTimes {
        FinalistTimes::new(trial, times.to_vec())
    }

    #[test]
    fn ties_within_the_noise_go_to_the_first() {
        let noisy = [raced(0, &[1.00, 1.08, 1.04, 1.02]), raced(3, &[1.05, 1.0, 1.03, 1.01])];
        assert_eq!(choose_winner(&noisy).unwrap().trial, 0);
        let clear = [raced(0, &[1.00, 1.01, 1.02]), raced(3, &[0.80, 0.81, 0.82])];
        assert_eq!(choose_winner(&clear).unwrap().trial, 3);
    }

    #[test]
    fn the_default_schedule_stays_unless_something_is_clearly_faster() {
        let steady = |time: f64| vec![time; 20];
        assert_eq!(choose_winner(&[raced(0, &steady(1.0)), raced(4, &steady(0.99))]).unwrap().trial, 0);
        assert_eq!(choose_winner(&[raced(2, &steady(1.0)), raced(4, &steady(0.99))]).unwrap().trial, 4);
    }

    #[test]
    fn slow_moments_of_the_machine_do_not_count() {
        // Half of the rounds take twice as long. In every single round, the second kernel is five
        // percent faster.
        let slow = |round: usize| if round.is_multiple_of(2) { 1.0 } else { 2.0 };
        let times = |own: f64| (0..20).map(|round| own * slow(round)).collect::<Vec<_>>();
        assert_eq!(choose_winner(&[raced(0, &times(1.0)), raced(4, &times(0.95))]).unwrap().trial, 4);
    }
}
