//! Strategies compared: the same programs under one budget, from the same seeds, with the same measurements.
//!
//! A schedule is measured once, whoever asks for it first; all others are told the same, and are charged the same time for
//! it. So strategies differ in nothing but what they ask for, and a comparison whose measurements were kept repeats without
//! a machine.
//!
//! | file | is |
//! |---|---|
//! | `mod.rs` | what is compared, and a program's turn |
//! | `race.rs` | all searches of a program |
//! | `search.rs` | one search |
//! | `settle.rs` | what counts as found in the end |
//! | `landscape.rs` | what schedules cost: known, or measured and known from then on |
//! | `tape.rs` | landscapes on file |
//! | `found.rs`, `summary.rs` | what came out, and what it amounts to |

mod found;
mod landscape;
mod race;
mod search;
mod settle;
mod summary;
mod tape;

use std::time::{Duration, Instant};

use thiserror::Error;
use tilewright_ir::Program;
use tilewright_search::knob::Point;
use tilewright_search::space::Space;
use tilewright_search::strategy::{Experience, Unsuitable, find};
use tilewright_target::Machine;

pub use found::{Best, Compared, Comparison, Contender, Search, Strategy};
pub use landscape::{Keeper, Known, Landscape};
pub use summary::{Overall, Reached, Summary, overall, summaries};
pub use tape::{Entry, Tape, TapeError};

use crate::lessons::Lessons;
use crate::task::TaskError;
use crate::tune::{Candidates, Habits, Stop};
use crate::worker::Lost;
use settle::Finalists;
use tilewright_cache::outcome::Outcome;

/// What others learn from one program, at most: more teach little, and take long to learn from.
const MOST_LESSONS: usize = 1000;
/// Points that the cost model does not judge are looked at so many at a time.
const TOGETHER: usize = 64;

/// Who competes, and for how long.
#[derive(Clone, Debug, PartialEq)]
pub struct Contest {
    /// Names of strategies.
    pub strategies: Vec<String>,
    /// Each searches once from each of these.
    pub seeds: Vec<u64>,
    /// When a search ends.
    pub budget: Budget,
    /// Points that the cost model gives to start from. With none searches are blind: nothing is refused for being slow by
    /// its estimate either, and the default schedule is not what they begin with.
    pub starts: usize,
    /// Spaces of at most so many points are tried as a whole, so that the best there is is known.
    pub exhaustive: u128,
    /// Whether models see the loop nests that points stand for, or only the numbers of the points themselves.
    pub sees_nests: bool,
    /// Searches that go on at the same time, so that many cores are kept busy.
    pub abreast: usize,
}

impl Contest {
    fn is_blind(&self) -> bool {
        self.starts == 0
    }
}

/// What a search may use up, at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// Candidates to measure.
    pub trials: Option<usize>,
    /// Time, as if nothing had been measured before.
    pub time: Option<Duration>,
    /// Points to propose, as a share of the space.
    pub share: Option<f64>,
}

/// Why there is no comparison.
#[derive(Debug, Error)]
pub enum CompareError {
    /// The task makes no sense.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A strategy cannot be used.
    #[error(transparent)]
    Strategy(#[from] Unsuitable),
    /// There is no worker.
    #[error(transparent)]
    Worker(#[from] Lost),
    /// The default schedule does not run, so there is nothing to begin with.
    #[error("the default schedule cannot be measured: {0}")]
    Default(Outcome),
    /// What was measured cannot be kept.
    #[error("what was measured cannot be kept: {0}")]
    Keep(#[from] std::io::Error),
    /// Somebody asked for an end.
    #[error("stopped")]
    Stopped,
}

/// Whoever wants to know how it goes.
pub trait Observer {
    /// A strategy begins a search.
    fn begins(&mut self, strategy: &str, seed: u64);
    /// So many points of the whole space were tried.
    fn tried_all(&mut self, done: u128, of: u128);
    /// So many searches are over, with the parts of those that go on; the best of these takes so many seconds.
    fn goes_on(&mut self, over: f64, best: Option<f64>);
}

/// A program that strategies search.
pub struct Arena<'p> {
    space: &'p Space<'p>,
    habits: Habits,
    lessons: Lessons<'p>,
    /// What was measured for other programs.
    experience: &'p [Experience],
}

/// What a search from some seed begins with.
struct Beginning<'p> {
    candidates: Candidates<'p>,
    points: Vec<Point>,
    /// The default schedule, unless the search is blind.
    default: Option<(String, Known)>,
    /// The time that finding them took.
    seconds: f64,
}

impl<'p> Arena<'p> {
    /// A program with the space to search. Models learn from `experience` as well.
    pub fn new(
        program: &'p Program,
        machine: &'p Machine,
        space: &'p Space<'p>,
        experience: &'p [Experience],
    ) -> Arena<'p> {
        let lessons = Lessons::new(program, machine);
        Arena { space, habits: Habits::on(machine), lessons, experience }
    }

    /// What others can learn from what was measured here.
    pub fn experience(&self, landscape: &Landscape<'_>) -> Experience {
        let trials = landscape.measured_so_far().into_iter();
        let trials =
            trials.filter_map(|(schedule, seconds)| Some((self.lessons.of_schedule(schedule)?, seconds)));
        Experience { trials: trials.take(MOST_LESSONS).collect() }
    }

    /// Has all strategies search from all seeds. When it is asked to stop, searches that are over are kept.
    pub fn compare(
        &self,
        name: String,
        contest: &Contest,
        landscape: &mut Landscape<'_>,
        observer: &mut dyn Observer,
        stop: &Stop,
    ) -> Result<Compared, CompareError> {
        let mut compared = Compared { name, size: self.space.knobs().size() as f64, ..Compared::default() };
        for name in &contest.strategies {
            crate::tune::refuse_unsuitable(find(name)?, self.space)?;
            compared.strategies.push(Strategy { name: name.clone(), searches: Vec::new() });
        }
        let default = self.candidates(contest).default_schedule();
        compared.default = Some(landscape.begin(default, &self.habits)?);
        let ended = self.compete(contest, landscape, observer, stop, &mut compared);
        if !matches!(ended, Err(CompareError::Stopped)) {
            ended?;
        }
        let finalists = Finalists::of(&compared, landscape, contest.is_blind());
        if !stop.is_asked() {
            landscape.confirm(&finalists.schedules)?;
        }
        finalists.settle(&mut compared, landscape);
        Ok(compared)
    }

    fn compete(
        &self,
        contest: &Contest,
        landscape: &mut Landscape<'_>,
        observer: &mut dyn Observer,
        stop: &Stop,
        compared: &mut Compared,
    ) -> Result<(), CompareError> {
        if self.space.knobs().size() <= contest.exhaustive {
            self.try_all(contest, landscape, observer, stop)?;
            compared.is_optimum = landscape.unknown() == 0;
        }
        let race = race::Race::new(self, contest, landscape);
        race.run(&self.lessons.of_points(self.space), observer, stop, compared)
    }

    fn candidates(&self, contest: &Contest) -> Candidates<'p> {
        let candidates = Candidates::new(&self.lessons, self.space);
        if contest.is_blind() { candidates.without_model() } else { candidates }
    }

    fn beginning(
        &self,
        contest: &Contest,
        seed: u64,
        landscape: &Landscape<'_>,
    ) -> Result<Beginning<'p>, CompareError> {
        let begun = Instant::now();
        let mut candidates = self.candidates(contest);
        let (mut points, mut default) = (Vec::new(), None);
        if !contest.is_blind() {
            points = candidates.ranked(seed, &mut || Ok(false))?;
            points.truncate(contest.starts);
            let (schedule, known) = landscape.default();
            default = Some((schedule.to_owned(), known));
        }
        Ok(Beginning { candidates, points, default, seconds: begun.elapsed().as_secs_f64() })
    }

    /// Tries every point.
    fn try_all(
        &self,
        contest: &Contest,
        landscape: &mut Landscape<'_>,
        observer: &mut dyn Observer,
        stop: &Stop,
    ) -> Result<(), CompareError> {
        let knobs = self.space.knobs();
        let mut candidates = self.candidates(contest).without_model();
        let mut done = 0;
        while done < knobs.size() {
            if stop.is_asked() {
                return Err(CompareError::Stopped);
            }
            let points: Vec<Point> = (done..).take(TOGETHER).map_while(|index| knobs.nth(index)).collect();
            done += points.len() as u128;
            let mut schedules = candidates.schedules(&points);
            schedules.sort();
            schedules.dedup();
            landscape.costs(&schedules, &self.habits)?;
            observer.tried_all(done, knobs.size());
        }
        Ok(())
    }
}
