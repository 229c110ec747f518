//! Records the state that every strategy needs, and finds new points ([`Explored`]). The state is
//! the points that were proposed, those without a result yet, and those queued as next proposals.
//!
//! Most strategies plan a batch, wait for all its results, and plan the next batch. Such a strategy
//! is a [`Planner`].

use std::collections::{HashSet, VecDeque};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::ranking::Cost;
use super::{Start, TrialResult};
use crate::knob::{Knobs, Point};

/// The number of random draws before the space is enumerated in order. If half of the points are
/// visited, all draws fail once in four billion times.
const DRAWS: usize = 32;

/// The largest number of points that are enumerated until one satisfies the rules.
const MAX_ENUMERATED: usize = 1_000_000;

/// The space and the progress of a strategy in it.
pub(super) struct Explored {
    pub knobs: Knobs,
    pub rng: Pcg64Mcg,
    size: u128,
    /// The points that were proposed, or whose result was received.
    visited: HashSet<Point>,
    /// The points that were proposed and whose result is not known yet.
    open: HashSet<Point>,
    /// The starting points that are still to be proposed, unless visited meanwhile.
    starting: VecDeque<Point>,
    /// The visited points that are still to be proposed.
    queue: VecDeque<Point>,
    /// All points before this index have been enumerated.
    cursor: u128,
}

impl Explored {
    pub fn new(knobs: &Knobs, start: Start<'_>) -> Explored {
        Explored {
            size: knobs.size(),
            knobs: knobs.clone(),
            rng: Pcg64Mcg::seed_from_u64(start.seed),
            visited: HashSet::new(),
            open: HashSet::new(),
            starting: start.points.into(),
            queue: VecDeque::new(),
            cursor: 0,
        }
    }

    /// The number of points that were proposed and whose result is not known yet.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Returns true when every point was visited.
    pub fn is_exhausted(&self) -> bool {
        self.visited.len() as u128 >= self.size
    }

    /// Returns true when `point` was proposed or its result was received.
    pub fn is_visited(&self, point: &Point) -> bool {
        self.visited.contains(point)
    }

    /// Marks `point` as visited and open if it is new. Returns true for a new point: it belongs to
    /// the space, satisfies the rules and was not visited before.
    pub fn visit(&mut self, point: &Point) -> bool {
        let new = !self.is_visited(point) && self.knobs.contains(point) && self.knobs.allows(point);
        if new {
            self.visited.insert(point.clone());
            self.open.insert(point.clone());
        }
        new
    }

    /// Returns the next starting point that is new, and visits it.
    pub fn next_starting_point(&mut self) -> Option<Point> {
        while let Some(point) = self.starting.pop_front() {
            if self.visit(&point) {
                return Some(point);
            }
        }
        None
    }

    /// Visits `point` and queues it as a proposal if it is new, as [`Explored::visit`] defines it.
    /// Returns true for a new point.
    pub fn queue_if_new(&mut self, point: &Point) -> bool {
        let new = self.visit(point);
        if new {
            self.queue(point.clone());
        }
        new
    }

    /// Queues [any new point](Explored::random_new_point) as a proposal. Returns true if there was
    /// one.
    pub fn queue_random(&mut self) -> bool {
        let any = self.random_new_point();
        self.queue.extend(any.clone());
        any.is_some()
    }

    /// Queues up to `count` [new points](Explored::random_new_point) as proposals.
    pub fn queue_random_points(&mut self, count: usize) {
        for _ in 0..count {
            self.queue_random();
        }
    }

    /// Queues a visited point as a proposal.
    pub fn queue(&mut self, point: Point) {
        self.queue.push_back(point);
    }

    /// The number of queued proposals.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Returns the first queued proposal. Proposals whose result was received meanwhile are
    /// skipped.
    pub fn next_queued(&mut self) -> Option<Point> {
        std::iter::from_fn(|| self.queue.pop_front()).find(|point| self.open.contains(point))
    }

    /// Returns the next starting point, or else the first queued proposal.
    pub fn next_proposal(&mut self) -> Option<Point> {
        self.next_starting_point().or_else(|| self.next_queued())
    }

    /// Visits and returns a random new point. All points have equal probability as long as many are
    /// left. Returns `None` if the space is exhausted.
    pub fn random_new_point(&mut self) -> Option<Point> {
        if self.is_exhausted() {
            return None;
        }
        for _ in 0..DRAWS {
            let point = self.knobs.sample(&mut self.rng)?;
            if self.visit(&point) {
                return Some(point);
            }
        }
        self.next_in_order()
    }

    /// Visits and returns the first new point in the order of the knobs. Returns `None` if very
    /// many successive points violate a rule.
    pub fn next_in_order(&mut self) -> Option<Point> {
        for _ in 0..MAX_ENUMERATED {
            let point = self.knobs.nth(self.cursor)?;
            self.cursor += 1;
            if self.visit(&point) {
                return Some(point);
            }
        }
        None
    }

    /// Records the result of a point. Returns its cost if the point is valid and belongs to the
    /// space.
    pub fn record(&mut self, result: &TrialResult) -> Option<Cost> {
        if !self.open.remove(&result.point) && !self.visited.contains(&result.point) {
            if !self.knobs.contains(&result.point) {
                return None;
            }
            self.visited.insert(result.point.clone());
        }
        result.cost.and_then(Cost::new)
    }

    /// Returns true with the probability `rate`.
    pub fn with_probability(&mut self, rate: f64) -> bool {
        self.rng.random::<f64>() < rate
    }
}

/// A strategy that plans whole batches.
pub(super) trait Planner {
    fn explored(&mut self) -> &mut Explored;

    /// Draws the points of the next batch. It is called when all earlier results are known, and
    /// draws nothing when nothing is left.
    fn plan(&mut self);

    /// Returns the next point: a starting point, a point of this batch, or the first point of the
    /// next batch.
    fn next_point(&mut self) -> Option<Point> {
        if let Some(point) = self.explored().next_proposal() {
            return Some(point);
        }
        if self.explored().open() > 0 || self.explored().is_exhausted() {
            return None;
        }
        self.plan();
        self.explored().next_proposal()
    }
}
