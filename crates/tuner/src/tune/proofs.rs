//! Proofs that candidates compute what their program says.
//!
//! A candidate that is measured was compared with the interpreter's results for one input. The prover says the same for
//! every input, and depends neither on the steps nor on the interpreter. A schedule that it refutes is a bug: its steps
//! should have been refused. Such a candidate has failed, as [`Outcome::Refuted`], and never wins. One of which the prover
//! can say nothing may win, for its results were right.
//!
//! Which schedules are proved is chosen by [`Proving`]. Proofs do not depend on the clock, so a replay gives the same
//! verdicts as its recording.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use tilewright_ir::{LoopNest, Program};
use tilewright_polyhedral::Verdict;
use tilewright_schedule::{apply, text};
use tilewright_target::Target;

use super::budget::decide;
use super::finals::ONE_SHOT;
use super::report::Kind;
use super::spent::timed;
use super::{Run, TuneError};
use crate::outcome::{Outcome, Trial};
use crate::parallel;
use crate::worker::Lost;

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

/// Says whether a loop nest computes what its program says: [`tilewright_polyhedral::prove`].
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
        match apply(self.program, &text::parse(schedule).schedule, self.target) {
            Ok(nest) => (self.prover)(self.program, &nest),
            Err(refusal) => Verdict::Undecided(refusal.to_string()),
        }
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
    /// refuted. A run that should end at once does without.
    pub(super) fn prove_winner(&mut self, winner: usize, others: Vec<usize>) -> Result<Option<Proof>, Lost> {
        if self.proofs.proving == Proving::Never {
            return Ok(Some(Proof::None));
        }
        if decide(self.measurer, self.stop.is_urgent())? {
            return Ok(Some(Proof::Undecided("the search was ended before the proof".to_owned())));
        }
        let all: Vec<usize> = std::iter::once(winner).chain(others).collect();
        let schedules: Vec<String> = all.iter().map(|at| self.trials[*at].schedule.clone()).collect();
        let Run { proofs, spent, .. } = self;
        let verdicts = timed(&mut spent.proving, || proofs.verdicts(&schedules));
        let mut proof = None;
        for (at, verdict) in all.into_iter().zip(verdicts) {
            let own = match verdict {
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
