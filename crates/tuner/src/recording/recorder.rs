//! A measurer that asks another one, and writes down what it says.

use std::time::Instant;

use super::Answer;
use crate::bench::Plan;
use crate::measure::Measurer;
use crate::outcome::Trial;
use crate::worker::Lost;

/// Writes down every answer, with the time since the run has started.
pub struct Recorder<M> {
    measurer: M,
    started: Instant,
    answers: Vec<Answer>,
}

impl<M: Measurer> Recorder<M> {
    /// Begins with nothing, for a run that has started then.
    pub fn new(measurer: M, started: Instant) -> Recorder<M> {
        Recorder { measurer, started, answers: Vec::new() }
    }

    /// All that was said.
    pub fn answers(self) -> Vec<Answer> {
        self.answers
    }

    fn at(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

impl<M: Measurer> Measurer for Recorder<M> {
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<Trial>, Lost> {
        let trials = self.measurer.try_all(schedules, plan)?;
        let at = self.at();
        let answers = schedules.iter().zip(&trials).map(|(schedule, trial)| Answer::Tried {
            schedule: schedule.clone(),
            trial: trial.clone(),
            at,
        });
        self.answers.extend(answers);
        Ok(trials)
    }

    fn race(&mut self, schedules: &[String], samples: usize, time: f64) -> Result<Vec<Vec<f64>>, Lost> {
        let samples = self.measurer.race(schedules, samples, time)?;
        self.answers.push(Answer::Raced {
            schedules: schedules.to_vec(),
            samples: samples.clone(),
            replaced: self.measurer.replaced(),
            at: self.at(),
        });
        Ok(samples)
    }

    fn replaced(&self) -> usize {
        self.measurer.replaced()
    }
}
