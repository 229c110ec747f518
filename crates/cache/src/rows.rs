//! Inserts, reads, counts and removes records as rows of the SQLite tables. A [`Filter`]
//! selects rows.

use std::ops::ControlFlow;
use std::path::Path;

use rusqlite::types::{FromSql, Value};
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use crate::error::CacheError;
use crate::file;
use crate::key::{ProgramKey, TargetFingerprint, parse_sizes, sizes_text};
use crate::outcome::Outcome;
use crate::record::TuningRecord;

/// A filter for records. A record passes if it fits every given field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The canonical program.
    pub program: Option<String>,
    /// The sizes.
    pub sizes: Option<Vec<(String, i64)>>,
    /// The machine.
    pub target: Option<TargetFingerprint>,
    /// The number of threads.
    pub threads: Option<usize>,
    /// Only records from before this time, in seconds since 1970.
    pub before: Option<i64>,
    /// Only measured records, or only failed ones.
    pub measured: Option<bool>,
    /// The schedule in canonical names.
    pub schedule: Option<String>,
}

impl Filter {
    /// The filter for the records of one key.
    pub fn for_key(key: &ProgramKey) -> Filter {
        Filter {
            program: Some(key.canonical.clone()),
            sizes: Some(key.sizes.clone()),
            target: Some(key.target.clone()),
            threads: Some(key.threads),
            ..Filter::default()
        }
    }

    /// The filter for the measured records of one schedule, in canonical names.
    pub fn for_measured_schedule(key: &ProgramKey, schedule: &str) -> Filter {
        Filter { measured: Some(true), schedule: Some(schedule.to_owned()), ..Filter::for_key(key) }
    }

    /// The conditions for SQLite, with their parameters.
    pub(super) fn conditions(&self) -> (String, Vec<Value>) {
        let mut conditions = vec!["true"];
        let mut values: Vec<Value> = Vec::new();
        let mut add = |condition, value: Option<Value>| {
            conditions.push(condition);
            values.extend(value);
        };
        if let Some(program) = &self.program {
            add("program.text = ?", Some(program.clone().into()));
        }
        if let Some(sizes) = &self.sizes {
            add("record.sizes = ?", Some(sizes_text(sizes).into()));
        }
        if let Some(target) = &self.target {
            add("target.device = ?", Some(target.device.clone().into()));
            add("target.model = ?", Some(target.model.clone().into()));
            add("target.vectors = ?", Some(target.vectors.clone().into()));
            add("target.caches = ?", Some(target.caches_text().into()));
        }
        if let Some(threads) = self.threads {
            add("record.threads = ?", Some((threads as i64).into()));
        }
        if let Some(before) = self.before {
            add("record.time < ?", Some(before.into()));
        }
        match self.measured {
            Some(true) => add("record.median IS NOT NULL", None),
            Some(false) => add("record.median IS NULL", None),
            None => {}
        }
        if let Some(schedule) = &self.schedule {
            add("record.schedule = ?", Some(schedule.clone().into()));
        }
        (conditions.join(" AND "), values)
    }
}

/// The joined tables.
pub(super) const JOINED: &str =
    "record JOIN program ON program.id = record.program JOIN target ON target.id = record.target";

/// The columns that [`read_row`] expects, in its order. [`columns`] appends the last ones.
const COLUMNS: &str = "record.id, program.text, record.sizes, target.device, target.model, target.vectors, \
     target.caches, record.threads, record.title, record.schedule, record.strategy, record.outcome, record.detail, \
     record.samples, record.tool_version, record.time, record.seed, record.trial, record.median";

/// All columns of a file, including those that later versions added.
fn columns(connection: &Connection) -> rusqlite::Result<String> {
    Ok(format!("{COLUMNS}, {}", file::added_column_sql(connection)?.join(", ")))
}

/// Inserts a record, unless the table already has it. Returns true if it was inserted.
pub(super) fn insert(connection: &Connection, record: &TuningRecord) -> rusqlite::Result<bool> {
    let hash = record.hash();
    let known = connection
        .prepare_cached("SELECT 1 FROM record WHERE hash = ?")?
        .query_row([&hash], |_| Ok(()))
        .optional()?;
    if known.is_some() {
        return Ok(false);
    }
    let program = program_id(connection, &record.program.canonical)?;
    let target = target_id(connection, &record.program.target)?;
    connection
        .prepare_cached(
            "INSERT INTO record (hash, program, sizes, target, threads, title, schedule, strategy, outcome, detail, \
             samples, median, tool_version, time, seed, trial, resources, features) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        )?
        .execute(params![
            hash,
            program,
            sizes_text(&record.program.sizes),
            target,
            record.program.threads,
            record.title,
            record.schedule,
            record.strategy,
            record.outcome.name(),
            record.outcome.detail(),
            record.sample_bytes(),
            record.median(),
            record.tool_version,
            record.time,
            record.seed.map(u64::cast_signed),
            record.trial,
            record.resources,
            record.feature_bytes(),
        ])?;
    Ok(true)
}

fn program_id(connection: &Connection, text: &str) -> rusqlite::Result<i64> {
    connection.prepare_cached("INSERT OR IGNORE INTO program (text) VALUES (?)")?.execute([text])?;
    connection.prepare_cached("SELECT id FROM program WHERE text = ?")?.query_row([text], |row| row.get(0))
}

fn target_id(connection: &Connection, target: &TargetFingerprint) -> rusqlite::Result<i64> {
    let values = params![target.device, target.model, target.vectors, target.caches_text()];
    connection
        .prepare_cached("INSERT OR IGNORE INTO target (device, model, vectors, caches) VALUES (?, ?, ?, ?)")?
        .execute(values)?;
    connection
        .prepare_cached(
            "SELECT id FROM target WHERE device = ? AND model = ? AND vectors = ? AND caches = ?",
        )?
        .query_row(values, |row| row.get(0))
}

/// Reads the records that pass a filter, one by one. An invalid row is an error.
pub(super) fn for_each_record(
    connection: &Connection,
    path: &Path,
    filter: &Filter,
    order: &str,
    action: &mut dyn FnMut(TuningRecord) -> Result<(), CacheError>,
) -> Result<(), CacheError> {
    for_each_row(connection, path, filter, order, &mut |id, read| {
        let bad = |why| CacheError::BadRow { path: path.to_owned(), row: id, why };
        action(read.map_err(bad)?)?;
        Ok(ControlFlow::Continue(()))
    })
}

/// Calls `action` for every row that passes a filter, with the record or the row's defect, until
/// `action` breaks.
pub(super) fn for_each_row(
    connection: &Connection,
    path: &Path,
    filter: &Filter,
    order: &str,
    action: &mut dyn FnMut(i64, Result<TuningRecord, String>) -> Result<ControlFlow<()>, CacheError>,
) -> Result<(), CacheError> {
    let sql = |error| CacheError::from_sql(path, error);
    let (conditions, values) = filter.conditions();
    let columns = columns(connection).map_err(sql)?;
    let query = format!("SELECT {columns} FROM {JOINED} WHERE {conditions} {order}");
    let mut query = connection.prepare(&query).map_err(sql)?;
    let mut rows = query.query(params_from_iter(values)).map_err(sql)?;
    while let Some(row) = rows.next().map_err(sql)? {
        if action(row.get(0).map_err(sql)?, read_row(row))?.is_break() {
            break;
        }
    }
    Ok(())
}

/// The number of records that pass a filter, without reading them.
pub(super) fn count(connection: &Connection, filter: &Filter) -> rusqlite::Result<usize> {
    let (conditions, values) = filter.conditions();
    let query = format!("SELECT count(*) FROM {JOINED} WHERE {conditions}");
    let count: i64 = connection.query_row(&query, params_from_iter(values), |row| row.get(0))?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Reads a row as a record, or returns its defect.
fn read_row(row: &Row) -> Result<TuningRecord, String> {
    let program = ProgramKey {
        canonical: read_column(row, 1)?,
        sizes: parse_sizes(&read_column::<String>(row, 2)?).ok_or("invalid sizes")?,
        target: TargetFingerprint {
            device: read_column(row, 3)?,
            model: read_column(row, 4)?,
            vectors: read_column(row, 5)?,
            caches: TargetFingerprint::parse_caches(&read_column::<String>(row, 6)?)
                .ok_or("invalid caches")?,
        },
        threads: read_column(row, 7)?,
    };
    let record = TuningRecord {
        program,
        title: read_column(row, 8)?,
        schedule: read_column(row, 9)?,
        strategy: read_column(row, 10)?,
        outcome: Outcome::parse(&read_column::<String>(row, 11)?, read_column(row, 12)?)
            .ok_or("unknown outcome")?,
        samples: samples_from(&read_column::<Vec<u8>>(row, 13)?).ok_or("invalid samples")?,
        tool_version: read_column(row, 14)?,
        time: read_column(row, 15)?,
        // The integers of SQLite are signed, so a seed is kept by its bits.
        seed: read_column::<Option<i64>>(row, 16)?.map(i64::cast_unsigned),
        trial: read_column(row, 17)?,
        resources: read_column(row, 19)?,
        features: features_from(&read_column::<Vec<u8>>(row, 20)?).ok_or("invalid features")?,
    };
    record.check()?;
    if read_column::<Option<f64>>(row, 18)? != record.median() {
        return Err("its median is not that of its samples".to_owned());
    }
    Ok(record)
}

pub(super) fn read_column<T: FromSql>(row: &Row, column: usize) -> Result<T, String> {
    row.get(column).map_err(|error| error.to_string())
}

pub(super) fn features_from(bytes: &[u8]) -> Option<Vec<f32>> {
    let (chunks, rest) = bytes.as_chunks::<4>();
    rest.is_empty().then(|| chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect())
}

fn samples_from(bytes: &[u8]) -> Option<Vec<f64>> {
    let chunks = bytes.chunks_exact(8);
    let whole = chunks.remainder().is_empty();
    whole.then(|| {
        chunks.map(|chunk| f64::from_le_bytes(chunk.try_into().expect("chunks have 8 bytes"))).collect()
    })
}

/// Removes records, and the programs and machines that no record refers to any more.
pub(super) fn remove(connection: &Connection, filter: &Filter) -> rusqlite::Result<usize> {
    let (conditions, values) = filter.conditions();
    let query = format!("DELETE FROM record WHERE id IN (SELECT record.id FROM {JOINED} WHERE {conditions})");
    let removed = connection.execute(&query, params_from_iter(values))?;
    remove_unused(connection)?;
    Ok(removed)
}

/// Removes invalid rows, including those whose program or machine is missing.
pub(super) fn remove_damaged(connection: &Connection) -> rusqlite::Result<usize> {
    let mut damaged: Vec<i64> = Vec::new();
    {
        let mut query = connection.prepare(&format!("SELECT {} FROM {JOINED}", columns(connection)?))?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            if read_row(row).is_err() {
                damaged.push(row.get(0)?);
            }
        }
    }
    for id in &damaged {
        connection.execute("DELETE FROM record WHERE id = ?", [id])?;
    }
    let orphans = connection.execute(
        "DELETE FROM record WHERE program NOT IN (SELECT id FROM program) OR target NOT IN (SELECT id FROM target)",
        [],
    )?;
    remove_unused(connection)?;
    Ok(damaged.len() + orphans)
}

fn remove_unused(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute("DELETE FROM program WHERE id NOT IN (SELECT program FROM record)", [])?;
    connection.execute("DELETE FROM target WHERE id NOT IN (SELECT target FROM record)", [])?;
    Ok(())
}
