//! What a run takes from the cache, and leaves there.

use std::collections::HashMap;

use tilewright_ir::Program;
use tilewright_schedule::text;
use tilewright_search::strategy::Experience;
use tilewright_target::{Machine, Target};
use tilewright_tuner::cache::{Cache, CacheError, Canonical, ProgramKey, TOOL_VERSION, TuningRecord};
use tilewright_tuner::outcome::Trial;
use tilewright_tuner::tune::{Attempt, Finalist, Tuned};

use crate::args::TuneArgs;
use crate::args::cache::CacheFile;
use crate::commands::cache::failure as cache_failure;
use crate::failure::Failure;
use crate::output::complain;
use crate::time::now;

/// Schedules of similar programs that a search starts from.
const HINTS: usize = 8;
/// Trials of all programs that a model learns from, the last ones: more take longer to learn from than to measure.
const LESSONS: usize = 4000;

/// Keeps every trial.
pub struct Recorder<'a> {
    /// The cache, if it can be read at all.
    cache: Option<Cache>,
    canonical: Canonical,
    /// What models learn from the schedules that were kept.
    features: HashMap<String, Vec<f32>>,
    key: ProgramKey,
    target: Target<'a>,
    strategy: String,
    seed: u64,
    kept: usize,
    /// Why nothing is kept, or nothing any more.
    broken: Option<String>,
}

impl<'a> Recorder<'a> {
    /// Opens the cache. One that was not asked for and cannot be used is told of, and done without.
    pub fn new(args: &TuneArgs, program: &Program, machine: &'a Machine) -> Result<Recorder<'a>, Failure> {
        let (cache, broken) = opened(&args.file);
        let broken = match broken {
            Some(failure) if args.file.cache.is_some() => return Err(failure),
            Some(failure) => {
                complain(&format!("warning: {failure}; the search keeps nothing"));
                Some(failure.to_string())
            }
            None => None,
        };
        let (canonical, target) = (Canonical::new(program), machine.target());
        let key = canonical.key_on(target);
        let (strategy, seed) = (args.strategy(machine).to_owned(), args.seed);
        Ok(Recorder {
            cache,
            canonical,
            features: HashMap::new(),
            key,
            target,
            strategy,
            seed,
            kept: 0,
            broken,
        })
    }

    /// Schedules that may be good: the best that is known of this program, and of the same at other sizes.
    pub fn hints(&self) -> Vec<String> {
        let Some(cache) = &self.cache else { return Vec::new() };
        let own = cache.best_usable(&self.key, &|record| self.own_names(record));
        let similar = cache.similar(&self.key, HINTS).unwrap_or_default().into_iter();
        let similar = similar.filter_map(|record| self.own_names(record).ok());
        let mut hints: Vec<String> = Vec::new();
        for hint in own.ok().and_then(|own| own.best).into_iter().chain(similar) {
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
        hints
    }

    /// What was tried on this machine for any program.
    pub fn experience(&self) -> Vec<Experience> {
        let known = self.cache.as_ref().map(|cache| cache.experience(&self.key.target, LESSONS));
        known.and_then(Result::ok).unwrap_or_default()
    }

    /// The steps of a record in the names of the program, unless they are refused.
    fn own_names(&self, record: TuningRecord) -> Result<String, String> {
        let renamed = self.canonical.schedule_of(&record, self.target);
        renamed.refusal.map_or(Ok(renamed.schedule.to_string()), |refusal| Err(refusal.to_string()))
    }

    /// Keeps a trial. A cache that fails is told of once; the search goes on without.
    pub fn keep(&mut self, attempt: &Attempt<'_>, number: usize) {
        let Some(cache) = self.cache.as_ref().filter(|_| self.broken.is_none()) else { return };
        let Attempt { schedule, features, trial } = *attempt;
        let parsed = text::parse(schedule).schedule;
        let record = TuningRecord {
            program: self.key.clone(),
            title: self.canonical.title(),
            schedule: self.canonical.to_canonical(&parsed, self.target).schedule.to_string(),
            strategy: self.strategy.clone(),
            outcome: trial.outcome.clone(),
            samples: trial.samples.clone(),
            resources: trial.resources.clone(),
            features: features.to_vec(),
            tool_version: TOOL_VERSION.to_owned(),
            time: now(),
            seed: Some(self.seed),
            trial: Some(number as u64),
        };
        match cache.insert(&record) {
            Ok(_) => {
                self.kept += 1;
                self.features.insert(schedule.to_owned(), features.to_vec());
            }
            Err(error) => self.give_up(&error),
        }
    }

    /// Keeps the samples of the last comparison.
    pub fn finalists(&mut self, tuned: &Tuned) {
        for Finalist { schedule, samples, resources } in &tuned.finalists {
            let trial = Trial { resources: resources.clone(), ..Trial::measured(samples.clone()) };
            let features = self.features.get(schedule).cloned().unwrap_or_default();
            self.keep(&Attempt { schedule, features: &features, trial: &trial }, tuned.trials);
        }
    }

    fn give_up(&mut self, error: &CacheError) {
        let why = error.to_string();
        complain(&format!("warning: {why}; the search goes on, and keeps nothing more"));
        self.broken = Some(why);
    }

    /// What was kept where.
    pub fn describe(&self) -> String {
        match (&self.cache, &self.broken) {
            (Some(cache), None) => format!("{} records in {}", self.kept, cache.path().display()),
            (Some(cache), Some(why)) if self.kept > 0 => {
                format!("{} records in {}; then {why}", self.kept, cache.path().display())
            }
            (_, why) => format!("nothing was kept: {}", why.as_deref().unwrap_or("there is no cache")),
        }
    }
}

/// The cache, if it can be read, and why nothing can be kept in it.
fn opened(file: &CacheFile) -> (Option<Cache>, Option<Failure>) {
    match file.made() {
        Ok(cache) => {
            let broken = cache.expect_writable().err().map(cache_failure);
            (Some(cache), broken)
        }
        Err(failure) => (None, Some(failure)),
    }
}
