//! What tuning has found for a program, as `run`, `bench` and `cache explain` look it up.

use tilewright_cache::{BestKnown, Cache, CacheError, Choice, Skipped};
use tilewright_ir::Program;
use tilewright_target::Target;

use crate::args::cache::CacheFile;
use crate::commands::cache::failure as cache_failure;
use crate::failure::Failure;
use crate::output::{complain, printable};
use crate::schedule::ScheduleSource;
use crate::time::seconds;

/// The schedule that a program should have on a machine.
pub struct Found {
    /// The best that tuning has found, or else the default one.
    pub schedule: ScheduleSource,
    /// Records that are better, and cannot be used.
    pub skipped: Vec<Skipped>,
}

/// Takes what tuning has found for a program on a machine. A cache that was not asked for and cannot be read is told of,
/// and done without.
pub fn look_up<'t>(
    file: &CacheFile,
    program: &'t Program,
    target: impl Into<Target<'t>>,
) -> Result<Found, Failure> {
    match tuned(file, program, target.into()) {
        Err(failure) if file.cache.is_none() => {
            complain(&format!("warning: {failure}; the default schedule is used"));
            Ok(Found { schedule: ScheduleSource::Default { why: None }, skipped: Vec::new() })
        }
        outcome => outcome,
    }
}

/// The best schedule that is known, if there is one that can be used.
fn tuned(file: &CacheFile, program: &Program, target: Target<'_>) -> Result<Found, Failure> {
    let path = file.path()?;
    let cache = match Cache::open_existing(&path) {
        Err(CacheError::Missing(_)) => {
            let why = file.cache.is_some().then(|| format!("there is no cache at {}", path.display()));
            return Ok(Found { schedule: ScheduleSource::Default { why }, skipped: Vec::new() });
        }
        cache => cache.map_err(cache_failure)?,
    };
    let Choice { best, skipped } = cache.best_schedule(program, target).map_err(cache_failure)?;
    let tuned = |known: BestKnown| ScheduleSource::Tuned {
        schedule: known.schedule,
        seconds: known.seconds,
        is_default: known.is_default,
    };
    Ok(Found { schedule: best.map_or(ScheduleSource::Default { why: None }, tuned), skipped })
}

/// A record that was passed over, for people.
pub fn passed_over(skipped: &Skipped) -> String {
    let time = skipped.seconds.map_or("a record".to_owned(), |time| format!("one with {}", seconds(time)));
    printable(&format!("{time} cannot be used: {}", skipped.why))
}
