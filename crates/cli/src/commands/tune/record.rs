//! Reads earlier results from the cache before a run, and writes every trial to it.

use tilewright_cache::{Cache, CacheError};
use tilewright_ir::Program;
use tilewright_target::Machine;
use tilewright_tuner::keeper::Keeper;
use tilewright_tuner::tune::{Attempt, Options, Tuned};

use crate::args::TuneArgs;
use crate::commands::cache::failure as cache_failure;
use crate::failure::Failure;
use crate::output::complain;

/// Writes every trial to the cache, and warns when that fails.
pub struct Recorder<'a> {
    keeper: Keeper<'a>,
}

impl<'a> Recorder<'a> {
    /// Opens the cache. If the default cache cannot be used, prints a warning and continues without
    /// it.
    pub fn new(
        args: &TuneArgs,
        program: &Program,
        machine: &'a Machine,
        options: &Options,
    ) -> Result<Recorder<'a>, Failure> {
        let path = args.file.cache.clone().map_or_else(Cache::default_path, Ok);
        let keeper = Keeper::new(path.and_then(|path| Cache::open(&path)), program, machine, options);
        if args.file.cache.is_some() && keeper.broken().is_some() {
            return Err(keeper.into_broken().map_or(Failure::Reported, cache_failure));
        }
        if let Some(why) = keeper.broken() {
            complain(&format!("warning: {why}; the search keeps nothing"));
        }
        Ok(Recorder { keeper })
    }

    /// Adds earlier results of the cache to the options of a search.
    pub fn prepare(&self, options: &mut Options) {
        self.keeper.prepare(options);
    }

    /// Keeps a trial. When the cache fails, prints one warning, and the search continues without
    /// it.
    pub fn keep(&mut self, attempt: &Attempt<'_>, number: usize) {
        self.keeper.keep(attempt, number).unwrap_or_else(give_up);
    }

    /// Keeps the samples of the final comparison.
    pub fn finalists(&mut self, tuned: &Tuned) {
        self.keeper.keep_finalists(tuned).unwrap_or_else(give_up);
    }

    /// Describes which records were kept, and where.
    pub fn describe(&self) -> String {
        self.keeper.describe()
    }
}

fn give_up(error: &CacheError) {
    complain(&format!("warning: {error}; the search goes on, and keeps nothing more"));
}
