//! G-BFS (Compiler-level matrix multiplication optimization, section 3.3, algorithm 1): greedy
//! best-first search.
//!
//! Told points wait in a queue, cheapest first. The first of them is expanded: ρ of its neighbours,
//! drawn at random, are asked for, and queue up with their costs. With the neighbours of all kinds
//! of knobs this is no longer about matrix products only; for factorisations of powers of two the
//! moves are the paper's.
//!
//! Departures: the search begins at the points given, or at the plain one, where nothing is tiled,
//! as in the paper's experiments, and at some random ones beside it: the plain one may be far from
//! all that is good, and where it is as slow all around it there is nothing to be greedy for.
//! Neighbours that were visited are not drawn, for they would bring nothing. The paper is done when
//! the queue is empty; here points that have neighbours left then queue up again, and when there
//! are none (all are invalid, as the start itself may be) the search goes on from random points, so
//! that in the end it sees the whole space. Where many are to be tried together, so that no core is
//! idle, the next best points are expanded as well before times are known.

use rand::seq::SliceRandom;

use super::explored::{Explored, Planner};
use super::ranking::{Cost, Ranking};
use super::{Start, Strategy, Told};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "gbfs";

/// The parameters of [`Gbfs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// ρ: how many neighbours of an expanded point are tried.
    pub neighbours: usize,
    /// Random points to begin with, where none are given.
    pub first: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { neighbours: 5, first: 16 }
    }
}

/// Greedy best-first search.
pub struct Gbfs {
    parameters: Parameters,
    /// Points are expanded until so many are to be tried.
    together: usize,
    explored: Explored,
    /// Points to expand.
    queue: Ranking,
    /// Points that were expanded and may have neighbours left.
    expanded: Ranking,
}

impl Gbfs {
    /// A search of `knobs`.
    pub fn new(knobs: &Knobs, mut start: Start<'_>, parameters: Parameters) -> Gbfs {
        let together = start.together.max(1);
        let blind = start.points.is_empty();
        start.points.extend(knobs.nth(0).filter(|_| blind));
        let mut explored = Explored::new(knobs, start);
        explored.draw_some(if blind { parameters.first } else { 0 });
        Gbfs { parameters, together, explored, queue: Ranking::default(), expanded: Ranking::default() }
    }

    /// Draws neighbours of `point`.
    fn expand(&mut self, point: Point, cost: Cost) {
        let mut moves = self.explored.knobs.moves(&point);
        moves.shuffle(&mut self.explored.rng);
        let enough = self.explored.drawn() + self.parameters.neighbours.max(1);
        for step in moves {
            let neighbour = point.after(step);
            if self.explored.drawn() < enough {
                self.explored.draw(&neighbour);
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

    /// Expands the best point, or several where more are to be tried together; or begins anew.
    fn plan(&mut self) {
        loop {
            while self.explored.drawn() < self.together
                && let Some((point, cost)) = self.queue.pop()
            {
                self.expand(point, cost);
            }
            if self.explored.drawn() > 0 {
                return;
            }
            self.queue = std::mem::take(&mut self.expanded);
            if self.queue.is_empty() {
                let most = self.parameters.neighbours.max(1);
                while self.explored.drawn() < most && self.explored.draw_any() {}
                return;
            }
        }
    }
}

impl Strategy for Gbfs {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next()).take(count).collect()
    }

    fn tell(&mut self, results: &[Told]) {
        for told in results {
            if let Some(cost) = self.explored.told(told) {
                self.queue.insert(told.point.clone(), cost);
            }
        }
    }
}
