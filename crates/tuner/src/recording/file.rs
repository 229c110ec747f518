//! Writes a [`Recording`] as text, and reads and checks such a text. The first line is the
//! setting as JSON, and each further line is one answer of the measurer.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Answer, Recording, Setting};
use tilewright_cache::outcome::are_times;

/// The format name in the first line.
const FORMAT: &str = "tilewright recording";
const VERSION: u32 = 3;
/// The longest plausible run, in seconds.
const LONGEST_RUN: f64 = 1e9;
/// The largest plausible number that the clock decides.
const LARGEST_DECISION: usize = 1000;

/// Why a file is not a recording.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The first line is not that of a recording.
    #[error("this file is not a recording of `tilewright tune --record`")]
    NotARecording,
    /// The recording was written by another version of Tilewright.
    #[error("the recording has version {0}; this Tilewright reads version {VERSION}: record it again")]
    Version(u32),
    /// A line, counted from 1, is invalid.
    #[error("line {0} is invalid: {1}")]
    Line(usize, String),
    /// The last line is missing.
    #[error("the recording is incomplete: its last line is missing")]
    Truncated,
}

/// The format and version in the first line.
#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    version: u32,
}

/// The whole first line, for writing.
#[derive(Serialize)]
struct FirstLine<'a> {
    #[serde(flatten)]
    header: Header,
    #[serde(flatten)]
    setting: &'a Setting,
}

impl Recording {
    /// The text of the file.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        let header = Header { format: FORMAT.to_owned(), version: VERSION };
        let mut text = serde_json::to_string(&FirstLine { header, setting: &self.setting })?;
        for answer in &self.answers {
            text.push('\n');
            text += &serde_json::to_string(answer)?;
        }
        text.push('\n');
        Ok(text)
    }

    /// Reads the text of a file. Nothing in the text is executed, and impossible values are
    /// refused.
    pub fn from_text(text: &str) -> Result<Recording, RecordingError> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        let header: Header = serde_json::from_str(first).map_err(|_| RecordingError::NotARecording)?;
        if header.format != FORMAT {
            return Err(RecordingError::NotARecording);
        }
        if header.version != VERSION {
            return Err(RecordingError::Version(header.version));
        }
        let setting =
            serde_json::from_str(first).map_err(|error| RecordingError::Line(1, error.to_string()))?;
        let answer = |(at, line): (usize, &str)| {
            let wrong = |why: String| RecordingError::Line(at + 2, why);
            let answer: Answer = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
            if is_plausible(&answer) {
                Ok(answer)
            } else {
                Err(wrong("a time or a number is out of range".to_owned()))
            }
        };
        let answers: Vec<Answer> = lines.enumerate().map(answer).collect::<Result<_, _>>()?;
        match answers.last() {
            Some(Answer::Ended { .. }) => Ok(Recording { setting, answers }),
            _ => Err(RecordingError::Truncated),
        }
    }
}

fn is_plausible(answer: &Answer) -> bool {
    let is_moment = |at: &f64| (0.0..LONGEST_RUN).contains(at);
    match answer {
        Answer::Decided { number, at } => *number <= LARGEST_DECISION && is_moment(at),
        Answer::Tried { trial, at, .. } => trial.is_plausible() && is_moment(at),
        Answer::Raced { schedules, samples, at } => {
            let times = samples.len() == schedules.len() && samples.iter().all(|own| are_times(own));
            times && is_moment(at)
        }
        Answer::Ended { .. } => true,
    }
}
