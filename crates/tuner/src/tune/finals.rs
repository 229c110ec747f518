//! The end of a run: the fastest once more, in turn.

use super::report::Tuned;
use super::spent::timed;
use super::{FINALISTS, Run, TuneError};

/// The place of the cost model's first choice, if there is one: it is tried right after the default schedule.
const ONE_SHOT: usize = 1;
/// Samples of every finalist.
const SAMPLES: usize = 40;
/// Their time together, in seconds: at least, and at most.
const TIME: (f64, f64) = (0.1, 0.6);

impl Run<'_, '_> {
    /// Chooses the winner.
    pub(super) fn finish(mut self) -> Result<Tuned, TuneError> {
        let finalists = self.finalists();
        let schedules: Vec<String> = finalists.iter().map(|at| self.trials[*at].schedule.clone()).collect();
        let longest = finalists.iter().filter_map(|at| self.trials[*at].trial.seconds()).fold(0.0, f64::max);
        let time = (SAMPLES as f64 * longest).clamp(TIME.0, TIME.1);
        let times = timed(&mut self.spent.finals, || self.measurer.race(&schedules, SAMPLES, time))?;
        let raced: Vec<Raced> =
            finalists.iter().zip(times).map(|(at, times)| Raced::new(*at, times)).collect();
        let winner = winner(&raced);
        let default = raced.iter().find(|raced| raced.trial == 0).map_or(self.default, |raced| raced.median);
        let one_shot = raced.iter().find(|raced| self.one_shot.is_some() && raced.trial == ONE_SHOT);
        self.one_shot = one_shot.map(|raced| raced.median);
        Ok(self.report(winner, raced, default))
    }

    /// The default schedule, the cost model's first choice, and the fastest others, in the order in which they were
    /// found: what is told of the three must come from one comparison.
    fn finalists(&self) -> Vec<usize> {
        let mut others: Vec<usize> =
            (1..self.trials.len()).filter(|at| self.trials[*at].trial.seconds().is_some()).collect();
        let seconds = |at: &usize| self.trials[*at].trial.seconds().unwrap_or(f64::INFINITY);
        others.sort_by(|left, right| seconds(left).total_cmp(&seconds(right)));
        others.truncate(FINALISTS);
        if self.one_shot.is_some() && !others.contains(&ONE_SHOT) {
            others.push(ONE_SHOT);
        }
        others.sort_unstable();
        std::iter::once(0).chain(others).collect()
    }
}

/// A finalist's times.
#[derive(Clone, Debug)]
pub(super) struct Raced {
    pub trial: usize,
    pub median: f64,
    /// Half of the samples are closer to the median than this.
    pub noise: f64,
    pub samples: Vec<f64>,
}

impl Raced {
    fn new(trial: usize, samples: Vec<f64>) -> Raced {
        let median = middle(samples.clone());
        let noise = middle(samples.iter().map(|sample| (sample - median).abs()).collect());
        Raced { trial, median, noise, samples }
    }
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
}

/// The first of those that are as fast as the fastest: the error of a median of n samples is about their noise, divided
/// by the root of n.
fn winner(raced: &[Raced]) -> Raced {
    let fastest = raced.iter().min_by(|left, right| left.median.total_cmp(&right.median));
    let fastest = fastest.expect("the default schedule is always there").clone();
    let error = |raced: &Raced| 2.0 * raced.noise / (raced.samples.len().max(1) as f64).sqrt();
    let equal = |raced: &&Raced| raced.median <= fastest.median + error(raced).max(error(&fastest));
    raced.iter().find(equal).cloned().unwrap_or(fastest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raced(trial: usize, times: &[f64]) -> Raced {
        Raced::new(trial, times.to_vec())
    }

    #[test]
    fn ties_within_the_noise_go_to_the_first() {
        let noisy = [raced(0, &[1.00, 1.04, 1.08]), raced(3, &[1.0, 1.03, 1.07])];
        assert_eq!(winner(&noisy).trial, 0);
        let clear = [raced(0, &[1.00, 1.01, 1.02]), raced(3, &[0.80, 0.81, 0.82])];
        assert_eq!(winner(&clear).trial, 3);
    }
}
