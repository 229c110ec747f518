//! The files that a run leaves, apart from the cache.

use tilewright_tuner::recording::{Answer, Recording};

use super::page::Page;
use crate::args::TuneArgs;
use crate::failure::Failure;
use crate::pending::PendingFile;

/// Files that are written when the search is over. That they can be is known before it begins.
pub struct Files {
    report: Option<PendingFile>,
    record: Option<PendingFile>,
}

impl Files {
    /// Those that were asked for.
    pub fn new(args: &TuneArgs) -> Result<Files, Failure> {
        let pending = |path: &Option<_>| path.as_deref().map(PendingFile::new).transpose();
        Ok(Files { report: pending(&args.report)?, record: pending(&args.record)? })
    }

    /// Writes them.
    pub fn write(self, answers: Option<Vec<Answer>>, page: &Page) -> Result<(), Failure> {
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
