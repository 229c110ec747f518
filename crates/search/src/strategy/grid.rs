//! Proposes the starting points, and then every other point in the order of the knobs. This
//! strategy is for small spaces, and finds their true optimum.

use super::explored::Explored;
use super::{Entry, Start, Strategy, TrialResult, Unsuitable};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "grid";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "every point in turn, for small spaces",
    learns_from_others: false,
    make: |knobs, start| Ok(Box::new(Grid::new(knobs, start)?)),
};

/// The largest size of a space. Larger spaces take too long even at a millisecond per point.
const LARGEST: u128 = 1_000_000;

/// Exhaustive search.
pub struct Grid {
    explored: Explored,
}

impl Grid {
    /// Creates a search of `knobs`, which may have at most a million points.
    pub fn new(knobs: &Knobs, start: Start<'_>) -> Result<Grid, Unsuitable> {
        match knobs.size() {
            size if size > LARGEST => Err(Unsuitable::TooLarge { size, largest: LARGEST }),
            _ => Ok(Grid { explored: Explored::new(knobs, start) }),
        }
    }
}

impl Strategy for Grid {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        let next = || self.explored.next_starting_point().or_else(|| self.explored.next_in_order());
        std::iter::from_fn(next).take(count).collect()
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            self.explored.record(result);
        }
    }
}
