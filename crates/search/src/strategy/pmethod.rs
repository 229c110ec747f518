//! The P-method (FlexTensor, section 6.5): tries all directions from each of several good points.
//!
//! Starts are drawn with a probability that grows with their performance. The P-method is the
//! baseline of the Q-method: it has the same starts but learns nothing. The neighbours of all
//! starts of a trial are proposed together.
//!
//! Departures from the paper: visited neighbours are not tried again. Points whose neighbours were
//! all visited are no longer starts. The search begins at the given points, or at random ones. When
//! no start is left, it continues from random points.

use super::explored::{Explored, Planner};
use super::pool::Pool;
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "p-method";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "steps from good points in all directions (FlexTensor)",
    learns_from_others: false,
    make: |knobs, start| Ok(Box::new(PMethod::new(knobs, start, Parameters::default()))),
};

/// The parameters of [`PMethod`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The number of starts in a trial.
    pub starts: usize,
    /// γ: how strongly the draw of starts prefers better points.
    pub gamma: f64,
    /// The number of random points to begin with, if no starting points are given.
    pub random_points: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { starts: 2, gamma: 32.0, random_points: 16 }
    }
}

/// Search in all directions from good points.
pub struct PMethod {
    parameters: Parameters,
    explored: Explored,
    pool: Pool,
}

impl PMethod {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'_>, parameters: Parameters) -> PMethod {
        let first = if start.points.is_empty() { parameters.random_points } else { 0 };
        let mut explored = Explored::new(knobs, start);
        explored.queue_random_points(first);
        PMethod { parameters, explored, pool: Pool::default() }
    }
}

impl Planner for PMethod {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    /// Draws the neighbours of the starts, or random points.
    fn plan(&mut self) {
        let Parameters { starts, gamma, .. } = self.parameters;
        while self.explored.queued() == 0 {
            let starts = self.pool.draw(starts.max(1), gamma, &mut self.explored.rng);
            if starts.is_empty() && !self.explored.queue_random() {
                return;
            }
            for start in starts {
                for neighbour in self.explored.knobs.neighbours(&start) {
                    self.explored.queue_if_new(&neighbour);
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

    fn propose(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next_point()).take(count).collect()
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            if let Some(cost) = self.explored.record(result) {
                self.pool.insert(result.point.clone(), cost);
            }
        }
    }
}
