//! Holds the measured points from which FlexTensor's methods (`pmethod.rs`, `qmethod.rs`) draw the
//! starts of their steps (section 5.1, "Heuristic Method").
//!
//! A point of performance E is drawn with a probability proportional to exp(-γ (E* - E) / E*),
//! where E* is the best performance. The closer a point is to the best, the more often it is a
//! start.

use rand::Rng;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;

use super::ranking::{Cost, Ranking};
use crate::knob::Point;

/// The least weight of a point that can be drawn. There may be thousands of points with less.
const MIN_WEIGHT: f64 = 1e-4;

/// The points that can be starts.
#[derive(Default)]
pub(super) struct Pool {
    ranking: Ranking,
}

impl Pool {
    pub fn insert(&mut self, point: Point, cost: Cost) {
        self.ranking.insert(point, cost);
    }

    /// Removes a point that has no unvisited neighbours.
    pub fn remove(&mut self, point: &Point) {
        self.ranking.remove(point);
    }

    /// Draws up to `count` different points with the parameter γ.
    pub fn draw<R: Rng + ?Sized>(&self, count: usize, gamma: f64, rng: &mut R) -> Vec<Point> {
        let Some((_, best)) = self.ranking.iter().next() else { return Vec::new() };
        let weight = |cost: Cost| (-gamma * (1.0 - Cost::relative_fitness(Some(cost), Some(best)))).exp();
        let mut open: Vec<(&Point, f64)> = self
            .ranking
            .iter()
            .map(|(point, cost)| (point, weight(cost)))
            .take_while(|(_, weight)| *weight >= MIN_WEIGHT)
            .collect();
        let mut drawn = Vec::new();
        while drawn.len() < count
            && let Ok(chances) = WeightedIndex::new(open.iter().map(|(_, weight)| *weight))
        {
            drawn.push(open.swap_remove(chances.sample(rng)).0.clone());
        }
        drawn
    }
}
