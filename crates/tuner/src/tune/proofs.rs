//! Proofs that candidates compute what their program says.
//!
//! A candidate that is measured was compared with the interpreter's results for one input. The prover says the same for
//! every input, and depends neither on the steps nor on the interpreter. A schedule that it refutes is a bug: its steps
//! should have been refused. Such a candidate has failed, as [`Outcome::Refuted`], and never wins. One of which the prover
//! can say nothing may win, for its results were right.
//!
//! Which schedules are proved is chosen by [`Proving`]. A verdict does not depend on the clock; whether it came in time does, and
//! is an answer of the measurer as everything that the clock decides, so a replay has the verdicts of its recording.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tilewright_ir::{LoopNest, Program};
use tilewright_polyhedral::Verdict;
use tilewright_schedule::{apply, text};
use tilewright_target::Target;

use super::background::prove_until;
use super::budget::decide;
use super::finals::ONE_SHOT;
use super::report::Kind;
use super::spent::timed;
use super::{Run, TuneError};
use crate::parallel;
use crate::worker::Lost;
use tilewright_cache::outcome::{Outcome, Trial};

/// The winner's proof may take this part of the time of a run besides.
const PROVING: f64 = 0.2;
/// But this much in any case.
const LEAST: Duration = Duration::from_secs(5);
/// Why nothing is known then.
const NOT_IN_TIME: &str =
    "the proof was not done when the search had to end; `tilewright prove` takes its time";

/// Which schedules are proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Proving {
    /// None.
    #[default]
    Never,
    /// The winner, and finalists with shorter times, before they are kept; the next best where the winner is refuted.
    Winners,
    /// Every candidate, before it is measured.
    Candidates,
}

impl Proving {
    /// What is proved, and the option that asks for it.
    pub fn describe(self) -> &'static str {
        match self {
            Proving::Never => "of nothing (--no-prove)",
            Proving::Winners => "of the winner",
            Proving::Candidates => "of all candidates (--prove)",
        }
    }
}

/// Says whether a loop nest computes what its program says: [`tilewright_polyhedral::prove()`].
pub type Prover = fn(&Program, &LoopNest) -> Verdict;

/// What is known of the winner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// It computes what the program says, for every input.
    Proved,
    /// The prover could not decide, and why.
    Undecided(String),
    /// No proof was asked for.
    None,
}

impl Proof {
    /// A sentence for people; none where no proof was asked for.
    pub fn describe(&self) -> Option<String> {
        match self {
            Proof::Proved => Some("the winner computes what the program says, for every input".to_owned()),
            Proof::Undecided(why) => Some(format!("undecided: {why}")),
            Proof::None => None,
        }
    }
}

/// A measured schedule that the prover has refuted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refuted {
    /// The schedule, as text.
    pub schedule: String,
    /// A counterexample.
    pub reason: String,
}

/// The prover, and what it has said.
pub(super) struct Proofs<'p> {
    program: &'p Program,
    target: Target<'p>,
    proving: Proving,
    prover: Prover,
    /// Verdicts by schedule.
    known: HashMap<String, Verdict>,
    /// Measured schedules that were refuted afterwards.
    pub refuted: Vec<Refuted>,
}

impl<'p> Proofs<'p> {
    pub fn new(program: &'p Program, target: Target<'p>, (proving, prover): (Proving, Prover)) -> Proofs<'p> {
        Proofs { program, target, proving, prover, known: HashMap::new(), refuted: Vec::new() }
    }

    /// The verdicts on schedules, each proved once, on all cores.
    fn verdicts(&mut self, schedules: &[String]) -> Vec<Verdict> {
        let open: Vec<&String> = schedules.iter().filter(|own| !self.known.contains_key(*own)).collect();
        let found = parallel::map(&open, |schedule| self.verdict(schedule));
        let found: Vec<(String, Verdict)> = open.into_iter().cloned().zip(found).collect();
        self.known.extend(found);
        schedules.iter().map(|schedule| self.known[schedule].clone()).collect()
    }

    fn verdict(&self, schedule: &str) -> Verdict {
        match self.nest(schedule) {
            Ok(nest) => (self.prover)(self.program, &nest),
            Err(why) => Verdict::Undecided(why),
        }
    }

    /// The loops of a schedule. All that are asked about were accepted before.
    fn nest(&self, schedule: &str) -> Result<LoopNest, String> {
        let schedule = text::parse(schedule).schedule;
        apply(self.program, &schedule, self.target).map_err(|refusal| refusal.to_string())
    }

    /// Learns the verdicts on schedules until it is `over`.
    fn prove_until(&mut self, schedules: &[String], over: &dyn Fn() -> bool) {
        let open = schedules.iter().filter(|own| !self.known.contains_key(*own));
        let nests = open.filter_map(|own| Some((own.clone(), self.nest(own).ok()?))).collect();
        self.known.extend(prove_until(self.program, nests, self.prover, over));
    }
}

impl Run<'_, '_> {
    /// Why a schedule is not to be measured: the prover has refuted it. Nothing where candidates are not proved.
    pub(super) fn refutation(&mut self, schedule: &String) -> Option<Outcome> {
        self.refutations(std::slice::from_ref(schedule)).pop().flatten()
    }

    /// The same for several schedules, in their order.
    fn refutations(&mut self, schedules: &[String]) -> Vec<Option<Outcome>> {
        if self.proofs.proving != Proving::Candidates {
            return vec![None; schedules.len()];
        }
        let Run { proofs, spent, .. } = self;
        let verdicts = timed(&mut spent.proving, || proofs.verdicts(schedules));
        let refutation = |verdict| match verdict {
            Verdict::Refuted(reason) => Some(Outcome::Refuted(reason)),
            Verdict::Proved | Verdict::Undecided(_) => None,
        };
        verdicts.into_iter().map(refutation).collect()
    }

    /// The schedules that are to be measured. Those that are refuted have failed.
    pub(super) fn without_refuted(&mut self, schedules: Vec<String>, kind: Kind) -> Vec<String> {
        let refutations = self.refutations(&schedules);
        let mut left = Vec::new();
        for (schedule, refutation) in schedules.into_iter().zip(refutations) {
            match refutation {
                Some(outcome) => self.note(schedule, Trial::failed(outcome), kind),
                None => left.push(schedule),
            }
        }
        left
    }

    /// Proves a trial that is about to win, and others that the cache may hand out; the winner's proof, unless it is
    /// refuted. What is not proved when the run has to end is undecided.
    pub(super) fn prove_winner(&mut self, winner: usize, others: Vec<usize>) -> Result<Option<Proof>, Lost> {
        if self.proofs.proving == Proving::Never {
            return Ok(Some(Proof::None));
        }
        let all: Vec<usize> = std::iter::once(winner).chain(others).collect();
        let schedules: Vec<String> = all.iter().map(|at| self.trials[*at].schedule.clone()).collect();
        self.prove_in_time(&schedules);
        let mut proof = None;
        for (at, schedule) in all.into_iter().zip(&schedules) {
            let own = match self.verdict_in_time(schedule)? {
                Verdict::Proved => Proof::Proved,
                Verdict::Undecided(why) => Proof::Undecided(why),
                Verdict::Refuted(reason) => {
                    self.refute(at, reason);
                    continue;
                }
            };
            proof = proof.or(Some(own).filter(|_| at == winner));
        }
        Ok(proof)
    }

    /// Has schedules proved until the run has to end.
    fn prove_in_time(&mut self, schedules: &[String]) {
        let (begun, stop) = (Instant::now(), self.stop);
        let most = self.options.time.map(|time| time.mul_f64(PROVING).max(LEAST));
        let over = || stop.is_urgent() || most.is_some_and(|most| begun.elapsed() > most);
        let Run { proofs, spent, .. } = self;
        timed(&mut spent.proving, || proofs.prove_until(schedules, &over));
    }

    /// The verdict on a schedule, if it was there in time. A replay has the verdicts that its recording had.
    fn verdict_in_time(&mut self, schedule: &String) -> Result<Verdict, Lost> {
        let in_time = self.proofs.known.contains_key(schedule);
        if !decide(self.measurer, in_time)? {
            return Ok(Verdict::Undecided(NOT_IN_TIME.to_owned()));
        }
        Ok(self.proofs.verdicts(std::slice::from_ref(schedule)).remove(0))
    }

    /// A trial that was measured has failed after all.
    fn refute(&mut self, at: usize, reason: String) {
        let is_one_shot = at == ONE_SHOT && self.one_shot.is_some();
        let tried = &mut self.trials[at];
        let outcome = Outcome::Refuted(reason.clone());
        if at > 0 && !is_one_shot {
            *self.outcomes.entry(outcome.name()).or_default() += 1;
            let measured = self.outcomes.entry(Outcome::Measured.name()).or_default();
            *measured = measured.saturating_sub(1);
        }
        tried.trial = Trial { effort: tried.trial.effort, ..Trial::failed(outcome) };
        if is_one_shot {
            self.one_shot = Some(tried.trial.clone());
        }
        self.candidates.tried(&tried.schedule, None);
        self.proofs.refuted.push(Refuted { schedule: tried.schedule.clone(), reason });
    }

    /// There is no schedule that may win: not even the default one.
    pub(super) fn all_refuted(&self) -> TuneError {
        TuneError::Default(self.trials[0].trial.outcome.clone())
    }
}
