//! What tuning has measured, kept in one SQLite file.
//!
//! One row is one candidate that was tried, also one that failed: [`TuningRecord`]. Rows are found by [`ProgramKey`]:
//! the program without its names ([`Canonical`]), its sizes, the machine ([`TargetFingerprint`]) and the threads.
//! A schedule is kept in canonical names too, and is said in those of the program at hand when it is looked up.
//!
//! What holds:
//! - One insert is one transaction. When [`Cache::insert`] has returned, killing the process does not lose the record,
//!   and several processes may insert at once.
//! - What is read is data from a stranger: every record is checked as it comes out of a file, and its schedule is
//!   parsed, never trusted. Whether the schedule is legal is for `schedule::apply` to say.
//! - A file that is not a cache of this version is refused before anything is written, so it stays as it was.
//!
//! ```
//! use tilewright_target::Cpu;
//! use tilewright_cache::{Cache, Canonical};
//!
//! # fn main() -> Result<(), tilewright_cache::CacheError> {
//! # let module = tilewright_syntax::parse("def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }");
//! # let sizes = [("N", 64)].into_iter().collect();
//! # let program = tilewright_syntax::check(&module.ast, "twice", &sizes).program.expect("it is fine");
//! let cpu = Cpu::host();
//! let canonical = Canonical::new(&program);
//! let key = canonical.key_on(&cpu);
//! let cache = Cache::in_memory()?;
//! match cache.best(&key)? {
//!     Some(record) => println!("{}", canonical.schedule_of(&record, &cpu).schedule),
//!     None => println!("{} similar programs to start from", cache.similar(&key, 5)?.len()),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | file | has |
//! |---|---|
//! | `canonical` | programs and schedules without their names |
//! | `key`, `record` | what is looked up, and what is found |
//! | `file` | opening: the schema, and what is refused |
//! | `rows` | records to rows and back |
//! | `lookup` | best, similar, explain |
//! | `tuned` | the schedule that a program should have |
//! | `outcome` | what became of a candidate, with its samples |
//! | `portable` | export, import and merge |

mod canonical;
mod error;
mod file;
mod key;
mod lookup;
pub mod outcome;
mod portable;
mod record;
mod rows;
mod tuned;

use std::path::{Path, PathBuf};

use etcetera::{BaseStrategy, choose_base_strategy};
use rusqlite::{Connection, Transaction, TransactionBehavior};

pub use canonical::Canonical;
pub use error::CacheError;
pub use key::{ProgramKey, TargetFingerprint};
pub use lookup::{Choice, Difference, Explanation, FeaturedTrial, Near, Skipped, Summary};
pub use outcome::{Outcome, Trial};
pub use portable::Merged;
pub use record::TuningRecord;
pub use rows::Filter;
pub use tuned::{BestKnown, usable};

/// The version that records of this build carry.
pub const TOOL_VERSION: &str = env!("CARGO_PKG_VERSION");

/// An open cache.
#[derive(Debug)]
pub struct Cache {
    connection: Connection,
    path: PathBuf,
}

impl Cache {
    /// Opens a cache, which is made, with its folder, if it is not there. A file that may only be read can be read.
    pub fn open(path: &Path) -> Result<Cache, CacheError> {
        let connection = file::open(path, true)?;
        Ok(Cache { connection, path: path.to_owned() })
    }

    /// Opens a cache that must be there.
    pub fn open_existing(path: &Path) -> Result<Cache, CacheError> {
        let connection = file::open(path, false)?;
        Ok(Cache { connection, path: path.to_owned() })
    }

    /// Opens the user's own cache, at [`Cache::default_path`].
    pub fn open_default() -> Result<Cache, CacheError> {
        Cache::open(&Cache::default_path()?)
    }

    /// A cache that lasts as long as the value.
    pub fn in_memory() -> Result<Cache, CacheError> {
        let path = PathBuf::from(":memory:");
        Ok(Cache { connection: file::in_memory(&path)?, path })
    }

    /// `tilewright/cache.sqlite` in the user's data folder: below `$XDG_DATA_HOME`, or `~/.local/share`.
    pub fn default_path() -> Result<PathBuf, CacheError> {
        let folders = choose_base_strategy().map_err(|_| CacheError::NoHome)?;
        Ok(folders.data_dir().join("tilewright").join("cache.sqlite"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a record, for good once this returns; a very long message is cut. Whether the record is new: the very same
    /// is kept once.
    pub fn insert(&self, record: &TuningRecord) -> Result<bool, CacheError> {
        let record = &TuningRecord { outcome: record.outcome.cut(), ..record.clone() };
        record.check().map_err(CacheError::Invalid)?;
        let transaction = self.begin()?;
        let new = rows::insert(&transaction, record).map_err(|error| self.sql(error))?;
        transaction.commit().map_err(|error| self.sql(error))?;
        Ok(new)
    }

    /// Whether records can be kept.
    pub fn expect_writable(&self) -> Result<(), CacheError> {
        // SQLite begins a transaction in a file that may only be read, and refuses what comes then.
        match self.connection.is_readonly("main").map_err(|error| self.sql(error))? {
            true => Err(CacheError::ReadOnly(self.path.clone())),
            false => self.begin().map(drop),
        }
    }

    /// The records that a filter lets through, in the order in which they came.
    pub fn records(&self, filter: &Filter) -> Result<Vec<TuningRecord>, CacheError> {
        let mut records = Vec::new();
        self.visit(filter, &mut |record| {
            records.push(record);
            Ok(())
        })?;
        Ok(records)
    }

    /// Removes the records that a filter lets through, and says how many.
    pub fn clear(&self, filter: &Filter) -> Result<usize, CacheError> {
        let transaction = self.begin()?;
        let removed = rows::remove(&transaction, filter).map_err(|error| self.sql(error))?;
        transaction.commit().map_err(|error| self.sql(error))?;
        Ok(removed)
    }

    /// Removes what no Tilewright wrote, which otherwise is an error wherever it is met, and says how many records.
    pub fn clear_damaged(&self) -> Result<usize, CacheError> {
        let transaction = self.begin()?;
        let removed = rows::remove_damaged(&transaction).map_err(|error| self.sql(error))?;
        transaction.commit().map_err(|error| self.sql(error))?;
        Ok(removed)
    }

    fn visit(
        &self,
        filter: &Filter,
        visit: &mut dyn FnMut(TuningRecord) -> Result<(), CacheError>,
    ) -> Result<(), CacheError> {
        rows::visit(&self.connection, &self.path, filter, "ORDER BY record.id", visit)
    }

    /// Others that write are waited for here, and not in the middle.
    fn begin(&self) -> Result<Transaction<'_>, CacheError> {
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
            .map_err(|error| self.sql(error))
    }

    fn sql(&self, error: rusqlite::Error) -> CacheError {
        CacheError::from_sql(&self.path, error)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    fn record(trial: u64) -> TuningRecord {
        let target = TargetFingerprint {
            device: "cpu".to_owned(),
            model: "model".to_owned(),
            vectors: "avx2".to_owned(),
            caches: vec![1 << 15],
        };
        let program =
            ProgramKey { canonical: "program 1\n".to_owned(), sizes: Vec::new(), target, threads: 1 };
        TuningRecord {
            program,
            title: "f".to_owned(),
            schedule: "parallel t0.v0\n".repeat(200),
            strategy: "random".to_owned(),
            outcome: Outcome::Measured,
            samples: vec![1.0],
            resources: String::new(),
            features: vec![0.5, -1.0],
            tool_version: TOOL_VERSION.to_owned(),
            time: 0,
            seed: None,
            trial: Some(trial),
        }
    }

    #[test]
    fn a_full_disk_is_an_error_that_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cache.sqlite");
        let cache = Cache::open(&path).unwrap();
        cache.connection.pragma_update(None, "max_page_count", 30).unwrap();
        let mut kept = 0;
        let error = loop {
            match cache.insert(&record(kept)) {
                Ok(new) => kept += u64::from(new),
                Err(error) => break error,
            }
        };
        assert!(kept > 3, "{kept}");
        assert!(matches!(error, CacheError::Full(_)), "{error}");
        assert!(error.to_string().contains("no room left"), "{error}");
        // The next may fit again, and all before are there.
        assert!(cache.insert(&record(kept)).is_err());
        cache.connection.pragma_update(None, "max_page_count", 1_000_000).unwrap();
        assert!(cache.insert(&record(kept)).unwrap());
        drop(cache);
        let records = Cache::open(&path).unwrap().records(&Filter::default()).unwrap();
        assert_eq!(records, (0..=kept).map(record).collect::<Vec<_>>());
    }
}
