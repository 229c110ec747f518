//! Compares strategies on the same programs, under one budget, from the same seeds, with the same
//! measurements.
//!
//! A schedule is measured once, when the first strategy asks for it. All other strategies get the
//! same result, and are charged the same time for it. So strategies differ only in the points that
//! they propose. A comparison whose measurements were recorded can be repeated without the machine.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | the setting of a comparison, and the comparison on one program |
//! | `concurrent_searches.rs` | all searches on a program |
//! | `running_search.rs` | one search |
//! | `final_times.rs` | the final times of the schedules that searches found |
//! | `landscape.rs` | the costs of schedules, recorded or measured on demand |
//! | `landscape_file.rs` | landscapes in files |
//! | `results.rs`, `summary.rs` | the results, and their statistics |

mod concurrent_searches;
mod final_times;
mod landscape;
mod landscape_file;
mod results;
mod running_search;
mod summary;

use std::time::{Duration, Instant};

use thiserror::Error;
use tilewright_ir::Program;
use tilewright_search::knob::Point;
use tilewright_search::space::Space;
use tilewright_search::strategy::{Experience, Unsuitable, find};
use tilewright_target::Machine;

pub use landscape::{CostRecorder, KnownCost, Landscape};
pub use landscape_file::{LandscapeFile, LandscapeFileError, ProgramEntry};
pub use results::{Comparison, Contender, Improvement, ProgramResult, SearchResult, StrategyResult};
pub use summary::{EffortToGoal, Overall, Summary, overall, summaries};

use crate::schedule_features::ScheduleFeatures;
use crate::task::TaskError;
use crate::tune::{Candidates, MachineParameters, Stop};
use crate::worker::WorkerError;
use final_times::Finalists;
use tilewright_cache::outcome::Outcome;

/// The largest number of trials of one program that other programs' searches learn from. More
/// trials teach little and slow learning down.
const MOST_TRAINING_TRIALS: usize = 1000;
/// The number of points per batch when a whole space is tried.
const SPACE_BATCH: usize = 64;

/// The strategies to compare, and their budget.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparisonOptions {
    /// The names of the strategies.
    pub strategies: Vec<String>,
    /// The seeds. Each strategy searches once from each of them.
    pub seeds: Vec<u64>,
    /// The limits of a search.
    pub budget: Budget,
    /// The number of starting points that the cost model gives. Without any, searches are blind:
    /// the cost model refuses nothing as too slow, and searches do not begin with the default
    /// schedule.
    pub starts: usize,
    /// Spaces of at most this many points are tried completely, so that the optimum is known.
    pub exhaustive_limit: u128,
    /// Whether cost models see features of the loop nests, or only the coordinates of the points.
    pub uses_nest_features: bool,
    /// The number of searches that run at the same time, to keep many cores busy.
    pub parallel_searches: usize,
}

impl ComparisonOptions {
    fn is_blind(&self) -> bool {
        self.starts == 0
    }
}

/// The limits of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// The number of candidates to measure.
    pub trials: Option<usize>,
    /// The time of the search, counted as if nothing had been measured before.
    pub time: Option<Duration>,
    /// The number of points to propose, as a share of the space.
    pub share: Option<f64>,
}

/// Why a comparison failed.
#[derive(Debug, Error)]
pub enum CompareError {
    /// The task is invalid.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A strategy cannot be used.
    #[error(transparent)]
    Strategy(#[from] Unsuitable),
    /// The worker process was lost.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The default schedule does not run, so there is no reference.
    #[error("the default schedule cannot be measured: {0}")]
    Default(Outcome),
    /// The measurements cannot be recorded.
    #[error("the measurements cannot be recorded: {0}")]
    Record(#[from] std::io::Error),
    /// The user stopped the comparison.
    #[error("the comparison was stopped")]
    Stopped,
}

/// Receives the progress of a comparison.
pub trait Observer {
    /// A strategy begins a search.
    fn search_started(&mut self, strategy: &str, seed: u64);
    /// `done` of `of` points of the whole space were tried.
    fn space_progress(&mut self, done: u128, of: u128);
    /// Reports the number of finished searches, including the finished shares of running ones.
    /// `best` is the best time in seconds of the running searches.
    fn search_progress(&mut self, over: f64, best: Option<f64>);
}

/// A program with its search space, on which strategies compete.
pub struct ComparedProgram<'p> {
    space: &'p Space<'p>,
    machine_parameters: MachineParameters,
    schedule_features: ScheduleFeatures<'p>,
    /// Trials of other programs.
    experience: &'p [Experience],
}

/// The common start of all searches from one seed.
struct SearchStart<'p> {
    candidates: Candidates<'p>,
    points: Vec<Point>,
    /// The default schedule, unless the search is blind.
    default: Option<(String, KnownCost)>,
    /// The time that it took to find the starting points, in seconds.
    seconds: f64,
}

impl<'p> ComparedProgram<'p> {
    /// A program with its space. Cost models also learn from `experience`.
    pub fn new(
        program: &'p Program,
        machine: &'p Machine,
        space: &'p Space<'p>,
        experience: &'p [Experience],
    ) -> ComparedProgram<'p> {
        let schedule_features = ScheduleFeatures::new(program, machine);
        ComparedProgram {
            space,
            machine_parameters: MachineParameters::for_target(machine.target()),
            schedule_features,
            experience,
        }
    }

    /// The measurements on this program, as training data for other programs.
    pub fn experience(&self, landscape: &Landscape<'_>) -> Experience {
        let trials = landscape.known_times().into_iter();
        let trials = trials.filter_map(|(schedule, seconds)| {
            Some((self.schedule_features.features_of_schedule(schedule)?, seconds))
        });
        Experience { trials: trials.take(MOST_TRAINING_TRIALS).collect() }
    }

    /// Runs all strategies from all seeds. After a stop request, the finished searches are kept.
    pub fn compare(
        &self,
        name: String,
        contest: &ComparisonOptions,
        landscape: &mut Landscape<'_>,
        observer: &mut dyn Observer,
        stop: &Stop,
    ) -> Result<ProgramResult, CompareError> {
        let mut compared =
            ProgramResult { name, size: self.space.knobs().size() as f64, ..ProgramResult::default() };
        for name in &contest.strategies {
            crate::tune::refuse_unsuitable(find(name)?, self.space)?;
            compared.strategies.push(StrategyResult { name: name.clone(), searches: Vec::new() });
        }
        let default = self.candidates(contest).default_schedule();
        compared.default = Some(landscape.measure_default(default, &self.machine_parameters)?);
        let ended = self.run_searches(contest, landscape, observer, stop, &mut compared);
        if !matches!(ended, Err(CompareError::Stopped)) {
            ended?;
        }
        let finalists = Finalists::choose(&compared, landscape, contest.is_blind());
        if !stop.is_requested() {
            landscape.measure_final_times(&finalists.schedules)?;
        }
        finalists.apply_final_times(&mut compared, landscape);
        Ok(compared)
    }

    fn run_searches(
        &self,
        contest: &ComparisonOptions,
        landscape: &mut Landscape<'_>,
        observer: &mut dyn Observer,
        stop: &Stop,
        compared: &mut ProgramResult,
    ) -> Result<(), CompareError> {
        if self.space.knobs().size() <= contest.exhaustive_limit {
            self.try_whole_space(contest, landscape, observer, stop)?;
            compared.is_optimum = landscape.unknown_count() == 0;
        }
        let race = concurrent_searches::ConcurrentSearches::new(self, contest, landscape);
        race.run(&self.schedule_features.features_of_points(self.space), observer, stop, compared)
    }

    fn candidates(&self, contest: &ComparisonOptions) -> Candidates<'p> {
        let candidates = Candidates::new(&self.schedule_features, self.space);
        if contest.is_blind() { candidates.without_slowness_limit() } else { candidates }
    }

    fn search_start(
        &self,
        contest: &ComparisonOptions,
        seed: u64,
        landscape: &Landscape<'_>,
    ) -> Result<SearchStart<'p>, CompareError> {
        let begun = Instant::now();
        let mut candidates = self.candidates(contest);
        let (mut points, mut default) = (Vec::new(), None);
        if !contest.is_blind() {
            points = candidates.rank_starts(seed, &mut || Ok(false))?;
            points.truncate(contest.starts);
            let (schedule, known) = landscape.default_schedule();
            default = Some((schedule.to_owned(), known));
        }
        Ok(SearchStart { candidates, points, default, seconds: begun.elapsed().as_secs_f64() })
    }

    /// Tries every point of the space.
    fn try_whole_space(
        &self,
        contest: &ComparisonOptions,
        landscape: &mut Landscape<'_>,
        observer: &mut dyn Observer,
        stop: &Stop,
    ) -> Result<(), CompareError> {
        let knobs = self.space.knobs();
        let mut candidates = self.candidates(contest).without_slowness_limit();
        let mut done = 0;
        while done < knobs.size() {
            if stop.is_requested() {
                return Err(CompareError::Stopped);
            }
            let points: Vec<Point> = (done..).take(SPACE_BATCH).map_while(|index| knobs.nth(index)).collect();
            done += points.len() as u128;
            let mut schedules = candidates.schedules(&points);
            schedules.sort();
            schedules.dedup();
            landscape.costs(&schedules, &self.machine_parameters)?;
            observer.space_progress(done, knobs.size());
        }
        Ok(())
    }
}
