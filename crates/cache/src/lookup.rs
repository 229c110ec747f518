//! Looking up: the best record of a program, those of similar ones, and why there is none.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

use crate::error::CacheError;
use crate::file::added_columns;
use crate::key::{ProgramKey, TargetFingerprint, parse_sizes};
use crate::record::TuningRecord;
use crate::rows::{self, Filter, JOINED, features_from};
use crate::{Cache, TOOL_VERSION};

/// What is known of one program at some sizes, on a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The program, its sizes and the machine.
    pub key: ProgramKey,
    /// What a person called it last.
    pub title: String,
    /// The least seconds of one call, if a candidate was measured.
    pub best: Option<f64>,
    /// Candidates that were tried.
    pub trials: usize,
    /// Candidates that were measured.
    pub measured: usize,
    /// When the last was tried, in seconds since 1970.
    pub last: i64,
}

/// Whether there is a record for a program, or what is nearest.
#[derive(Clone, Debug, PartialEq)]
pub enum Explanation {
    /// There is one.
    Hit {
        /// The best.
        record: Box<TuningRecord>,
        /// The version that measured it, if it is another than this. The record is used all the same.
        other_version: Option<String>,
    },
    /// There is none.
    Miss {
        /// The nearest there are, nearest first.
        nearest: Vec<Near>,
    },
}

/// The best record that can be used, and those that would have been better.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<T> {
    /// What was made of the best that can be used.
    pub best: Option<T>,
    /// Better ones that cannot be used, best first.
    pub skipped: Vec<Skipped>,
}

/// A record that cannot be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Skipped {
    /// Its seconds of one call, if the row can be read at all.
    pub seconds: Option<f64>,
    /// Why it cannot be used.
    pub why: String,
}

/// Records that do not fit, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Near {
    /// What they are of.
    pub summary: Summary,
    /// All in which they differ from what was looked for.
    pub differences: Vec<Difference>,
}

/// One thing in which a key differs from the one that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It is of another program.
    Program {
        /// The first line of the canonical text that was looked for and is not there.
        wanted: String,
        /// What is there in its place.
        found: String,
    },
    /// A size has another value.
    Size {
        /// Its canonical name.
        name: String,
        /// What was looked for.
        wanted: i64,
        /// What there is.
        found: i64,
    },
    /// Another number of threads.
    Threads {
        /// What was looked for.
        wanted: usize,
        /// What there is.
        found: usize,
    },
    /// Another machine.
    Target {
        /// Which property of it.
        field: &'static str,
        /// What was looked for.
        wanted: String,
        /// What there is.
        found: String,
    },
    /// Everything fits, but every candidate failed.
    NothingMeasured,
}

/// The features of a trial's loop nest, and the median of its samples in seconds, if it was measured.
pub type FeaturedTrial = (Vec<f32>, Option<f64>);

/// How many near ones are worth showing.
const MOST_NEAR: usize = 5;

/// Samples that say enough, on a processor that others use as well, and on a device.
const WELL_MEASURED: usize = 20;
const WELL_MEASURED_ON_DEVICE: usize = 10;

/// After so many schedules that cannot be used, the others are not looked at.
const MOST_SKIPPED: usize = 64;

/// Those that were measured well, as the finalists of a run are, come before others: of many candidates with few samples,
/// the luckiest is first.
fn best_first(target: &TargetFingerprint) -> String {
    let samples = if target.device == "cpu" { WELL_MEASURED } else { WELL_MEASURED_ON_DEVICE };
    let bytes = samples * size_of::<f64>();
    format!("ORDER BY length(record.samples) < {bytes}, record.median, record.id")
}

impl Cache {
    /// The record with the least median, of those that were measured well if there are such.
    pub fn best(&self, key: &ProgramKey) -> Result<Option<TuningRecord>, CacheError> {
        let filter = Filter { measured: Some(true), ..Filter::of(key) };
        let mut best = None;
        let order = format!("{} LIMIT 1", best_first(&key.target));
        rows::visit(&self.connection, &self.path, &filter, &order, &mut |record| {
            best = Some(record);
            Ok(())
        })?;
        Ok(best)
    }

    /// The first record, in the order of [`Cache::best`], that something can be made of; the others say why not. So does
    /// a row that is damaged.
    pub fn best_usable<T>(
        &self,
        key: &ProgramKey,
        usable: &dyn Fn(TuningRecord) -> Result<T, String>,
    ) -> Result<Choice<T>, CacheError> {
        let filter = Filter { measured: Some(true), ..Filter::of(key) };
        let mut choice = Choice { best: None, skipped: Vec::new() };
        let mut refused: HashSet<String> = HashSet::new();
        rows::each(&self.connection, &self.path, &filter, &best_first(&key.target), &mut |_, read| {
            let (seconds, outcome) = match read {
                Err(why) => (None, Err(format!("it is not one that Tilewright wrote: {why}"))),
                // The same schedule was most often measured several times.
                Ok(record) if !refused.insert(record.schedule.clone()) => {
                    return Ok(ControlFlow::Continue(()));
                }
                Ok(record) => (record.median(), usable(record)),
            };
            match outcome {
                Ok(made) => choice.best = Some(made),
                Err(why) => choice.skipped.push(Skipped { seconds, why }),
            }
            let is_over = choice.best.is_some() || choice.skipped.len() >= MOST_SKIPPED;
            Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        Ok(choice)
    }

    /// The best records of the same program at other sizes, with other threads or on other machines of the same kind:
    /// points to start from. The closest first, and other machines last; `most` at most.
    pub fn similar(&self, key: &ProgramKey, most: usize) -> Result<Vec<TuningRecord>, CacheError> {
        let filter = Filter { program: Some(key.canonical.clone()), ..Filter::default() };
        let mut others = self.summaries(&filter)?;
        // Loops over threads of a processor are of no use to a GPU.
        let is_of_kind = |other: &ProgramKey| other.target.device == key.target.device;
        others.retain(|summary| summary.best.is_some() && summary.key != *key && is_of_kind(&summary.key));
        others.sort_by(|one, other| distance(key, &one.key).total_cmp(&distance(key, &other.key)));
        let best = others.iter().take(most).map(|summary| self.best(&summary.key));
        best.filter_map(Result::transpose).collect()
    }

    /// What models can learn from all that was tried on a machine, program by program; the last `most` trials. Those of another
    /// version do not count: its numbers may mean something else.
    pub fn experience(
        &self,
        target: &TargetFingerprint,
        most: usize,
    ) -> Result<Vec<Vec<FeaturedTrial>>, CacheError> {
        let sql = |error| self.sql(error);
        let [_, features] = added_columns(&self.connection).map_err(sql)?;
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
            // What is no list of numbers teaches nothing.
            if let Some(features) = features_from(&bytes).filter(|own| own.iter().all(|own| own.is_finite()))
            {
                groups.entry(key).or_default().push((features, row.get(4).map_err(sql)?));
            }
        }
        Ok(groups.into_values().collect())
    }

    /// What is known of each program, its sizes and its machine; the last tuned first.
    pub fn summaries(&self, filter: &Filter) -> Result<Vec<Summary>, CacheError> {
        let sql = |error| self.sql(error);
        let (conditions, values) = filter.conditions();
        // The title is of the row with the last time, as SQLite promises of columns beside a single max().
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

    /// Whether there is a record for a program, or what is nearest and in what it differs.
    pub fn explain(&self, key: &ProgramKey) -> Result<Explanation, CacheError> {
        if let Some(record) = self.best(key)? {
            let other_version = (record.tool_version != TOOL_VERSION).then(|| record.tool_version.clone());
            return Ok(Explanation::Hit { record: Box::new(record), other_version });
        }
        Ok(Explanation::Miss { nearest: self.nearest(key)? })
    }

    /// The records that are nearest to what is looked for, and in what they differ; the nearest first.
    pub fn nearest(&self, key: &ProgramKey) -> Result<Vec<Near>, CacheError> {
        let same = Filter { program: Some(key.canonical.clone()), ..Filter::default() };
        let mut candidates = self.summaries(&same)?;
        if candidates.is_empty() {
            candidates = self.summaries(&Filter::default())?;
            let shared = |summary: &Summary| shared_lines(&key.canonical, &summary.key.canonical);
            candidates.sort_by_cached_key(|summary| std::cmp::Reverse(shared(summary)));
        } else {
            candidates.sort_by(|one, other| distance(key, &one.key).total_cmp(&distance(key, &other.key)));
        }
        candidates.truncate(MOST_NEAR);
        let near = |summary: Summary| Near { differences: differences(key, &summary.key), summary };
        Ok(candidates.into_iter().map(near).collect())
    }

    /// How many records a filter lets through.
    pub fn count(&self, filter: &Filter) -> Result<usize, CacheError> {
        rows::count(&self.connection, filter).map_err(|error| self.sql(error))
    }
}

fn summary(row: &rusqlite::Row) -> Result<Summary, String> {
    use rows::get;
    let target = TargetFingerprint {
        device: get(row, 2)?,
        model: get(row, 3)?,
        vectors: get(row, 4)?,
        caches: TargetFingerprint::parse_caches(&get::<String>(row, 5)?).ok_or("it has bad caches")?,
    };
    let sizes = parse_sizes(&get::<String>(row, 1)?).ok_or("it has bad sizes")?;
    Ok(Summary {
        key: ProgramKey { canonical: get(row, 0)?, sizes, target, threads: get(row, 6)? },
        title: get(row, 7)?,
        last: get(row, 8)?,
        trials: get(row, 9)?,
        measured: get(row, 10)?,
        best: get(row, 11)?,
    })
}

/// How far two keys of one program are apart: sizes and threads by their ratios, and another machine further than any.
fn distance(one: &ProgramKey, other: &ProgramKey) -> f64 {
    const OTHER_MACHINE: f64 = 1e3;
    let ratio = |one: f64, other: f64| (one.max(1.0) / other.max(1.0)).log2().abs();
    let sizes =
        one.sizes.iter().zip(&other.sizes).map(|((_, one), (_, other))| ratio(*one as f64, *other as f64));
    let threads = ratio(one.threads as f64, other.threads as f64);
    sizes.sum::<f64>() + threads + OTHER_MACHINE * target_differences(&one.target, &other.target).len() as f64
}

fn shared_lines(one: &str, other: &str) -> usize {
    let lines: HashSet<&str> = other.lines().collect();
    one.lines().filter(|line| lines.contains(line)).count()
}

/// All in which what was found differs from what was looked for.
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
