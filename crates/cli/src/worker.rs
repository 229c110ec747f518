//! Runs this program as a worker process, which compiles and runs the candidates of a search, and
//! makes the command that starts such a process.

use std::io::{self, BufReader};
use std::sync::{Arc, OnceLock};

use tilewright::tuner::tune::Stop;
use tilewright::tuner::worker::{WorkerCommand, WorkerError, serve};

use crate::failure::Failure;

/// The command that starts a worker, where it is not this program.
static LAUNCH: OnceLock<WorkerCommand> = OnceLock::new();

/// Starts workers by another command than this program.
pub fn set_launch(launch: WorkerCommand) {
    let _ = LAUNCH.set(launch);
}

/// Returns the command that starts a worker.
pub fn launch() -> Result<WorkerCommand, Failure> {
    if let Some(launch) = LAUNCH.get() {
        return Ok(launch.clone());
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::Machine(format!("a worker process cannot be started: {error}")))?;
    Ok(WorkerCommand { program, arguments: vec!["worker".to_owned()], variables: Vec::new() })
}

/// Runs the worker until its input ends.
pub fn run() -> Result<(), Failure> {
    serve(BufReader::new(io::stdin()), io::stdout().lock())
        .map_err(|error| Failure::Machine(format!("the connection to the tuner was closed: {error}")))
}

/// Converts the loss of the workers to a failure.
pub fn failure(lost: WorkerError) -> Failure {
    match lost {
        WorkerError::Refused(why) | WorkerError::NotRecorded(why) => Failure::Input(why),
        WorkerError::Stopped => Failure::Input(lost.to_string()),
        other => Failure::Machine(other.to_string()),
    }
}

/// Requests an orderly end of the search on Ctrl-C and SIGTERM.
pub fn stop_on_signals() -> Arc<Stop> {
    let stop = Arc::new(Stop::default());
    let handler_stop = Arc::clone(&stop);
    // If the handler cannot be installed, a signal ends the program at once.
    let _ = ctrlc::set_handler(move || handler_stop.request());
    stop
}
