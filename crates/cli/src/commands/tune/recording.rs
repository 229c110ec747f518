//! Reads the recording of an earlier run for `tune --replay`, and checks that it was made with the
//! same options.

use std::fs;
use std::path::Path;

use tilewright::TargetName;
use tilewright::tuner::recording::{Recording, Setting};
use tilewright::tuner::task::ExecutionTarget;

use crate::failure::Failure;

/// Returns the place where the kernels of a recorded run ran, if that is this target.
pub fn recorded_place(path: &Path, target: TargetName) -> Option<ExecutionTarget> {
    let recording = Recording::from_text(&fs::read_to_string(path).ok()?).ok()?;
    Some(recording.setting.task.target).filter(|place| place.target_name() == target)
}

/// Reads a recording, and refuses it if its run had other options than this one: the search would
/// then ask for candidates that were never measured.
pub fn read_recording(path: &Path, setting: &Setting) -> Result<Recording, Failure> {
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
