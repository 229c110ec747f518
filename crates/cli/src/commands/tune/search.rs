//! The search itself: measured here, recorded, or answered from a recording.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tilewright_tuner::measure::{Measurer, Supervised};
use tilewright_tuner::recording::{Answer, Recorder, Recording, Replay, Setting};
use tilewright_tuner::task::Task;
use tilewright_tuner::tune::{Options, Stop, TuneError, Tuned, Watcher, tune};
use tilewright_tuner::worker::{Launch, Lost};

use crate::failure::Failure;

/// Who says what becomes of candidates.
pub enum Answers {
    /// A worker process, started like this for this task.
    Measured(Launch, Task),
    /// A worker process, and all that it says is written down.
    Recorded(Launch, Task),
    /// A run of before, which said this.
    Replayed(Vec<Answer>),
}

/// Searches; with all that was said, if that was to be written down.
pub fn search(
    setting: &Setting,
    options: &Options,
    answers: Answers,
    watcher: &mut dyn Watcher,
    stop: &Arc<Stop>,
) -> Result<(Tuned, Option<Vec<Answer>>), Failure> {
    let mut run =
        |measurer: &mut dyn Measurer| tune(&setting.task, options, measurer, watcher, stop).map_err(failure);
    let start = |launch, task| Supervised::start(launch, task, Arc::clone(stop)).map_err(lost);
    match answers {
        Answers::Measured(launch, task) => Ok((run(&mut start(launch, task)?)?, None)),
        Answers::Recorded(launch, task) => {
            let mut recorder = Recorder::new(start(launch, task)?, options.started);
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
        Lost::Hurried => Failure::Input(lost.to_string()),
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
