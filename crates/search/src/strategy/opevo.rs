//! OpEvo (section 4, algorithm 1): evolution that knows which values are alike.
//!
//! The best λ points are parents. A child takes each of its values from any parent, with a chance
//! proportional to the parent's fitness, and each value then goes on a q-random walk among its
//! neighbours. A child that was there before walks on until it is new. Invalid points have no
//! fitness: nothing is inherited from them.
//!
//! A generation is λ random points at first (those given to start from among them), and ρ children
//! then. Children are bred one by one, as long as fewer than ρ are open: asked in batches of ρ this
//! is the published algorithm, and a tuner that tells one result at a time has the next child bred
//! from all that is known by then. Where more are tried together than ρ, a generation is as large
//! as that.
//!
//! Departures: a child that does not become new in a hundred walks, which happens when little is
//! left, is replaced by a random point. And where there are points to start from, q is so small
//! that about three knobs of a child change. The paper's spaces have three or four knobs and its
//! search starts blind; of the fourteen of a convolution on a GPU, q = ½ changes seven, and what
//! was good about the points is lost. With q = 0.2 three convolutions were 4 to 9 % faster after 15
//! seconds on an H200; on a CPU, with 80 trials, three programs were 1 % slower to 5 % faster, and
//! up to 9 % slower where the search started blind.

use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;

use super::explored::Explored;
use super::ranking::Ranking;
use super::{Start, Strategy, Told};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "opevo";

/// How often a child that was there before walks on, before a random point takes its place.
const WALKS: usize = 100;

/// Knobs that change from a parent to its child, on the average, where the search does not start
/// blind.
const CHANGED: f64 = 3.0;

/// The parameters of [`OpEvo`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// λ: how many of the best are parents. Fewer converge faster, more avoid local optima.
    pub parents: usize,
    /// ρ: how many children a generation has.
    pub offspring: usize,
    /// q: how likely a mutation goes one step further, where the search starts blind; else at most
    /// that.
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
    /// All valid points that were told.
    ranking: Ranking,
    /// How many of the first generation were asked for.
    founders: usize,
}

impl OpEvo {
    /// A search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'_>, parameters: Parameters) -> OpEvo {
        let busy = (0..knobs.len()).filter(|knob| knobs[*knob].domain.size() > 1).count();
        let few = if start.points.is_empty() { 1.0 } else { CHANGED / busy.max(1) as f64 };
        let parameters = Parameters {
            offspring: parameters.offspring.max(start.together),
            mutation_rate: parameters.mutation_rate.min(few),
            ..parameters
        };
        OpEvo { parameters, explored: Explored::new(knobs, start), ranking: Ranking::default(), founders: 0 }
    }

    fn next(&mut self) -> Option<Point> {
        if let Some(point) = self.explored.start() {
            self.founders += 1;
            return Some(point);
        }
        if self.founders < self.parameters.parents {
            self.founders += 1;
            return self.explored.fresh();
        }
        if self.explored.open() >= self.parameters.offspring.max(1) {
            return None;
        }
        self.child()
    }

    /// A child of the best, or a random point while nothing is valid; none when the space is
    /// exhausted.
    fn child(&mut self) -> Option<Point> {
        if self.explored.is_exhausted() {
            return None;
        }
        let parents = || self.ranking.iter().take(self.parameters.parents.max(1));
        let Ok(chances) = WeightedIndex::new(parents().map(|(_, cost)| cost.fitness())) else {
            return self.explored.fresh();
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
        self.explored.fresh()
    }
}

impl Strategy for OpEvo {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next()).take(count).collect()
    }

    fn tell(&mut self, results: &[Told]) {
        for told in results {
            if let Some(cost) = self.explored.told(told) {
                self.ranking.insert(told.point.clone(), cost);
            }
        }
    }
}
