//! Boosted trees with simulated annealing, as in AutoTVM (Chen et al., Learning to Optimize Tensor
//! Programs, 2018).
//!
//! The trees learn to rank the points that were tried. Chains of simulated annealing then walk
//! through the space, with the trees as a substitute for measurements. Each step changes the value
//! of one knob, and each chain continues in the next round where it stopped. The batch is chosen
//! from the best points that the chains passed: points with good scores and many different values,
//! plus a few random points.
//!
//! The tuner provides the input of the trees ([`Start::features`]): the parts into which the cost
//! model divides the time of the point's loop nest. Without it, the input is the features of the
//! point. If trials of other programs are given, the trees also learn from them, where each program
//! is ranked on its own.
//!
//! Departures from the paper:
//!
//! - The features of AutoTVM are counts of accesses, reuse and annotations for every loop. The
//!   features here are what the cost model computes from such counts.
//! - A batch has 16 points instead of 64, and at least as many as are tried together.
//! - Annealing takes 8 steps of 16 chains in a round, instead of 500 steps of 128 chains with early
//!   stopping. A trial takes milliseconds here instead of a second, and the features of a point
//!   take one or two milliseconds.
//! - After many trials, the trees are trained only when the number of trials has grown by a
//!   sixty-fourth.
//! - Chains begin at the given starting points.
//! - If annealing finds no new points, random points are tried, so that the search eventually
//!   covers the whole space.

use std::collections::HashMap;

use rand::RngExt;

use super::explored::{Explored, Planner};
use super::learning::{FeatureSet, RankModel};
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Point, Value};

pub(super) const NAME: &str = "trees";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "boosted trees that learn to rank, and simulated annealing on their scores (AutoTVM)",
    learns_from_others: true,
    make: |knobs, start| Ok(Box::new(Annealing::new(knobs, start, Parameters::default()))),
};

/// The largest number of values drawn for one step until the point satisfies the rules.
const STEP_DRAWS: usize = 8;

/// The parameters of [`Annealing`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The number of points that are tried between two trainings.
    pub batch: usize,
    /// The number of annealing chains.
    pub chains: usize,
    /// The number of steps of a chain in one round.
    pub steps: usize,
    /// The batch is chosen from this many times its size of best points.
    pub pool_factor: usize,
    /// ε: the share of random points in a batch.
    pub random_share: f64,
    /// The bonus for a value that the batch does not contain yet, relative to the spread of the
    /// scores.
    pub diversity: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { batch: 16, chains: 16, steps: 8, pool_factor: 3, random_share: 0.05, diversity: 0.1 }
    }
}

/// Simulated annealing with boosted trees as the cost model.
pub struct Annealing<'a> {
    parameters: Parameters,
    explored: Explored,
    rank_model: RankModel<'a>,
    chains: Vec<Point>,
}

impl<'a> Annealing<'a> {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'a>, parameters: Parameters) -> Annealing<'a> {
        let parameters =
            Parameters { batch: parameters.batch.max(start.parallel_trials).max(1), ..parameters };
        let chains = start.points.iter().filter(|point| knobs.contains(point)).cloned();
        Annealing {
            parameters,
            chains: chains.take(parameters.chains).collect(),
            rank_model: RankModel::new(knobs, &start, FeatureSet::Nests),
            explored: Explored::new(knobs, start),
        }
    }

    /// Returns new points with high scores, best first.
    fn anneal(&mut self) -> Vec<(f32, Point)> {
        let Parameters { chains, steps, batch, pool_factor: choice, .. } = self.parameters;
        while self.chains.len() < chains
            && let Some(point) = self.explored.knobs.sample(&mut self.explored.rng)
        {
            self.chains.push(point);
        }
        let mut at = std::mem::take(&mut self.chains);
        self.rank_model.compute_features(&at);
        let mut scores: Vec<f32> = at.iter().map(|point| self.rank_model.score(point)).collect();
        let mut passed: HashMap<Point, f32> = HashMap::new();
        for step in 0..steps {
            let heat = 1.0 - step as f32 / steps as f32;
            let next: Vec<Point> = at.iter().map(|point| self.change_one_knob(point)).collect();
            self.rank_model.compute_features(&next);
            for (chain, next) in next.into_iter().enumerate() {
                let score = self.rank_model.score(&next);
                if score.is_finite() && !self.explored.is_visited(&next) {
                    passed.insert(next.clone(), score);
                }
                let chance = ((score - scores[chain]) / (heat + 1e-5)).min(1.0).exp();
                if self.explored.with_probability(f64::from(chance)) || !scores[chain].is_finite() {
                    (at[chain], scores[chain]) = (next, score);
                }
            }
        }
        self.chains = at;
        let mut ranked: Vec<(f32, Point)> = passed.into_iter().map(|(point, score)| (score, point)).collect();
        ranked.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
        ranked.truncate(batch * choice.max(1));
        ranked
    }

    /// Returns the point with another value for one knob.
    fn change_one_knob(&mut self, point: &Point) -> Point {
        let Explored { knobs, rng, .. } = &mut self.explored;
        let open_knobs: Vec<usize> = (0..knobs.len()).filter(|knob| knobs[*knob].domain.size() > 1).collect();
        for _ in 0..STEP_DRAWS {
            let Some(knob) = open_knobs.get(rng.random_range(0..open_knobs.len().max(1))) else { break };
            let Some(value) = knobs[*knob].domain.sample(rng) else { break };
            let mut changed = point.clone();
            changed.0[*knob] = value;
            if changed != *point && knobs.allows(&changed) {
                return changed;
            }
        }
        point.clone()
    }

    /// Chooses a batch of points that are good and differ from each other. The greedy choice
    /// maximises the score plus a bonus for each value that is new in the batch.
    fn choose_diverse(&self, mut ranked: Vec<(f32, Point)>) -> Vec<Point> {
        let (best, worst) = match (ranked.first(), ranked.last()) {
            (Some((best, _)), Some((worst, _))) => (*best, *worst),
            _ => return Vec::new(),
        };
        let worth = self.parameters.diversity as f32 * (best - worst).max(f32::EPSILON);
        let mut seen: Vec<Vec<Value>> = vec![Vec::new(); self.explored.knobs.len()];
        let mut chosen = Vec::new();
        while chosen.len() < self.parameters.batch && !ranked.is_empty() {
            let new = |point: &Point| {
                point.0.iter().zip(&seen).filter(|(value, seen)| !seen.contains(value)).count()
            };
            let gain = |(score, point): &(f32, Point)| score + worth * new(point) as f32;
            let next = (0..ranked.len())
                .reduce(|best, at| if gain(&ranked[at]) > gain(&ranked[best]) { at } else { best });
            let Some(next) = next else { break };
            let (_, point) = ranked.remove(next);
            for (value, seen) in point.0.iter().zip(&mut seen) {
                if !seen.contains(value) {
                    seen.push(value.clone());
                }
            }
            chosen.push(point);
        }
        chosen
    }
}

impl Planner for Annealing<'_> {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    /// Draws a batch of points with high scores, and a few random points.
    fn plan(&mut self) {
        let Parameters { batch, random_share: random, .. } = self.parameters;
        if self.rank_model.learn() {
            let ranked = self.anneal();
            for point in self.choose_diverse(ranked) {
                if !self.explored.with_probability(random) {
                    self.explored.queue_if_new(&point);
                }
            }
        }
        while self.explored.queued() < batch && self.explored.queue_random() {}
    }
}

impl Strategy for Annealing<'_> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next_point()).take(count).collect()
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            let cost = self.explored.record(result);
            if self.explored.is_visited(&result.point) {
                self.rank_model.record(&result.point, cost);
            }
        }
    }
}
