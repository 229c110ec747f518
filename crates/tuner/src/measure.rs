//! Who measures candidates: a worker process that is replaced when it is lost, or a recording.

use std::time::Duration;

use crate::bench::Plan;
use crate::outcome::{Outcome, Trial};
use crate::task::Task;
use crate::worker::{Launch, Lost, Worker};

/// Tries candidates and compares times.
pub trait Measurer {
    /// What becomes of each schedule, in their order.
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<Trial>, Lost>;

    /// Samples of schedules that take turns, in their order.
    fn race(&mut self, schedules: &[String], samples: usize, time: f64) -> Result<Vec<Vec<f64>>, Lost>;

    /// How many workers were lost on the way.
    fn replaced(&self) -> usize {
        0
    }

    /// The time since the run began, where another clock than this machine's decides: that of a recorded run.
    fn clock(&self) -> Option<Duration> {
        None
    }

    /// Whether there is nothing more to ask: a recording ends where its run did, whatever ended that.
    fn is_over(&self) -> bool {
        false
    }
}

/// A worker process, and another when it is lost.
pub struct Supervised {
    launch: Launch,
    task: Task,
    worker: Option<Worker>,
    replaced: usize,
}

impl Supervised {
    /// Starts a worker for a task.
    pub fn start(launch: Launch, task: Task) -> Result<Supervised, Lost> {
        let worker = Some(Worker::start(&launch, &task)?);
        Ok(Supervised { launch, task, worker, replaced: 0 })
    }

    fn worker(&mut self) -> Result<&mut Worker, Lost> {
        if self.worker.is_none() {
            self.worker = Some(Worker::start(&self.launch, &self.task)?);
        }
        self.worker.as_mut().ok_or(Lost::Silent)
    }

    fn replace(&mut self) {
        self.worker = None;
        self.replaced += 1;
    }

    /// Tries some of the schedules. If the worker is lost, those that it was not heard of are left open.
    fn attempt(
        &mut self,
        schedules: &[String],
        open: &[usize],
        plan: &Plan,
        trials: &mut [Option<Trial>],
    ) -> Result<(), Lost> {
        let batch: Vec<String> = open.iter().map(|at| schedules[*at].clone()).collect();
        let heard = self.worker()?.try_all(&batch, plan, &mut |at, trial| trials[open[at]] = Some(trial));
        match heard {
            Ok(()) => Ok(()),
            Err(lost) => {
                self.replace();
                // Nothing was running: one of those that were being compiled is at fault, and it shows when it is alone.
                if let [alone] = open
                    && trials[*alone].is_none()
                {
                    trials[*alone] = Some(Trial::failed(match lost {
                        Lost::Silent => Outcome::TimedOut,
                        other => Outcome::Crashed(other.to_string()),
                    }));
                }
                Ok(())
            }
        }
    }
}

impl Measurer for Supervised {
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<Trial>, Lost> {
        let mut trials: Vec<Option<Trial>> = vec![None; schedules.len()];
        loop {
            let open: Vec<usize> = (0..trials.len()).filter(|at| trials[*at].is_none()).collect();
            if open.is_empty() {
                return Ok(trials.into_iter().flatten().collect());
            }
            let before = open.len();
            self.attempt(schedules, &open, plan, &mut trials)?;
            let after = trials.iter().filter(|trial| trial.is_none()).count();
            if after == before {
                self.attempt(schedules, &open[..1], plan, &mut trials)?;
            }
        }
    }

    fn race(&mut self, schedules: &[String], samples: usize, time: f64) -> Result<Vec<Vec<f64>>, Lost> {
        let first = self.worker()?.race(schedules, samples, time);
        if let Ok(times) = first {
            return Ok(times);
        }
        self.replace();
        self.worker()?.race(schedules, samples, time)
    }

    fn replaced(&self) -> usize {
        self.replaced
    }
}
