//! Strategies: which points to try next, given what became of those tried before.
//!
//! A [`Strategy`] is asked for points and told their costs, in batches of any size. [`ALL`] lists
//! those that there are, one a file:
//!
//! - [`random`] and [`grid`], to compare with and for small spaces;
//! - [`genetic`], as Tensor Comprehensions tunes;
//! - [`opevo`] and [`gbfs`], which use that neighbouring points behave alike;
//! - [`pmethod`], which goes on from good points in all directions, and [`qmethod`], in those that
//!   a network values;
//! - [`na2c`] and [`controller`], whose networks say where to go, or all of a point;
//! - [`annealing`], whose trees say what is good, and [`guided`], whose trees choose among children
//!   of the best;
//! - [`bandit`], which has several of these take turns.
//!
//! What they share: `explored.rs` knows which points were asked for, and finds others; `ranking.rs`
//! keeps told points in the order of their costs; `pool.rs` draws from them; `learning/` has
//! networks and trees. Models take points as [`Knobs::features`](crate::knob::Knobs::features), or
//! as what [`Features`] says of them.
//!
//! What holds for all: no point is asked for twice; the same seed and the same told results give
//! the same points; where nothing is left to try, they ask for nothing; points outside the space,
//! told or given to start from, are ignored.

pub mod annealing;
pub mod bandit;
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

use annealing::Annealing;
use bandit::Bandit;
use controller::Controller;
use gbfs::Gbfs;
use genetic::Genetic;
use grid::Grid;
use guided::Guided;
use na2c::Na2c;
use opevo::OpEvo;
use pmethod::PMethod;
use qmethod::QMethod;
use random::Random;

use thiserror::Error;
use tilewright_target::Target;

use crate::knob::{Knobs, Point};

/// What became of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The point.
    pub point: Point,
    /// Its cost in seconds, or none where it is invalid: refused, failed, wrong, or the same to the
    /// machine as another that was told. A cost that is negative or no number counts as none.
    pub cost: Option<f64>,
}

/// A search, from which points to try come out as their costs go in.
pub trait Strategy: Send {
    /// The name in [`ALL`].
    fn name(&self) -> &'static str;

    /// Up to `count` points that were not asked for before. Fewer, or none, when the space is
    /// exhausted, or when the strategy needs to be told results first: none while nothing is open
    /// means that the search is over.
    fn ask(&mut self, count: usize) -> Vec<Point>;

    /// Results, in the order of asking. Every point that was asked for is told sooner or later,
    /// together with the others of its batch or not; one that was given up is invalid. Points that
    /// were never asked for, such as the default schedule's or cached ones, may come too: they are
    /// learned from and not asked for again.
    fn tell(&mut self, results: &[Told]);
}

/// What is known of points before they are tried.
pub trait Features: Sync {
    /// Numbers for each of some points, as many for every point of every program; none for points
    /// that stand for nothing.
    fn of(&self, points: &[Point]) -> Vec<Option<Vec<f32>>>;

    /// What a point stands for: points of which it is the same are the same to the machine. None
    /// where nobody knows.
    fn meaning(&self, _point: &Point) -> Option<u64> {
        None
    }
}

/// What was tried for another program on the same machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Experience {
    /// The [features](Features) of what was tried, and its cost; none where it was invalid.
    pub trials: Vec<(Vec<f32>, Option<f64>)>,
}

/// Where a search begins.
#[derive(Clone, Default)]
pub struct Start<'a> {
    /// Decides all that is random.
    pub seed: u64,
    /// Points that may be good, best first: the default schedule's, or those of similar programs.
    /// They are tried first.
    pub points: Vec<Point>,
    /// How many are tried together: where compiling on many cores takes longest, fewer leave cores
    /// idle.
    pub together: usize,
    /// What is known of points before they are tried; without, models learn from the points' own
    /// numbers.
    pub features: Option<&'a dyn Features>,
    /// What was tried for other programs, in the same features.
    pub experience: &'a [Experience],
}

/// Why a strategy cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unsuitable {
    /// There is no strategy of this name.
    #[error("there is no strategy `{name}`; there are {}", names().join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The space has too many points to try them all.
    #[error("the space has {size} points, and `grid` tries all of at most {largest}")]
    TooLarge {
        /// How many points there are.
        size: u128,
        /// How many there may be.
        largest: u128,
    },
}

/// A strategy that can be chosen by its name.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub description: &'static str,
    /// Whether it learns from [`Start::experience`].
    pub learns_from_others: bool,
    /// Makes one, with the parameters of its paper.
    pub make: Make,
}

/// Makes a strategy that searches the knobs.
pub type Make = for<'a> fn(&Knobs, Start<'a>) -> Result<Box<dyn Strategy + 'a>, Unsuitable>;

/// Every strategy.
pub const ALL: &[Entry] = &[
    Entry {
        name: random::NAME,
        description: "points drawn evenly from the whole space",
        learns_from_others: false,
        make: |knobs, start| Ok(Box::new(Random::new(knobs, start))),
    },
    Entry {
        name: grid::NAME,
        description: "every point in turn, for small spaces",
        learns_from_others: false,
        make: |knobs, start| Ok(Box::new(Grid::new(knobs, start)?)),
    },
    Entry {
        name: genetic::NAME,
        description: "generations bred from three parents each (Tensor Comprehensions)",
        learns_from_others: false,
        make: |knobs, start| Ok(Box::new(Genetic::new(knobs, start, genetic::Parameters::default()))),
    },
    Entry {
        name: opevo::NAME,
        description: "evolution that mutates by random walks among neighbours (OpEvo)",
        learns_from_others: false,
        make: |knobs, start| Ok(Box::new(OpEvo::new(knobs, start, opevo::Parameters::default()))),
    },
    Entry {
        name: gbfs::NAME,
        description: "greedy best-first search among neighbours (G-BFS)",
        learns_from_others: false,
        make: |knobs, start| Ok(Box::new(Gbfs::new(knobs, start, gbfs::Parameters::default()))),
    },
    Entry {
        name: na2c::NAME,
        description: "walks around the best point that a policy learns to direct (N-A2C)",
        learns_from_others: true,
        make: |knobs, start| Ok(Box::new(Na2c::new(knobs, start, na2c::Parameters::default()))),
    },
    Entry {
        name: qmethod::NAME,
        description: "steps from good points in the direction that a network values most (FlexTensor)",
        learns_from_others: true,
        make: |knobs, start| Ok(Box::new(QMethod::new(knobs, start, qmethod::Parameters::default()))),
    },
    Entry {
        name: pmethod::NAME,
        description: "steps from good points in all directions (FlexTensor)",
        learns_from_others: false,
        make: |knobs, start| Ok(Box::new(PMethod::new(knobs, start, pmethod::Parameters::default()))),
    },
    Entry {
        name: annealing::NAME,
        description: "boosted trees that learn to rank, and annealing that asks them (AutoTVM)",
        learns_from_others: true,
        make: |knobs, start| Ok(Box::new(Annealing::new(knobs, start, annealing::Parameters::default()))),
    },
    Entry {
        name: guided::NAME,
        description: "children of the best points, those that boosted trees like",
        learns_from_others: true,
        make: |knobs, start| Ok(Box::new(Guided::new(knobs, start, guided::Parameters::default()))),
    },
    Entry {
        name: controller::NAME,
        description: "a recurrent network that says all knobs one after the other",
        learns_from_others: false,
        make: |knobs, start| Ok(Box::new(Controller::new(knobs, start, controller::Parameters::default()))),
    },
    Entry {
        name: bandit::NAME,
        description: "several strategies, each for as long as it delivers",
        learns_from_others: true,
        make: |knobs, start| Ok(Box::new(Bandit::new(knobs, start, bandit::Parameters::default())?)),
    },
];

/// The strategy called `name`, with the parameters of its paper.
pub fn by_name<'a>(
    name: &str,
    knobs: &Knobs,
    start: Start<'a>,
) -> Result<Box<dyn Strategy + 'a>, Unsuitable> {
    let entry = ALL.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| Unsuitable::Unknown { name: name.to_owned() })?;
    (entry.make)(knobs, start)
}

/// The strategy that is taken on a CPU if nothing is said: docs/strategies.md says why.
pub const USUAL_ON_CPUS: &str = gbfs::NAME;
/// The same on a GPU.
pub const USUAL_ON_GPUS: &str = guided::NAME;

/// The strategy that is taken if nothing is said.
pub fn usual(target: Target<'_>) -> &'static str {
    match target {
        Target::Cpu(_) => USUAL_ON_CPUS,
        Target::Gpu(_) => USUAL_ON_GPUS,
    }
}

fn names() -> Vec<&'static str> {
    ALL.iter().map(|entry| entry.name).collect()
}
