//! Answers the requests of a search from a recording instead of measuring ([`Replay`]). Refuses
//! a search that asks for something else than the recorded one did.

use std::slice::Iter;
use std::time::Duration;

use super::Answer;
use crate::bench::Plan;
use crate::measure::Measurer;
use crate::worker::WorkerError;
use tilewright_cache::outcome::Trial;

/// Gives the recorded answers in their order. A run that asks for something else than the recorded
/// run did is another search, and is refused. The clock stands at the time of the last answer.
pub struct Replay<'r> {
    /// The answers that were not given yet.
    answers: Iter<'r, Answer>,
    seconds: f64,
}

impl<'r> Replay<'r> {
    /// A replay from the first answer.
    pub fn new(answers: &'r [Answer]) -> Replay<'r> {
        Replay { answers: answers.iter(), seconds: 0.0 }
    }

    fn next_decision(&mut self) -> Result<usize, WorkerError> {
        let Some(Answer::Decided { number, at }) = self.answers.next() else {
            return Err(WorkerError::NotRecorded(
                "the recording has no decision of the clock here: its search differs".to_owned(),
            ));
        };
        self.seconds = *at;
        Ok(*number)
    }

    /// The next recorded trial, which must be of one of these schedules from index `first` on.
    fn next_trial(&mut self, schedules: &[String], first: usize) -> Result<(usize, Trial), WorkerError> {
        if let Some(Answer::Tried { schedule, trial, at }) = self.answers.next()
            && let Some(place) = schedules[first..].iter().position(|own| own == schedule)
        {
            self.seconds = *at;
            return Ok((first + place, trial.clone()));
        }
        Err(not_recorded("schedule", schedules.get(first).map_or("", String::as_str)))
    }
}

fn not_recorded(what: &str, schedules: &str) -> WorkerError {
    WorkerError::NotRecorded(format!("the recording has no answer for this {what}:\n{schedules}"))
}

impl Measurer for Replay<'_> {
    fn try_all(&mut self, schedules: &[String], _: &Plan) -> Result<Vec<(usize, Trial)>, WorkerError> {
        let (number, mut first) = (self.next_decision()?, 0);
        let next = |_| {
            let tried = self.next_trial(schedules, first)?;
            first = tried.0 + 1;
            Ok(tried)
        };
        (0..number).map(next).collect()
    }

    fn race(&mut self, schedules: &[String], _: usize, _: f64) -> Result<Vec<Vec<f64>>, WorkerError> {
        if self.next_decision()? == 0 {
            return Err(WorkerError::Stopped);
        }
        match self.answers.next() {
            Some(Answer::Raced { schedules: recorded, samples, at }) if recorded == schedules => {
                self.seconds = *at;
                Ok(samples.clone())
            }
            _ => Err(not_recorded("comparison", &schedules.join("\n"))),
        }
    }

    fn decide(&mut self, _: usize) -> Result<usize, WorkerError> {
        self.next_decision()
    }

    fn lost_workers(&self) -> usize {
        match self.answers.as_slice().last() {
            Some(Answer::Ended { replaced }) => *replaced,
            _ => 0,
        }
    }

    fn clock(&self) -> Option<Duration> {
        Some(Duration::from_secs_f64(self.seconds))
    }
}
