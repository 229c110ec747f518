//! The interface of measurers, and the measurer that supervises a worker process. The other
//! measurers are recordings and fleets.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bench::Plan;
use crate::note::Note;
use crate::task::Task;
use crate::tune::Stop;
use crate::worker::{Launch, Lost, Worker};
use tilewright_cache::outcome::{Outcome, Trial};

/// Tries candidates and compares their times.
pub trait Measurer {
    /// Tries schedules. Returns their trials with their indices, in order. Trials are missing if
    /// the time of the plan was too short or the run has to end at once.
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<(usize, Trial)>, Lost>;

    /// Measures schedules in turn. Returns the samples of each, in their order.
    fn race(&mut self, schedules: &[String], samples: usize, time: f64) -> Result<Vec<Vec<f64>>, Lost>;

    /// The number of workers that were lost and replaced.
    fn replaced(&self) -> usize {
        0
    }

    /// A decision by the clock or a signal: a number of candidates, or 1 for yes and 0 for no. A
    /// decision is an answer of the measurer like the times of candidates. A recording replays its
    /// own run's decisions, whatever the clock says now.
    fn decide(&mut self, by_the_clock: usize) -> Result<usize, Lost> {
        Ok(by_the_clock)
    }

    /// The time since the run began, if it is not this run's own time. A recording returns the time
    /// of its recorded run.
    fn clock(&self) -> Option<Duration> {
        None
    }
}

/// A worker process that is replaced when it is lost.
pub struct Supervised {
    launch: Launch,
    task: Task,
    stop: Arc<Stop>,
    worker: Option<Worker>,
    replaced: usize,
}

/// The result of an attempt at a batch.
enum Attempt {
    /// The worker has tried every schedule that it had time for.
    Ended,
    /// The worker was lost.
    Lost,
}

impl Supervised {
    /// Starts a worker for a task. A wait for the worker ends when `stop` is urgent.
    pub fn start(launch: Launch, task: Task, stop: Arc<Stop>) -> Result<Supervised, Lost> {
        let worker = Some(Worker::start(&launch, &task, &stop)?);
        Ok(Supervised { launch, task, stop, worker, replaced: 0 })
    }

    /// The notes on how the worker compares results, for the user.
    pub fn notes(&self) -> &[Note] {
        self.worker.as_ref().map_or(&[], |worker| &worker.notes)
    }

    fn worker(&mut self) -> Result<&mut Worker, Lost> {
        if self.worker.is_none() {
            self.worker = Some(Worker::start(&self.launch, &self.task, &self.stop)?);
        }
        self.worker.as_mut().ok_or(Lost::Silent)
    }

    fn replace(&mut self) {
        self.worker = None;
        self.replaced += 1;
    }

    /// Tries some of the schedules. If the worker is lost, schedules without a reply stay open.
    fn attempt(
        &mut self,
        schedules: &[String],
        open: &[usize],
        plan: &Plan,
        trials: &mut [Option<Trial>],
    ) -> Result<Attempt, Lost> {
        let batch: Vec<String> = open.iter().map(|at| schedules[*at].clone()).collect();
        let heard = self.worker()?.try_all(&batch, plan, &mut |at, trial| trials[open[at]] = Some(trial));
        let lost = match heard {
            Ok(()) => return Ok(Attempt::Ended),
            Err(Lost::Hurried) => {
                // The worker is still busy with the batch.
                self.worker = None;
                return Ok(Attempt::Ended);
            }
            Err(lost) => lost,
        };
        self.replace();
        // If no candidate was running, one of those being compiled is at fault. Trying it alone
        // shows which one.
        if let [alone] = open
            && trials[*alone].is_none()
        {
            trials[*alone] = Some(Trial::failed(match lost {
                Lost::Silent => Outcome::TimedOut,
                other => Outcome::Crashed(other.to_string()),
            }));
        }
        Ok(Attempt::Lost)
    }
}

impl Measurer for Supervised {
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<(usize, Trial)>, Lost> {
        let ends = plan.within.map(|within| Instant::now() + Duration::from_secs_f64(within));
        let mut trials: Vec<Option<Trial>> = vec![None; schedules.len()];
        loop {
            let open: Vec<usize> = (0..trials.len()).filter(|at| trials[*at].is_none()).collect();
            let left = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
            if open.is_empty() || left.is_some_and(|left| left.is_zero()) || self.stop.is_urgent() {
                break;
            }
            let plan = Plan { within: left.map(|left| left.as_secs_f64()), ..plan.clone() };
            if matches!(self.attempt(schedules, &open, &plan, &mut trials)?, Attempt::Ended) {
                break;
            }
            if open.iter().all(|at| trials[*at].is_none()) {
                self.attempt(schedules, &open[..1], &plan, &mut trials)?;
            }
        }
        Ok(trials.into_iter().enumerate().filter_map(|(at, trial)| Some((at, trial?))).collect())
    }

    fn race(&mut self, schedules: &[String], samples: usize, time: f64) -> Result<Vec<Vec<f64>>, Lost> {
        let first = self.worker()?.race(schedules, samples, time);
        if matches!(first, Ok(_) | Err(Lost::Hurried)) {
            return first;
        }
        self.replace();
        self.worker()?.race(schedules, samples, time)
    }

    fn replaced(&self) -> usize {
        self.replaced
    }
}
