//! Runs the search of `tilewright tune`. Its measurements come from worker processes or from a
//! recording.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use tilewright_cache::outcome::Outcome;
use tilewright_tuner::fleet::Fleet;
use tilewright_tuner::measure::Measurer;
use tilewright_tuner::recording::{Answer, Recorder, Recording, Replay, Setting};
use tilewright_tuner::task::{Place, Task};
use tilewright_tuner::tune::{Options, Stop, TuneError, Tuned, Watcher, tune};
use tilewright_tuner::worker::Launch;

use crate::failure::Failure;
use crate::output::{complain, printable};
use crate::worker::failure as lost;

/// The source of measurements.
pub enum Answers {
    /// Worker processes.
    Measured(Workers),
    /// Worker processes whose answers are recorded.
    Recorded(Workers),
    /// The recorded answers of an earlier run; nothing is measured.
    Replayed(Vec<Answer>),
}

/// Worker processes that are not started yet.
pub struct Workers {
    /// How to start a worker.
    pub launch: Launch,
    /// The task of the first worker.
    pub task: Task,
    /// The same task for each further device; one worker per task.
    pub others: Vec<Task>,
}

/// Runs the search. Also returns all answers of the workers if they are recorded.
pub fn search(
    setting: &Setting,
    options: &Options,
    answers: Answers,
    watcher: &mut dyn Watcher,
    stop: &Arc<Stop>,
) -> Result<(Tuned, Option<Vec<Answer>>), Failure> {
    let mut run = |measurer: &mut dyn Measurer| {
        let place = &setting.task.place;
        tune(&setting.task, options, measurer, watcher, stop).map_err(|error| failure(place, error))
    };
    let start = |workers: Workers| {
        let fleet = Fleet::start(&workers.launch, workers.task, workers.others, stop).map_err(lost)?;
        fleet.notes().iter().for_each(|note| complain(&printable(&note.to_string())));
        Ok(fleet)
    };
    match answers {
        Answers::Measured(workers) => Ok((run(&mut start(workers)?)?, None)),
        Answers::Recorded(workers) => {
            let mut recorder = Recorder::new(start(workers)?, options.started);
            let tuned = run(&mut recorder)?;
            Ok((tuned, Some(recorder.answers())))
        }
        Answers::Replayed(answers) => Ok((run(&mut Replay::new(&answers))?, None)),
    }
}

/// Returns the place where the kernels of a recorded run ran, if that place has this name.
pub fn recorded_place(path: &Path, name: &str) -> Option<Place> {
    let recording = Recording::from_text(&fs::read_to_string(path).ok()?).ok()?;
    Some(recording.setting.task.place).filter(|place| place.name() == name)
}

/// Reads a recording, and refuses it if its run had other options than this one: the search would
/// then ask for candidates that were never measured.
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

fn failure(place: &Place, error: TuneError) -> Failure {
    match error {
        // A device's compiler is not a part of Tilewright, so its failure is no bug here.
        TuneError::Default(outcome @ (Outcome::CompileError(_) | Outcome::Crashed(_)))
            if matches!(place, Place::Device { .. }) =>
        {
            Failure::Machine(TuneError::Default(outcome).to_string())
        }
        TuneError::Worker(error) => lost(error),
        TuneError::Strategy(error) => Failure::Usage(error.to_string()),
        error @ TuneError::Template(_) => Failure::Input(error.to_string()),
        TuneError::Task(error) => Failure::Input(error.to_string()),
        TuneError::Default(outcome) => Failure::Bug(outcome.to_string()),
    }
}
