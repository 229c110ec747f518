//! The tuning loop: ask → legality and limits → build → check → measure → tell.
//!
//! 1. The default schedule is measured: nothing that is found may be slower.
//! 2. The cost model ranks points of the space, without compiling any; the best of them are where the search starts.
//! 3. A strategy proposes points. What the space or the model refuses never reaches the compiler, a schedule that was
//!    tried before is not tried again, and all others are measured in batches.
//! 4. The fastest are measured again, in turn, with the default schedule among them. Who is within the noise of the
//!    fastest counts as equal, and of equals the one that was found first wins, the default schedule first of all.
//!
//! The loop reads the clock only to end in time: by number of trials, the same seed and the same measurements give the
//! same winner. A recording tells the clock of its own run, and so replays one that was ended by time as well.

mod candidates;
mod finals;
mod report;
mod spent;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use thiserror::Error;
use tilewright_search::knob::Point;
use tilewright_search::space::Space;
use tilewright_search::strategy::{self, Start, Strategy, Told, Unsuitable};

pub use report::{Progress, Tuned};
pub use spent::TimeSpent;

use crate::measure::Measurer;
use crate::outcome::{Outcome, Trial};
use crate::rig::Plan;
use crate::task::{Task, TaskError};
use crate::worker::Lost;
use candidates::{Candidates, Judged};
use spent::timed;

/// Points that a strategy is asked for at a time.
const BATCH: usize = 16;
/// Candidates that are measured at the end, in turn.
const FINALISTS: usize = 6;
/// A call that takes so many times as long as the best is not worth a second one.
const HOPELESS: f64 = 2.5;
/// A call that takes longer than this times the best is not worth a third.
const PROMISING: f64 = 1.25;
/// What others are compared with is measured well, however long it takes.
const THOROUGHLY: Plan = Plan { hopeless: 600.0, promising: 600.0, samples: 10, time: 0.05 };
/// Proposals in a row of which none is worth trying end the search.
const MOST_IN_VAIN: usize = 200;

/// What to do, and for how long.
#[derive(Clone, Debug)]
pub struct Options {
    /// The name of a strategy.
    pub strategy: String,
    /// Decides all that is random.
    pub seed: u64,
    /// Candidates to measure at most.
    pub trials: Option<usize>,
    /// Time to take at most.
    pub time: Option<Duration>,
    /// Schedules that may be good: those of similar programs.
    pub hints: Vec<String>,
}

/// Why nothing was tuned.
#[derive(Debug, Error)]
pub enum TuneError {
    /// The task makes no sense.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The strategy cannot be used.
    #[error(transparent)]
    Strategy(#[from] Unsuitable),
    /// There is no worker.
    #[error(transparent)]
    Worker(#[from] Lost),
    /// The default schedule does not run, so there is nothing to compare with.
    #[error("the default schedule cannot be measured: {0}")]
    Default(Outcome),
}

/// Whoever wants to know how it goes, and may keep what was measured.
pub trait Watcher {
    /// A candidate was tried.
    fn tried(&mut self, schedule: &str, trial: &Trial, progress: &Progress);
}

/// Tunes a program.
pub fn tune(
    task: &Task,
    options: &Options,
    measurer: &mut dyn Measurer,
    watcher: &mut dyn Watcher,
    stop: &AtomicBool,
) -> Result<Tuned, TuneError> {
    let (program, target) = (task.program()?, task.target()?);
    let space = Space::new(&program, &target);
    let mut run = Run {
        started: Instant::now(),
        options,
        measurer,
        watcher,
        stop,
        candidates: Candidates::new(&program, &target, &space),
        trials: Vec::new(),
        outcomes: BTreeMap::new(),
        free: 0,
        default: 0.0,
        one_shot: None,
        best: None,
        spent: TimeSpent::default(),
    };
    run.measure_default()?;
    let starts = timed(&mut run.spent.ranking, || run.candidates.ranked(options.seed));
    run.try_first_choice(starts.first())?;
    run.try_hints()?;
    let start = Start { seed: options.seed, points: starts };
    let mut strategy = strategy::by_name(&options.strategy, space.knobs(), start)?;
    run.search(strategy.as_mut())?;
    run.finish()
}

/// A schedule that was tried.
#[derive(Clone, Debug)]
pub(crate) struct Tried {
    pub schedule: String,
    pub trial: Trial,
    /// When it was known, since the start.
    pub after: Duration,
}

/// A tuning run.
struct Run<'a, 'p> {
    started: Instant,
    options: &'a Options,
    measurer: &'a mut dyn Measurer,
    watcher: &'a mut dyn Watcher,
    stop: &'a AtomicBool,
    candidates: Candidates<'p>,
    /// All that were tried, the default schedule first.
    trials: Vec<Tried>,
    /// How many candidates ended how.
    outcomes: BTreeMap<&'static str, usize>,
    /// Trials that do not count: the default schedule, and the first choice of the cost model.
    free: usize,
    /// Seconds of the default schedule.
    default: f64,
    /// Seconds of the cost model's first choice.
    one_shot: Option<f64>,
    /// The place of the fastest, and its seconds.
    best: Option<(usize, f64)>,
    /// Where the time goes.
    spent: TimeSpent,
}

impl Run<'_, '_> {
    fn measure_default(&mut self) -> Result<(), TuneError> {
        let schedule = self.candidates.default_schedule();
        let trial = self.try_all(std::slice::from_ref(&schedule), &THOROUGHLY)?.pop();
        let trial = trial.ok_or(Lost::Garbage)?;
        self.default = trial.seconds().ok_or_else(|| TuneError::Default(trial.outcome.clone()))?;
        self.free += 1;
        self.note(schedule, trial);
        Ok(())
    }

    /// The first choice of the cost model, whatever the budget: with no trials at all it is what can be had in one shot.
    fn try_first_choice(&mut self, first: Option<&Point>) -> Result<(), TuneError> {
        let Some(Judged::Worth(schedule)) =
            first.and_then(|first| self.candidates.judge(std::slice::from_ref(first)).pop())
        else {
            return Ok(());
        };
        if !self.candidates.knows(&schedule) {
            let trial = self.try_all(std::slice::from_ref(&schedule), &THOROUGHLY)?.pop();
            self.one_shot = trial.as_ref().and_then(Trial::seconds);
            self.free += 1;
            self.note(schedule, trial.ok_or(Lost::Garbage)?);
        }
        Ok(())
    }

    /// Schedules from elsewhere are tried as they are, if they are legal here.
    fn try_hints(&mut self) -> Result<(), TuneError> {
        let hints = self.options.hints.iter().filter(|hint| !self.candidates.knows(hint)).cloned().collect();
        self.measure(hints).map(|_| ())
    }

    fn search(&mut self, strategy: &mut dyn Strategy) -> Result<(), TuneError> {
        let mut in_vain = 0;
        while !self.is_over() && in_vain < MOST_IN_VAIN {
            let points = timed(&mut self.spent.proposing, || strategy.ask(BATCH));
            if points.is_empty() {
                break;
            }
            let told = self.judge_and_measure(points)?;
            let useful = told.iter().any(|told| told.cost.is_some());
            in_vain = if useful { 0 } else { in_vain + 1 };
            timed(&mut self.spent.proposing, || strategy.tell(&told));
        }
        Ok(())
    }

    /// What becomes of points: those that are worth it are measured, as many as there are trials left.
    fn judge_and_measure(&mut self, points: Vec<Point>) -> Result<Vec<Told>, TuneError> {
        let judged = timed(&mut self.spent.proposing, || self.candidates.judge(&points));
        let mut fresh: Vec<String> = Vec::new();
        for judged in &judged {
            if let Judged::Worth(schedule) = judged
                && !self.candidates.knows(schedule)
                && !fresh.contains(schedule)
            {
                fresh.push(schedule.clone());
            }
        }
        fresh.truncate(self.trials_left());
        self.measure(fresh)?;
        let cost = |judged: Judged| match judged {
            Judged::Worth(schedule) => self.candidates.cost(&schedule),
            Judged::Rejected => None,
        };
        let told = points.into_iter().zip(judged);
        Ok(told.map(|(point, judged)| Told { point, cost: cost(judged) }).collect())
    }

    fn measure(&mut self, schedules: Vec<String>) -> Result<(), TuneError> {
        if schedules.is_empty() || self.is_over() {
            return Ok(());
        }
        let best = self.best.map_or(self.default, |(_, seconds)| seconds);
        let plan = Plan {
            hopeless: HOPELESS * best,
            promising: PROMISING * best,
            samples: 3,
            time: (2.0 * best).min(0.02),
        };
        let trials = self.try_all(&schedules, &plan)?;
        for (schedule, trial) in schedules.into_iter().zip(trials) {
            self.note(schedule, trial);
        }
        Ok(())
    }

    fn note(&mut self, schedule: String, trial: Trial) {
        self.candidates.tried(&schedule, trial.seconds());
        *self.outcomes.entry(trial.outcome.name()).or_default() += 1;
        if let Some(seconds) = trial.seconds()
            && self.best.is_none_or(|(_, best)| seconds < best)
        {
            self.best = Some((self.trials.len(), seconds));
        }
        let after = self.elapsed();
        self.trials.push(Tried { schedule: schedule.clone(), trial: trial.clone(), after });
        let progress = self.progress();
        self.watcher.tried(&schedule, &trial, &progress);
    }

    /// The time since the start.
    fn elapsed(&self) -> Duration {
        self.measurer.clock().unwrap_or_else(|| self.started.elapsed())
    }

    fn trials_left(&self) -> usize {
        let done = self.trials.len().saturating_sub(self.free);
        self.options.trials.map_or(usize::MAX, |trials| trials.saturating_sub(done))
    }

    fn is_over(&self) -> bool {
        let late = self.options.time.is_some_and(|time| self.elapsed() >= time);
        late || self.trials_left() == 0 || self.stop.load(Ordering::Relaxed) || self.measurer.is_over()
    }
}
