//! The search itself: measured here, recorded, or answered from a recording.

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use tilewright_tuner::measure::{Measurer, Supervised};
use tilewright_tuner::recording::{Answer, Recorder, Recording, Replay, Setting};
use tilewright_tuner::tune::{Options, TuneError, Tuned, Watcher, tune};
use tilewright_tuner::worker::{Launch, Lost};

use crate::failure::Failure;

/// Who says what becomes of candidates.
pub enum Answers {
    /// A worker process, started like this.
    Measured(Launch),
    /// A worker process, and all that it says is written down.
    Recorded(Launch),
    /// A run of before, which said this.
    Replayed(Vec<Answer>),
}

/// Searches; with all that was said, if that was to be written down.
pub fn search(
    setting: &Setting,
    options: &Options,
    answers: Answers,
    watcher: &mut dyn Watcher,
    stop: &AtomicBool,
) -> Result<(Tuned, Option<Vec<Answer>>), Failure> {
    let mut run =
        |measurer: &mut dyn Measurer| tune(&setting.task, options, measurer, watcher, stop).map_err(failure);
    let start = |launch| Supervised::start(launch, setting.task.clone()).map_err(lost);
    match answers {
        Answers::Measured(launch) => Ok((run(&mut start(launch)?)?, None)),
        Answers::Recorded(launch) => {
            let mut recorder = Recorder::new(start(launch)?);
            let tuned = run(&mut recorder)?;
            Ok((tuned, Some(recorder.answers())))
        }
        Answers::Replayed(answers) => Ok((run(&mut Replay::new(&answers))?, None)),
    }
}

/// Reads the recording of a run like this one. With other options the search would ask for what was never measured.
pub fn recording(path: &Path, setting: &Setting) -> Result<Recording, Failure> {
    let shown = path.display();
    let text = fs::read_to_string(path).map_err(|error| Failure::Input(format!("{shown}: {error}")))?;
    let recording =
        Recording::from_text(&text).map_err(|error| Failure::Input(format!("{shown}: {error}")))?;
    match recording.setting.difference(setting) {
        None => Ok(recording),
        Some(("program text", ..)) => {
            Err(Failure::Input(format!("{shown}: this recording is of another program text")))
        }
        Some((what, recorded, asked)) => Err(Failure::Input(format!(
            "{shown}: this recording has {what} {recorded}, and this run has {asked}; give the options that it was made with"
        ))),
    }
}

/// Why there are no more answers.
fn lost(lost: Lost) -> Failure {
    match lost {
        Lost::Refused(why) | Lost::NotRecorded(why) => Failure::Input(why),
        other => Failure::Machine(other.to_string()),
    }
}

fn failure(error: TuneError) -> Failure {
    match error {
        TuneError::Worker(error) => lost(error),
        TuneError::Strategy(error) => Failure::Usage(error.to_string()),
        TuneError::Task(error) => Failure::Input(error.to_string()),
        TuneError::Default(outcome) => Failure::Bug(outcome.to_string()),
    }
}
