//! Inputs that the user gives, where workers read them.

use std::io;
use std::path::PathBuf;

use tempfile::TempDir;
use tilewright_tuner::given;

use crate::failure::Failure;
use crate::problem::Problem;

/// A folder with a file for every input that was given, for as long as workers need them.
pub struct GivenFiles {
    /// The files, by the names of inputs.
    pub files: Vec<(String, PathBuf)>,
    /// Taken away with this.
    _folder: TempDir,
}

impl GivenFiles {
    /// Checks and writes what was given.
    pub fn write(problem: &mut Problem) -> Result<GivenFiles, Failure> {
        let folder = tempfile::tempdir().map_err(|error| failure(&error))?;
        let inputs = problem.given_inputs()?;
        let files =
            given::write(folder.path(), &problem.program, &inputs).map_err(|error| failure(&error))?;
        Ok(GivenFiles { files, _folder: folder })
    }
}

fn failure(error: &io::Error) -> Failure {
    Failure::Machine(format!("inputs cannot be written for the worker process: {error}"))
}
