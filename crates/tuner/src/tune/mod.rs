//! Runs the tuning loop ([`tune()`]) on a task, and returns the winner in a [`TuningReport`]. The
//! loop proposes schedules, checks their legality, compiles them, compares results, and measures.
//!
//! 1. The default schedule is measured. The winner may not be slower.
//! 2. The cost model ranks points of the space, without compiling any. The search starts from the
//!    best of them.
//! 3. A strategy proposes points. Points that the space or the cost model refuses never reach the
//!    compiler. A schedule that was tried is not tried again. All others are measured in batches.
//! 4. The fastest candidates and the default schedule are measured again in turn. Candidates within
//!    the noise of the fastest count as equal. Of equal candidates the default schedule wins, or
//!    else the one that was found first.
//! 5. The winner is proved to compute what the program says (`proofs.rs`). If the proof refutes it,
//!    the next best candidate is proved.
//!
//! The loop reads the clock only to end in time (`budget.rs`). With a limit on trials alone, the
//! same seed and the same measurements give the same winner. A decision of the clock is an answer
//! of the measurer too, so a recording also replays a run that time or a signal ended.

mod background_proofs;
mod budget;
mod candidates;
mod final_comparison;
mod machine_parameters;
mod proofs;
mod reference;
mod report;
mod stop;
mod time_spent;

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use thiserror::Error;
use tilewright_schedule::Schedule;
use tilewright_search::knob::Point;
use tilewright_search::space::{Space, TemplateError};
use tilewright_search::strategy::{Entry, Experience, Start, Strategy, Unsuitable};

pub use candidates::DEFAULT_STARTS;
pub use proofs::{Proof, ProofScope, Prover, RefutedSchedule};
pub use report::{Attempt, Finalist, Progress, TrialKind, TuningReport};
pub use stop::Stop;
pub use tilewright_polyhedral::{Verdict, prove};
pub use time_spent::TimeSpent;

use crate::bench::Plan;
use crate::measure::Measurer;
use crate::note::Note;
use crate::schedule_features::ScheduleFeatures;
use crate::task::{Task, TaskError};
use crate::worker::WorkerError;
use budget::TimePerItem;
pub(crate) use candidates::{Candidate, Candidates, Judgement};
use machine_parameters::FIRST_CALL_FACTOR;
pub(crate) use machine_parameters::MachineParameters;
pub(crate) use machine_parameters::REFERENCE_PLAN;
use proofs::Proofs;
pub(crate) use reference::ReferenceKernel;
use tilewright_cache::CacheError;
use tilewright_cache::outcome::{Outcome, OutcomeKind, Trial};
use time_spent::time_work;

/// The number of candidates that are measured again at the end.
const FINALISTS: usize = 8;
/// The number of consecutive batches without a useful point after which the search ends.
pub(crate) const MOST_USELESS_BATCHES: usize = 1000;

/// The options of a tuning run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The strategy. It need not be one of [`ALL`](tilewright_search::strategy::ALL).
    pub strategy: Entry,
    /// The seed of all random decisions.
    pub seed: u64,
    /// The largest number of starting points from the cost model; usually [`DEFAULT_STARTS`].
    pub starts: usize,
    /// The largest number of candidates to measure.
    pub trials: Option<usize>,
    /// The time when the user began to wait.
    pub started: Instant,
    /// The time limit, counted from `started`.
    pub time: Option<Duration>,
    /// Schedules that may be good, such as those of similar programs.
    pub hints: Vec<String>,
    /// Trials of other programs, for cost models to learn from.
    pub experience: Vec<Experience>,
    /// The template of the schedules to search, if not the one that analysis derives.
    pub template: Option<String>,
    /// Which schedules are proved.
    pub proof_scope: ProofScope,
    /// The prover: [`prove()`], unless a test replaces it.
    pub prover: Prover,
}

/// Why a run failed.
#[derive(Debug, Error)]
pub enum TuneError {
    /// The task is invalid.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The strategy cannot be used.
    #[error(transparent)]
    Strategy(#[from] Unsuitable),
    /// The template cannot be used.
    #[error("the template cannot be used: {0}")]
    Template(#[from] TemplateError),
    /// The inputs cannot be passed to worker processes.
    #[error("{0}")]
    Inputs(io::Error),
    /// The worker process was lost.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The default schedule does not run, so there is no reference.
    #[error("the default schedule cannot be measured: {0}")]
    Default(Outcome),
}

/// Receives the events of a run while it goes on.
pub trait Watcher {
    /// A candidate was tried.
    fn candidate_tried(&mut self, attempt: &Attempt<'_>, progress: &Progress);

    /// The workers have started, and have this note on how they compare results.
    fn note_received(&mut self, _note: &Note) {}

    /// The cache cannot be written. The search goes on, and stores nothing more.
    fn cache_failed(&mut self, _error: &CacheError) {}
}

/// Tunes a program.
pub fn tune(
    task: &Task,
    options: &Options,
    measurer: &mut dyn Measurer,
    watcher: &mut dyn Watcher,
    stop: &Stop,
) -> Result<TuningReport, TuneError> {
    let (program, machine) = (&task.program, task.machine()?);
    let space = Space::with_template(options.template.as_deref(), program, &machine)?;
    refuse_unsuitable(options.strategy, &space)?;
    let schedule_features = ScheduleFeatures::new(program, &machine);
    let mut run = Run {
        options,
        measurer,
        watcher,
        stop,
        candidates: Candidates::new(&schedule_features, &space),
        machine_parameters: MachineParameters::for_target(machine.target()),
        trials: Vec::new(),
        outcomes: BTreeMap::new(),
        counted_trials: 0,
        proposal_time: TimePerItem::default(),
        candidate_time: TimePerItem::default(),
        default_seconds: 0.0,
        one_shot: None,
        best_trial: None,
        reference: ReferenceKernel::default(),
        proofs: Proofs::new(program, machine.target(), (options.proof_scope, options.prover)),
        time_spent: TimeSpent::default(),
    };
    run.measure_default()?;
    run.try_hints()?;
    run.try_beam()?;
    let starts = run.rank_starts()?;
    run.try_first_choice(starts.first())?;
    let points = starts.into_iter().take(options.starts).collect();
    let features = schedule_features.features_of_points(&space);
    let start = Start {
        seed: options.seed,
        points,
        parallel_trials: run.machine_parameters.least_proposals,
        features: Some(&features),
        experience: &options.experience,
        program: Some((program, machine.target())),
    };
    let made = || (options.strategy.make)(space.knobs(), start);
    let mut strategy = time_work(&mut run.time_spent.proposing, made)?;
    run.search(strategy.as_mut())?;
    run.finish()
}

/// Refuses a strategy that cannot search a space, before anything is measured.
pub fn refuse_unsuitable(strategy: Entry, space: &Space<'_>) -> Result<(), Unsuitable> {
    (strategy.make)(space.knobs(), Start::default()).map(|_| ())
}

fn has_passed(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now() >= end)
}

/// A schedule that was tried.
#[derive(Clone, Debug)]
pub(crate) struct TriedSchedule {
    pub schedule: String,
    pub trial: Trial,
    /// The number of counted trials so far, including this one.
    pub number: usize,
    /// The time since the start when the result was known.
    pub elapsed: Duration,
}

/// A tuning run.
struct Run<'a, 'p> {
    options: &'a Options,
    measurer: &'a mut dyn Measurer,
    watcher: &'a mut dyn Watcher,
    stop: &'a Stop,
    candidates: Candidates<'p>,
    machine_parameters: MachineParameters,
    /// All schedules that were tried, the default schedule first.
    trials: Vec<TriedSchedule>,
    /// The number of trials by kind of outcome.
    outcomes: BTreeMap<OutcomeKind, usize>,
    /// The number of counted trials: all but the default schedule and the cost model's first
    /// choice.
    counted_trials: usize,
    /// The time of a proposal, from asking to telling.
    proposal_time: TimePerItem,
    /// The time to build and measure a candidate.
    candidate_time: TimePerItem,
    /// The time of the default schedule, in seconds.
    default_seconds: f64,
    /// The trial of the cost model's first choice.
    one_shot: Option<Trial>,
    /// The index and the time of the fastest trial.
    best_trial: Option<(usize, f64)>,
    /// The reference kernel that candidates are compared with.
    reference: ReferenceKernel,
    /// The prover and its verdicts.
    proofs: Proofs<'p>,
    /// The time spent on each kind of work.
    time_spent: TimeSpent,
}

impl Run<'_, '_> {
    fn measure_default(&mut self) -> Result<(), TuneError> {
        let begun = Instant::now();
        let schedule = self.candidates.default_schedule();
        self.candidates.accepts(&schedule);
        if let Some(refuted) = self.refutation(&schedule) {
            return Err(TuneError::Default(refuted));
        }
        let plan = Plan { call_limit: self.longest_well_sampled_call(), ..REFERENCE_PLAN };
        let trial = self.try_one(&schedule, &plan)?.ok_or(WorkerError::Stopped)?;
        self.default_seconds = trial.seconds().ok_or_else(|| TuneError::Default(trial.outcome.clone()))?;
        self.proposal_time.update(self.machine_parameters.parallel_candidates, begun.elapsed());
        self.candidate_time.update(self.machine_parameters.parallel_candidates, begun.elapsed());
        self.reference = ReferenceKernel { schedule: schedule.clone(), seconds: self.default_seconds };
        self.record_trial(schedule, trial, TrialKind::Default);
        Ok(())
    }

    /// Ranks points of the space with the cost model. Returns the starting points of the search.
    fn rank_starts(&mut self) -> Result<Vec<Point>, WorkerError> {
        let end = self.ranking_deadline();
        let Run { measurer, candidates, stop, .. } = self;
        let mut over = || budget::decide_by_clock(*measurer, has_passed(end) || stop.is_requested());
        time_work(&mut self.time_spent.ranking, || candidates.rank_starts(self.options.seed, &mut over))
    }

    /// Tries the cost model's first choice, whatever the budget. With a budget of zero trials, it
    /// is the result of a single shot.
    fn try_first_choice(&mut self, first: Option<&Point>) -> Result<(), TuneError> {
        let Some(Judgement::Measure(Candidate { schedule, .. })) =
            first.and_then(|first| self.candidates.judge(std::slice::from_ref(first)).pop())
        else {
            return Ok(());
        };
        if self.candidates.was_tried(&schedule) || self.is_run_over()? {
            return Ok(());
        }
        let call_limit = self.longest_well_sampled_call();
        let reference = Some(self.reference.reference_schedule());
        let plan = Plan {
            reference,
            first_call_limit: FIRST_CALL_FACTOR * self.default_seconds,
            call_limit,
            ..REFERENCE_PLAN
        };
        let tried = match self.refutation(&schedule) {
            Some(refuted) => Some(Trial::failed(refuted)),
            None => self.try_one(&schedule, &plan)?,
        };
        if let Some(trial) = tried {
            self.one_shot = Some(trial.clone());
            self.record_trial(schedule, trial, TrialKind::OneShot);
        }
        Ok(())
    }

    /// Tries the schedules that a beam search finds, which places stages as no knob does.
    fn try_beam(&mut self) -> Result<(), TuneError> {
        let Run { candidates, time_spent, .. } = self;
        let found = time_work(&mut time_spent.ranking, || candidates.beam_schedules());
        self.try_whole_schedules(found, TrialKind::Beam)
    }

    /// Tries schedules from the cache as they are.
    fn try_hints(&mut self) -> Result<(), TuneError> {
        self.try_whole_schedules(self.options.hints.clone(), TrialKind::Hint)
    }

    /// Tries schedules as they are, if they are legal here.
    fn try_whole_schedules(&mut self, mut schedules: Vec<String>, kind: TrialKind) -> Result<(), TuneError> {
        schedules.retain(|own| !self.candidates.was_tried(own) && self.candidates.accepts(own));
        schedules.truncate(self.trials_left().min(self.count_that_fits(self.candidate_time)?));
        self.measure_batch(schedules, kind)
    }

    fn search(&mut self, strategy: &mut dyn Strategy) -> Result<(), TuneError> {
        let mut useless_batches = 0;
        while !self.is_search_over()? && useless_batches < MOST_USELESS_BATCHES {
            let begun = Instant::now();
            let fit = self.count_that_fits(self.proposal_time)?;
            let points = time_work(&mut self.time_spent.proposing, || strategy.propose(fit));
            let useful = match points.is_empty() {
                false => self.try_points(strategy, points, begun)?,
                true => {
                    let propose = || strategy.propose_schedules(fit);
                    let schedules = time_work(&mut self.time_spent.proposing, propose);
                    if schedules.is_empty() {
                        break;
                    }
                    self.try_schedules(strategy, schedules, begun)?
                }
            };
            useless_batches = if useful { 0 } else { useless_batches + 1 };
        }
        Ok(())
    }

    /// Tries points. Returns true if one of them has a time.
    fn try_points(
        &mut self,
        strategy: &mut dyn Strategy,
        points: Vec<Point>,
        begun: Instant,
    ) -> Result<bool, TuneError> {
        let judged = time_work(&mut self.time_spent.proposing, || self.candidates.judge(&points));
        self.measure_judged(&judged)?;
        let results = self.candidates.costs_for_strategy(points, &judged);
        self.proposal_time.update(results.len(), begun.elapsed());
        time_work(&mut self.time_spent.proposing, || strategy.report(&results));
        Ok(results.iter().any(|told| told.cost.is_some()))
    }

    /// Tries whole schedules. Returns true if one of them has a time.
    fn try_schedules(
        &mut self,
        strategy: &mut dyn Strategy,
        schedules: Vec<Schedule>,
        begun: Instant,
    ) -> Result<bool, TuneError> {
        let judge = || self.candidates.judge_schedules(&schedules);
        let judged = time_work(&mut self.time_spent.proposing, judge);
        self.measure_judged(&judged)?;
        let results = self.candidates.times_for_strategy(schedules);
        self.proposal_time.update(results.len(), begun.elapsed());
        time_work(&mut self.time_spent.proposing, || strategy.report_schedules(&results));
        Ok(results.iter().any(|(_, seconds)| seconds.is_some()))
    }

    /// Measures the candidates that are worth it, as many as there are trials left.
    fn measure_judged(&mut self, judged: &[Judgement]) -> Result<(), TuneError> {
        let mut fresh: Vec<&Candidate> = Vec::new();
        for judged in judged {
            if let Judgement::Measure(own) = judged
                && !self.candidates.was_tried(&own.schedule)
                && !fresh.iter().any(|other| other.schedule == own.schedule)
            {
                fresh.push(own);
            }
        }
        fresh.truncate(self.trials_left().min(self.count_that_fits(self.candidate_time)?));
        // The candidates that take longest to compile begin first, so that at the end no core waits
        // for another.
        fresh.sort_by_key(|own| std::cmp::Reverse(own.effort));
        self.measure_batch(fresh.into_iter().map(|own| own.schedule.clone()).collect(), TrialKind::Search)
    }

    fn measure_batch(&mut self, schedules: Vec<String>, kind: TrialKind) -> Result<(), TuneError> {
        if schedules.is_empty() || self.is_search_over()? {
            return Ok(());
        }
        let begun = Instant::now();
        let schedules = self.remove_refuted(schedules, kind);
        let plan =
            self.machine_parameters.plan(&self.reference, self.best_seconds(), self.search_time_left());
        let trials = self.try_all(&schedules, &plan)?;
        self.candidate_time.update(trials.len(), begun.elapsed());
        for (at, trial) in trials {
            self.record_trial(schedules[at].clone(), trial, kind);
        }
        self.update_reference()
    }

    /// Makes the best candidate the new reference kernel, if it is clearly faster.
    fn update_reference(&mut self) -> Result<(), TuneError> {
        if let Some((at, seconds)) = self.best_trial
            && self.reference.replace_if_slower(
                self.measurer,
                &self.trials[at].schedule,
                seconds,
                &self.machine_parameters,
            )?
        {
            self.best_trial = Some((at, self.reference.seconds));
        }
        Ok(())
    }

    fn record_trial(&mut self, schedule: String, trial: Trial, kind: TrialKind) {
        self.candidates.record_time(&schedule, trial.seconds());
        if kind.counts_as_trial() {
            self.counted_trials += 1;
            *self.outcomes.entry(trial.outcome.kind()).or_default() += 1;
        }
        if let Some(seconds) = trial.seconds()
            && self.best_trial.is_none_or(|(_, best)| seconds < best)
        {
            self.best_trial = Some((self.trials.len(), seconds));
        }
        let after = self.elapsed();
        let tried = TriedSchedule {
            schedule: schedule.clone(),
            trial: trial.clone(),
            number: self.counted_trials,
            elapsed: after,
        };
        self.trials.push(tried);
        let progress = self.progress(kind);
        let features = self.candidates.features(&schedule);
        self.watcher.candidate_tried(&Attempt { schedule: &schedule, features, trial: &trial }, &progress);
    }

    fn best_seconds(&self) -> f64 {
        self.best_trial.map_or(self.default_seconds, |(_, seconds)| seconds)
    }

    /// The time since the start, for reports.
    fn elapsed(&self) -> Duration {
        self.measurer.clock().unwrap_or_else(|| self.options.started.elapsed())
    }

    fn trials_left(&self) -> usize {
        self.options.trials.map_or(usize::MAX, |trials| trials.saturating_sub(self.counted_trials))
    }
}
