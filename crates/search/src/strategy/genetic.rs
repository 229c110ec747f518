//! The genetic search of Tensor Comprehensions (section 6.2), with the rates of its release.
//!
//! The first generation consists of the starting points and random points. When all results of a
//! generation are known, the next generation is bred. Three parents are drawn with probabilities
//! proportional to their fitness. Each gene (knob) comes from a random one of the three, and is
//! then replaced by a random value with a small probability. The best points of a generation
//! survive into the next one.
//!
//! Departures from the paper:
//!
//! - No point is measured twice. Elites keep their costs, so a later generation proposes fewer
//!   points by the number of elites. A child that was visited before is mutated until it is new.
//! - A generation has 24 points and 6 elites, instead of 100 and 10. The published runs had 25
//!   generations, which are 2,500 trials. With a few hundred trials, as are usual here, larger
//!   generations are hardly better than random search.
//! - The tuner decides when a run ends.

use rand::RngExt;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;

use super::explored::Explored;
use super::ranking::Ranking;
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "genetic";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "generations bred from three parents each (Tensor Comprehensions)",
    learns_from_others: false,
    make: |knobs, start| Ok(Box::new(Genetic::new(knobs, start, Parameters::default()))),
};

/// How often a child that was visited before is mutated again, before a random point replaces it.
const MUTATIONS: usize = 100;

/// The parameters of [`Genetic`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The number of points in a generation.
    pub population: usize,
    /// The number of best points that survive into the next generation.
    pub elites: usize,
    /// The probability that a child has three parents; other children are copies of one parent.
    pub crossover_rate: f64,
    /// The probability that a gene is replaced by a random value.
    pub mutation_rate: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { population: 24, elites: 6, crossover_rate: 0.8, mutation_rate: 0.07 }
    }
}

/// Genetic search.
pub struct Genetic {
    parameters: Parameters,
    explored: Explored,
    /// The valid points of this generation whose results are known, and the elites of the last
    /// generation.
    population: Ranking,
}

impl Genetic {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'_>, parameters: Parameters) -> Genetic {
        let explored = Explored::new(knobs, start);
        Genetic { parameters, explored, population: Ranking::default() }
    }

    /// Returns the next point of this generation, or the first point of the next one.
    fn next(&mut self) -> Option<Point> {
        if self.explored.open() == 0 {
            self.breed();
        }
        self.explored.next_queued()
    }

    /// Draws children that, together with the elites, make a whole generation. Draws nothing when
    /// the space is exhausted.
    fn breed(&mut self) {
        let parents: Vec<Point> = self.population.iter().map(|(point, _)| point.clone()).collect();
        let chances = WeightedIndex::new(self.population.iter().map(|(_, cost)| cost.fitness())).ok();
        // At least one point must be new, or the search would not progress.
        let size = self.parameters.population.max(1);
        self.population.truncate(self.parameters.elites.min(size - 1));
        let children = size - self.population.iter().count();
        for _ in 0..children {
            let born = self.explored.next_starting_point().or_else(|| match &chances {
                Some(chances) => child(&self.parameters, &mut self.explored, &parents, chances),
                None => self.explored.random_new_point(),
            });
            match born {
                Some(point) => self.explored.queue(point),
                None => return,
            }
        }
    }
}

/// Returns a child that was not visited before, or `None` if the space is exhausted.
fn child(
    parameters: &Parameters,
    explored: &mut Explored,
    parents: &[Point],
    chances: &WeightedIndex<f64>,
) -> Option<Point> {
    if explored.is_exhausted() {
        return None;
    }
    let count = if explored.with_probability(parameters.crossover_rate) { 3 } else { 1 };
    let chosen: Vec<&Point> = (0..count).map(|_| &parents[chances.sample(&mut explored.rng)]).collect();
    let mut child = chosen[0].clone();
    for (gene, value) in child.0.iter_mut().enumerate() {
        value.clone_from(&chosen[explored.rng.random_range(0..count)].0[gene]);
    }
    for _ in 0..MUTATIONS {
        mutate(parameters.mutation_rate, explored, &mut child);
        if explored.visit(&child) {
            return Some(child);
        }
    }
    explored.random_new_point()
}

fn mutate(rate: f64, explored: &mut Explored, point: &mut Point) {
    for (gene, value) in point.0.iter_mut().enumerate() {
        if explored.with_probability(rate)
            && let Some(random) = explored.knobs[gene].domain.sample(&mut explored.rng)
        {
            *value = random;
        }
    }
}

impl Strategy for Genetic {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next()).take(count).collect()
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            if let Some(cost) = self.explored.record(result) {
                self.population.insert(result.point.clone(), cost);
            }
        }
    }
}
