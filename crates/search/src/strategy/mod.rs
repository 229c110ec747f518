//! Defines search strategies: they decide which points to try next, given the results of earlier
//! points.
//!
//! A [`Strategy`] proposes points and receives their costs, in batches of any size. [`ALL`] lists
//! the strategies, each of which has its own file:
//!
//! - [`random`] and [`grid`], as baselines and for small spaces;
//! - [`genetic`], the search of Tensor Comprehensions;
//! - [`opevo`] and [`gbfs`], which assume that neighbouring points behave alike;
//! - [`pmethod`], which continues from good points in all directions, and [`qmethod`], which
//!   continues in the directions that a network prefers;
//! - [`na2c`] and [`controller`], whose networks choose the next step or the whole point;
//! - [`annealing`], whose cost model is boosted trees, and [`guided`], whose boosted trees select
//!   among children of the best points;
//! - [`bandit`], which alternates between several of these;
//! - [`mod@beam`], which proposes whole schedules instead of points.
//!
//! The shared parts are `explored.rs`, which records the proposed points and finds new ones;
//! `ranking.rs`, which sorts points by cost; `pool.rs`, which draws from them; `decisions.rs`,
//! which encodes points as sequences; and `learning/`, which has networks and trees. Models
//! represent points by [`Knobs::features`](crate::knob::Knobs::features) or by [`Features`].
//!
//! Invariants of all strategies: no point is proposed twice. The same seed and the same results
//! give the same points. When nothing is left to try, a strategy proposes nothing. Points outside
//! the space are ignored, both as results and as starting points.

pub mod annealing;
pub mod bandit;
pub mod beam;
pub mod controller;
mod decisions;
mod explored;
pub mod gbfs;
pub mod genetic;
pub mod grid;
pub mod guided;
mod learning;
pub mod na2c;
pub mod opevo;
pub mod pmethod;
mod pool;
pub mod qmethod;
pub mod random;
mod ranking;

use thiserror::Error;
use tilewright_ir::Program;
use tilewright_schedule::Schedule;
use tilewright_target::Target;

pub use crate::kind::default_strategy as usual;
use crate::knob::{Knobs, Point};

/// The result of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialResult {
    /// The point.
    pub point: Point,
    /// The cost in seconds, or `None` for an invalid point. A point is invalid if it was rejected,
    /// failed, gave wrong results, or is equivalent to a point with a known result. A cost that is
    /// negative or not a number counts as `None`.
    pub cost: Option<f64>,
}

/// A search that proposes points and receives their costs.
pub trait Strategy: Send {
    /// The name in [`ALL`].
    fn name(&self) -> &'static str;

    /// Returns up to `count` points that were not proposed before. Returns fewer or none if the
    /// space is exhausted, or if the strategy needs results first. If it returns none while no
    /// point is open, the search is over.
    fn propose(&mut self, count: usize) -> Vec<Point>;

    /// Passes results to the strategy, in the order of the proposals. Every proposed point gets a
    /// result eventually, together with its batch or not; an abandoned point is invalid. Results of
    /// points that were never proposed, such as the default schedule or cached points, are also
    /// allowed. The strategy learns from them and does not propose them again.
    fn report(&mut self, results: &[TrialResult]);

    /// Returns up to `count` whole schedules that were not proposed before. It is asked after
    /// [`Strategy::propose`] has returned no points. Most strategies search points alone.
    fn propose_schedules(&mut self, _count: usize) -> Vec<Schedule> {
        Vec::new()
    }

    /// Passes the times of proposed schedules in seconds, or `None` for those that cannot be used.
    fn report_schedules(&mut self, _results: &[(Schedule, Option<f64>)]) {}
}

/// What is known about points before they are tried.
pub trait Features: Sync {
    /// Returns the features of points, with the same number of features for every point of every
    /// program. Returns `None` for points that have no legal schedule.
    fn compute(&self, points: &[Point]) -> Vec<Option<Vec<f32>>>;

    /// Returns an identifier of the schedule that a point stands for, or `None` if it is unknown.
    /// Points with the same identifier are equivalent for the machine.
    fn schedule_id(&self, _point: &Point) -> Option<u64> {
        None
    }
}

/// The trials of another program on the same machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experience {
    /// The [features](Features) of each trial and its cost; `None` for an invalid point.
    pub trials: Vec<(Vec<f32>, Option<f64>)>,
}

/// Where a search begins.
#[derive(Clone, Default)]
pub struct Start<'a> {
    /// The seed of all random choices.
    pub seed: u64,
    /// Points that may be good, best first: the default schedule, or good points of similar
    /// programs. They are tried first.
    pub points: Vec<Point>,
    /// The number of points that are tried together. If compilation on many cores dominates,
    /// smaller batches leave cores idle.
    pub parallel_trials: usize,
    /// What is known about points before they are tried. Without it, models use the features of the
    /// points.
    pub features: Option<&'a dyn Features>,
    /// The trials of other programs, with the same features.
    pub experience: &'a [Experience],
    /// The program and the target, for strategies that propose whole schedules.
    pub program: Option<(&'a Program, Target<'a>)>,
}

/// Why a strategy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsuitable {
    /// There is no strategy with this name.
    #[error("there is no strategy `{name}`; the strategies are {}", names().join(", "))]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// The space has too many points to try them all.
    #[error(
        "the space has {size} points, but `grid` tries all points of spaces with at most \
         {largest}; choose another strategy"
    )]
    TooLarge {
        /// The number of points.
        size: u128,
        /// The largest allowed number of points.
        largest: u128,
    },
}

/// A strategy that can be chosen by its name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name on the command line.
    pub name: &'static str,
    /// A description in one line.
    pub description: &'static str,
    /// True if the strategy learns from [`Start::experience`].
    pub learns_from_others: bool,
    /// Creates the strategy with its default parameters.
    pub make: Make,
}

/// Creates a strategy that searches the knobs.
pub type Make = for<'a> fn(&Knobs, Start<'a>) -> Result<Box<dyn Strategy + 'a>, Unsuitable>;

/// All strategies.
pub const ALL: &[Entry] = &[
    random::ENTRY,
    grid::ENTRY,
    genetic::ENTRY,
    opevo::ENTRY,
    gbfs::ENTRY,
    na2c::ENTRY,
    qmethod::ENTRY,
    pmethod::ENTRY,
    annealing::ENTRY,
    guided::ENTRY,
    controller::ENTRY,
    bandit::ENTRY,
    beam::ENTRY,
];

/// The strategy called `name`.
pub fn find(name: &str) -> Result<Entry, Unsuitable> {
    let entry = ALL.iter().find(|entry| entry.name == name);
    entry.copied().ok_or_else(|| Unsuitable::Unknown { name: name.to_owned() })
}

/// Creates the strategy called `name`, with its default parameters.
pub fn by_name<'a>(
    name: &str,
    knobs: &Knobs,
    start: Start<'a>,
) -> Result<Box<dyn Strategy + 'a>, Unsuitable> {
    (find(name)?.make)(knobs, start)
}

fn names() -> Vec<&'static str> {
    ALL.iter().map(|entry| entry.name).collect()
}
