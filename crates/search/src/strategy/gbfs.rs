//! G-BFS (Compiler-level matrix multiplication optimization, section 3.3, algorithm 1): greedy
//! best-first search.
//!
//! Points with known costs wait in a queue, cheapest first. The search expands the first one: ρ
//! random neighbours of it are proposed, and join the queue when their costs are known. All kinds
//! of knobs have neighbours, so the method is not limited to matrix products. For factorisations of
//! powers of two, the moves are those of the paper.
//!
//! Departures from the paper:
//!
//! - The search begins at the given points. Without any, it begins at the trivial point, where
//!   nothing is tiled, as in the experiments of the paper, and also at some random points. The
//!   trivial point may be far from all good points, and greedy search gains nothing where all
//!   neighbours are equally slow.
//! - Visited neighbours are not drawn, because they bring no new information.
//! - The paper stops when the queue is empty. Here, expanded points with unvisited neighbours then
//!   join the queue again. If there are none, because all points are invalid, possibly even the
//!   first one, the search continues from random points. Hence it eventually covers the whole
//!   space.
//! - If many points are tried together, so that no core is idle, the next best points are also
//!   expanded before the times are known.

use rand::seq::SliceRandom;

use super::explored::{Explored, Planner};
use super::ranking::{Cost, Ranking};
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "gbfs";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "greedy best-first search among neighbours (G-BFS)",
    learns_from_others: false,
    make: |knobs, start| Ok(Box::new(Gbfs::new(knobs, start, Parameters::default()))),
};

/// The parameters of [`Gbfs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// ρ: the number of neighbours of an expanded point that are tried.
    pub neighbours: usize,
    /// The number of random points to begin with, if no starting points are given.
    pub random_points: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { neighbours: 5, random_points: 16 }
    }
}

/// Greedy best-first search.
pub struct Gbfs {
    parameters: Parameters,
    /// Points are expanded until this many proposals are queued.
    parallel_trials: usize,
    explored: Explored,
    /// The points to expand.
    queue: Ranking,
    /// The expanded points that may have unvisited neighbours.
    expanded: Ranking,
}

impl Gbfs {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, mut start: Start<'_>, parameters: Parameters) -> Gbfs {
        let together = start.parallel_trials.max(1);
        let is_without_start = start.points.is_empty();
        start.points.extend(knobs.nth(0).filter(|_| is_without_start));
        let mut explored = Explored::new(knobs, start);
        explored.queue_random_points(if is_without_start { parameters.random_points } else { 0 });
        Gbfs {
            parameters,
            parallel_trials: together,
            explored,
            queue: Ranking::default(),
            expanded: Ranking::default(),
        }
    }

    /// Draws neighbours of `point`.
    fn expand(&mut self, point: Point, cost: Cost) {
        let mut moves = self.explored.knobs.moves(&point);
        moves.shuffle(&mut self.explored.rng);
        let enough = self.explored.queued() + self.parameters.neighbours.max(1);
        for step in moves {
            let neighbour = point.with_move(step);
            if self.explored.queued() < enough {
                self.explored.queue_if_new(&neighbour);
            } else if !self.explored.is_visited(&neighbour) {
                self.expanded.insert(point, cost);
                return;
            }
        }
    }
}

impl Planner for Gbfs {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    /// Expands the best point, or several points if more are tried together. If there is none,
    /// continues from random points.
    fn plan(&mut self) {
        loop {
            while self.explored.queued() < self.parallel_trials
                && let Some((point, cost)) = self.queue.pop()
            {
                self.expand(point, cost);
            }
            if self.explored.queued() > 0 {
                return;
            }
            self.queue = std::mem::take(&mut self.expanded);
            if self.queue.is_empty() {
                let most = self.parameters.neighbours.max(1);
                while self.explored.queued() < most && self.explored.queue_random() {}
                return;
            }
        }
    }
}

impl Strategy for Gbfs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next_point()).take(count).collect()
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            if let Some(cost) = self.explored.record(result) {
                self.queue.insert(result.point.clone(), cost);
            }
        }
    }
}
