//! Kernels run on a rig's data: checked, timed, and compared with each other.
//!
//! A machine that others use as well, or that changes its clock, is now fast and now slow, by more than candidates
//! differ. So a rival is measured with every batch, and candidates near the best are measured in turn with it: what
//! counts is a candidate's time at the pace at which the rival's own time was taken.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tilewright_interp::compare;
use tilewright_ir::{Number, Program, Tensor};
use tilewright_runtime::{Bound, Buffer, Executable, Pool, RunError, View};

use crate::outcome::{Outcome, Trial, undisturbed};

/// More samples of a candidate say nothing new.
const MOST_SAMPLES: usize = 1000;
/// A single call that is shorter says nothing.
const SHORT: f64 = 50e-6;

/// A sample takes at least about this long, in seconds, so that the clock's own cost does not matter.
const CLOCK: f64 = 20e-6;
/// A call that takes longer, in seconds, has more to do than to fill the caches.
const FILLS_CACHES: f64 = 4e-3;
/// How much longer its first call may still take than others.
const FIRST: f64 = 1.1;
/// Samples of one candidate take no longer, apart from a few calls.
const LONG: f64 = 0.1;
/// A machine may become so many times slower before a candidate counts as hanging.
const SLACK: f64 = 4.0;
/// So many times as many samples must confirm a new best.
const CONFIRMING: usize = 3;

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
    /// If a second call takes longer too, there is no third.
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

/// What of a rig is in use while kernels run.
pub struct Bench<'r> {
    pub(crate) program: &'r Program,
    pub(crate) pool: &'r Pool,
    pub(crate) constants: Vec<View<'r>>,
    pub(crate) inputs: &'r [Buffer],
    pub(crate) scalars: &'r [Number],
    /// What results hold before a call: what the caller supplies, or something that no kernel computes.
    pub(crate) before: &'r [Buffer],
    pub(crate) results: &'r mut [Buffer],
    /// What they should hold after it, and how far off they may be.
    pub(crate) wanted: &'r [(String, Tensor, f64)],
}

/// A rival while candidates are measured.
pub struct Opponent<'r> {
    bound: Bound<'r>,
    usual: f64,
    now: f64,
}

impl Opponent<'_> {
    /// How many times as long as usual things take.
    fn pace(&self) -> f64 {
        self.now / self.usual
    }
}

impl<'r> Bench<'r> {
    /// Binds and times a rival that usually takes this many seconds.
    pub fn opponent(&mut self, executable: &Executable, usual: f64) -> Result<Opponent<'r>, RunError> {
        let bound = executable.bind(self.pool, &self.constants)?;
        let taken = self.in_turn(Rounds { samples: 3, time: 0.0, cap: 4.0 * usual }, &[&bound])?;
        let now = undisturbed(&taken[0]).unwrap_or(usual);
        Ok(Opponent { bound, usual, now })
    }

    /// Makes of the constants, once, what every call of a kernel needs.
    pub fn bind(&self, executable: &Executable) -> Result<Bound<'r>, Trial> {
        let bound = executable.bind(self.pool, &self.constants);
        bound.map_err(|error| Trial::failed(Outcome::Crashed(error.to_string())))
    }

    /// Runs a kernel, compares what it computes, and measures it.
    pub fn measure(&mut self, kernel: &Bound<'r>, plan: &Plan, opponent: Option<&mut Opponent<'r>>) -> Trial {
        match self.measured(kernel, plan, opponent) {
            Ok(trial) => trial,
            Err(error) => Trial::failed(Outcome::Crashed(error.to_string())),
        }
    }

    fn measured(
        &mut self,
        kernel: &Bound<'r>,
        plan: &Plan,
        opponent: Option<&mut Opponent<'r>>,
    ) -> Result<Trial, RunError> {
        let pace = opponent.as_ref().map_or(1.0, |opponent| opponent.pace());
        let first = self.first_call(kernel)?;
        if let Err(difference) = self.checked() {
            return Ok(Trial::failed(Outcome::WrongResult(difference)));
        }
        // The first call of a kernel that runs long is as good as any.
        let enough = if first > FILLS_CACHES { FIRST * plan.promising } else { plan.hopeless };
        if first > pace * enough {
            return Ok(Trial::measured(vec![first]).at_pace(pace));
        }
        let best = self.timed(kernel)?.min(first);
        if best > (pace * plan.promising).max(SHORT) {
            return Ok(Trial::measured(vec![best]).at_pace(pace));
        }
        let rounds =
            Rounds { samples: plan.samples, time: plan.time, cap: LONG + 4.0 * pace * plan.promising };
        let Some(opponent) = opponent else {
            let taken = self.in_turn(rounds, &[kernel])?;
            return Ok(Trial::measured(taken.into_iter().flatten().collect()).at_pace(pace));
        };
        let (mut own, mut others) = self.duel(rounds, kernel, &opponent.bound)?;
        let seconds =
            |own: &[f64], others: &[f64]| Some(undisturbed(own)? / undisturbed(others)? * opponent.usual);
        if seconds(&own, &others).is_some_and(|seconds| seconds < plan.best) {
            // A new best must be one: a moment in which only the rival was disturbed is not enough.
            let rounds = Rounds { samples: CONFIRMING * plan.samples, ..rounds };
            let (more, more_others) = self.duel(rounds, kernel, &opponent.bound)?;
            own.extend(more);
            others.extend(more_others);
        }
        opponent.now = undisturbed(&others).unwrap_or(opponent.now);
        Ok(Trial::measured(own).at_pace(opponent.pace()))
    }

    fn duel(
        &mut self,
        rounds: Rounds,
        candidate: &Bound<'r>,
        opponent: &Bound<'r>,
    ) -> Result<(Vec<f64>, Vec<f64>), RunError> {
        let mut taken = self.in_turn(rounds, &[candidate, opponent])?;
        let others = taken.pop().unwrap_or_default();
        Ok((taken.pop().unwrap_or_default(), others))
    }

    /// Measures several kernels in turn, for their times to be compared.
    pub fn race(&mut self, executables: &[Executable], rounds: Rounds) -> Result<Vec<Vec<f64>>, RunError> {
        let bound = executables.iter().map(|own| own.bind(self.pool, &self.constants));
        let bound = bound.collect::<Result<Vec<_>, _>>()?;
        self.in_turn(rounds, &bound.iter().collect::<Vec<_>>())
    }

    /// Samples of kernels that take turns. A sample comes after a call that is not timed: what counts is a kernel that is
    /// called again and again, not one that finds in the caches what another has left there.
    fn in_turn(&mut self, rounds: Rounds, kernels: &[&Bound<'r>]) -> Result<Vec<Vec<f64>>, RunError> {
        let mut taken: Vec<Vec<f64>> = vec![Vec::new(); kernels.len()];
        let started = Instant::now();
        let mut fastest = 0.0;
        for round in 0..MOST_SAMPLES {
            let late = started.elapsed().as_secs_f64() > rounds.cap * kernels.len() as f64;
            if (round > 0 && late) || (round >= rounds.samples && fastest >= rounds.time) {
                break;
            }
            let mut shortest = f64::INFINITY;
            for (kernel, samples) in kernels.iter().zip(&mut taken) {
                let sample = self.sample(kernel)?;
                shortest = sample.min(shortest);
                samples.push(sample);
            }
            fastest += shortest;
        }
        Ok(taken)
    }

    /// The time of a call after another, by as many as the clock needs. A call that takes long fills the caches itself.
    fn sample(&mut self, kernel: &Bound<'r>) -> Result<f64, RunError> {
        let first = self.timed(kernel)?;
        if first > FILLS_CACHES {
            return Ok(first);
        }
        let calls = (CLOCK / first.max(1e-9)).ceil().clamp(1.0, 1000.0);
        let started = Instant::now();
        for _ in 0..calls as usize {
            self.call(kernel)?;
        }
        Ok(started.elapsed().as_secs_f64() / calls)
    }

    /// A call on results as they are before any, in seconds.
    pub fn first_call(&mut self, kernel: &Bound<'r>) -> Result<f64, RunError> {
        for (from, to) in self.before.iter().zip(self.results.iter_mut()) {
            from.unpack(&mut to.view_mut()).expect("results are of one type and shape");
        }
        self.timed(kernel)
    }

    fn timed(&mut self, kernel: &Bound<'r>) -> Result<f64, RunError> {
        let started = Instant::now();
        self.call(kernel)?;
        Ok(started.elapsed().as_secs_f64())
    }

    fn call(&mut self, kernel: &Bound<'r>) -> Result<(), RunError> {
        let inputs: Vec<_> = self.inputs.iter().map(Buffer::view).collect();
        let mut results: Vec<_> = self.results.iter_mut().map(Buffer::view_mut).collect();
        kernel.run(self.pool, &inputs, &mut results, self.scalars)
    }

    /// Compares the results with what they should be.
    fn checked(&self) -> Result<(), String> {
        for ((name, wanted, limit), found) in self.wanted.iter().zip(self.results.iter()) {
            if same(found, wanted, *limit) {
                continue;
            }
            let found = found.to_tensor().map_err(|error| error.to_string())?;
            compare(self.program, name, &found, wanted).map_err(|difference| difference.to_string())?;
        }
        Ok(())
    }
}

/// Whether elements are equal up to the limit. Fast for the usual types; otherwise the careful comparison decides.
fn same(found: &Buffer, wanted: &Tensor, limit: f64) -> bool {
    if found.bytes() == wanted.bytes() {
        return true;
    }
    let Some(found) = found.as_slice::<f32>() else { return false };
    let limit = limit as f32;
    let close = |(found, wanted): (&f32, &[u8])| {
        let wanted = f32::from_le_bytes([wanted[0], wanted[1], wanted[2], wanted[3]]);
        (found - wanted).abs() <= limit
    };
    // Parts of a size that the compiler turns into vectors; what is infinite or not a number is looked at again.
    let parts = found.chunks(1024).zip(wanted.bytes().chunks(4096));
    parts.into_iter().all(|(found, wanted)| {
        found.iter().zip(wanted.chunks_exact(4)).map(close).fold(true, |all, one| all & one)
    })
}
