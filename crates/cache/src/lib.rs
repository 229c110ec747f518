//! A cache of tuning results in one SQLite file.
//!
//! One row is one candidate that was tried, including failed ones: [`TuningRecord`]. Rows are
//! looked up by [`ProgramKey`]: the canonical program text ([`Canonical`]), its sizes, the machine
//! ([`TargetFingerprint`]) and the number of threads. Canonical text does not depend on the names
//! that the user chose. A record's schedule is in canonical names too, and
//! [`Canonical::schedule_of`] translates it to the names of the user's program.
//!
//! Invariants:
//! - One insert is one transaction. After [`Cache::insert`] has returned, killing the process does
//!   not lose the record. Several processes may insert at once.
//! - Files are untrusted input. Every record is checked when it is read, and its schedule is
//!   parsed. `schedule::apply` decides whether the schedule is legal.
//! - A file that is not a cache of a known version is refused before anything is written, so the
//!   file stays unchanged.
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
//! | file | contents |
//! |---|---|
//! | `canonical` | programs and schedules in canonical names |
//! | `key`, `record` | the key of a lookup, and the record that it finds |
//! | `file` | opening a file: the schema, and the checks |
//! | `rows` | conversion between records and rows |
//! | `lookup` | best record, similar records, explanation of a miss |
//! | `best_schedule` | the best usable schedule of a program |
//! | `error` | the errors of a cache |
//! | `outcome` | the outcome of a candidate, with its samples |
//! | `portable` | export, import and merge |

mod best_schedule;
mod canonical;
mod error;
mod file;
mod key;
mod lookup;
mod near_schedules;
pub mod outcome;
mod portable;
mod record;
mod rows;

use std::path::{Path, PathBuf};

use etcetera::{BaseStrategy, choose_base_strategy};
use rusqlite::{Connection, Transaction, TransactionBehavior};

pub use best_schedule::{TunedSchedule, schedule_if_legal};
pub use canonical::Canonical;
pub use error::CacheError;
pub use key::{ProgramKey, TargetFingerprint};
pub use lookup::{BestUsable, Difference, Explanation, FeaturedTrial, NearKey, Summary, UnusableRecord};
pub use near_schedules::NearSchedule;
pub use outcome::{Outcome, OutcomeKind, Trial};
pub use portable::MergeCounts;
pub use record::TuningRecord;
pub use rows::Filter;

/// The version that records of this build carry.
pub const TOOL_VERSION: &str = env!("CARGO_PKG_VERSION");

/// An open cache.
#[derive(Debug)]
pub struct Cache {
    connection: Connection,
    path: PathBuf,
}

impl Cache {
    /// Opens a cache. Makes the file and its folder if they do not exist. A file that cannot be
    /// written is opened for reading.
    pub fn open(path: &Path) -> Result<Cache, CacheError> {
        let connection = file::open(path, true)?;
        Ok(Cache { connection, path: path.to_owned() })
    }

    /// Opens a cache that must exist.
    pub fn open_existing(path: &Path) -> Result<Cache, CacheError> {
        let connection = file::open(path, false)?;
        Ok(Cache { connection, path: path.to_owned() })
    }

    /// Opens the user's own cache, at [`Cache::default_path`].
    pub fn open_default() -> Result<Cache, CacheError> {
        Cache::open(&Cache::default_path()?)
    }

    /// Makes a cache in memory. Its records are lost when the cache is dropped.
    pub fn in_memory() -> Result<Cache, CacheError> {
        let path = PathBuf::from(":memory:");
        Ok(Cache { connection: file::in_memory(&path)?, path })
    }

    /// The default path: `tilewright/cache.sqlite` in the user's data folder, which is
    /// `$XDG_DATA_HOME` or `~/.local/share`.
    pub fn default_path() -> Result<PathBuf, CacheError> {
        let folders = choose_base_strategy().map_err(|_| CacheError::NoHome)?;
        Ok(folders.data_dir().join("tilewright").join("cache.sqlite"))
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Inserts a record. When this returns, killing the process does not lose the record; a power
    /// failure may lose the last seconds. A very long message is cut. Returns false if the cache
    /// already has the same record.
    pub fn insert(&self, record: &TuningRecord) -> Result<bool, CacheError> {
        let record = &TuningRecord { outcome: record.outcome.with_short_detail(), ..record.clone() };
        record.check().map_err(CacheError::Invalid)?;
        let transaction = self.begin_write()?;
        let new = rows::insert(&transaction, record).map_err(|error| self.sql_error(error))?;
        transaction.commit().map_err(|error| self.sql_error(error))?;
        Ok(new)
    }

    /// Checks whether records can be inserted.
    pub fn check_writable(&self) -> Result<(), CacheError> {
        // On a read-only file SQLite begins the transaction, and refuses only the later statements.
        match self.connection.is_readonly("main").map_err(|error| self.sql_error(error))? {
            true => Err(CacheError::ReadOnly(self.path.clone())),
            false => self.begin_write().map(drop),
        }
    }

    /// The records that pass a filter, in the order of their insertion.
    pub fn records(&self, filter: &Filter) -> Result<Vec<TuningRecord>, CacheError> {
        let mut records = Vec::new();
        self.for_each_record(filter, &mut |record| {
            records.push(record);
            Ok(())
        })?;
        Ok(records)
    }

    /// Removes the records that pass a filter, and returns their number.
    pub fn clear(&self, filter: &Filter) -> Result<usize, CacheError> {
        let transaction = self.begin_write()?;
        let removed = rows::remove(&transaction, filter).map_err(|error| self.sql_error(error))?;
        transaction.commit().map_err(|error| self.sql_error(error))?;
        Ok(removed)
    }

    /// Removes invalid rows and returns their number. An invalid row is otherwise an error for
    /// every operation that reads it.
    pub fn clear_damaged(&self) -> Result<usize, CacheError> {
        let transaction = self.begin_write()?;
        let removed = rows::remove_damaged(&transaction).map_err(|error| self.sql_error(error))?;
        transaction.commit().map_err(|error| self.sql_error(error))?;
        Ok(removed)
    }

    fn for_each_record(
        &self,
        filter: &Filter,
        action: &mut dyn FnMut(TuningRecord) -> Result<(), CacheError>,
    ) -> Result<(), CacheError> {
        rows::for_each_record(&self.connection, &self.path, filter, "ORDER BY record.id", action)
    }

    /// Begins a write transaction. The wait for other writers is here and not in the middle of the
    /// transaction.
    fn begin_write(&self) -> Result<Transaction<'_>, CacheError> {
        Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)
            .map_err(|error| self.sql_error(error))
    }

    fn sql_error(&self, error: rusqlite::Error) -> CacheError {
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
        assert!(error.to_string().contains("the disk is full"), "{error}");
        // Inserts fail until the limit is raised. Then all earlier records are still there.
        assert!(cache.insert(&record(kept)).is_err());
        cache.connection.pragma_update(None, "max_page_count", 1_000_000).unwrap();
        assert!(cache.insert(&record(kept)).unwrap());
        drop(cache);
        let records = Cache::open(&path).unwrap().records(&Filter::default()).unwrap();
        assert_eq!(records, (0..=kept).map(record).collect::<Vec<_>>());
    }
}
