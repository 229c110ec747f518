//! A measurer that asks another one and records its answers.

use std::time::Instant;

use super::Answer;
use crate::bench::Plan;
use crate::measure::Measurer;
use crate::worker::Lost;
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
        self.answers.push(Answer::Ended { replaced: self.measurer.replaced() });
        self.answers
    }

    fn at(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    fn decided(&mut self, number: usize) {
        self.answers.push(Answer::Decided { number, at: self.at() });
    }
}

impl<M: Measurer> Measurer for Recorder<M> {
    /// Records the number of trials before the trials.
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<(usize, Trial)>, Lost> {
        let trials = self.measurer.try_all(schedules, plan)?;
        self.decided(trials.len());
        let at = self.at();
        let answers = trials.iter().map(|(place, trial)| Answer::Tried {
            schedule: schedules[*place].clone(),
            trial: trial.clone(),
            at,
        });
        self.answers.extend(answers);
        Ok(trials)
    }

    /// Records whether the race was completed before its samples.
    fn race(&mut self, schedules: &[String], samples: usize, time: f64) -> Result<Vec<Vec<f64>>, Lost> {
        let raced = self.measurer.race(schedules, samples, time);
        match &raced {
            Ok(samples) => {
                self.decided(1);
                let (schedules, samples) = (schedules.to_vec(), samples.clone());
                self.answers.push(Answer::Raced { schedules, samples, at: self.at() });
            }
            Err(Lost::Hurried) => self.decided(0),
            Err(_) => {}
        }
        raced
    }

    fn decide(&mut self, by_the_clock: usize) -> Result<usize, Lost> {
        let number = self.measurer.decide(by_the_clock)?;
        self.decided(number);
        Ok(number)
    }

    fn replaced(&self) -> usize {
        self.measurer.replaced()
    }
}
