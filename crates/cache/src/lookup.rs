//! Looks up records: the best record of a program, the records of similar programs, and the
//! differences from the nearest records if the program has none.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use crate::error::CacheError;
use crate::file::added_column_sql;
use crate::key::{ProgramKey, TargetFingerprint, parse_sizes};
use crate::record::TuningRecord;
use crate::rows::{self, Filter, JOINED, features_from};
use crate::{Cache, TOOL_VERSION};

/// A summary of the records of one key: a program at some sizes on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The program, its sizes and the machine.
    pub key: ProgramKey,
    /// The title of the last record.
    pub title: String,
    /// The shortest median time of one call in seconds, if a candidate was measured.
    pub best: Option<f64>,
    /// The number of candidates that were tried.
    pub trials: usize,
    /// The number of candidates that were measured.
    pub measured: usize,
    /// The time of the last trial, in seconds since 1970.
    pub last: i64,
}

/// The record of a program, or the nearest records if there is none.
#[derive(Clone, Debug, PartialEq)]
pub enum Explanation {
    /// The cache has a record.
    Hit {
        /// The best record.
        record: Box<TuningRecord>,
        /// The version of Tilewright that measured the record, if it is not this version. The
        /// record is used all the same.
        measured_by_version: Option<String>,
    },
    /// The cache has no record.
    Miss {
        /// The nearest records, nearest first.
        nearest: Vec<NearKey>,
    },
}

/// The best usable record, and the better records that cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub struct BestUsable<T> {
    /// The value made from the best usable record.
    pub best: Option<T>,
    /// Better records that cannot be used, best first.
    pub unusable: Vec<UnusableRecord>,
}

/// A record that cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub struct UnusableRecord {
    /// The median time of one call in seconds, if the row can be read.
    pub seconds: Option<f64>,
    /// The reason why the record cannot be used.
    pub why: String,
}

/// The records of another key, and its differences from the wanted key.
#[derive(Clone, Debug, PartialEq)]
pub struct NearKey {
    /// The summary of the records.
    pub summary: Summary,
    /// All differences from the wanted key.
    pub differences: Vec<Difference>,
}

/// One difference between a key and the wanted key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The program is another one.
    Program {
        /// The first line of the wanted canonical text that differs.
        wanted: String,
        /// The line of the other canonical text in its place.
        found: String,
    },
    /// A size has another value.
    Size {
        /// The name of the size, in the canonical text unless stated otherwise.
        name: String,
        /// The wanted value.
        wanted: i64,
        /// The value of the record.
        found: i64,
    },
    /// The number of threads differs.
    Threads {
        /// The wanted value.
        wanted: usize,
        /// The value of the record.
        found: usize,
    },
    /// The machine differs.
    Target {
        /// The name of the differing property.
        field: &'static str,
        /// The wanted value.
        wanted: String,
        /// The value of the record.
        found: String,
    },
    /// The keys are equal, but no candidate was measured successfully.
    NothingMeasured,
}

/// The features of a trial's loop nest, and the median of its samples in seconds if it was
/// measured.
pub type FeaturedTrial = (Vec<f32>, Option<f64>);

/// The number of near keys to show.
const MOST_NEAR: usize = 5;

/// The number of samples that make a measurement reliable, on a CPU that others use too, and on a
/// device.
const WELL_MEASURED: usize = 20;
const WELL_MEASURED_ON_DEVICE: usize = 10;

/// The number of unusable schedules after which the search for a usable one stops.
const MOST_SKIPPED: usize = 64;

/// The order of records, best first. Well measured records, such as the finalists of a run, come
/// before others. Among many candidates with few samples, the luckiest would otherwise come first.
fn best_first_order(target: &TargetFingerprint) -> String {
    let samples = if target.is_cpu() { WELL_MEASURED } else { WELL_MEASURED_ON_DEVICE };
    let bytes = samples * size_of::<f64>();
    format!("ORDER BY length(record.samples) < {bytes}, record.median, record.id")
}

impl Cache {
    /// The record with the smallest median. Well measured records take precedence.
    pub fn best(&self, key: &ProgramKey) -> Result<Option<TuningRecord>, CacheError> {
        let filter = Filter { measured: Some(true), ..Filter::for_key(key) };
        let mut best = None;
        let order = format!("{} LIMIT 1", best_first_order(&key.target));
        rows::for_each_record(&self.connection, &self.path, &filter, &order, &mut |record| {
            best = Some(record);
            Ok(())
        })?;
        Ok(best)
    }

    /// The first record, in the order of [`Cache::best`], that `accept` accepts. The skipped
    /// records carry the reason of their refusal. A damaged row is skipped too.
    pub fn best_usable<T>(
        &self,
        key: &ProgramKey,
        accept: &dyn Fn(TuningRecord) -> Result<T, String>,
    ) -> Result<BestUsable<T>, CacheError> {
        let filter = Filter { measured: Some(true), ..Filter::for_key(key) };
        let mut choice = BestUsable { best: None, unusable: Vec::new() };
        let mut refused: HashSet<String> = HashSet::new();
        rows::for_each_row(
            &self.connection,
            &self.path,
            &filter,
            &best_first_order(&key.target),
            &mut |_, read| {
                let (seconds, outcome) = match read {
                    Err(why) => (None, Err(format!("the record is invalid: {why}"))),
                    // Most schedules have several records. One refusal of a schedule is enough.
                    Ok(record) if !refused.insert(record.schedule.clone()) => {
                        return Ok(ControlFlow::Continue(()));
                    }
                    Ok(record) => (record.median(), accept(record)),
                };
                match outcome {
                    Ok(made) => choice.best = Some(made),
                    Err(why) => choice.unusable.push(UnusableRecord { seconds, why }),
                }
                let is_over = choice.best.is_some() || choice.unusable.len() >= MOST_SKIPPED;
                Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
            },
        )?;
        Ok(choice)
    }

    /// The best records of the same program at other sizes, with other thread counts, or on other
    /// machines of the same kind. They are starting points of a search. The closest come first and
    /// other machines last; there are at most `most`.
    pub fn similar(&self, key: &ProgramKey, most: usize) -> Result<Vec<TuningRecord>, CacheError> {
        let filter = Filter { program: Some(key.canonical.clone()), ..Filter::default() };
        let mut others = self.summaries(&filter)?;
        // Schedules for CPU threads are useless for a GPU.
        let is_of_kind = |other: &ProgramKey| other.target.device == key.target.device;
        others.retain(|summary| summary.best.is_some() && summary.key != *key && is_of_kind(&summary.key));
        others.sort_by(|one, other| distance(key, &one.key).total_cmp(&distance(key, &other.key)));
        let best = others.iter().take(most).map(|summary| self.best(&summary.key));
        best.filter_map(Result::transpose).collect()
    }

    /// The training data for cost models: the last `most` trials on a machine, grouped by program.
    /// Trials of other versions are left out, since their features may have another meaning.
    pub fn experience(
        &self,
        target: &TargetFingerprint,
        most: usize,
    ) -> Result<Vec<Vec<FeaturedTrial>>, CacheError> {
        let sql = |error| self.sql_error(error);
        let [_, features] = added_column_sql(&self.connection).map_err(sql)?;
        let (conditions, values) = Filter { target: Some(target.clone()), ..Filter::default() }.conditions();
        let query = format!(
            "SELECT record.program, record.sizes, record.threads, {features}, record.median FROM {JOINED} \
             WHERE {conditions} AND length({features}) > 0 AND record.tool_version = '{TOOL_VERSION}' ORDER BY record.id DESC LIMIT {most}"
        );
        let mut query = self.connection.prepare(&query).map_err(sql)?;
        let mut rows = query.query(rusqlite::params_from_iter(values)).map_err(sql)?;
        let mut groups: BTreeMap<(i64, String, i64), Vec<FeaturedTrial>> = BTreeMap::new();
        while let Some(row) = rows.next().map_err(sql)? {
            let key = (row.get(0).map_err(sql)?, row.get(1).map_err(sql)?, row.get(2).map_err(sql)?);
            let bytes: Vec<u8> = row.get(3).map_err(sql)?;
            // Damaged features are skipped.
            if let Some(features) = features_from(&bytes).filter(|own| own.iter().all(|own| own.is_finite()))
            {
                groups.entry(key).or_default().push((features, row.get(4).map_err(sql)?));
            }
        }
        Ok(groups.into_values().collect())
    }

    /// The summary of each key among the records that pass a filter, last tuned first.
    pub fn summaries(&self, filter: &Filter) -> Result<Vec<Summary>, CacheError> {
        let sql = |error| self.sql_error(error);
        let (conditions, values) = filter.conditions();
        // SQLite guarantees that bare columns beside a single max() come from the row of the
        // maximum. So the title is the latest one.
        let query = format!(
            "SELECT program.text, record.sizes, target.device, target.model, target.vectors, target.caches, \
             record.threads, record.title, max(record.time), count(*), count(record.median), \
             (SELECT min(other.median) FROM record AS other WHERE other.program = record.program AND \
             other.sizes = record.sizes AND other.target = record.target AND other.threads = record.threads), record.id \
             FROM {JOINED} WHERE {conditions} \
             GROUP BY record.program, record.sizes, record.target, record.threads ORDER BY max(record.time) DESC"
        );
        let mut query = self.connection.prepare(&query).map_err(sql)?;
        let mut rows = query.query(rusqlite::params_from_iter(values)).map_err(sql)?;
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(sql)? {
            let bad =
                |why| CacheError::BadRow { path: self.path.clone(), row: row.get(12).unwrap_or(0), why };
            found.push(summary(row).map_err(bad)?);
        }
        Ok(found)
    }

    /// Returns the best record for a key, or the nearest keys with their differences.
    pub fn explain(&self, key: &ProgramKey) -> Result<Explanation, CacheError> {
        if let Some(record) = self.best(key)? {
            let other_version = (record.tool_version != TOOL_VERSION).then(|| record.tool_version.clone());
            return Ok(Explanation::Hit { record: Box::new(record), measured_by_version: other_version });
        }
        Ok(Explanation::Miss { nearest: self.nearest(key)? })
    }

    /// The keys nearest to the wanted one, with their differences, nearest first.
    pub fn nearest(&self, key: &ProgramKey) -> Result<Vec<NearKey>, CacheError> {
        let same = Filter { program: Some(key.canonical.clone()), ..Filter::default() };
        let mut candidates = self.summaries(&same)?;
        if candidates.is_empty() {
            candidates = self.summaries(&Filter::default())?;
            let shared = |summary: &Summary| count_shared_lines(&key.canonical, &summary.key.canonical);
            candidates.sort_by_cached_key(|summary| std::cmp::Reverse(shared(summary)));
        } else {
            candidates.sort_by(|one, other| distance(key, &one.key).total_cmp(&distance(key, &other.key)));
        }
        candidates.truncate(MOST_NEAR);
        let near = |summary: Summary| NearKey { differences: differences(key, &summary.key), summary };
        Ok(candidates.into_iter().map(near).collect())
    }

    /// The number of records that pass a filter.
    pub fn count(&self, filter: &Filter) -> Result<usize, CacheError> {
        rows::count(&self.connection, filter).map_err(|error| self.sql_error(error))
    }
}

fn summary(row: &rusqlite::Row) -> Result<Summary, String> {
    use rows::read_column;
    let target = TargetFingerprint {
        device: read_column(row, 2)?,
        model: read_column(row, 3)?,
        vectors: read_column(row, 4)?,
        caches: TargetFingerprint::parse_caches(&read_column::<String>(row, 5)?).ok_or("invalid caches")?,
    };
    let sizes = parse_sizes(&read_column::<String>(row, 1)?).ok_or("invalid sizes")?;
    Ok(Summary {
        key: ProgramKey { canonical: read_column(row, 0)?, sizes, target, threads: read_column(row, 6)? },
        title: read_column(row, 7)?,
        last: read_column(row, 8)?,
        trials: read_column(row, 9)?,
        measured: read_column(row, 10)?,
        best: read_column(row, 11)?,
    })
}

/// The distance between two keys of one program. Sizes and threads count by the logarithm of their
/// ratios. Each difference between the machines counts more than any of these.
fn distance(one: &ProgramKey, other: &ProgramKey) -> f64 {
    const OTHER_MACHINE: f64 = 1e3;
    let ratio = |one: f64, other: f64| (one.max(1.0) / other.max(1.0)).log2().abs();
    let sizes =
        one.sizes.iter().zip(&other.sizes).map(|((_, one), (_, other))| ratio(*one as f64, *other as f64));
    let threads = ratio(one.threads as f64, other.threads as f64);
    sizes.sum::<f64>() + threads + OTHER_MACHINE * target_differences(&one.target, &other.target).len() as f64
}

fn count_shared_lines(one: &str, other: &str) -> usize {
    let lines: HashSet<&str> = other.lines().collect();
    one.lines().filter(|line| lines.contains(line)).count()
}

/// All differences between the found and the wanted key.
fn differences(wanted: &ProgramKey, found: &ProgramKey) -> Vec<Difference> {
    let mut all = Vec::new();
    if wanted.canonical == found.canonical {
        let pairs = wanted.sizes.iter().zip(&found.sizes).filter(|(wanted, found)| wanted != found);
        all.extend(pairs.map(|((name, wanted), (_, found))| Difference::Size {
            name: name.clone(),
            wanted: *wanted,
            found: *found,
        }));
    } else {
        all.push(program_difference(&wanted.canonical, &found.canonical));
    }
    if wanted.threads != found.threads {
        all.push(Difference::Threads { wanted: wanted.threads, found: found.threads });
    }
    all.extend(target_differences(&wanted.target, &found.target));
    if all.is_empty() {
        all.push(Difference::NothingMeasured);
    }
    all
}

fn program_difference(wanted: &str, found: &str) -> Difference {
    let mut pairs = wanted.lines().chain([""]).zip(found.lines().chain([""]));
    let (wanted, found) = pairs.find(|(wanted, found)| wanted != found).unwrap_or_default();
    Difference::Program { wanted: wanted.to_owned(), found: found.to_owned() }
}

fn target_differences(wanted: &TargetFingerprint, found: &TargetFingerprint) -> Vec<Difference> {
    let fields = [
        ("device", wanted.device.clone(), found.device.clone()),
        ("model", wanted.model.clone(), found.model.clone()),
        ("vectors", wanted.vectors.clone(), found.vectors.clone()),
        ("caches", wanted.caches_text(), found.caches_text()),
    ];
    let differing = fields.into_iter().filter(|(_, wanted, found)| wanted != found);
    differing.map(|(field, wanted, found)| Difference::Target { field, wanted, found }).collect()
}
