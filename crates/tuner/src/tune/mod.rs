//! The tuning loop: ask → legality and limits → build → check → measure → tell.
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

mod background;
mod budget;
mod candidates;
mod finals;
mod machine_parameters;
mod proofs;
mod reference;
mod report;
mod spent;
mod stop;

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use thiserror::Error;
use tilewright_search::knob::Point;
use tilewright_search::space::{Space, TemplateError};
use tilewright_search::strategy::{Entry, Experience, Start, Strategy, TrialResult, Unsuitable};

pub use candidates::STARTS;
pub use proofs::{Proof, Prover, Proving, Refuted};
pub use report::{Attempt, Finalist, Kind, Progress, Tuned};
pub use spent::TimeSpent;
pub use stop::Stop;
pub use tilewright_polyhedral::{Verdict, prove};

use crate::bench::Plan;
use crate::measure::Measurer;
use crate::note::Note;
use crate::schedule_features::ScheduleFeatures;
use crate::task::{Task, TaskError};
use crate::worker::Lost;
use budget::Pace;
pub(crate) use candidates::{Candidate, Candidates, Judged};
use machine_parameters::HOPELESS;
pub(crate) use machine_parameters::MachineParameters;
pub(crate) use machine_parameters::REFERENCE_PLAN;
use proofs::Proofs;
pub(crate) use reference::Reference;
use spent::timed;
use tilewright_cache::CacheError;
use tilewright_cache::outcome::{Outcome, OutcomeKind, Trial};

/// The number of candidates that are measured again at the end.
const FINALISTS: usize = 8;
/// The number of consecutive batches without a useful point after which the search ends.
pub(crate) const MOST_IN_VAIN: usize = 1000;

/// The options of a tuning run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The strategy. It need not be one of [`ALL`](tilewright_search::strategy::ALL).
    pub strategy: Entry,
    /// The seed of all random decisions.
    pub seed: u64,
    /// The largest number of starting points from the cost model; usually [`STARTS`].
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
    pub proving: Proving,
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
    Worker(#[from] Lost),
    /// The default schedule does not run, so there is no reference.
    #[error("the default schedule cannot be measured: {0}")]
    Default(Outcome),
}

/// Receives the events of a run while it goes on.
pub trait Watcher {
    /// A candidate was tried.
    fn tried(&mut self, attempt: &Attempt<'_>, progress: &Progress);

    /// The workers have started, and have this note on how they compare results.
    fn noted(&mut self, _note: &Note) {}

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
) -> Result<Tuned, TuneError> {
    let (program, machine) = (&task.program, task.target()?);
    let space = Space::chosen(options.template.as_deref(), program, &machine)?;
    refuse_unsuitable(options.strategy, &space)?;
    let schedule_features = ScheduleFeatures::new(program, &machine);
    let mut run = Run {
        options,
        measurer,
        watcher,
        stop,
        candidates: Candidates::new(&schedule_features, &space),
        machine_parameters: MachineParameters::on(machine.target()),
        trials: Vec::new(),
        outcomes: BTreeMap::new(),
        counted: 0,
        proposal: Pace::default(),
        candidate: Pace::default(),
        default: 0.0,
        one_shot: None,
        best: None,
        reference: Reference::default(),
        proofs: Proofs::new(program, machine.target(), (options.proving, options.prover)),
        spent: TimeSpent::default(),
    };
    run.measure_default()?;
    let starts = run.rank()?;
    run.try_first_choice(starts.first())?;
    run.try_hints()?;
    let points = starts.into_iter().take(options.starts).collect();
    let features = schedule_features.of_points(&space);
    let start = Start {
        seed: options.seed,
        points,
        together: run.machine_parameters.together,
        features: Some(&features),
        experience: &options.experience,
    };
    let made = || (options.strategy.make)(space.knobs(), start);
    let mut strategy = timed(&mut run.spent.proposing, made)?;
    run.search(strategy.as_mut())?;
    run.finish()
}

/// Refuses a strategy that cannot search a space, before anything is measured.
pub fn refuse_unsuitable(strategy: Entry, space: &Space<'_>) -> Result<(), Unsuitable> {
    (strategy.make)(space.knobs(), Start::default()).map(|_| ())
}

fn is_past(end: Option<Instant>) -> bool {
    end.is_some_and(|end| Instant::now() >= end)
}

/// A schedule that was tried.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub schedule: String,
    pub trial: Trial,
    /// The number of counted trials so far, including this one.
    pub number: usize,
    /// The time since the start when the result was known.
    pub after: Duration,
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
    trials: Vec<Tried>,
    /// The number of trials by kind of outcome.
    outcomes: BTreeMap<OutcomeKind, usize>,
    /// The number of counted trials: all but the default schedule and the cost model's first
    /// choice.
    counted: usize,
    /// The time of a proposal, from asking to telling.
    proposal: Pace,
    /// The time to build and measure a candidate.
    candidate: Pace,
    /// The time of the default schedule, in seconds.
    default: f64,
    /// The trial of the cost model's first choice.
    one_shot: Option<Trial>,
    /// The index and the time of the fastest trial.
    best: Option<(usize, f64)>,
    /// The reference kernel that candidates are compared with.
    reference: Reference,
    /// The prover and its verdicts.
    proofs: Proofs<'p>,
    /// The time spent on each kind of work.
    spent: TimeSpent,
}

impl Run<'_, '_> {
    fn measure_default(&mut self) -> Result<(), TuneError> {
        let begun = Instant::now();
        let schedule = self.candidates.default_schedule();
        self.candidates.accepts(&schedule);
        if let Some(refuted) = self.refutation(&schedule) {
            return Err(TuneError::Default(refuted));
        }
        let plan = Plan { promising: self.worth_many_samples(), ..REFERENCE_PLAN };
        let trial = self.try_one(&schedule, &plan)?.ok_or(Lost::Hurried)?;
        self.default = trial.seconds().ok_or_else(|| TuneError::Default(trial.outcome.clone()))?;
        self.proposal.learn(self.machine_parameters.at_once, begun.elapsed());
        self.candidate.learn(self.machine_parameters.at_once, begun.elapsed());
        self.reference = Reference { schedule: schedule.clone(), seconds: self.default };
        self.note(schedule, trial, Kind::Default);
        Ok(())
    }

    /// Ranks points of the space with the cost model. Returns the starting points of the search.
    fn rank(&mut self) -> Result<Vec<Point>, Lost> {
        let end = self.end_of_looking();
        let Run { measurer, candidates, stop, .. } = self;
        let mut over = || budget::decide(*measurer, is_past(end) || stop.is_asked());
        timed(&mut self.spent.ranking, || candidates.ranked(self.options.seed, &mut over))
    }

    /// Tries the cost model's first choice, whatever the budget. With a budget of zero trials, it
    /// is the result of a single shot.
    fn try_first_choice(&mut self, first: Option<&Point>) -> Result<(), TuneError> {
        let Some(Judged::Worth(Candidate { schedule, .. })) =
            first.and_then(|first| self.candidates.judge(std::slice::from_ref(first)).pop())
        else {
            return Ok(());
        };
        if self.candidates.knows(&schedule) || self.is_late()? {
            return Ok(());
        }
        let promising = self.worth_many_samples();
        let rival = Some(self.reference.rival());
        let plan = Plan { rival, hopeless: HOPELESS * self.default, promising, ..REFERENCE_PLAN };
        let tried = match self.refutation(&schedule) {
            Some(refuted) => Some(Trial::failed(refuted)),
            None => self.try_one(&schedule, &plan)?,
        };
        if let Some(trial) = tried {
            self.one_shot = Some(trial.clone());
            self.note(schedule, trial, Kind::OneShot);
        }
        Ok(())
    }

    /// Tries schedules from the cache as they are, if they are legal here.
    fn try_hints(&mut self) -> Result<(), TuneError> {
        let mut hints: Vec<String> = self.options.hints.clone();
        hints.retain(|hint| !self.candidates.knows(hint) && self.candidates.accepts(hint));
        hints.truncate(self.trials_left().min(self.as_many_as_fit(self.candidate)?));
        self.measure(hints, Kind::Hint)
    }

    fn search(&mut self, strategy: &mut dyn Strategy) -> Result<(), TuneError> {
        let mut in_vain = 0;
        while !self.is_over()? && in_vain < MOST_IN_VAIN {
            let begun = Instant::now();
            let fit = self.as_many_as_fit(self.proposal)?;
            let points = timed(&mut self.spent.proposing, || strategy.ask(fit));
            if points.is_empty() {
                break;
            }
            let told = self.judge_and_measure(points)?;
            self.proposal.learn(told.len(), begun.elapsed());
            let useful = told.iter().any(|told| told.cost.is_some());
            in_vain = if useful { 0 } else { in_vain + 1 };
            timed(&mut self.spent.proposing, || strategy.tell(&told));
        }
        Ok(())
    }

    /// Judges points, and measures those that are worth it, as many as there are trials left.
    fn judge_and_measure(&mut self, points: Vec<Point>) -> Result<Vec<TrialResult>, TuneError> {
        let judged = timed(&mut self.spent.proposing, || self.candidates.judge(&points));
        let mut fresh: Vec<&Candidate> = Vec::new();
        for judged in &judged {
            if let Judged::Worth(own) = judged
                && !self.candidates.knows(&own.schedule)
                && !fresh.iter().any(|other| other.schedule == own.schedule)
            {
                fresh.push(own);
            }
        }
        fresh.truncate(self.trials_left().min(self.as_many_as_fit(self.candidate)?));
        // The candidates that take longest to compile begin first, so that at the end no core waits
        // for another.
        fresh.sort_by_key(|own| std::cmp::Reverse(own.effort));
        self.measure(fresh.into_iter().map(|own| own.schedule.clone()).collect(), Kind::Search)?;
        Ok(self.candidates.told(points, &judged))
    }

    fn measure(&mut self, schedules: Vec<String>, kind: Kind) -> Result<(), TuneError> {
        if schedules.is_empty() || self.is_over()? {
            return Ok(());
        }
        let begun = Instant::now();
        let schedules = self.without_refuted(schedules, kind);
        let plan = self.machine_parameters.plan(&self.reference, self.best_seconds(), self.left_to_search());
        let trials = self.try_all(&schedules, &plan)?;
        self.candidate.learn(trials.len(), begun.elapsed());
        for (at, trial) in trials {
            self.note(schedules[at].clone(), trial, kind);
        }
        self.reconsider_reference()
    }

    /// Makes the best candidate the new reference kernel, if it is clearly faster.
    fn reconsider_reference(&mut self) -> Result<(), TuneError> {
        if let Some((at, seconds)) = self.best
            && self.reference.reconsider(
                self.measurer,
                &self.trials[at].schedule,
                seconds,
                &self.machine_parameters,
            )?
        {
            self.best = Some((at, self.reference.seconds));
        }
        Ok(())
    }

    fn note(&mut self, schedule: String, trial: Trial, kind: Kind) {
        self.candidates.tried(&schedule, trial.seconds());
        if kind.counts() {
            self.counted += 1;
            *self.outcomes.entry(trial.outcome.kind()).or_default() += 1;
        }
        if let Some(seconds) = trial.seconds()
            && self.best.is_none_or(|(_, best)| seconds < best)
        {
            self.best = Some((self.trials.len(), seconds));
        }
        let after = self.elapsed();
        let tried = Tried { schedule: schedule.clone(), trial: trial.clone(), number: self.counted, after };
        self.trials.push(tried);
        let progress = self.progress(kind);
        let features = self.candidates.features(&schedule);
        self.watcher.tried(&Attempt { schedule: &schedule, features, trial: &trial }, &progress);
    }

    fn best_seconds(&self) -> f64 {
        self.best.map_or(self.default, |(_, seconds)| seconds)
    }

    /// The time since the start, for reports.
    fn elapsed(&self) -> Duration {
        self.measurer.clock().unwrap_or_else(|| self.options.started.elapsed())
    }

    fn trials_left(&self) -> usize {
        self.options.trials.map_or(usize::MAX, |trials| trials.saturating_sub(self.counted))
    }
}
