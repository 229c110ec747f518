//! The P-method (FlexTensor, section 6.5): from each of several points, drawn by how good they are,
//! all directions are tried.
//!
//! It is what the Q-method is compared with: the same starts, and nothing that is learned.
//!
//! From all starts of a trial neighbours are asked for together.
//!
//! Departures: neighbours that were visited are not tried again, and points all of whose neighbours
//! were are no starts any more. The search begins at the points given, or at random ones; when it
//! has nowhere to go it goes on from others.

use super::explored::{Explored, Planner};
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
        Parameters { starts: 2, gamma: 32.0, first: 16 }
    }
}

/// All directions from good points.
pub struct PMethod {
    parameters: Parameters,
    explored: Explored,
    pool: Pool,
}

impl PMethod {
    /// A search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'_>, parameters: Parameters) -> PMethod {
        let first = if start.points.is_empty() { parameters.first } else { 0 };
        let mut explored = Explored::new(knobs, start);
        explored.draw_some(first);
        PMethod { parameters, explored, pool: Pool::default() }
    }
}

impl Planner for PMethod {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    /// The neighbours of points to go on from, or random points.
    fn plan(&mut self) {
        let Parameters { starts, gamma, .. } = self.parameters;
        while self.explored.drawn() == 0 {
            let starts = self.pool.draw(starts.max(1), gamma, &mut self.explored.rng);
            if starts.is_empty() && !self.explored.draw_any() {
                return;
            }
            for start in starts {
                for neighbour in self.explored.knobs.neighbours(&start) {
                    self.explored.draw(&neighbour);
                }
                self.pool.remove(&start);
            }
        }
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
