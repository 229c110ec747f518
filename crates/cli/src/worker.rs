//! This program as the worker process that compiles and runs candidates.

use std::io::{self, BufReader};
use std::sync::{Arc, OnceLock};

use tilewright::tuner::tune::Stop;
use tilewright::tuner::worker::{Launch, Lost, serve};

use crate::failure::Failure;

/// The command that starts a worker, where it is not this program.
static LAUNCH: OnceLock<Launch> = OnceLock::new();

/// Starts workers by another command than this program.
pub fn start_by(launch: Launch) {
    let _ = LAUNCH.set(launch);
}

/// Returns the command that starts a worker.
pub fn launch() -> Result<Launch, Failure> {
    if let Some(launch) = LAUNCH.get() {
        return Ok(launch.clone());
    }
    let program = std::env::current_exe()
        .map_err(|error| Failure::Machine(format!("a worker process cannot be started: {error}")))?;
    Ok(Launch { program, arguments: vec!["worker".to_owned()], variables: Vec::new() })
}

/// Runs the worker until its input ends.
pub fn run() -> Result<(), Failure> {
    serve(BufReader::new(io::stdin()), io::stdout().lock())
        .map_err(|error| Failure::Machine(format!("the tuner is gone: {error}")))
}

/// Converts the loss of the workers to a failure.
pub fn failure(lost: Lost) -> Failure {
    match lost {
        Lost::Refused(why) | Lost::NotRecorded(why) => Failure::Input(why),
        Lost::Hurried => Failure::Input(lost.to_string()),
        other => Failure::Machine(other.to_string()),
    }
}

/// Requests an orderly end of the search on Ctrl-C and SIGTERM.
pub fn stop_on_signals() -> Arc<Stop> {
    let stop = Arc::new(Stop::default());
    let asked = Arc::clone(&stop);
    // If the handler cannot be installed, a signal ends the program at once.
    let _ = ctrlc::set_handler(move || asked.ask());
    stop
}
