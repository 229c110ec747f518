//! Writes the files of `tilewright tune` besides the cache: the schedule (`--out`), the page
//! (`--report`) and the recording (`--record`).

use tilewright::report::tuning_page;
use tilewright::tuner::roofline::Roofline;
use tilewright::tuner::search::SearchOutcome;

use crate::args::TuneArgs;
use crate::failure::Failure;
use crate::pending_file::PendingFile;

/// Files that are written after the search. `new` checks before the search that they are writable.
pub struct Files {
    out: Option<PendingFile>,
    report: Option<PendingFile>,
    record: Option<PendingFile>,
}

impl Files {
    /// Checks that every file that the options name is writable.
    pub fn new(args: &TuneArgs) -> Result<Files, Failure> {
        Ok(Files {
            out: PendingFile::new("--out", args.out.as_deref())?,
            report: PendingFile::new("--report", args.report.as_deref())?,
            record: PendingFile::new("--record", args.record.as_deref())?,
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
