//! Told points in the order of their costs.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

use crate::knob::Point;

/// A cost in seconds: finite and not negative, so that costs have an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cost(f64);

/// Costs below this count as this one: no clock sees them, and what is inverse to them stays
/// finite.
const LEAST_SECONDS: f64 = 1e-12;

impl Cost {
    pub fn new(seconds: f64) -> Option<Cost> {
        (seconds.is_finite() && seconds >= 0.0).then_some(Cost(seconds))
    }

    /// Fitness is inverse to time, as both Tensor Comprehensions and OpEvo (which calls it FLOPS)
    /// have it.
    pub fn fitness(self) -> f64 {
        1.0 / self.0.max(LEAST_SECONDS)
    }

    /// How good a cost is: 1 for the best, less for others, 0 for what is invalid. So it is the
    /// same for every program.
    pub fn goodness(own: Option<Cost>, best: Option<Cost>) -> f64 {
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

/// Valid points, cheapest first, each once. Equal costs are in the order of the points, so that a
/// run can be repeated.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranking {
    order: BTreeSet<(Cost, Point)>,
    costs: HashMap<Point, Cost>,
}

impl Ranking {
    /// Adds a point; one that is there already gets its new cost.
    pub fn insert(&mut self, point: Point, cost: Cost) {
        if let Some(before) = self.costs.insert(point.clone(), cost) {
            self.order.remove(&(before, point.clone()));
        }
        self.order.insert((cost, point));
    }

    /// The cheapest point, which is taken out.
    pub fn pop(&mut self) -> Option<(Point, Cost)> {
        let (cost, point) = self.order.pop_first()?;
        self.costs.remove(&point);
        Some((point, cost))
    }

    /// Takes a point out.
    pub fn remove(&mut self, point: &Point) {
        if let Some(cost) = self.costs.remove(point) {
            self.order.remove(&(cost, point.clone()));
        }
    }

    /// Leaves only the `count` cheapest.
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
