//! OpEvo (section 4, algorithm 1): evolution that exploits which values are alike.
//!
//! The best λ points are parents. A child takes each of its values from a parent that is drawn with
//! a probability proportional to its fitness. Each value then takes a q-random walk among its
//! neighbours. A child that was visited before continues to walk until it is new. Invalid points
//! have no fitness, so no child inherits from them.
//!
//! The first generation consists of λ random points, including the given starting points. Each
//! later generation has ρ children. Children are bred one by one, as long as fewer than ρ are open.
//! If points are requested in batches of ρ, this is the published algorithm. If the tuner reports
//! one result at a time, each child is bred from all results known by then. If more than ρ points
//! are tried together, a generation has that size.
//!
//! Departures from the paper:
//!
//! - A child that is not new after a hundred walks, which happens when little is left, is replaced
//!   by a random point.
//! - If starting points are given, q is so small that about three knobs of a child change. The
//!   spaces of the paper have three or four knobs, and its search has no starting points. A
//!   convolution on a GPU has fourteen knobs, of which q = ½ changes seven, and the advantages of
//!   the starting points are lost. With q = 0.2, three convolutions were 4 to 9 % faster after 15
//!   seconds on an H200. On a CPU with 80 trials, three programs were between 1 % slower and 5 %
//!   faster, and up to 9 % slower without starting points.

use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;

use super::explored::Explored;
use super::ranking::Ranking;
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "opevo";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "evolution that mutates by random walks among neighbours (OpEvo)",
    learns_from_others: false,
    make: |knobs, start| Ok(Box::new(OpEvo::new(knobs, start, Parameters::default()))),
};

/// How often a child that was visited before walks again, before a random point replaces it.
const WALKS: usize = 100;

/// The average number of knobs that change from a parent to its child, if starting points are
/// given.
const MUTATED_KNOBS: f64 = 3.0;

/// The parameters of [`OpEvo`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// λ: the number of best points that are parents. Fewer parents converge faster; more parents
    /// avoid local optima.
    pub parents: usize,
    /// ρ: the number of children of a generation.
    pub offspring: usize,
    /// q: the probability that a mutation takes one more step. With starting points, it is an upper
    /// limit.
    pub mutation_rate: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { parents: 8, offspring: 8, mutation_rate: 0.5 }
    }
}

/// Evolution by q-random walks.
pub struct OpEvo {
    parameters: Parameters,
    explored: Explored,
    /// All valid points with known costs.
    ranking: Ranking,
    /// The number of proposed points of the first generation.
    founders: usize,
}

impl OpEvo {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'_>, parameters: Parameters) -> OpEvo {
        let open_knobs = (0..knobs.len()).filter(|knob| knobs[*knob].domain.size() > 1).count();
        let rate_limit = if start.points.is_empty() { 1.0 } else { MUTATED_KNOBS / open_knobs.max(1) as f64 };
        let parameters = Parameters {
            offspring: parameters.offspring.max(start.parallel_trials),
            mutation_rate: parameters.mutation_rate.min(rate_limit),
            ..parameters
        };
        OpEvo { parameters, explored: Explored::new(knobs, start), ranking: Ranking::default(), founders: 0 }
    }

    fn next(&mut self) -> Option<Point> {
        if let Some(point) = self.explored.next_starting_point() {
            self.founders += 1;
            return Some(point);
        }
        if self.founders < self.parameters.parents {
            self.founders += 1;
            return self.explored.random_new_point();
        }
        if self.explored.open() >= self.parameters.offspring.max(1) {
            return None;
        }
        self.child()
    }

    /// Returns a child of the best points, or a random point as long as no point is valid. Returns
    /// `None` if the space is exhausted.
    fn child(&mut self) -> Option<Point> {
        if self.explored.is_exhausted() {
            return None;
        }
        let parents = || self.ranking.iter().take(self.parameters.parents.max(1));
        let Ok(chances) = WeightedIndex::new(parents().map(|(_, cost)| cost.fitness())) else {
            return self.explored.random_new_point();
        };
        let parents: Vec<&Point> = parents().map(|(point, _)| point).collect();
        let inherit = |knob: usize| parents[chances.sample(&mut self.explored.rng)].0[knob].clone();
        let mut child = Point((0..self.explored.knobs.len()).map(inherit).collect());
        for _ in 0..WALKS {
            let q = self.parameters.mutation_rate;
            child = self.explored.knobs.walk(&child, q, &mut self.explored.rng);
            if self.explored.visit(&child) {
                return Some(child);
            }
        }
        self.explored.random_new_point()
    }
}

impl Strategy for OpEvo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next()).take(count).collect()
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            if let Some(cost) = self.explored.record(result) {
                self.ranking.insert(result.point.clone(), cost);
            }
        }
    }
}
