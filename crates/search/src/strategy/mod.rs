//! Strategies: which points to try next, given what became of those tried before.
//!
//! A [`Strategy`] is asked for points and told their costs, in batches of any size. [`ALL`] lists those that there are,
//! one a file:
//!
//! - [`random`] and [`grid`], to compare with and for small spaces;
//! - [`genetic`], as Tensor Comprehensions tunes;
//! - [`opevo`] and [`gbfs`], which use that neighbouring points behave alike.
//!
//! What they share: `explored.rs` knows which points were asked for, and finds others; `ranking.rs` keeps told points in
//! the order of their costs. A strategy that learns from features takes them from
//! [`Knobs::features`](crate::knob::Knobs::features).
//!
//! What holds for all: no point is asked for twice; the same seed and the same told results give the same points; where
//! nothing is left to try, they ask for nothing; points outside the space, told or given to start from, are ignored.

mod explored;
pub mod gbfs;
pub mod genetic;
pub mod grid;
pub mod opevo;
pub mod random;
mod ranking;

use gbfs::Gbfs;
use genetic::Genetic;
use grid::Grid;
use opevo::OpEvo;
use random::Random;

use thiserror::Error;

use crate::knob::{Knobs, Point};

/// What became of a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// The point.
    pub point: Point,
    /// Its cost in seconds, or none where it is invalid: refused, failed, or wrong. A cost that is negative or no number
    /// counts as none.
    pub cost: Option<f64>,
}

/// A search, from which points to try come out as their costs go in.
pub trait Strategy: Send {
    /// The name in [`ALL`].
    fn name(&self) -> &'static str;

    /// Up to `count` points that were not asked for before. Fewer, or none, when the space is exhausted, or when the
    /// strategy needs to be told results first: none while nothing is open means that the search is over.
    fn ask(&mut self, count: usize) -> Vec<Point>;

    /// Results, in the order of asking. Every point that was asked for is told sooner or later, together with the others of
    /// its batch or not; one that was given up is invalid. Points that were never asked for, such as the default
    /// schedule's or cached ones, may come too: they are learned from and not asked for again.
    fn tell(&mut self, results: &[Told]);
}

/// Where a search begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Decides all that is random.
    pub seed: u64,
    /// Points that may be good, best first: the default schedule's, or those of similar programs. They are tried first.
    pub points: Vec<Point>,
    /// How many are tried together: where compiling on many cores takes longest, fewer leave cores idle.
    pub together: usize,
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
    /// Makes one, with the parameters of its paper.
    pub make: Make,
}

/// Makes a strategy that searches the knobs.
pub type Make = fn(&Knobs, Start) -> Result<Box<dyn Strategy>, Unsuitable>;

/// Every strategy.
pub const ALL: &[Entry] = &[
    Entry {
        name: random::NAME,
        description: "points drawn evenly from the whole space",
        make: |knobs, start| Ok(Box::new(Random::new(knobs, start))),
    },
    Entry {
        name: grid::NAME,
        description: "every point in turn, for small spaces",
        make: |knobs, start| Ok(Box::new(Grid::new(knobs, start)?)),
    },
    Entry {
        name: genetic::NAME,
        description: "generations bred from three parents each (Tensor Comprehensions)",
        make: |knobs, start| Ok(Box::new(Genetic::new(knobs, start, genetic::Parameters::default()))),
    },
    Entry {
        name: opevo::NAME,
        description: "evolution that mutates by random walks among neighbours (OpEvo)",
        make: |knobs, start| Ok(Box::new(OpEvo::new(knobs, start, opevo::Parameters::default()))),
    },
    Entry {
        name: gbfs::NAME,
        description: "greedy best-first search among neighbours (G-BFS)",
        make: |knobs, start| Ok(Box::new(Gbfs::new(knobs, start, gbfs::Parameters::default()))),
    },
];

/// The strategy called `name`, with the parameters of its paper.
pub fn by_name(name: &str, knobs: &Knobs, start: Start) -> Result<Box<dyn Strategy>, Unsuitable> {
    let entry = ALL.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| Unsuitable::Unknown { name: name.to_owned() })?;
    (entry.make)(knobs, start)
}

fn names() -> Vec<&'static str> {
    ALL.iter().map(|entry| entry.name).collect()
}
