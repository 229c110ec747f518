//! Kernels run on a rig's data: checked, timed, and compared with each other.
//!
//! A machine that others use as well, or that changes its clock, is now fast and now slow, by more than candidates
//! differ. So a rival is measured with every batch, and candidates near the best are measured in turn with it: what
//! counts is a candidate's time at the pace at which the rival's own time was taken.
//!
//! How a call is timed, a `Runner` says: `cpu.rs` and `gpu.rs`.

pub(crate) mod conditioning;
pub(crate) mod cpu;
pub(crate) mod gpu;
pub(crate) mod on_device;

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tilewright_interp::Expected;
use tilewright_interp::compare::Limits;
use tilewright_runtime::{Buffer, RunError};

use conditioning::Nudge;
use tilewright_cache::outcome::{Outcome, Trial, undisturbed};

/// Samples of one candidate take no longer, apart from a few calls.
const LONG: f64 = 0.1;
/// A machine may become so many times slower before a candidate counts as hanging.
const SLACK: f64 = 4.0;
/// So many times as many samples must confirm a new best.
const CONFIRMING: usize = 3;
/// Samples of a rival before it is compared with others.
const WARMING_UP: usize = 5;
/// After this part of the rounds with a rival, a candidate that takes so many times as long as what is promising is given up.
const GIVEN_UP: [(f64, f64); 2] = [(0.33, 1.15), (0.67, 1.05)];

/// How much to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// Whom candidates are compared with.
    pub rival: Option<Rival>,
    /// The best time so far: what seems to be better is measured again.
    pub best: f64,
    /// A first call, which warms up the caches too, that takes longer, in seconds, is not worth a second one; nor is one
    /// that takes so long that the caches do not matter, and is not promising.
    pub hopeless: f64,
    /// If the next calls take longer too, by more than is in doubt, that is all.
    pub promising: f64,
    /// Samples to take.
    pub samples: usize,
    /// Time for them together, in seconds.
    pub time: f64,
    /// Seconds for all of a batch, if there is a limit: what is not begun by then is not tried.
    pub within: Option<f64>,
}

impl Plan {
    /// What a candidate that behaves may take, in seconds: the first calls, a duel, and another to confirm it.
    pub fn longest(&self) -> f64 {
        SLACK * (2.0 * self.hopeless + LONG + 4.0 * self.promising)
    }
}

/// A schedule whose time is known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rival {
    /// Its text.
    pub schedule: String,
    /// Its time. The limits of a plan are for a machine that is as fast as it was then.
    pub seconds: f64,
}

/// How many samples to take in turn.
#[derive(Clone, Copy, Debug)]
pub struct Rounds {
    /// At least so many of each.
    pub samples: usize,
    /// For at least so long, in seconds, in the fastest calls of the rounds.
    pub time: f64,
    /// And no longer than this, on the whole and for each.
    pub cap: f64,
}

/// Runs kernels on data, and says how long that takes.
pub(crate) trait Runner {
    /// Compiled code.
    type Executable;
    /// The same with its constants.
    type Kernel;

    /// A single call that is shorter, in seconds, says nothing.
    const SHORT: f64;
    /// A single call may take so many times as long as others do.
    const DOUBT: f64;
    /// So many calls may follow a first one that takes too long.
    const CHANCES: usize;
    /// More samples of a candidate say nothing new.
    const MOST_SAMPLES: usize;
    /// Whether caches are emptied before every sample. That may take longer than the call, and so counts as its time where
    /// there is a limit.
    const EMPTIES_CACHES: bool;

    /// Makes of the constants, once, what every call of a kernel needs.
    fn bind(&self, executable: &Self::Executable) -> Result<Self::Kernel, RunError>;

    /// Has a kernel do what it does only once, so that a sample after that is like any other.
    fn settle(&mut self, kernel: &Self::Kernel) -> Result<(), RunError>;

    /// A call on results as they are before any, in seconds.
    fn first_call(&mut self, kernel: &Self::Kernel) -> Result<f64, RunError>;

    /// The longest first call, of those that take about so long, that is worth a second one.
    fn longest_first_call(&self, first: f64, plan: &Plan) -> f64;

    /// Any other call, in seconds.
    fn timed(&mut self, kernel: &Self::Kernel) -> Result<f64, RunError>;

    /// The time of a call, in seconds, that can be compared with others.
    fn sample(&mut self, kernel: &Self::Kernel) -> Result<f64, RunError>;

    /// Whether what the last call has computed is known to be as wanted, without copying it.
    fn agrees(&mut self, _: &[Wanted]) -> Result<bool, RunError> {
        Ok(false)
    }

    /// Changes the last bits of floats among the inputs, or changes them back; false if there are none of its type.
    fn nudge(&mut self, _: Nudge) -> Result<bool, RunError> {
        Ok(false)
    }

    /// What the last call has computed.
    fn results(&mut self) -> Result<&[Buffer], RunError>;
}

/// What a result should hold.
pub(crate) struct Wanted {
    pub name: String,
    pub expected: Expected,
}

/// What of a rig is in use while kernels run.
pub(crate) struct Bench<'r, R> {
    pub runner: R,
    /// What results should hold after a call.
    pub wanted: &'r [Wanted],
}

/// A rival while candidates are measured.
pub(crate) struct Opponent<K> {
    kernel: K,
    usual: f64,
    now: f64,
}

impl<K> Opponent<K> {
    /// How many times as long as usual things take.
    fn pace(&self) -> f64 {
        self.now / self.usual
    }
}

impl<R: Runner> Bench<'_, R> {
    /// Binds and times a rival that usually takes this many seconds.
    pub fn opponent(
        &mut self,
        executable: &R::Executable,
        usual: f64,
    ) -> Result<Opponent<R::Kernel>, RunError> {
        let kernel = self.runner.bind(executable)?;
        self.runner.settle(&kernel)?;
        let rounds = Rounds { samples: WARMING_UP, time: 0.0, cap: 4.0 * usual };
        let taken = self.in_turn(rounds, &[&kernel], |_| true)?;
        let now = undisturbed(&taken[0]).unwrap_or(usual);
        Ok(Opponent { kernel, usual, now })
    }

    /// Runs a kernel, compares what it computes, and measures it.
    pub fn measure(
        &mut self,
        kernel: &R::Kernel,
        plan: &Plan,
        opponent: Option<&mut Opponent<R::Kernel>>,
    ) -> Result<Trial, RunError> {
        let pace = opponent.as_ref().map_or(1.0, |opponent| opponent.pace());
        let first = self.runner.first_call(kernel)?;
        if let Some(difference) = self.difference()? {
            return Ok(Trial::failed(Outcome::WrongResult(difference)));
        }
        if first > (pace * self.runner.longest_first_call(first, plan)).max(R::SHORT) {
            return Ok(Trial::measured(vec![first]).at_pace(pace));
        }
        let limit = (pace * R::DOUBT * plan.promising).max(R::SHORT);
        let mut best = first;
        for _ in 0..R::CHANCES {
            if best > limit {
                best = self.runner.timed(kernel)?.min(best);
            }
        }
        if best > limit {
            return Ok(Trial::measured(vec![best]).at_pace(pace));
        }
        let rounds =
            Rounds { samples: plan.samples, time: plan.time, cap: LONG + 4.0 * pace * plan.promising };
        match opponent {
            Some(opponent) => self.duel(rounds, kernel, plan, opponent),
            None => {
                let taken = self.in_turn(rounds, &[kernel], |_| true)?;
                Ok(Trial::measured(taken.into_iter().flatten().collect()).at_pace(pace))
            }
        }
    }

    /// Measures a kernel in turn with a rival: in few rounds if it is slower, and in many if it seems to be a new best. It must
    /// be one: a moment in which only the rival was disturbed is not enough.
    fn duel(
        &mut self,
        rounds: Rounds,
        kernel: &R::Kernel,
        plan: &Plan,
        opponent: &mut Opponent<R::Kernel>,
    ) -> Result<Trial, RunError> {
        let usual = opponent.usual;
        let seconds = |taken: &[Vec<f64>]| {
            let [own, others] = [0, 1].map(|at| undisturbed(&taken[at]));
            own.zip(others).map_or(usual, |(own, others)| own / others * usual)
        };
        let planned = (rounds.samples as f64).max(rounds.time / usual);
        let is_hopeful = |taken: &[Vec<f64>]| {
            let limit = GIVEN_UP.iter().find(|(part, _)| (part * planned).ceil() as usize == taken[0].len());
            limit.is_none_or(|(_, times)| seconds(taken) <= times * plan.promising)
        };
        let both = [kernel, &opponent.kernel];
        let mut taken = self.in_turn(rounds, &both, is_hopeful)?;
        if seconds(&taken) < plan.best {
            let more = CONFIRMING as f64;
            let rounds = Rounds { samples: CONFIRMING * rounds.samples, time: more * rounds.time, ..rounds };
            let more = self.in_turn(rounds, &both, |_| true)?;
            taken.iter_mut().zip(more).for_each(|(taken, more)| taken.extend(more));
        }
        opponent.now = undisturbed(&taken[1]).unwrap_or(opponent.now);
        Ok(Trial::measured(taken.swap_remove(0)).at_pace(opponent.pace()))
    }

    /// Measures several kernels in turn, for their times to be compared.
    pub fn race(&mut self, executables: &[R::Executable], rounds: Rounds) -> Result<Vec<Vec<f64>>, RunError> {
        let kernels = executables.iter().map(|own| self.runner.bind(own));
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        kernels.iter().try_for_each(|kernel| self.runner.settle(kernel))?;
        self.in_turn(rounds, &kernels.iter().collect::<Vec<_>>(), |_| true)
    }

    /// Samples of kernels that take turns, as long as those so far are worth others.
    fn in_turn(
        &mut self,
        rounds: Rounds,
        kernels: &[&R::Kernel],
        is_worth_it: impl Fn(&[Vec<f64>]) -> bool,
    ) -> Result<Vec<Vec<f64>>, RunError> {
        let mut taken: Vec<Vec<f64>> = vec![Vec::new(); kernels.len()];
        let started = Instant::now();
        let mut fastest = 0.0;
        for round in 0..R::MOST_SAMPLES {
            let elapsed = started.elapsed().as_secs_f64() / kernels.len() as f64;
            let time = if R::EMPTIES_CACHES { elapsed } else { fastest };
            let is_enough = round >= rounds.samples && time >= rounds.time;
            if is_enough || (round > 0 && elapsed > rounds.cap) || !is_worth_it(&taken) {
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

    /// In what the results differ from what they should be, if they do.
    fn difference(&mut self) -> Result<Option<String>, RunError> {
        if self.runner.agrees(self.wanted)? {
            return Ok(None);
        }
        let found = self.runner.results()?;
        for (Wanted { name, expected }, found) in self.wanted.iter().zip(found) {
            if same(found, expected) {
                continue;
            }
            if let Err(difference) = expected.compare(name, &found.to_tensor()?) {
                return Ok(Some(difference.to_string()));
            }
        }
        Ok(None)
    }
}

/// Whether elements are as near as they should be. Fast for the usual types; otherwise the careful comparison decides.
fn same(found: &Buffer, expected: &Expected) -> bool {
    let wanted = expected.tensor.bytes();
    if found.bytes() == wanted {
        return true;
    }
    let Some(found) = found.as_slice::<f32>() else { return false };
    // Parts of a size that the compiler turns into vectors; what is infinite or not a number is looked at again.
    let parts = found.chunks(PART).zip(wanted.chunks(4 * PART));
    match expected.limits() {
        Limits::Same(limit) => {
            let close = |(found, wanted): (&f32, &[u8])| apart(*found, wanted) <= limit;
            parts.into_iter().all(|(found, wanted)| all(found.iter().zip(wanted.chunks_exact(4)).map(close)))
        }
        Limits::Each(limits) => {
            let close = |((found, wanted), limit): ((&f32, &[u8]), &f64)| {
                (apart(*found, wanted) <= *limit) | (*limit == f64::INFINITY)
            };
            parts.zip(limits.chunks(PART)).all(|((found, wanted), limits)| {
                all(found.iter().zip(wanted.chunks_exact(4)).zip(limits).map(close))
            })
        }
    }
}

/// Elements that are compared together.
const PART: usize = 1024;

fn apart(found: f32, wanted: &[u8]) -> f64 {
    f64::from((found - f32::from_le_bytes([wanted[0], wanted[1], wanted[2], wanted[3]])).abs())
}

/// Whether all hold, without stopping at the first that does not.
fn all(close: impl Iterator<Item = bool>) -> bool {
    close.fold(true, |all, one| all & one)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    /// A machine on which a kernel takes as long as it says, and three times as long when it was just compiled.
    struct Steady;

    impl Runner for Steady {
        type Executable = f64;
        type Kernel = f64;

        const SHORT: f64 = 0.5;
        const DOUBT: f64 = 1.0;
        const CHANCES: usize = 2;
        const MOST_SAMPLES: usize = 1000;
        const EMPTIES_CACHES: bool = false;

        fn bind(&self, executable: &f64) -> Result<f64, RunError> {
            Ok(*executable)
        }

        fn settle(&mut self, _: &f64) -> Result<(), RunError> {
            Ok(())
        }

        fn first_call(&mut self, kernel: &f64) -> Result<f64, RunError> {
            Ok(3.0 * kernel)
        }

        fn longest_first_call(&self, _: f64, plan: &Plan) -> f64 {
            plan.hopeless
        }

        fn timed(&mut self, kernel: &f64) -> Result<f64, RunError> {
            Ok(*kernel)
        }

        fn sample(&mut self, kernel: &f64) -> Result<f64, RunError> {
            Ok(*kernel)
        }

        fn results(&mut self) -> Result<&[Buffer], RunError> {
            Ok(&[])
        }
    }

    /// What becomes of a kernel where the best takes `best` and is the rival, too, and 12 samples are wanted.
    fn measured(kernel: f64, best: f64, time: f64) -> Trial {
        let mut bench = Bench { runner: Steady, wanted: &[] };
        let mut opponent = bench.opponent(&best, best).unwrap();
        let plan = Plan {
            rival: None,
            best,
            hopeless: 3.5 * best,
            promising: 1.1 * best,
            samples: 12,
            time,
            within: None,
        };
        bench.measure(&kernel, &plan, Some(&mut opponent)).unwrap()
    }

    #[test]
    fn the_fast_comparison_says_what_the_careful_one_does() {
        let count = 2 * PART + 5;
        let values: Vec<f32> = (0..count).map(|at| at as f32 / 7.0).collect();
        let tensor = Buffer::from_slice(&values, &[count]).unwrap().to_tensor().unwrap();
        let common = Expected::with_limit(tensor, 0.5);
        let mut each = common.clone();
        each.widen(|at| [0.0, 1.0, f64::INFINITY][at % 3]);
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
                assert_eq!(same(&found, expected), carefully, "{at} {other}");
            }
        }
    }

    #[test]
    fn slower_candidates_have_fewer_samples_and_new_bests_have_more() {
        let samples = |kernel: f64| measured(kernel, 1.0, 0.0).samples.len();
        assert_eq!(samples(1.0), 12);
        assert_eq!(samples(0.9), 12 + 36);
        // Not promising after the first calls, which may take longer.
        assert_eq!(samples(1.12), 1);
        assert_eq!(samples(9.0), 1);
    }

    #[test]
    fn short_kernels_are_compared_even_if_their_first_calls_take_long() {
        let samples = |kernel: f64, time: f64| measured(kernel, 0.01, time).samples.len();
        // The first call alone would be hopeless.
        assert_eq!(samples(0.0105, 0.0), 12);
        assert_eq!(samples(0.0105, 0.3), 30);
        // After a third, and after two thirds.
        assert_eq!(samples(0.02, 0.0), 4);
        assert_eq!(samples(0.02, 0.3), 10);
        assert_eq!(samples(0.012, 0.0), 9);
    }
}
