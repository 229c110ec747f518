//! What a run takes from the cache, and leaves there.

use std::path::PathBuf;

use tilewright_ir::Program;
use tilewright_schedule::text;
use tilewright_target::Cpu;
use tilewright_tuner::cache::{
    Cache, CacheError, Canonical, ProgramKey, TOOL_VERSION, TargetFingerprint, TuningRecord,
};
use tilewright_tuner::outcome::Trial;
use tilewright_tuner::tune::Tuned;

use crate::args::TuneArgs;
use crate::failure::Failure;
use crate::output::complain;
use crate::time::now;

/// Schedules of similar programs that a search starts from.
const HINTS: usize = 8;

/// Keeps every trial.
pub struct Recorder<'a> {
    cache: Cache,
    path: PathBuf,
    canonical: Canonical,
    key: ProgramKey,
    cpu: &'a Cpu,
    strategy: String,
    seed: u64,
    kept: usize,
    /// Why nothing is kept any more.
    broken: Option<String>,
}

impl<'a> Recorder<'a> {
    /// Opens the cache.
    pub fn new(args: &TuneArgs, program: &Program, cpu: &'a Cpu) -> Result<Recorder<'a>, Failure> {
        let path = args.file.path()?;
        let cache = args.file.made()?;
        let canonical = Canonical::new(program);
        let key = canonical.key(&TargetFingerprint::host(cpu), cpu.cores);
        let (strategy, seed) = (args.strategy.clone(), args.seed);
        Ok(Recorder { cache, path, canonical, key, cpu, strategy, seed, kept: 0, broken: None })
    }

    /// Schedules that may be good: the best that is known of this program, and of the same at other sizes.
    pub fn hints(&self) -> Vec<String> {
        let own = self.cache.best(&self.key).ok().flatten();
        let similar = self.cache.similar(&self.key, HINTS).unwrap_or_default();
        let mut hints: Vec<String> = Vec::new();
        for record in own.into_iter().chain(similar) {
            let renamed = self.canonical.schedule_of(&record, self.cpu);
            let text = renamed.schedule.to_string();
            if renamed.refusal.is_none() && !hints.contains(&text) {
                hints.push(text);
            }
        }
        hints
    }

    /// Keeps a trial. A cache that fails is told of once; the search goes on without.
    pub fn keep(&mut self, schedule: &str, trial: &Trial, number: usize) {
        if self.broken.is_some() {
            return;
        }
        let parsed = text::parse(schedule).schedule;
        let record = TuningRecord {
            program: self.key.clone(),
            title: self.canonical.title(),
            schedule: self.canonical.to_canonical(&parsed, self.cpu).schedule.to_string(),
            strategy: self.strategy.clone(),
            outcome: trial.outcome.clone(),
            samples: trial.samples.clone(),
            tool_version: TOOL_VERSION.to_owned(),
            time: now(),
            seed: Some(self.seed),
            trial: Some(number as u64),
        };
        match self.cache.insert(&record) {
            Ok(_) => self.kept += 1,
            Err(error) => self.give_up(&error),
        }
    }

    /// Keeps the samples of the last comparison.
    pub fn finalists(&mut self, tuned: &Tuned) {
        for (schedule, samples) in &tuned.finalists {
            self.keep(schedule, &Trial::measured(samples.clone()), tuned.trials);
        }
    }

    fn give_up(&mut self, error: &CacheError) {
        let why = error.to_string();
        complain(&format!("warning: {why}; the search goes on, and keeps nothing more"));
        self.broken = Some(why);
    }

    /// What was kept where.
    pub fn describe(&self) -> String {
        let lost = self.broken.as_ref().map(|why| format!("; then {why}")).unwrap_or_default();
        format!("{} records in {}{lost}", self.kept, self.path.display())
    }
}
