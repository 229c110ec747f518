//! Defines [`CacheError`], the errors of a cache. Most messages name the file and say what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

/// Why an operation on a cache failed. The failed operation changed nothing.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CacheError {
    /// There is no folder to keep a cache in.
    #[error(
        "this user has no home folder to keep a cache in: set HOME or XDG_DATA_HOME, or name a file with --cache"
    )]
    NoHome,
    /// The file does not exist.
    #[error("there is no cache at {}", .0.display())]
    Missing(PathBuf),
    /// The path is a folder instead of a file.
    #[error("{} is a folder: name a file in it, such as {}", .0.display(), .0.join("cache.sqlite").display())]
    Folder(PathBuf),
    /// The file is not a cache of Tilewright.
    #[error("{} is not a cache of Tilewright ({why}); it is left as it is: name another file with --cache", .path.display())]
    NotACache {
        /// The file.
        path: PathBuf,
        /// The reason for this conclusion.
        why: String,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged ({why}); it is left as it is: restore it from a copy or an export, or move it away to start anew",
        .path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The message of SQLite.
        why: String,
    },
    /// The file was written by a newer Tilewright.
    #[error(
        "{} was written by a newer Tilewright (version {found} of the format, this one knows {known}); it is left as it \
         is: update Tilewright, or name another file with --cache",
        .path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the file's format.
        found: i64,
        /// The newest version that this build knows.
        known: i64,
    },
    /// The file or its folder cannot be written.
    #[error("{} is read-only: change its permissions or its folder's, or name another file with --cache", .0.display())]
    ReadOnly(PathBuf),
    /// The disk is full.
    #[error("the disk is full, so {} cannot be written: its contents are kept; free some space", .0.display())]
    Full(PathBuf),
    /// Another process has kept the file locked for too long.
    #[error("another process has kept {} locked for too long: try again when it is done", .0.display())]
    Busy(PathBuf),
    /// The operating system reports an error for the file.
    #[error("cannot use {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A row is not a valid record.
    #[error(
        "record {row} of {} is invalid ({why}); remove such records with \
         `tilewright cache clear --damaged`",
        .path.display()
    )]
    BadRow {
        /// The file.
        path: PathBuf,
        /// The number of the row.
        row: i64,
        /// The defect of the row.
        why: String,
    },
    /// A record to be inserted is not valid.
    #[error("the record cannot be stored: {0}")]
    Invalid(String),
    /// An export cannot be read.
    #[error("{} cannot be imported: {why}; nothing was imported", .path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// The defect of the file.
        why: String,
    },
    /// Any other error of SQLite.
    #[error("{}: {error}", .path.display())]
    Sql {
        /// The file.
        path: PathBuf,
        /// The error of SQLite.
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
            Some(ErrorCode::NotADatabase) => {
                CacheError::NotACache { path, why: "it is not a SQLite file".to_owned() }
            }
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
