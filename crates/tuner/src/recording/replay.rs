//! A measurer that answers from a recording.

use std::collections::HashMap;
use std::time::Duration;

use super::Answer;
use crate::bench::Plan;
use crate::measure::Measurer;
use crate::outcome::Trial;
use crate::worker::Lost;

/// Answers by the text of schedules. Its clock stands at the last answer that was given; when all were given, the run is
/// over, as the recorded one was, whether by time, by trials or by a signal.
pub struct Replay<'r> {
    answers: &'r [Answer],
    /// What was not asked for yet.
    open: HashMap<&'r str, (&'r Trial, f64)>,
    at: f64,
    replaced: usize,
}

impl<'r> Replay<'r> {
    /// At the beginning of a recording's answers.
    pub fn new(answers: &'r [Answer]) -> Replay<'r> {
        let tried = answers.iter().filter_map(|answer| match answer {
            Answer::Tried { schedule, trial, at } => Some((schedule.as_str(), (trial, *at))),
            Answer::Raced { .. } => None,
        });
        Replay { answers, open: tried.collect(), at: 0.0, replaced: 0 }
    }

    fn answer(&mut self, schedule: &str) -> Result<Trial, Lost> {
        let (trial, at) = self.open.remove(schedule).ok_or_else(|| not_recorded("schedule", schedule))?;
        self.at = self.at.max(at);
        Ok(trial.clone())
    }
}

fn not_recorded(what: &str, schedules: &str) -> Lost {
    Lost::NotRecorded(format!("the recording has no answer for this {what}:\n{schedules}"))
}

impl Measurer for Replay<'_> {
    fn try_all(&mut self, schedules: &[String], _: &Plan) -> Result<Vec<Trial>, Lost> {
        schedules.iter().map(|schedule| self.answer(schedule)).collect()
    }

    fn race(&mut self, schedules: &[String], _: usize, _: f64) -> Result<Vec<Vec<f64>>, Lost> {
        for answer in self.answers {
            if let Answer::Raced { schedules: raced, samples, replaced, at } = answer
                && raced == schedules
            {
                (self.at, self.replaced) = (*at, *replaced);
                return Ok(samples.clone());
            }
        }
        Err(not_recorded("last comparison", &schedules.join("\n")))
    }

    fn replaced(&self) -> usize {
        self.replaced
    }

    fn clock(&self) -> Option<Duration> {
        Some(Duration::from_secs_f64(self.at))
    }

    fn is_over(&self) -> bool {
        self.open.is_empty()
    }
}
