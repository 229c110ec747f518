//! Chooses the schedule of a program: a given one, the best of the cache, the result of a search
//! without trials, or the default ([`ChosenSchedule`]).

use std::path::Path;

use tilewright_cache::{BestUsable, Cache, CacheError, Difference, TunedSchedule, UnusableRecord};
use tilewright_ir::Program;
use tilewright_schedule::Schedule;
use tilewright_search::beam::{self, BeamOptions};
use tilewright_search::cost::CostModel;
use tilewright_search::default_schedule;
use tilewright_search::kind::cost_model;
use tilewright_target::Target;

use crate::adapted::adapted_or_default;

/// Where a schedule comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// The caller gave it.
    Given,
    /// Rules, and on a CPU a short search by the cost model.
    Default,
    /// A search by the cost model alone, without trials.
    Searched {
        /// The predicted time of one call, in seconds.
        seconds: f64,
    },
    /// The tuning cache, but it was tuned for other sizes or another number of threads.
    Adapted {
        /// The differences.
        differences: Vec<Difference>,
    },
    /// The tuning cache.
    Tuned {
        /// The median time of one call when it was tuned, in seconds.
        seconds: f64,
        /// Whether it was the default schedule when it was tuned.
        is_default: bool,
    },
}

/// The schedule of a program on a target.
#[derive(Clone, Debug)]
pub struct ChosenSchedule {
    /// The steps.
    pub schedule: Schedule,
    /// Where they come from.
    pub origin: Origin,
    /// Faster records of the cache that cannot be used, fastest first.
    pub unusable: Vec<UnusableRecord>,
}

impl ChosenSchedule {
    /// The schedule that the caller gave.
    pub fn given(schedule: Schedule) -> ChosenSchedule {
        ChosenSchedule { schedule, origin: Origin::Given, unusable: Vec::new() }
    }

    /// The default schedule.
    pub fn default<'t>(program: &'t Program, target: impl Into<Target<'t>>) -> ChosenSchedule {
        let schedule = default_schedule(program, target);
        ChosenSchedule { schedule, origin: Origin::Default, unusable: Vec::new() }
    }

    /// The schedule that a beam search finds, by the cost model alone.
    pub fn searched<'t>(program: &'t Program, target: impl Into<Target<'t>>) -> ChosenSchedule {
        let target = target.into();
        ChosenSchedule::searched_with(program, target, &*cost_model(target))
    }

    /// The schedule that a beam search finds, by this cost model.
    pub fn searched_with<'t>(
        program: &'t Program,
        target: impl Into<Target<'t>>,
        model: &dyn CostModel,
    ) -> ChosenSchedule {
        let target = target.into();
        let found = beam::search(program, target, model, &BeamOptions::ONE_SHOT);
        match found.ok().and_then(|found| found.ranked.into_iter().next()) {
            Some((schedule, seconds)) => {
                ChosenSchedule { schedule, origin: Origin::Searched { seconds }, unusable: Vec::new() }
            }
            // A program that the search cannot begin with, such as one of unknown sizes, is refused
            // with any schedule.
            None => ChosenSchedule::default(program, target),
        }
    }

    /// The fastest schedule that the cache in a file has for this program, these sizes and this
    /// target. Where the cache has none, it is a schedule for nearly the same sizes or another
    /// number of threads, or else the default schedule. A file that does not exist is
    /// [`CacheError::Missing`].
    pub fn from_cache<'t>(
        program: &'t Program,
        target: impl Into<Target<'t>>,
        cache: &Path,
    ) -> Result<ChosenSchedule, CacheError> {
        let target = target.into();
        let cache = Cache::open_existing(cache)?;
        let BestUsable { best, unusable: skipped } = cache.best_schedule(program, target)?;
        let chosen = match best {
            None => {
                let near = cache.near_schedules(program, target)?;
                adapted_or_default(program, target, near, &*cost_model(target))
            }
            Some(TunedSchedule { schedule, seconds, is_default }) => ChosenSchedule {
                schedule,
                origin: Origin::Tuned { seconds, is_default },
                unusable: Vec::new(),
            },
        };
        Ok(ChosenSchedule { unusable: skipped, ..chosen })
    }
}
