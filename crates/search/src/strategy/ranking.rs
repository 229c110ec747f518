//! Orders the valid points of a search by their costs ([`Ranking`]), and converts a cost to a
//! fitness ([`Cost`]).

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use crate::knob::Point;

/// A cost in seconds. It is finite and not negative, so that costs are totally ordered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost(f64);

/// The least cost that counts. No clock resolves smaller costs, and the inverse stays finite.
const MIN_SECONDS: f64 = 1e-12;

impl Cost {
    pub fn new(seconds: f64) -> Option<Cost> {
        (seconds.is_finite() && seconds >= 0.0).then_some(Cost(seconds))
    }

    /// The fitness, which is inverse to the time, as in both Tensor Comprehensions and OpEvo (which
    /// calls it FLOPS).
    pub fn fitness(self) -> f64 {
        1.0 / self.0.max(MIN_SECONDS)
    }

    /// The fitness relative to the best cost: 1 for the best, less for others, 0 for an invalid
    /// point. Hence all programs have the same range.
    pub fn relative_fitness(own: Option<Cost>, best: Option<Cost>) -> f64 {
        own.zip(best).map_or(0.0, |(own, best)| own.fitness() / best.fitness())
    }
}

impl Eq for Cost {}

impl Ord for Cost {
    fn cmp(&self, other: &Cost) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Cost {
    fn partial_cmp(&self, other: &Cost) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Valid points, cheapest first, each once. Points of equal cost are in the order of points, so
/// that a run is reproducible.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranking {
    order: BTreeSet<(Cost, Point)>,
    costs: HashMap<Point, Cost>,
}

impl Ranking {
    /// Adds a point, or updates the cost of a point that is present.
    pub fn insert(&mut self, point: Point, cost: Cost) {
        if let Some(before) = self.costs.insert(point.clone(), cost) {
            self.order.remove(&(before, point.clone()));
        }
        self.order.insert((cost, point));
    }

    /// Removes and returns the cheapest point.
    pub fn pop(&mut self) -> Option<(Point, Cost)> {
        let (cost, point) = self.order.pop_first()?;
        self.costs.remove(&point);
        Some((point, cost))
    }

    /// Removes a point.
    pub fn remove(&mut self, point: &Point) {
        if let Some(cost) = self.costs.remove(point) {
            self.order.remove(&(cost, point.clone()));
        }
    }

    /// Keeps only the `count` cheapest points.
    pub fn truncate(&mut self, count: usize) {
        while self.order.len() > count
            && let Some((_, point)) = self.order.pop_last()
        {
            self.costs.remove(&point);
        }
    }

    /// All points, cheapest first.
    pub fn iter(&self) -> impl Iterator<Item = (&Point, Cost)> {
        self.order.iter().map(|(cost, point)| (point, *cost))
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
