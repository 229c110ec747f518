//! What a run takes from the cache, and leaves there.

use tilewright_cache::{Cache, CacheError};
use tilewright_ir::Program;
use tilewright_target::Machine;
use tilewright_tuner::keeper::Keeper;
use tilewright_tuner::tune::{Attempt, Options, Tuned};

use crate::args::TuneArgs;
use crate::commands::cache::failure as cache_failure;
use crate::failure::Failure;
use crate::output::complain;

/// Keeps every trial, and says so when it cannot.
pub struct Recorder<'a> {
    keeper: Keeper<'a>,
}

impl<'a> Recorder<'a> {
    /// Opens the cache. One that was not asked for and cannot be used is told of, and done without.
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

    /// Gives a search what is known.
    pub fn prepare(&self, options: &mut Options) {
        self.keeper.prepare(options);
    }

    /// Keeps a trial. A cache that fails is told of once; the search goes on without.
    pub fn keep(&mut self, attempt: &Attempt<'_>, number: usize) {
        self.keeper.keep(attempt, number).unwrap_or_else(give_up);
    }

    /// Keeps the samples of the last comparison.
    pub fn finalists(&mut self, tuned: &Tuned) {
        self.keeper.keep_finalists(tuned).unwrap_or_else(give_up);
    }

    /// What was kept where.
    pub fn describe(&self) -> String {
        self.keeper.describe()
    }
}

fn give_up(error: &CacheError) {
    complain(&format!("warning: {error}; the search goes on, and keeps nothing more"));
}
