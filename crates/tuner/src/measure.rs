//! Defines [`Measurer`], the interface through which a search has schedules compiled, checked
//! and timed. [`SupervisedWorker`] implements it with a worker process that is replaced when it
//! is lost. The other measurers are `Fleet`, `Recorder` and `Replay`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::bench::Plan;
use crate::note::Note;
use crate::task::Task;
use crate::tune::Stop;
use crate::worker::{Worker, WorkerCommand, WorkerError};
use tilewright_cache::outcome::{Outcome, Trial};

/// Tries candidates and compares their times.
pub trait Measurer {
    /// Tries schedules. Returns their trials with their indices, in order. Trials are missing if
    /// the time of the plan was too short or the run has to end at once.
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<(usize, Trial)>, WorkerError>;

    /// Measures schedules in turn. Returns the samples of each, in their order.
    fn race(&mut self, schedules: &[String], samples: usize, time: f64)
    -> Result<Vec<Vec<f64>>, WorkerError>;

    /// The number of workers that were lost and replaced.
    fn lost_workers(&self) -> usize {
        0
    }

    /// A decision by the clock or a signal: a number of candidates, or 1 for yes and 0 for no. A
    /// decision is an answer of the measurer like the times of candidates. A recording replays its
    /// own run's decisions, whatever the clock says now.
    fn decide(&mut self, clock_decision: usize) -> Result<usize, WorkerError> {
        Ok(clock_decision)
    }

    /// The time since the run began, if it is not this run's own time. A recording returns the time
    /// of its recorded run.
    fn clock(&self) -> Option<Duration> {
        None
    }
}

/// A worker process that is replaced when it is lost.
pub struct SupervisedWorker {
    command: WorkerCommand,
    task: Task,
    stop: Arc<Stop>,
    worker: Option<Worker>,
    lost_workers: usize,
}

/// The result of an attempt at a batch.
enum BatchEnd {
    /// The worker has tried every schedule that it had time for.
    Finished,
    /// The worker was lost.
    WorkerLost,
}

impl SupervisedWorker {
    /// Starts a worker for a task. A wait for the worker ends when `stop` is urgent.
    pub fn start(
        launch: WorkerCommand,
        task: Task,
        stop: Arc<Stop>,
    ) -> Result<SupervisedWorker, WorkerError> {
        let worker = Some(Worker::start(&launch, &task, &stop)?);
        Ok(SupervisedWorker { command: launch, task, stop, worker, lost_workers: 0 })
    }

    /// The notes on how the worker compares results, for the user.
    pub fn notes(&self) -> &[Note] {
        self.worker.as_ref().map_or(&[], |worker| &worker.notes)
    }

    fn worker(&mut self) -> Result<&mut Worker, WorkerError> {
        if self.worker.is_none() {
            self.worker = Some(Worker::start(&self.command, &self.task, &self.stop)?);
        }
        self.worker.as_mut().ok_or(WorkerError::NoAnswer)
    }

    fn drop_lost_worker(&mut self) {
        self.worker = None;
        self.lost_workers += 1;
    }

    /// Tries some of the schedules. If the worker is lost, schedules without a reply stay open.
    fn try_batch(
        &mut self,
        schedules: &[String],
        open: &[usize],
        plan: &Plan,
        trials: &mut [Option<Trial>],
    ) -> Result<BatchEnd, WorkerError> {
        let batch: Vec<String> = open.iter().map(|at| schedules[*at].clone()).collect();
        let heard = self.worker()?.try_all(&batch, plan, &mut |at, trial| trials[open[at]] = Some(trial));
        let lost = match heard {
            Ok(()) => return Ok(BatchEnd::Finished),
            Err(WorkerError::Stopped) => {
                // The worker is still busy with the batch.
                self.worker = None;
                return Ok(BatchEnd::Finished);
            }
            Err(lost) => lost,
        };
        self.drop_lost_worker();
        // If no candidate was running, one of those being compiled is at fault. Trying it alone
        // shows which one.
        if let [alone] = open
            && trials[*alone].is_none()
        {
            trials[*alone] = Some(Trial::failed(match lost {
                WorkerError::NoAnswer => Outcome::TimedOut,
                other => Outcome::Crashed(other.to_string()),
            }));
        }
        Ok(BatchEnd::WorkerLost)
    }
}

impl Measurer for SupervisedWorker {
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<(usize, Trial)>, WorkerError> {
        let ends = plan.batch_limit.map(|within| Instant::now() + Duration::from_secs_f64(within));
        let mut trials: Vec<Option<Trial>> = vec![None; schedules.len()];
        loop {
            let open: Vec<usize> = (0..trials.len()).filter(|at| trials[*at].is_none()).collect();
            let left = ends.map(|ends| ends.saturating_duration_since(Instant::now()));
            if open.is_empty() || left.is_some_and(|left| left.is_zero()) || self.stop.is_urgent() {
                break;
            }
            let plan = Plan { batch_limit: left.map(|left| left.as_secs_f64()), ..plan.clone() };
            if matches!(self.try_batch(schedules, &open, &plan, &mut trials)?, BatchEnd::Finished) {
                break;
            }
            if open.iter().all(|at| trials[*at].is_none()) {
                self.try_batch(schedules, &open[..1], &plan, &mut trials)?;
            }
        }
        Ok(trials.into_iter().enumerate().filter_map(|(at, trial)| Some((at, trial?))).collect())
    }

    fn race(
        &mut self,
        schedules: &[String],
        samples: usize,
        time: f64,
    ) -> Result<Vec<Vec<f64>>, WorkerError> {
        let first = self.worker()?.race(schedules, samples, time);
        if matches!(first, Ok(_) | Err(WorkerError::Stopped)) {
            return first;
        }
        self.drop_lost_worker();
        self.worker()?.race(schedules, samples, time)
    }

    fn lost_workers(&self) -> usize {
        self.lost_workers
    }
}
