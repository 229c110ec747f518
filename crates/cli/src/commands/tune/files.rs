//! Writes the files of `tilewright tune` besides the cache: the schedule (`--out`), the page
//! (`--report`) and the recording (`--record`).

use std::io;
use std::path::{Path, PathBuf};

use tilewright::report::tuning_page;
use tilewright::tuner::roofline::Roofline;
use tilewright::tuner::search::SearchOutcome;

use crate::args::TuneArgs;
use crate::atomic_file;
use crate::failure::Failure;

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
    pub fn write(self, found: &SearchOutcome, roofline: &Roofline) -> Result<(), Failure> {
        if let Some(file) = self.out {
            file.write(&found.report.schedule)?;
        }
        if let Some(file) = self.record {
            file.write(&found.recording().to_text().map_err(|error| Failure::Bug(error.to_string()))?)?;
        }
        let Some(file) = self.report else { return Ok(()) };
        let page = tuning_page(found, roofline)
            .map_err(|refusal| Failure::Bug(format!("the winner is refused: {refusal}")))?;
        file.write(&page)
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
        atomic_file::expect_writable(path).map_err(|error| pending.failure(&error))?;
        Ok(Some(pending))
    }

    fn write(&self, contents: &str) -> Result<(), Failure> {
        atomic_file::write(&self.path, &[contents.as_bytes()]).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::Input(format!("{} {} cannot be written: {error}", self.option, self.path.display()))
    }
}
