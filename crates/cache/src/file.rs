//! Opens cache files: the schema, and the checks that refuse a file before anything is written.
//!
//! The file is in write-ahead mode with `synchronous = NORMAL`. A committed transaction is in the
//! log and in the operating system's hands, so a killed process loses nothing. Only a power failure
//! may lose the last seconds, and never more. `FULL` would save those seconds too, but would wait
//! for the disk after every trial, while candidates are being measured. If the file system does not
//! support write-ahead mode, SQLite keeps a rollback journal, which needs `FULL`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::error::CacheError;

/// The version of the schema, kept in `user_version`.
pub(super) const SCHEMA_VERSION: i64 = 3;
/// The first version of the schema. An older file that can be written is upgraded to the current
/// version.
const FIRST_VERSION: i64 = 1;
/// The `application_id` that marks a SQLite file as a cache of Tilewright: `TwTc`.
const APPLICATION_ID: i64 = 0x5477_5463;
/// The longest wait for locks of other processes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
/// The longest value that is read from a file, in bytes. All values that are written are shorter.
const LONGEST_VALUE: i32 = 64 << 20;

/// The statements of the schema, one for each table or index, as SQLite keeps them.
const SCHEMA: [&str; 4] = [
    "CREATE TABLE program (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE) STRICT",
    "CREATE TABLE target (id INTEGER PRIMARY KEY, device TEXT NOT NULL, model TEXT NOT NULL, vectors TEXT NOT NULL, \
     caches TEXT NOT NULL, UNIQUE (device, model, vectors, caches)) STRICT",
    "CREATE TABLE record (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, \
     program INTEGER NOT NULL REFERENCES program, sizes TEXT NOT NULL, target INTEGER NOT NULL REFERENCES target, \
     threads INTEGER NOT NULL, title TEXT NOT NULL, schedule TEXT NOT NULL, strategy TEXT NOT NULL, \
     outcome TEXT NOT NULL, detail TEXT NOT NULL, samples BLOB NOT NULL, median REAL, tool_version TEXT NOT NULL, \
     time INTEGER NOT NULL, seed INTEGER, trial INTEGER, resources TEXT NOT NULL DEFAULT '', \
     features BLOB NOT NULL DEFAULT x'') STRICT",
    "CREATE INDEX record_by_key ON record (program, sizes, target, threads, median)",
];

/// The columns of `record` that the second and the third version added.
const ADDED_COLUMNS: [&str; 2] =
    [", resources TEXT NOT NULL DEFAULT ''", ", features BLOB NOT NULL DEFAULT x''"];

/// The columns that a file of this version lacks.
fn missing_columns(version: i64) -> &'static [&'static str] {
    let has = usize::try_from(version - FIRST_VERSION).unwrap_or(0);
    ADDED_COLUMNS.get(has..).unwrap_or_default()
}

/// Opens a cache file. A missing file is made if `create` is set. A file that cannot be written is
/// opened for reading.
pub(super) fn open(path: &Path, create: bool) -> Result<Connection, CacheError> {
    check_path(path, create)?;
    match open_checked(path, create) {
        Err(CacheError::ReadOnly(_)) => open_unwritable(path),
        Err(CacheError::Sql { error, .. }) if cannot_open(&error) => open_unwritable(path),
        outcome => outcome,
    }
}

/// Makes a cache in memory, without a file. Errors name `path`.
pub(super) fn in_memory(path: &Path) -> Result<Connection, CacheError> {
    let sql = |error| CacheError::from_sql(path, error);
    let connection = Connection::open_in_memory().map_err(sql)?;
    configure(&connection).and_then(|()| make_tables(&connection)).map_err(sql)?;
    Ok(connection)
}

/// Refuses paths that are plainly not a cache. Makes the folder of a new file.
///
/// Only SQLite may read the content. The operating system drops all of a process's locks on a file
/// as soon as the process closes any handle of it. Without their locks, other connections of this
/// process would go on to write to a log that another process has removed.
fn check_path(path: &Path, create: bool) -> Result<(), CacheError> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return if create { make_folder(path) } else { Err(CacheError::Missing(path.to_owned())) };
        }
        Err(error) => return Err(CacheError::io(path, error)),
    };
    if found.is_dir() {
        return Err(CacheError::Folder(path.to_owned()));
    }
    if !found.is_file() {
        let why = "it is not a plain file".to_owned();
        return Err(CacheError::NotACache { path: path.to_owned(), why });
    }
    Ok(())
}

fn make_folder(path: &Path) -> Result<(), CacheError> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => {
            fs::create_dir_all(folder).map_err(|error| CacheError::io(folder, error))
        }
        _ => Ok(()),
    }
}

fn open_checked(path: &Path, create: bool) -> Result<Connection, CacheError> {
    let sql = |error| CacheError::from_sql(path, error);
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    if create {
        flags |= OpenFlags::SQLITE_OPEN_CREATE;
    }
    let connection = Connection::open_with_flags(path, flags).map_err(sql)?;
    configure(&connection).map_err(sql)?;
    if is_new(&connection).map_err(sql)? {
        // Another process may be about to make the tables.
        if !create {
            return Err(CacheError::Missing(path.to_owned()));
        }
        enable_write_ahead(&connection).and_then(|()| make_tables(&connection)).map_err(sql)?;
    }
    verify_and_upgrade(&connection, path)?;
    Ok(connection)
}

/// Opens a file that cannot be written, as immutable. SQLite then ignores the write-ahead log, so
/// records that are only in another process's log stay invisible.
fn open_unwritable(path: &Path) -> Result<Connection, CacheError> {
    let sql = |error| CacheError::from_sql(path, error);
    let Some(uri) = immutable_uri(path) else { return Err(CacheError::ReadOnly(path.to_owned())) };
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags).map_err(sql)?;
    configure(&connection).map_err(sql)?;
    verify_and_upgrade(&connection, path)?;
    Ok(connection)
}

/// The URI by which SQLite opens the file as immutable.
fn immutable_uri(path: &Path) -> Option<String> {
    let absolute: PathBuf = path.canonicalize().ok()?;
    let escaped = absolute.to_str()?.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Some(format!("file:{escaped}?immutable=1"))
}

fn cannot_open(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied))
}

/// Sets the options of every connection. A file may contain functions, triggers and views, and none
/// of them may run.
fn configure(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(LOCK_TIMEOUT)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    connection.pragma_update(None, "foreign_keys", false)
}

/// Returns true if the file is empty: no version and no tables.
fn is_new(connection: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(tables == 0 && pragma(connection, "application_id")? == 0 && pragma(connection, "user_version")? == 0)
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

/// Switches to write-ahead mode, which allows readers beside a writer. Two processes that make the
/// same file may collide here, where SQLite itself does not wait.
fn enable_write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let begun = std::time::Instant::now();
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(())) {
            Err(error) if is_busy(&error) && begun.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Makes the tables, unless another process has made them in the meantime.
fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    if is_new(&transaction)? {
        SCHEMA.iter().try_for_each(|statement| transaction.execute(statement, []).map(|_| ()))?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    transaction.commit()
}

/// Refuses a file that is not a cache, has an unknown version, or is damaged.
fn verify_and_upgrade(connection: &Connection, path: &Path) -> Result<(), CacheError> {
    let sql = |error| CacheError::from_sql(path, error);
    let not_a_cache = |why: &str| Err(CacheError::NotACache { path: path.to_owned(), why: why.to_owned() });
    if pragma(connection, "application_id").map_err(sql)? != APPLICATION_ID {
        return not_a_cache("it is a SQLite file of another program");
    }
    let found = pragma(connection, "user_version").map_err(sql)?;
    if found > SCHEMA_VERSION {
        return Err(CacheError::Newer { path: path.to_owned(), found, known: SCHEMA_VERSION });
    }
    let schema = read_schema(connection).map_err(sql)?;
    let without = |statement: &str| {
        missing_columns(found)
            .iter()
            .fold(statement.to_owned(), |statement, column| statement.replace(column, ""))
    };
    if found < FIRST_VERSION || schema != SCHEMA.map(without) {
        return not_a_cache("its tables are not those of a cache");
    }
    let verdict: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(sql)?;
    if verdict != "ok" {
        return Err(CacheError::Corrupt { path: path.to_owned(), why: verdict });
    }
    let journal: String =
        connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).map_err(sql)?;
    let synchronous = if journal == "wal" { "NORMAL" } else { "FULL" };
    connection.pragma_update(None, "synchronous", synchronous).map_err(sql)?;
    if found < SCHEMA_VERSION && !connection.is_readonly("main").map_err(sql)? {
        upgrade_schema(connection).map_err(sql)?;
    }
    Ok(())
}

/// Adds the columns that an old file lacks, unless another process has added them.
fn upgrade_schema(connection: &Connection) -> rusqlite::Result<()> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    for column in missing_columns(pragma(&transaction, "user_version")?) {
        let column = column.trim_start_matches(", ");
        transaction.execute(&format!("ALTER TABLE record ADD COLUMN {column}"), [])?;
    }
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    transaction.commit()
}

/// The SQL of the columns that later versions added to `record`. An old file that cannot be written
/// may lack a column, and then an empty literal stands in its place.
pub(super) fn added_column_sql(connection: &Connection) -> rusqlite::Result<[&'static str; 2]> {
    let has = ADDED_COLUMNS.len() - missing_columns(pragma(connection, "user_version")?).len();
    let resources = if has > 0 { "record.resources" } else { "''" };
    let features = if has > 1 { "record.features" } else { "x''" };
    Ok([resources, features])
}

fn read_schema(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut query =
        connection.prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid")?;
    query.query_map([], |row| row.get(0))?.collect()
}
