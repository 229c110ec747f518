//! A file that an option names and that is written at the end of a command ([`PendingFile`]).

use std::io;
use std::path::{Path, PathBuf};

use crate::atomic_file;
use crate::failure::Failure;

/// A file that is written later. That it can be written is known from the beginning.
pub struct PendingFile {
    option: &'static str,
    path: PathBuf,
}

impl PendingFile {
    /// Checks that the file of an option is writable.
    pub fn new(option: &'static str, path: Option<&Path>) -> Result<Option<PendingFile>, Failure> {
        let Some(path) = path else { return Ok(None) };
        let pending = PendingFile { option, path: path.to_owned() };
        atomic_file::expect_writable(path).map_err(|error| pending.failure(&error))?;
        Ok(Some(pending))
    }

    /// Writes the file.
    pub fn write(&self, contents: &str) -> Result<(), Failure> {
        atomic_file::write(&self.path, &[contents.as_bytes()]).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::Input(format!("{} {} cannot be written: {error}", self.option, self.path.display()))
    }
}
