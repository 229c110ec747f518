//! What can go wrong with a cache. Every message names the file and says what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

/// Why something could not be done with a cache. Nothing was changed then.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheError {
    /// There is no folder to keep a cache in.
    #[error(
        "this user has no home folder to keep a cache in: set HOME or XDG_DATA_HOME, or name a file with --cache"
    )]
    NoHome,
    /// The file is not there.
    #[error("there is no cache at {}", .0.display())]
    Missing(PathBuf),
    /// A folder where a file is meant.
    #[error("{} is a folder: name a file in it, such as {}", .0.display(), .0.join("cache.sqlite").display())]
    Folder(PathBuf),
    /// Another kind of file.
    #[error("{} is not a cache of Tilewright ({why}); it is left as it is: name another file with --cache", .path.display())]
    NotACache {
        /// The file.
        path: PathBuf,
        /// How that shows.
        why: String,
    },
    /// A damaged file.
    #[error(
        "{} is damaged ({why}); it is left as it is: restore it from a copy or an export, or move it away to begin anew",
        .path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        why: String,
    },
    /// A file of a newer Tilewright.
    #[error(
        "{} was written by a newer Tilewright (version {found} of the format, this one knows {known}); it is left as it \
         is: update Tilewright, or name another file with --cache",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The version of this build.
        known: i64,
    },
    /// A file or folder that may not be written.
    #[error("{} may only be read: change its permissions or its folder's, or name another file with --cache", .0.display())]
    ReadOnly(PathBuf),
    /// No room.
    #[error("there is no room left to write {}: what was there before is kept; free some space", .0.display())]
    Full(PathBuf),
    /// Another process keeps the file to itself.
    #[error("another process has kept {} locked for too long: try again when it is done", .0.display())]
    Busy(PathBuf),
    /// The system refuses the file.
    #[error("cannot use {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A row that no Tilewright wrote.
    #[error(
        "record {row} of {} is not one that Tilewright wrote ({why}); remove such records with \
         `tilewright cache clear --damaged`",
        .path.display()
    )]
    BadRow {
        /// The file.
        path: PathBuf,
        /// Which row.
        row: i64,
        /// What is wrong with it.
        why: String,
    },
    /// A record that must not be kept.
    #[error("a record that cannot be kept: {0}")]
    Invalid(String),
    /// An export that cannot be read.
    #[error("{} cannot be imported: {why}; nothing was imported", .path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Anything else that SQLite says.
    #[error("{}: {error}", .path.display())]
    Sql {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        error: rusqlite::Error,
    },
}

impl CacheError {
    pub(super) fn from_sql(path: &Path, error: rusqlite::Error) -> CacheError {
        let path = path.to_owned();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::TooBig) => {
                CacheError::Corrupt { path, why: error.to_string() }
            }
            Some(ErrorCode::NotADatabase) => CacheError::NotACache { path, why: error.to_string() },
            Some(ErrorCode::ReadOnly) => CacheError::ReadOnly(path),
            Some(ErrorCode::DiskFull) => CacheError::Full(path),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => CacheError::Busy(path),
            _ => CacheError::Sql { path, error },
        }
    }

    pub(super) fn io(path: &Path, error: io::Error) -> CacheError {
        match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => CacheError::ReadOnly(path.to_owned()),
            io::ErrorKind::StorageFull => CacheError::Full(path.to_owned()),
            _ => CacheError::Io { path: path.to_owned(), error },
        }
    }
}
