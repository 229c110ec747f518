//! Proves that candidates compute what their program says.
//!
//! A measured candidate gave the expected results for one input. The prover makes the same
//! statement for every input, and depends neither on the steps of the schedule nor on the
//! interpreter. A refuted schedule is a bug: its steps should have been refused. Such a candidate
//! has failed with [`Outcome::Refuted`] and never wins. A candidate that the prover cannot decide
//! may win, since its results were right.
//!
//! [`ProofScope`] selects the schedules to prove. A verdict does not depend on the clock, but its
//! arrival in time does. That is an answer of the measurer like every decision of the clock, so a
//! replay has the verdicts of its recording.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tilewright_ir::{LoopNest, Program};
use tilewright_polyhedral::Verdict;
use tilewright_schedule::{apply, text};
use tilewright_target::Target;

use super::background_proofs::prove_until;
use super::budget::decide_by_clock;
use super::final_comparison::ONE_SHOT_TRIAL;
use super::report::TrialKind;
use super::time_spent::time_work;
use super::{Run, TuneError};
use crate::parallel;
use crate::worker::WorkerError;
use tilewright_cache::outcome::{Outcome, OutcomeKind, Trial};

/// The share of a run's time that the winner's proof may take in addition.
const PROOF_TIME_SHARE: f64 = 0.2;
/// The least time for the winner's proof.
const LEAST_PROOF_TIME: Duration = Duration::from_secs(5);
/// The reason of an undecided verdict when that time is over.
const PROOF_TIMED_OUT: &str =
    "the proof was not finished when the search had to end; `tilewright prove` has no time limit";

/// Which schedules are proved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProofScope {
    /// No schedule.
    #[default]
    Never,
    /// The winner, and finalists with shorter times, before they are kept. If the winner is
    /// refuted, the next best is proved.
    Winners,
    /// Every candidate, before it is measured.
    Candidates,
}

impl ProofScope {
    /// The proved schedules, and the option that selects them.
    pub fn describe(self) -> &'static str {
        match self {
            ProofScope::Never => "of nothing (--no-prove)",
            ProofScope::Winners => "of the winner",
            ProofScope::Candidates => "of all candidates (--prove)",
        }
    }
}

/// Decides whether a loop nest computes what its program says: [`tilewright_polyhedral::prove()`].
pub type Prover = fn(&Program, &LoopNest) -> Verdict;

/// The result of proving the winner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    /// The winner computes what the program says, for every input.
    Proved,
    /// The prover could not decide, with the reason.
    Undecided(String),
    /// No proof was requested.
    NotRequested,
}

impl Proof {
    /// A sentence for people, or `None` if no proof was requested.
    pub fn describe(&self) -> Option<String> {
        match self {
            Proof::Proved => Some("the winner computes what the program says, for every input".to_owned()),
            Proof::Undecided(why) => Some(format!("undecided: {why}")),
            Proof::NotRequested => None,
        }
    }
}

/// A measured schedule that the prover refuted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefutedSchedule {
    /// The text of the schedule.
    pub schedule: String,
    /// A counterexample.
    pub reason: String,
}

/// The prover and its verdicts.
pub(super) struct Proofs<'p> {
    program: &'p Program,
    target: Target<'p>,
    scope: ProofScope,
    prover: Prover,
    /// Verdicts by schedule.
    known_verdicts: HashMap<String, Verdict>,
    /// Measured schedules that were refuted later.
    pub refuted: Vec<RefutedSchedule>,
}

impl<'p> Proofs<'p> {
    pub fn new(
        program: &'p Program,
        target: Target<'p>,
        (proving, prover): (ProofScope, Prover),
    ) -> Proofs<'p> {
        Proofs {
            program,
            target,
            scope: proving,
            prover,
            known_verdicts: HashMap::new(),
            refuted: Vec::new(),
        }
    }

    /// The verdicts on schedules, each proved once, on all cores.
    fn verdicts(&mut self, schedules: &[String]) -> Vec<Verdict> {
        let open: Vec<&String> =
            schedules.iter().filter(|own| !self.known_verdicts.contains_key(*own)).collect();
        let found = parallel::map(&open, |schedule| self.verdict(schedule));
        let found: Vec<(String, Verdict)> = open.into_iter().cloned().zip(found).collect();
        self.known_verdicts.extend(found);
        schedules.iter().map(|schedule| self.known_verdicts[schedule].clone()).collect()
    }

    fn verdict(&self, schedule: &str) -> Verdict {
        match self.nest(schedule) {
            Ok(nest) => (self.prover)(self.program, &nest),
            Err(why) => Verdict::Undecided(why),
        }
    }

    /// The loop nest of a schedule. All schedules that are proved were accepted before.
    fn nest(&self, schedule: &str) -> Result<LoopNest, String> {
        let schedule = text::parse(schedule).schedule;
        apply(self.program, &schedule, self.target).map_err(|refusal| refusal.to_string())
    }

    /// Proves schedules until all are done or `over` holds.
    fn prove_until(&mut self, schedules: &[String], over: &dyn Fn() -> bool) {
        let open = schedules.iter().filter(|own| !self.known_verdicts.contains_key(*own));
        let nests = open.filter_map(|own| Some((own.clone(), self.nest(own).ok()?))).collect();
        self.known_verdicts.extend(prove_until(self.program, nests, self.prover, over));
    }
}

impl Run<'_, '_> {
    /// The refutation of a schedule, which then must not be measured. `None` if candidates are not
    /// proved.
    pub(super) fn refutation(&mut self, schedule: &String) -> Option<Outcome> {
        self.refutations(std::slice::from_ref(schedule)).pop().flatten()
    }

    /// The refutations of several schedules, in their order.
    fn refutations(&mut self, schedules: &[String]) -> Vec<Option<Outcome>> {
        if self.proofs.scope != ProofScope::Candidates {
            return vec![None; schedules.len()];
        }
        let Run { proofs, time_spent: spent, .. } = self;
        let verdicts = time_work(&mut spent.proving, || proofs.verdicts(schedules));
        let refutation = |verdict| match verdict {
            Verdict::Refuted(reason) => Some(Outcome::Refuted(reason)),
            Verdict::Proved | Verdict::Undecided(_) => None,
        };
        verdicts.into_iter().map(refutation).collect()
    }

    /// The schedules that are to be measured. Refuted ones are recorded as failed.
    pub(super) fn remove_refuted(&mut self, schedules: Vec<String>, kind: TrialKind) -> Vec<String> {
        let refutations = self.refutations(&schedules);
        let mut left = Vec::new();
        for (schedule, refutation) in schedules.into_iter().zip(refutations) {
            match refutation {
                Some(outcome) => self.record_trial(schedule, Trial::failed(outcome), kind),
                None => left.push(schedule),
            }
        }
        left
    }

    /// Proves the future winner, and other trials that the cache may return. Returns the winner's
    /// proof, or `None` if the winner is refuted. A proof that is not done when the run has to end
    /// is undecided.
    pub(super) fn prove_winner(
        &mut self,
        winner: usize,
        others: Vec<usize>,
    ) -> Result<Option<Proof>, WorkerError> {
        if self.proofs.scope == ProofScope::Never {
            return Ok(Some(Proof::NotRequested));
        }
        let all: Vec<usize> = std::iter::once(winner).chain(others).collect();
        let schedules: Vec<String> = all.iter().map(|at| self.trials[*at].schedule.clone()).collect();
        self.prove_until_deadline(&schedules);
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

    /// Proves schedules until the run has to end.
    fn prove_until_deadline(&mut self, schedules: &[String]) {
        let (begun, stop) = (Instant::now(), self.stop);
        let most = self.options.time.map(|time| time.mul_f64(PROOF_TIME_SHARE).max(LEAST_PROOF_TIME));
        let over = || stop.is_urgent() || most.is_some_and(|most| begun.elapsed() > most);
        let Run { proofs, time_spent: spent, .. } = self;
        time_work(&mut spent.proving, || proofs.prove_until(schedules, &over));
    }

    /// The verdict on a schedule, if it was known in time. A replay has the verdicts of its
    /// recording.
    fn verdict_in_time(&mut self, schedule: &String) -> Result<Verdict, WorkerError> {
        let in_time = self.proofs.known_verdicts.contains_key(schedule);
        if !decide_by_clock(self.measurer, in_time)? {
            return Ok(Verdict::Undecided(PROOF_TIMED_OUT.to_owned()));
        }
        Ok(self.proofs.verdicts(std::slice::from_ref(schedule)).remove(0))
    }

    /// Marks a measured trial as refuted.
    fn refute(&mut self, at: usize, reason: String) {
        let is_one_shot = at == ONE_SHOT_TRIAL && self.one_shot.is_some();
        let tried = &mut self.trials[at];
        let outcome = Outcome::Refuted(reason.clone());
        if at > 0 && !is_one_shot {
            *self.outcomes.entry(outcome.kind()).or_default() += 1;
            let measured = self.outcomes.entry(OutcomeKind::Measured).or_default();
            *measured = measured.saturating_sub(1);
        }
        tried.trial = Trial { effort: tried.trial.effort, ..Trial::failed(outcome) };
        if is_one_shot {
            self.one_shot = Some(tried.trial.clone());
        }
        self.candidates.record_time(&tried.schedule, None);
        self.proofs.refuted.push(RefutedSchedule { schedule: tried.schedule.clone(), reason });
    }

    /// The error when no schedule may win, not even the default one.
    pub(super) fn all_refuted(&self) -> TuneError {
        TuneError::Default(self.trials[0].trial.outcome.clone())
    }
}
