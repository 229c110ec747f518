//! The end of a run: the fastest once more, in turn, as far as there is time for it.

use super::proofs::Proof;
use super::report::Tuned;
use super::spent::timed;
use super::{FINALISTS, Run, TuneError};
use crate::turns::{self, Relative};
use crate::worker::Lost;
use tilewright_cache::outcome::median;

/// The place of the cost model's first choice, if there is one: it is tried right after the default schedule.
pub(super) const ONE_SHOT: usize = 1;
/// What the samples of a finalist take is that of so many calls.
const CALLS: f64 = 40.0;
/// With fewer there is nothing to compare.
const FEWEST_SAMPLES: f64 = 5.0;
/// Calls of every finalist before its samples.
const WARM_UP: f64 = 2.0;
/// The default schedule stays unless something is faster by more than this: what is won by less may be lost again in
/// another process, where data lies elsewhere.
const DEFAULT_MARGIN: f64 = 0.02;
/// The time of the samples of the fastest, in seconds: at least, and at most.
const TIME: (f64, f64) = (0.1, 0.6);

/// What the samples of a finalist with this time should take, in seconds.
pub(super) fn time_of_one(seconds: f64) -> f64 {
    (CALLS * seconds).clamp(TIME.0, TIME.1)
}

/// Who is compared, and for how long.
struct Comparison {
    /// Places among the trials.
    finalists: Vec<usize>,
    samples: usize,
    /// Seconds for the samples of the fastest.
    time: f64,
}

impl Run<'_, '_> {
    /// Chooses the winner.
    pub(super) fn finish(mut self) -> Result<Tuned, TuneError> {
        let raced = match self.comparison()? {
            Some(comparison) => self.race(&comparison)?,
            None => Vec::new(),
        };
        let known = if raced.is_empty() { self.best_tried() } else { raced.clone() };
        let default = known.iter().find(|raced| raced.trial == 0).map_or(self.default, |raced| raced.median);
        let winner = self.proved_winner(&raced)?;
        Ok(self.report(winner, raced, default))
    }

    /// The best of the last comparison, with its proof; the next best where that is refuted. Where nobody is left, or there
    /// was no comparison, the times count that are known. Those with shorter times than the winner, which are within the
    /// noise, are proved as well: who asks the cache gets the schedule with the shortest time.
    fn proved_winner(&mut self, raced: &[Raced]) -> Result<(Raced, Proof), TuneError> {
        loop {
            let mut left: Vec<Raced> = raced.iter().filter(|own| self.may_win(own)).cloned().collect();
            if left.is_empty() {
                left = self.best_tried();
                left.retain(|own| self.may_win(own));
            }
            let winner = winner(&left).ok_or_else(|| self.all_refuted())?;
            let ahead = left.iter().filter(|own| own.median < winner.median).map(|own| own.trial).collect();
            if let Some(proof) = self.prove_winner(winner.trial, ahead)? {
                return Ok((winner, proof));
            }
        }
    }

    /// Whether a finalist was not refuted.
    pub(super) fn may_win(&self, raced: &Raced) -> bool {
        self.trials[raced.trial].trial.seconds().is_some()
    }

    /// The default schedule and the best other one, with the samples of their trials.
    fn best_tried(&self) -> Vec<Raced> {
        self.finalists(1).into_iter().map(|at| self.as_tried(at)).collect()
    }

    /// Measures in turn; nobody, if there is no time any more or workers are lost again and again. Then the times count
    /// that are known.
    fn race(&mut self, comparison: &Comparison) -> Result<Vec<Raced>, TuneError> {
        let Comparison { finalists, samples, time } = comparison;
        let schedules: Vec<String> = finalists.iter().map(|at| self.trials[*at].schedule.clone()).collect();
        let times = match timed(&mut self.spent.finals, || self.measurer.race(&schedules, *samples, *time)) {
            Err(error @ Lost::NotRecorded(_)) => return Err(error.into()),
            Err(_) => return Ok(Vec::new()),
            Ok(times) => times,
        };
        Ok(finalists.iter().zip(times).map(|(at, times)| Raced::new(*at, times)).collect())
    }

    /// As many finalists as there is time for; none if there is not even time for the fewest.
    fn comparison(&mut self) -> Result<Option<Comparison>, Lost> {
        let most = FINALISTS.min(self.trials.len().saturating_sub(1));
        let affordable = |others: &usize| self.rounds(&self.finalists(*others)) >= FEWEST_SAMPLES;
        let others = (1..=most).rev().find(affordable).filter(|_| !self.stop.is_urgent());
        let others = self.measurer.decide(others.unwrap_or(0))?;
        Ok((others > 0).then(|| {
            let finalists = self.finalists(others);
            let rounds = self.rounds(&finalists).max(FEWEST_SAMPLES);
            let time = rounds * self.fastest(&finalists);
            Comparison { finalists, samples: rounds.min(self.habits.final_samples) as usize, time }
        }))
    }

    /// How often there is time to call everybody once, apart from building and warming up, and reason to.
    fn rounds(&self, finalists: &[usize]) -> f64 {
        let fastest = self.fastest(finalists);
        let round: f64 = finalists.iter().filter_map(|at| self.trials[*at].trial.seconds()).sum();
        let builds = finalists.len() as f64 * self.candidate.seconds();
        let most = (FINALISTS + 1) as f64 * TIME.1;
        let time = self.left().map_or(most, |left| (left - builds - WARM_UP * round).min(most));
        (time_of_one(fastest) / fastest).min(time / round)
    }

    fn fastest(&self, finalists: &[usize]) -> f64 {
        let seconds = finalists.iter().filter_map(|at| self.trials[*at].trial.seconds());
        seconds.fold(f64::INFINITY, f64::min)
    }

    /// The default schedule, the cost model's first choice, and so many of the fastest others, in the order in which they
    /// were found: what is told of the three must come from one comparison.
    fn finalists(&self, most: usize) -> Vec<usize> {
        let mut others: Vec<usize> =
            (1..self.trials.len()).filter(|at| self.trials[*at].trial.seconds().is_some()).collect();
        let seconds = |at: &usize| self.trials[*at].trial.seconds().unwrap_or(f64::INFINITY);
        others.sort_by(|left, right| seconds(left).total_cmp(&seconds(right)));
        let works = self.one_shot.as_ref().is_some_and(|trial| trial.seconds().is_some());
        others.truncate(most);
        if works && !others.contains(&ONE_SHOT) {
            others.push(ONE_SHOT);
        }
        others.sort_unstable();
        std::iter::once(0).chain(others).collect()
    }

    /// A trial with the samples that it has.
    fn as_tried(&self, at: usize) -> Raced {
        Raced::new(at, self.trials[at].trial.samples.clone())
    }

    /// The time of the cost model's first choice, from the last comparison if there was one.
    pub(super) fn one_shot_seconds(&self, raced: &[Raced]) -> Option<f64> {
        let tried = self.one_shot.as_ref()?.seconds();
        raced.iter().find(|raced| raced.trial == ONE_SHOT).map(|raced| raced.median).or(tried)
    }
}

/// A finalist's times.
#[derive(Clone, Debug)]
pub(super) struct Raced {
    pub trial: usize,
    /// Its median time in seconds.
    pub median: f64,
    pub samples: Vec<f64>,
}

impl Raced {
    fn new(trial: usize, samples: Vec<f64>) -> Raced {
        Raced { trial, median: median(&samples).unwrap_or(f64::INFINITY), samples }
    }
}

/// The first of those that are as fast as the fastest, if there is anybody.
fn winner(raced: &[Raced]) -> Option<Raced> {
    let samples: Vec<&[f64]> = raced.iter().map(|own| own.samples.as_slice()).collect();
    let relative = turns::relative(&samples);
    let all = || raced.iter().zip(&relative);
    let (_, best) = all().min_by(|left, right| left.1.median.total_cmp(&right.1.median))?;
    let equal = |(raced, own): &(&Raced, &Relative)| {
        let margin = if raced.trial == 0 { DEFAULT_MARGIN * own.median } else { 0.0 };
        own.median <= best.median + own.error.max(best.error) + margin
    };
    all().find(equal).map(|(raced, _)| raced.clone())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    fn raced(trial: usize, times: &[f64]) -> Raced {
        Raced::new(trial, times.to_vec())
    }

    #[test]
    fn ties_within_the_noise_go_to_the_first() {
        let noisy = [raced(0, &[1.00, 1.08, 1.04, 1.02]), raced(3, &[1.05, 1.0, 1.03, 1.01])];
        assert_eq!(winner(&noisy).unwrap().trial, 0);
        let clear = [raced(0, &[1.00, 1.01, 1.02]), raced(3, &[0.80, 0.81, 0.82])];
        assert_eq!(winner(&clear).unwrap().trial, 3);
    }

    #[test]
    fn the_default_schedule_stays_unless_something_is_clearly_faster() {
        let steady = |time: f64| vec![time; 20];
        assert_eq!(winner(&[raced(0, &steady(1.0)), raced(4, &steady(0.99))]).unwrap().trial, 0);
        assert_eq!(winner(&[raced(2, &steady(1.0)), raced(4, &steady(0.99))]).unwrap().trial, 4);
    }

    #[test]
    fn slow_moments_of_the_machine_do_not_count() {
        // Half of the rounds take twice as long; in every single one the second is five percent faster.
        let slow = |round: usize| if round.is_multiple_of(2) { 1.0 } else { 2.0 };
        let times = |own: f64| (0..20).map(|round| own * slow(round)).collect::<Vec<_>>();
        assert_eq!(winner(&[raced(0, &times(1.0)), raced(4, &times(0.95))]).unwrap().trial, 4);
    }
}
