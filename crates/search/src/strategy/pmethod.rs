//! The P-method (FlexTensor, section 6.5): from each of several points, drawn by how good they are, all directions are tried.
//!
//! It is what the Q-method is compared with: the same starts, and nothing that is learned.
//!
//! Departures: neighbours that were visited are not tried again, and points all of whose neighbours were are no starts any
//! more. The search begins at the points given, or at random ones; when it has nowhere to go it goes on from others.

use std::collections::VecDeque;

use super::explored::Explored;
use super::pool::Pool;
use super::{Start, Strategy, Told};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "p-method";

/// The parameters of [`PMethod`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Points to go on from in a trial.
    pub starts: usize,
    /// γ: how much better a point has to be to be drawn more often.
    pub gamma: f64,
    /// Random points to begin with, where none are given.
    pub first: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { starts: 1, gamma: 8.0, first: 8 }
    }
}

/// All directions from good points.
pub struct PMethod {
    parameters: Parameters,
    explored: Explored,
    pool: Pool,
    /// Random points that are still to be tried first.
    first: usize,
    drawn: VecDeque<Point>,
}

impl PMethod {
    /// A search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'_>, parameters: Parameters) -> PMethod {
        let first = if start.points.is_empty() { parameters.first.max(1) } else { 0 };
        let explored = Explored::new(knobs, start);
        PMethod { parameters, explored, pool: Pool::default(), first, drawn: VecDeque::new() }
    }

    fn next(&mut self) -> Option<Point> {
        if let Some(point) = self.explored.start() {
            return Some(point);
        }
        if self.first > 0 {
            self.first -= 1;
            return self.explored.fresh();
        }
        loop {
            match self.drawn.pop_front() {
                // It may have been told meanwhile, without being asked for.
                Some(point) if !self.explored.is_open(&point) => {}
                Some(point) => return Some(point),
                None if self.explored.open() > 0 || self.explored.is_exhausted() => return None,
                None => self.draw()?,
            }
        }
    }

    /// The neighbours of points to go on from, or a random point.
    fn draw(&mut self) -> Option<()> {
        let Parameters { starts, gamma, .. } = self.parameters;
        while self.drawn.is_empty() {
            let starts = self.pool.draw(starts.max(1), gamma, &mut self.explored.rng);
            if starts.is_empty() {
                self.drawn.push_back(self.explored.fresh()?);
            }
            for start in starts {
                let neighbours = self.explored.knobs.neighbours(&start);
                self.drawn.extend(neighbours.into_iter().filter(|point| self.explored.visit(point)));
                self.pool.remove(&start);
            }
        }
        Some(())
    }
}

impl Strategy for PMethod {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next()).take(count).collect()
    }

    fn tell(&mut self, results: &[Told]) {
        for told in results {
            if let Some(cost) = self.explored.told(told) {
                self.pool.insert(told.point.clone(), cost);
            }
        }
    }
}
