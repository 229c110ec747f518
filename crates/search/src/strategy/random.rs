//! Proposes the starting points, and then points drawn uniformly from the whole space, none twice.
//! This strategy is the baseline of all others.

use super::explored::Explored;
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "random";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "points drawn evenly from the whole space",
    learns_from_others: false,
    make: |knobs, start| Ok(Box::new(Random::new(knobs, start))),
};

/// Random search.
pub struct Random {
    explored: Explored,
}

impl Random {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'_>) -> Random {
        Random { explored: Explored::new(knobs, start) }
    }
}

impl Strategy for Random {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        let next = || self.explored.next_starting_point().or_else(|| self.explored.random_new_point());
        std::iter::from_fn(next).take(count).collect()
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            self.explored.record(result);
        }
    }
}
