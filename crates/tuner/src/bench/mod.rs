//! Runs kernels on the data of a `Fixture`: checks their results, times them, and compares them
//! with each other.
//!
//! A shared machine, or one that changes its clock rate, varies in speed by more than candidates
//! differ. So every batch also measures a reference kernel. A candidate that is near the best is
//! measured alternately with the reference. Its time is then scaled to the speed that the machine
//! had when the reference's known time was taken.
//!
//! A `Runner` times a single call, on the CPU (`cpu.rs`) or on a device (`gpu.rs`).

pub(crate) mod conditioning;
pub(crate) mod cpu;
pub(crate) mod device_comparison;
pub(crate) mod gpu;

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tilewright_interp::Expected;
use tilewright_interp::compare::Tolerances;
use tilewright_runtime::{Buffer, RunError};

use conditioning::Perturbation;
use tilewright_cache::outcome::{Outcome, Trial, lower_quartile};

/// The time limit for the samples of one candidate, in seconds, apart from a few calls.
const SAMPLING_TIME_LIMIT: f64 = 0.1;
/// The factor by which a machine may slow down before a candidate counts as hanging.
const HANG_FACTOR: f64 = 4.0;
/// The factor by which more samples are taken to confirm a new best.
const CONFIRMATION_FACTOR: usize = 3;
/// The number of samples of the reference kernel before it is compared with candidates.
const WARM_UP_SAMPLES: usize = 5;
/// Early stopping of a comparison with the reference kernel: pairs of a share of the planned rounds
/// and a factor. After that share of the rounds, the comparison ends if the candidate takes longer
/// than the factor times `Plan::call_limit`.
const EARLY_STOPS: [(f64, f64); 2] = [(0.33, 1.15), (0.67, 1.05)];

/// How much to measure of each candidate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The reference kernel that candidates are compared with.
    pub reference: Option<ReferenceSchedule>,
    /// The best time so far, in seconds. A candidate that seems faster is measured again.
    pub best_seconds: f64,
    /// The longest first call, in seconds, that is worth a second one. The first call also warms up
    /// the caches. A call so long that caches do not matter must also be promising.
    pub first_call_limit: f64,
    /// If the next calls take longer than this too, beyond the doubt of a single call, measuring
    /// ends.
    pub call_limit: f64,
    /// The number of samples.
    pub samples: usize,
    /// The time of all samples together, in seconds.
    pub time: f64,
    /// The time limit of a batch in seconds, if there is one. Candidates that are not begun by then
    /// are not tried.
    pub batch_limit: Option<f64>,
}

impl Plan {
    /// The longest time in seconds that a well-behaved candidate may take: the first calls, a
    /// comparison with the reference kernel, and a second comparison to confirm it.
    pub fn longest_trial(&self) -> f64 {
        HANG_FACTOR * (2.0 * self.first_call_limit + SAMPLING_TIME_LIMIT + 4.0 * self.call_limit)
    }
}

/// A reference schedule whose time is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceSchedule {
    /// The text of the schedule.
    pub schedule: String,
    /// Its time in seconds. The limits of a plan assume that the machine is as fast as when this
    /// time was taken.
    pub seconds: f64,
}

/// How many samples to take of kernels that run in turn.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// The least number of samples of each kernel.
    pub samples: usize,
    /// The least sum over the rounds of the fastest call of each round, in seconds.
    pub time: f64,
    /// The longest elapsed time per kernel, in seconds.
    pub time_limit: f64,
}

/// Runs kernels on data and times them.
pub(crate) trait Runner {
    /// Compiled code.
    type Executable;
    /// Compiled code with its constants bound.
    type Kernel;

    /// The shortest single call, in seconds, that is conclusive.
    const SHORTEST_CONCLUSIVE_CALL: f64;
    /// The factor by which a single call may be slower than other calls.
    const SINGLE_CALL_SLACK: f64;
    /// The number of further calls after a first call that takes too long.
    const FURTHER_CALLS: usize;
    /// The largest number of samples of a candidate. More samples tell nothing new.
    const MOST_SAMPLES: usize;
    /// Whether caches are emptied before every sample. Emptying may take longer than the call, so
    /// it counts as the call's time where there is a limit.
    const EMPTIES_CACHES: bool;

    /// Prepares the constants, once, for all calls of a kernel.
    fn bind(&self, executable: &Self::Executable) -> Result<Self::Kernel, RunError>;

    /// Calls a kernel until its one-time work is done, so that later samples are alike.
    fn warm_up(&mut self, kernel: &Self::Kernel) -> Result<(), RunError>;

    /// Calls a kernel on results in their initial state. Returns the time in seconds.
    fn first_call(&mut self, kernel: &Self::Kernel) -> Result<f64, RunError>;

    /// The longest first call that is worth a second one, in seconds. `first` is the time of the
    /// first call.
    fn longest_first_call(&self, first: f64, plan: &Plan) -> f64;

    /// Calls a kernel again. Returns the time in seconds.
    fn time_call(&mut self, kernel: &Self::Kernel) -> Result<f64, RunError>;

    /// The time of a call, in seconds, for comparison with other kernels.
    fn sample(&mut self, kernel: &Self::Kernel) -> Result<f64, RunError>;

    /// Returns true if the last call's results are known to be right without copying them.
    fn results_match(&mut self, _: &[ExpectedResult]) -> Result<bool, RunError> {
        Ok(false)
    }

    /// Changes the last bits of floats among the inputs, or restores them. Returns false if no
    /// input has the type.
    fn perturb_inputs(&mut self, _: Perturbation) -> Result<bool, RunError> {
        Ok(false)
    }

    /// The results of the last call.
    fn results(&mut self) -> Result<&[Buffer], RunError>;
}

/// The expected contents of a result.
pub(crate) struct ExpectedResult {
    pub name: String,
    pub expected: Expected,
}

/// The parts of a fixture that are in use while kernels run.
pub(crate) struct Bench<'r, R> {
    pub runner: R,
    /// The expected contents of results after a call.
    pub expected_results: &'r [ExpectedResult],
}

/// The reference kernel while candidates are measured.
pub(crate) struct BoundReference<K> {
    kernel: K,
    usual_seconds: f64,
    current_seconds: f64,
}

impl<K> BoundReference<K> {
    /// The current slowdown of the machine: 2 if the reference takes twice its usual time.
    fn slowdown(&self) -> f64 {
        self.current_seconds / self.usual_seconds
    }
}

impl<R: Runner> Bench<'_, R> {
    /// Binds and times a reference kernel that usually takes `usual` seconds.
    pub fn bind_reference(
        &mut self,
        executable: &R::Executable,
        usual: f64,
    ) -> Result<BoundReference<R::Kernel>, RunError> {
        let kernel = self.runner.bind(executable)?;
        self.runner.warm_up(&kernel)?;
        let rounds = Rounds { samples: WARM_UP_SAMPLES, time: 0.0, time_limit: 4.0 * usual };
        let taken = self.sample_in_turn(rounds, &[&kernel], |_| true)?;
        let now = lower_quartile(&taken[0]).unwrap_or(usual);
        Ok(BoundReference { kernel, usual_seconds: usual, current_seconds: now })
    }

    /// Runs a kernel, checks its results, and measures it.
    pub fn measure(
        &mut self,
        kernel: &R::Kernel,
        plan: &Plan,
        reference: Option<&mut BoundReference<R::Kernel>>,
    ) -> Result<Trial, RunError> {
        let pace = reference.as_ref().map_or(1.0, |reference| reference.slowdown());
        let first = self.runner.first_call(kernel)?;
        if let Some(difference) = self.difference()? {
            return Ok(Trial::failed(Outcome::WrongResult(difference)));
        }
        if first > (pace * self.runner.longest_first_call(first, plan)).max(R::SHORTEST_CONCLUSIVE_CALL) {
            return Ok(Trial::measured(vec![first]).with_slowdown(pace));
        }
        let limit = (pace * R::SINGLE_CALL_SLACK * plan.call_limit).max(R::SHORTEST_CONCLUSIVE_CALL);
        let mut best = first;
        for _ in 0..R::FURTHER_CALLS {
            if best > limit {
                best = self.runner.time_call(kernel)?.min(best);
            }
        }
        if best > limit {
            return Ok(Trial::measured(vec![best]).with_slowdown(pace));
        }
        let rounds = Rounds {
            samples: plan.samples,
            time: plan.time,
            time_limit: SAMPLING_TIME_LIMIT + 4.0 * pace * plan.call_limit,
        };
        match reference {
            Some(reference) => self.measure_against_reference(rounds, kernel, plan, reference),
            None => {
                let taken = self.sample_in_turn(rounds, &[kernel], |_| true)?;
                Ok(Trial::measured(taken.into_iter().flatten().collect()).with_slowdown(pace))
            }
        }
    }

    /// Measures a kernel in turn with the reference. Takes few rounds if the kernel is slower, and
    /// many if it seems to be a new best. The many rounds confirm the best: a moment in which only
    /// the reference was disturbed is not enough.
    fn measure_against_reference(
        &mut self,
        rounds: Rounds,
        kernel: &R::Kernel,
        plan: &Plan,
        reference: &mut BoundReference<R::Kernel>,
    ) -> Result<Trial, RunError> {
        let usual = reference.usual_seconds;
        let seconds = |taken: &[Vec<f64>]| {
            let [own, others] = [0, 1].map(|at| lower_quartile(&taken[at]));
            own.zip(others).map_or(usual, |(own, others)| own / others * usual)
        };
        let planned = (rounds.samples as f64).max(rounds.time / usual);
        let is_hopeful = |taken: &[Vec<f64>]| {
            let limit =
                EARLY_STOPS.iter().find(|(part, _)| (part * planned).ceil() as usize == taken[0].len());
            limit.is_none_or(|(_, times)| seconds(taken) <= times * plan.call_limit)
        };
        let both = [kernel, &reference.kernel];
        let mut taken = self.sample_in_turn(rounds, &both, is_hopeful)?;
        if seconds(&taken) < plan.best_seconds {
            let more = CONFIRMATION_FACTOR as f64;
            let rounds =
                Rounds { samples: CONFIRMATION_FACTOR * rounds.samples, time: more * rounds.time, ..rounds };
            let more = self.sample_in_turn(rounds, &both, |_| true)?;
            taken.iter_mut().zip(more).for_each(|(taken, more)| taken.extend(more));
        }
        reference.current_seconds = lower_quartile(&taken[1]).unwrap_or(reference.current_seconds);
        Ok(Trial::measured(taken.swap_remove(0)).with_slowdown(reference.slowdown()))
    }

    /// Measures several kernels in turn, to compare their times.
    pub fn race(&mut self, executables: &[R::Executable], rounds: Rounds) -> Result<Vec<Vec<f64>>, RunError> {
        let kernels = executables.iter().map(|own| self.runner.bind(own));
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        kernels.iter().try_for_each(|kernel| self.runner.warm_up(kernel))?;
        self.sample_in_turn(rounds, &kernels.iter().collect::<Vec<_>>(), |_| true)
    }

    /// Samples kernels in turn, as long as `is_promising` holds for the samples so far.
    fn sample_in_turn(
        &mut self,
        rounds: Rounds,
        kernels: &[&R::Kernel],
        is_promising: impl Fn(&[Vec<f64>]) -> bool,
    ) -> Result<Vec<Vec<f64>>, RunError> {
        let mut taken: Vec<Vec<f64>> = vec![Vec::new(); kernels.len()];
        let started = Instant::now();
        let mut fastest = 0.0;
        for round in 0..R::MOST_SAMPLES {
            let elapsed = started.elapsed().as_secs_f64() / kernels.len() as f64;
            let time = if R::EMPTIES_CACHES { elapsed } else { fastest };
            let is_enough = round >= rounds.samples && time >= rounds.time;
            if is_enough || (round > 0 && elapsed > rounds.time_limit) || !is_promising(&taken) {
                break;
            }
            let mut shortest = f64::INFINITY;
            for (kernel, samples) in kernels.iter().zip(&mut taken) {
                let sample = self.runner.sample(kernel)?;
                shortest = sample.min(shortest);
                samples.push(sample);
            }
            fastest += shortest;
        }
        Ok(taken)
    }

    /// The first difference between the results and their expected contents, if there is one.
    fn difference(&mut self) -> Result<Option<String>, RunError> {
        if self.runner.results_match(self.expected_results)? {
            return Ok(None);
        }
        let found = self.runner.results()?;
        for (ExpectedResult { name, expected }, found) in self.expected_results.iter().zip(found) {
            if is_within_tolerance(found, expected) {
                continue;
            }
            if let Err(difference) = expected.compare(name, &found.to_tensor()?) {
                return Ok(Some(difference.to_string()));
            }
        }
        Ok(None)
    }
}

/// Returns true if all elements are within their tolerance. This is a fast path for the usual
/// types; after false, the careful comparison decides.
fn is_within_tolerance(found: &Buffer, expected: &Expected) -> bool {
    let wanted = expected.tensor.bytes();
    if found.bytes() == wanted {
        return true;
    }
    let Some(found) = found.as_slice::<f32>() else { return false };
    // Compares in parts of a size that the compiler vectorises. Infinities and NaN fail here and
    // are left to the careful comparison.
    let parts = found.chunks(CHUNK).zip(wanted.chunks(4 * CHUNK));
    match expected.tolerances() {
        Tolerances::Same(limit) => {
            let close = |(found, wanted): (&f32, &[u8])| distance(*found, wanted) <= limit;
            parts.into_iter().all(|(found, wanted)| {
                all_without_early_exit(found.iter().zip(wanted.chunks_exact(4)).map(close))
            })
        }
        Tolerances::Each(limits) => {
            let close = |((found, wanted), limit): ((&f32, &[u8]), &f64)| {
                (distance(*found, wanted) <= *limit) | (*limit == f64::INFINITY)
            };
            parts.zip(limits.chunks(CHUNK)).all(|((found, wanted), limits)| {
                all_without_early_exit(found.iter().zip(wanted.chunks_exact(4)).zip(limits).map(close))
            })
        }
    }
}

/// The number of elements that are compared together.
const CHUNK: usize = 1024;

fn distance(found: f32, wanted: &[u8]) -> f64 {
    f64::from((found - f32::from_le_bytes([wanted[0], wanted[1], wanted[2], wanted[3]])).abs())
}

/// Returns true if all are true, without stopping at the first false one, so that the loop
/// vectorises.
fn all_without_early_exit(close: impl Iterator<Item = bool>) -> bool {
    close.fold(true, |all, one| all & one)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    /// A machine on which a kernel takes a fixed time, and three times as long at its first call.
    struct Steady;

    impl Runner for Steady {
        type Executable = f64;
        type Kernel = f64;

        const SHORTEST_CONCLUSIVE_CALL: f64 = 0.5;
        const SINGLE_CALL_SLACK: f64 = 1.0;
        const FURTHER_CALLS: usize = 2;
        const MOST_SAMPLES: usize = 1000;
        const EMPTIES_CACHES: bool = false;

        fn bind(&self, executable: &f64) -> Result<f64, RunError> {
            Ok(*executable)
        }

        fn warm_up(&mut self, _: &f64) -> Result<(), RunError> {
            Ok(())
        }

        fn first_call(&mut self, kernel: &f64) -> Result<f64, RunError> {
            Ok(3.0 * kernel)
        }

        fn longest_first_call(&self, _: f64, plan: &Plan) -> f64 {
            plan.first_call_limit
        }

        fn time_call(&mut self, kernel: &f64) -> Result<f64, RunError> {
            Ok(*kernel)
        }

        fn sample(&mut self, kernel: &f64) -> Result<f64, RunError> {
            Ok(*kernel)
        }

        fn results(&mut self) -> Result<&[Buffer], RunError> {
            Ok(&[])
        }
    }

    /// The trial of a kernel where the reference is also the best, takes `best` seconds, and 12
    /// samples are planned.
    fn measured(kernel: f64, best: f64, time: f64) -> Trial {
        let mut bench = Bench { runner: Steady, expected_results: &[] };
        let mut reference = bench.bind_reference(&best, best).unwrap();
        let plan = Plan {
            reference: None,
            best_seconds: best,
            first_call_limit: 3.5 * best,
            call_limit: 1.1 * best,
            samples: 12,
            time,
            batch_limit: None,
        };
        bench.measure(&kernel, &plan, Some(&mut reference)).unwrap()
    }

    #[test]
    fn the_fast_comparison_says_what_the_careful_one_does() {
        let count = 2 * CHUNK + 5;
        let values: Vec<f32> = (0..count).map(|at| at as f32 / 7.0).collect();
        let tensor = Buffer::from_slice(&values, &[count]).unwrap().to_tensor().unwrap();
        let common = Expected::with_tolerance(tensor, 0.5);
        let mut each = common.clone();
        each.raise_tolerance(|at| [0.0, 1.0, f64::INFINITY][at % 3]);
        for (at, other) in [
            (3, 0.4),
            (3, 0.6),
            (4, 1.4),
            (4, 1.6),
            (5, 99.0),
            (5, f32::NAN),
            (4, f32::NAN),
            (count - 1, 9.0),
        ] {
            let mut values = values.clone();
            values[at] += other;
            let found = Buffer::from_slice(&values, &[count]).unwrap();
            for expected in [&common, &each] {
                let carefully = expected.compare("x", &found.to_tensor().unwrap()).is_ok();
                assert_eq!(is_within_tolerance(&found, expected), carefully, "{at} {other}");
            }
        }
    }

    #[test]
    fn slower_candidates_have_fewer_samples_and_new_bests_have_more() {
        let samples = |kernel: f64| measured(kernel, 1.0, 0.0).samples.len();
        assert_eq!(samples(1.0), 12);
        assert_eq!(samples(0.9), 12 + 36);
        // These are not promising after the first calls, which may take longer.
        assert_eq!(samples(1.12), 1);
        assert_eq!(samples(9.0), 1);
    }

    #[test]
    fn short_kernels_are_compared_even_if_their_first_calls_take_long() {
        let samples = |kernel: f64, time: f64| measured(kernel, 0.01, time).samples.len();
        // The first call alone would be hopeless.
        assert_eq!(samples(0.0105, 0.0), 12);
        assert_eq!(samples(0.0105, 0.3), 30);
        // These are given up after a third and after two thirds of the rounds.
        assert_eq!(samples(0.02, 0.0), 4);
        assert_eq!(samples(0.02, 0.3), 10);
        assert_eq!(samples(0.012, 0.0), 9);
    }
}
