//! Writes the folder of `strategies compare --out`: the outcome as an HTML page, as JSON and as
//! pictures.

use std::fs;
use std::path::{Path, PathBuf};

use tilewright::report::comparison::drawing::{boxes, curves};
use tilewright::report::comparison::{self, comparison_page, png};
use tilewright::tuner::compare::Comparison;

use crate::atomic_file;
use crate::failure::Failure;

const TITLE: &str = "Strategies compared";

/// A folder that is written after the comparison. `new` checks before the comparison that the
/// folder is writable.
pub struct Files(PathBuf);

impl Files {
    /// Creates the folder if it is missing, and checks that it is writable.
    pub fn new(folder: &Path) -> Result<Files, Failure> {
        let files = Files(folder.to_owned());
        fs::create_dir_all(folder).map_err(|error| files.failure(&error.to_string()))?;
        let page = folder.join("comparison.html");
        atomic_file::expect_writable(&page).map_err(|error| files.failure(&error.to_string()))?;
        Ok(files)
    }

    /// Writes all files, and returns a line that names them.
    pub fn write(&self, comparison: &Comparison) -> Result<String, Failure> {
        self.file("comparison.html", comparison_page(TITLE, comparison).as_bytes())?;
        self.file("comparison.json", json(comparison)?.as_bytes())?;
        for (at, program) in comparison.programs.iter().enumerate() {
            self.picture(&format!("{}-trials.png", at + 1), &curves::by_trials(program))?;
            self.picture(&format!("{}-seconds.png", at + 1), &curves::by_seconds(program))?;
            self.picture(&format!("{}-quality.png", at + 1), &boxes::final_quality(program))?;
        }
        self.picture("overhead.png", &boxes::overhead(&comparison.programs))?;
        let pictures = 3 * comparison.programs.len() + 1;
        Ok(format!("{}: comparison.html, comparison.json and {pictures} pictures", self.0.display()))
    }

    fn picture(&self, name: &str, svg: &str) -> Result<(), Failure> {
        let picture =
            png::render(svg).map_err(|why| Failure::Bug(format!("{name} cannot be drawn: {why}")))?;
        self.file(name, &picture)
    }

    fn file(&self, name: &str, contents: &[u8]) -> Result<(), Failure> {
        atomic_file::write(&self.0.join(name), &[contents])
            .map_err(|error| self.failure(&format!("{name}: {error}")))
    }

    fn failure(&self, why: &str) -> Failure {
        Failure::Input(format!("--out {} cannot be written: {why}", self.0.display()))
    }
}

/// Formats a comparison as JSON.
pub fn json(comparison: &Comparison) -> Result<String, Failure> {
    comparison::json(comparison).map_err(|error| Failure::Bug(error.to_string()))
}
