//! The files that a run writes besides the cache: `--out`, `--report` and `--record`.

use std::io;
use std::path::{Path, PathBuf};

use tilewright_tuner::recording::{Answer, Recording};

use super::page::Page;
use crate::args::TuneArgs;
use crate::failure::Failure;
use crate::whole_file;

/// Files that are written after the search. `new` checks before the search that they are writable.
pub struct Files {
    out: Option<Pending>,
    report: Option<Pending>,
    record: Option<Pending>,
}

impl Files {
    /// Checks that every file that the options name is writable.
    pub fn new(args: &TuneArgs) -> Result<Files, Failure> {
        Ok(Files {
            out: Pending::new("--out", args.out.as_deref())?,
            report: Pending::new("--report", args.report.as_deref())?,
            record: Pending::new("--record", args.record.as_deref())?,
        })
    }

    /// Writes the files.
    pub fn write(self, answers: Option<Vec<Answer>>, page: &Page) -> Result<(), Failure> {
        if let Some(file) = self.out {
            file.write(&page.tuned.schedule)?;
        }
        if let (Some(file), Some(answers)) = (self.record, answers) {
            let recording = Recording { setting: page.setting.clone(), answers };
            file.write(&recording.to_text().map_err(|error| Failure::Bug(error.to_string()))?)?;
        }
        match self.report {
            Some(file) => file.write(&page.html()?),
            None => Ok(()),
        }
    }
}

/// A file that is written later.
struct Pending {
    option: &'static str,
    path: PathBuf,
}

impl Pending {
    fn new(option: &'static str, path: Option<&Path>) -> Result<Option<Pending>, Failure> {
        let Some(path) = path else { return Ok(None) };
        let pending = Pending { option, path: path.to_owned() };
        whole_file::expect_writable(path).map_err(|error| pending.failure(&error))?;
        Ok(Some(pending))
    }

    fn write(&self, contents: &str) -> Result<(), Failure> {
        whole_file::write(&self.path, &[contents.as_bytes()]).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::Input(format!("{} {} cannot be written: {error}", self.option, self.path.display()))
    }
}
