//! Shares every batch among several workers, one for each of several devices of a kind.
//!
//! With n workers, each one gets every n-th schedule. Only the first worker runs the final
//! comparison, since only times from the same device can be compared.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, ScopedJoinHandle};

use crate::bench::Plan;
use crate::measure::{Measurer, SupervisedWorker};
use crate::note::Note;
use crate::task::Task;
use crate::tune::Stop;
use crate::worker::{WorkerCommand, WorkerError};
use tilewright_cache::outcome::Trial;

/// Measurers that work at the same time.
pub struct Fleet<M> {
    first: M,
    others: Vec<M>,
}

impl Fleet<SupervisedWorker> {
    /// Starts a worker for a task, and further workers for the same task on other devices.
    pub fn start(
        launch: &WorkerCommand,
        first: Task,
        others: Vec<Task>,
        stop: &Arc<Stop>,
    ) -> Result<Self, WorkerError> {
        let start = |task: Task| SupervisedWorker::start(launch.clone(), task, Arc::clone(stop));
        thread::scope(|scope| {
            let started: Vec<_> = others.into_iter().map(|task| scope.spawn(move || start(task))).collect();
            let first = start(first)?;
            let others = started.into_iter().map(join_thread).collect::<Result<_, _>>()?;
            Ok(Fleet { first, others })
        })
    }
}

impl Fleet<SupervisedWorker> {
    /// The notes on how workers compare results, for the user. All workers compare in the same way.
    pub fn notes(&self) -> &[Note] {
        self.first.notes()
    }
}

impl<M> Fleet<M> {
    /// A fleet of existing measurers.
    pub fn new(first: M, others: Vec<M>) -> Fleet<M> {
        Fleet { first, others }
    }
}

/// The result of a thread. A panic of the thread is continued here.
fn join_thread<T>(handle: ScopedJoinHandle<'_, T>) -> T {
    handle.join().unwrap_or_else(|panic| resume_unwind(panic))
}

impl<M: Measurer + Send> Measurer for Fleet<M> {
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<(usize, Trial)>, WorkerError> {
        let count = 1 + self.others.len();
        let share = |member: usize| -> Vec<String> {
            schedules.iter().skip(member).step_by(count).cloned().collect()
        };
        let heard = thread::scope(|scope| {
            let busy = self.others.iter_mut().enumerate().map(|(at, other)| (other, share(at + 1)));
            let asked: Vec<_> = busy
                .filter(|(_, share)| !share.is_empty())
                .map(|(other, share)| scope.spawn(move || other.try_all(&share, plan)))
                .collect();
            let first = self.first.try_all(&share(0), plan);
            std::iter::once(first).chain(asked.into_iter().map(join_thread)).collect::<Result<Vec<_>, _>>()
        })?;
        let placed = heard
            .into_iter()
            .enumerate()
            .flat_map(|(member, own)| own.into_iter().map(move |(at, trial)| (member + at * count, trial)));
        let mut all: Vec<(usize, Trial)> = placed.collect();
        all.sort_by_key(|(at, _)| *at);
        Ok(all)
    }

    fn race(
        &mut self,
        schedules: &[String],
        samples: usize,
        time: f64,
    ) -> Result<Vec<Vec<f64>>, WorkerError> {
        self.first.race(schedules, samples, time)
    }

    fn lost_workers(&self) -> usize {
        self.first.lost_workers() + self.others.iter().map(Measurer::lost_workers).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A measurer with time for `most` schedules of a batch, whose measured time is the length of
    /// the schedule's text.
    struct SimulatedMeasurer {
        most: usize,
        tried: Vec<String>,
    }

    impl Measurer for SimulatedMeasurer {
        fn try_all(&mut self, schedules: &[String], _: &Plan) -> Result<Vec<(usize, Trial)>, WorkerError> {
            let tried = &schedules[..schedules.len().min(self.most)];
            self.tried.extend_from_slice(tried);
            Ok(tried.iter().map(|text| Trial::measured(vec![text.len() as f64])).enumerate().collect())
        }

        fn race(&mut self, schedules: &[String], _: usize, _: f64) -> Result<Vec<Vec<f64>>, WorkerError> {
            Ok(schedules.iter().map(|_| vec![self.most as f64]).collect())
        }

        fn lost_workers(&self) -> usize {
            1
        }
    }

    const PLAN: Plan = Plan {
        reference: None,
        best_seconds: 0.0,
        first_call_limit: 1.0,
        call_limit: 1.0,
        samples: 1,
        time: 0.0,
        batch_limit: None,
    };

    fn fleet(most: [usize; 3]) -> Fleet<SimulatedMeasurer> {
        let [first, second, third] = most.map(|most| SimulatedMeasurer { most, tried: Vec::new() });
        Fleet::new(first, vec![second, third])
    }

    fn tried(fleet: &mut Fleet<SimulatedMeasurer>, count: usize) -> Vec<f64> {
        let schedules: Vec<String> = (1..=count).map(|length| "x".repeat(length)).collect();
        fleet.try_all(&schedules, &PLAN).unwrap().iter().map(|(_, trial)| trial.samples[0]).collect()
    }

    #[test]
    fn a_batch_is_shared_and_answered_in_its_order() {
        let mut all = fleet([9, 9, 9]);
        assert_eq!(tried(&mut all, 7), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!([all.first.tried.len(), all.others[0].tried.len(), all.others[1].tried.len()], [3, 2, 2]);
        assert_eq!(tried(&mut all, 1), [1.0]);
        assert_eq!(all.others[0].tried.len(), 2);
    }

    #[test]
    fn what_there_was_no_time_for_is_missing() {
        // The fifth schedule is the second of the second worker, which has time for one.
        assert_eq!(tried(&mut fleet([9, 1, 9]), 7), [1.0, 2.0, 3.0, 4.0, 6.0, 7.0]);
    }

    #[test]
    fn the_first_compares_alone() {
        let mut all = fleet([4, 5, 6]);
        assert_eq!(all.race(&["a".to_owned(), "b".to_owned()], 1, 0.0).unwrap(), [[4.0], [4.0]]);
        assert_eq!(all.lost_workers(), 3);
    }
}
