//! What every strategy needs to know of the way so far: which points were tried, which are open,
//! and where to find others.
//!
//! Most strategies plan a batch, wait until all of it is told, and plan the next: they are a
//! [`Planner`].

use std::collections::{HashSet, VecDeque};

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::ranking::Cost;
use super::{Start, Told};
use crate::knob::{Knobs, Point};

/// How often to draw before going through the space in order. With half of the points visited, all
/// draws fail once in four billion times.
const DRAWS: usize = 32;

/// How many points to go through for one that keeps the rules.
const LOOKED_AT: usize = 1_000_000;

/// The space, and how far a strategy has come in it.
pub(super) struct Explored {
    pub knobs: Knobs,
    pub rng: Pcg64Mcg,
    size: u128,
    /// Points that were asked for or told.
    visited: HashSet<Point>,
    /// Those of them that were asked for and not told yet.
    open: HashSet<Point>,
    /// Points to start from that may still have to be asked for.
    starting: VecDeque<Point>,
    /// Visited points that are still to be asked for.
    queue: VecDeque<Point>,
    /// All points before this index are visited.
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

    /// How many points were asked for and not told yet.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether every point was visited.
    pub fn is_exhausted(&self) -> bool {
        self.visited.len() as u128 >= self.size
    }

    /// Whether `point` was asked for or told.
    pub fn is_visited(&self, point: &Point) -> bool {
        self.visited.contains(point)
    }

    /// Notes that `point` is, or will be, asked for; says whether it is a point of the space that
    /// keeps the rules and was not visited before.
    pub fn visit(&mut self, point: &Point) -> bool {
        let new = !self.is_visited(point) && self.knobs.contains(point) && self.knobs.allows(point);
        if new {
            self.visited.insert(point.clone());
            self.open.insert(point.clone());
        }
        new
    }

    /// The next point to start from.
    pub fn start(&mut self) -> Option<Point> {
        while let Some(point) = self.starting.pop_front() {
            if self.visit(&point) {
                return Some(point);
            }
        }
        None
    }

    /// Visits `point` and has it asked for; says whether it is new, as [`Explored::visit`] does.
    pub fn draw(&mut self, point: &Point) -> bool {
        let new = self.visit(point);
        if new {
            self.queue(point.clone());
        }
        new
    }

    /// Has [any point](Explored::fresh) asked for; says whether there was one.
    pub fn draw_any(&mut self) -> bool {
        let any = self.fresh();
        self.queue.extend(any.clone());
        any.is_some()
    }

    /// Has up to so many [of any points](Explored::fresh) asked for.
    pub fn draw_some(&mut self, count: usize) {
        for _ in 0..count {
            self.draw_any();
        }
    }

    /// Has a visited point asked for.
    pub fn queue(&mut self, point: Point) {
        self.queue.push_back(point);
    }

    /// How many points were drawn that are still to be asked for.
    pub fn drawn(&self) -> usize {
        self.queue.len()
    }

    /// The first of the points drawn. Those that were told meanwhile, without being asked for, are
    /// passed over.
    pub fn next_drawn(&mut self) -> Option<Point> {
        std::iter::from_fn(|| self.queue.pop_front()).find(|point| self.open.contains(point))
    }

    /// The next point to start from, or else of those drawn.
    pub fn next(&mut self) -> Option<Point> {
        self.start().or_else(|| self.next_drawn())
    }

    /// Any point that was not visited, all equally likely as long as many are left; none when the
    /// space is exhausted.
    pub fn fresh(&mut self) -> Option<Point> {
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

    /// The first point in the order of the knobs that was not visited. Where very many in a row
    /// break a rule, none.
    pub fn next_in_order(&mut self) -> Option<Point> {
        for _ in 0..LOOKED_AT {
            let point = self.knobs.nth(self.cursor)?;
            self.cursor += 1;
            if self.visit(&point) {
                return Some(point);
            }
        }
        None
    }

    /// Notes that a point was told. Its cost, where it is a valid point of the space.
    pub fn told(&mut self, told: &Told) -> Option<Cost> {
        if !self.open.remove(&told.point) && !self.visited.contains(&told.point) {
            if !self.knobs.contains(&told.point) {
                return None;
            }
            self.visited.insert(told.point.clone());
        }
        told.cost.and_then(Cost::new)
    }

    /// True with the probability `rate`.
    pub fn chance(&mut self, rate: f64) -> bool {
        self.rng.random::<f64>() < rate
    }
}

/// A strategy that plans whole batches.
pub(super) trait Planner {
    fn explored(&mut self) -> &mut Explored;

    /// Draws the points of the next batch, once all before are told; none when nothing is left.
    fn plan(&mut self);

    /// The next point: to start from, of this batch, or the first of the next one.
    fn next(&mut self) -> Option<Point> {
        if let Some(point) = self.explored().next() {
            return Some(point);
        }
        if self.explored().open() > 0 || self.explored().is_exhausted() {
            return None;
        }
        self.plan();
        self.explored().next()
    }
}
