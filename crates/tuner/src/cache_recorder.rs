//! Connects a search with the cache: takes schedules to start from and training data for cost
//! models out of the cache, and records every trial in it ([`CacheRecorder`]).

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use tilewright_ir::Program;
use tilewright_schedule::text;
use tilewright_search::strategy::Experience;
use tilewright_target::Machine;

use crate::tune::{Attempt, Finalist, Options, RefutedSchedule, TuningReport};
use tilewright_cache::{
    Cache, CacheError, Canonical, Filter, Outcome, ProgramKey, TOOL_VERSION, Trial, TuningRecord,
};

/// The number of similar programs' schedules that a search starts from.
const MOST_HINTS: usize = 8;
/// The number of latest trials of all programs that a cost model learns from. Learning from more
/// takes longer than measuring.
const MOST_TRAINING_TRIALS: usize = 4000;

/// Records every trial of a search.
pub struct CacheRecorder {
    /// The cache, if it can be opened.
    cache: Option<Cache>,
    canonical: Canonical,
    /// The number of the trial and the features of each recorded schedule.
    recorded: HashMap<String, (usize, Vec<f32>)>,
    key: ProgramKey,
    machine: Machine,
    strategy: &'static str,
    seed: u64,
    record_count: usize,
    /// The error that keeps trials from being recorded, from the start or since some trial.
    cache_error: Option<CacheError>,
}

impl CacheRecorder {
    /// A recorder of the trials of a search with these options, if the cache can be written.
    /// [`CacheRecorder::cache_error`] returns the error if it cannot be opened or written.
    pub fn new(
        cache: Result<Cache, CacheError>,
        program: &Program,
        machine: &Machine,
        options: &Options,
    ) -> CacheRecorder {
        let (cache, broken) = match cache {
            Ok(cache) => {
                let broken = cache.check_writable().err();
                (Some(cache), broken)
            }
            Err(error) => (None, Some(error)),
        };
        let canonical = Canonical::new(program);
        let key = canonical.key_on(machine.target());
        CacheRecorder {
            cache,
            canonical,
            recorded: HashMap::new(),
            key,
            machine: machine.clone(),
            strategy: options.strategy.name,
            seed: options.seed,
            record_count: 0,
            cache_error: broken,
        }
    }

    /// The error that keeps trials from being recorded, from the start or since some trial.
    pub fn cache_error(&self) -> Option<&CacheError> {
        self.cache_error.as_ref()
    }

    /// Adds the cache's knowledge to the options: schedules to start from, and training data for
    /// cost models.
    pub fn add_cache_knowledge(&self, options: &mut Options) {
        options.hints = self.hints();
        if options.strategy.learns_from_others {
            options.experience = self.experience();
        }
    }

    /// Schedules that may be good: the best known ones of this program, and of the same program at
    /// other sizes.
    fn hints(&self) -> Vec<String> {
        let Some(cache) = &self.cache else { return Vec::new() };
        let own = cache.best_usable(&self.key, &|record| self.schedule_in_program_names(record));
        let similar = cache.similar(&self.key, MOST_HINTS).unwrap_or_default().into_iter();
        let similar = similar.filter_map(|record| self.schedule_in_program_names(record).ok());
        let mut hints: Vec<String> = Vec::new();
        for hint in own.ok().and_then(|own| own.best).into_iter().chain(similar) {
            if !hints.contains(&hint) {
                hints.push(hint);
            }
        }
        hints
    }

    /// The trials on this machine, of all programs.
    fn experience(&self) -> Vec<Experience> {
        let known = self.cache.as_ref().map(|cache| cache.experience(&self.key.target, MOST_TRAINING_TRIALS));
        let known = known.and_then(Result::ok).unwrap_or_default();
        known.into_iter().map(|trials| Experience { trials }).collect()
    }

    /// The steps of a record in the names of the program, or the reason of their refusal.
    fn schedule_in_program_names(&self, record: TuningRecord) -> Result<String, String> {
        let renamed = self.canonical.schedule_of(&record, self.machine.target());
        renamed.refusal.map_or(Ok(renamed.schedule.to_string()), |refusal| Err(refusal.to_string()))
    }

    /// Records a trial. After the first error of the cache, which is returned once, nothing more is
    /// recorded.
    pub fn record_trial(&mut self, attempt: &Attempt<'_>, number: usize) -> Result<(), &CacheError> {
        let Some(cache) = self.cache.as_ref().filter(|_| self.cache_error.is_none()) else { return Ok(()) };
        let Attempt { schedule, features, trial } = *attempt;
        let parsed = text::parse(schedule).schedule;
        let canonical = self.canonical.to_canonical(&parsed, self.machine.target()).schedule.to_string();
        // The cache may hold older times of a schedule that is refuted now, also from other runs.
        if let Outcome::Refuted(_) = trial.outcome
            && let Err(error) = cache.clear(&Filter::for_measured_schedule(&self.key, &canonical))
        {
            return Err(self.cache_error.insert(error));
        }
        let record = TuningRecord {
            program: self.key.clone(),
            title: self.canonical.title(),
            schedule: canonical,
            strategy: self.strategy.to_owned(),
            outcome: trial.outcome.clone(),
            samples: trial.samples.clone(),
            resources: trial.resources.clone(),
            features: features.to_vec(),
            tool_version: TOOL_VERSION.to_owned(),
            time: now(),
            seed: Some(self.seed),
            trial: Some(number as u64),
        };
        if let Err(error) = cache.insert(&record) {
            return Err(self.cache_error.insert(error));
        }
        self.record_count += 1;
        self.recorded.entry(schedule.to_owned()).or_insert_with(|| (number, features.to_vec()));
        Ok(())
    }

    /// Records the samples of the final comparison, and the refutations of schedules that must not
    /// be used.
    pub fn record_finalists(&mut self, tuned: &TuningReport) -> Result<(), &CacheError> {
        if self.cache_error.is_some() {
            return Ok(());
        }
        for RefutedSchedule { schedule, reason } in &tuned.refuted {
            let trial = Trial::failed(Outcome::Refuted(reason.clone()));
            self.record_again(schedule, &trial, tuned.trials);
        }
        for Finalist { schedule, samples, resources } in &tuned.finalists {
            let trial = Trial { resources: resources.clone(), ..Trial::measured(samples.clone()) };
            self.record_again(schedule, &trial, tuned.trials);
        }
        self.cache_error.as_ref().map_or(Ok(()), Err)
    }

    /// Records another result of a schedule under the number of its trial. After the first error,
    /// all further calls do nothing.
    fn record_again(&mut self, schedule: &str, trial: &Trial, unknown: usize) {
        let known = self.recorded.get(schedule).cloned();
        let (number, features) = known.unwrap_or_else(|| (unknown, Vec::new()));
        let _ = self.record_trial(&Attempt { schedule, features: &features, trial }, number);
    }

    /// A message with the number of records and the path of the cache.
    pub fn describe(&self) -> String {
        let kept = if self.record_count == 1 {
            "1 record".to_owned()
        } else {
            format!("{} records", self.record_count)
        };
        match (&self.cache, &self.cache_error) {
            (Some(cache), None) => format!("{kept} in {}", cache.path().display()),
            (Some(cache), Some(why)) if self.record_count > 0 => {
                format!("{kept} in {}; then storing failed: {why}", cache.path().display())
            }
            (_, Some(why)) => format!("no records were stored: {why}"),
            (None, None) => "no records were stored: there is no cache".to_owned(),
        }
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
