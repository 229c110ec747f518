//! Passes the requests of a search on to another measurer, and records its answers
//! ([`Recorder`]).

use std::time::Instant;

use super::Answer;
use crate::bench::Plan;
use crate::measure::Measurer;
use crate::worker::WorkerError;
use tilewright_cache::outcome::Trial;

/// Records every answer, with the time since the run has started.
pub struct Recorder<M> {
    measurer: M,
    started: Instant,
    answers: Vec<Answer>,
}

impl<M: Measurer> Recorder<M> {
    /// A recorder without answers, for a run that started at `started`.
    pub fn new(measurer: M, started: Instant) -> Recorder<M> {
        Recorder { measurer, started, answers: Vec::new() }
    }

    /// All answers, with the end of the run appended.
    pub fn answers(mut self) -> Vec<Answer> {
        self.answers.push(Answer::Ended { replaced: self.measurer.lost_workers() });
        self.answers
    }

    fn elapsed(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn record_decision(&mut self, number: usize) {
        self.answers.push(Answer::Decided { number, at: self.elapsed() });
    }
}

impl<M: Measurer> Measurer for Recorder<M> {
    /// Records the number of trials before the trials.
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<(usize, Trial)>, WorkerError> {
        let trials = self.measurer.try_all(schedules, plan)?;
        self.record_decision(trials.len());
        let at = self.elapsed();
        let answers = trials.iter().map(|(place, trial)| Answer::Tried {
            schedule: schedules[*place].clone(),
            trial: trial.clone(),
            at,
        });
        self.answers.extend(answers);
        Ok(trials)
    }

    /// Records whether the race was completed before its samples.
    fn race(
        &mut self,
        schedules: &[String],
        samples: usize,
        time: f64,
    ) -> Result<Vec<Vec<f64>>, WorkerError> {
        let raced = self.measurer.race(schedules, samples, time);
        match &raced {
            Ok(samples) => {
                self.record_decision(1);
                let (schedules, samples) = (schedules.to_vec(), samples.clone());
                self.answers.push(Answer::Raced { schedules, samples, at: self.elapsed() });
            }
            Err(WorkerError::Stopped) => self.record_decision(0),
            Err(_) => {}
        }
        raced
    }

    fn decide(&mut self, by_the_clock: usize) -> Result<usize, WorkerError> {
        let number = self.measurer.decide(by_the_clock)?;
        self.record_decision(number);
        Ok(number)
    }

    fn lost_workers(&self) -> usize {
        self.measurer.lost_workers()
    }
}
