//! Implements the q-random walk of OpEvo (section 4.3, equation 3): a walk from a value of a domain
//! to random neighbours, which continues with probability q before each step.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::{Domain, Value};

/// The largest `q` of a walk. A walk with `q` = 1 would never stop; with this value it ends after
/// about a thousand steps.
const LARGEST_Q: f64 = 0.999;

impl Domain {
    /// Returns the end of a random walk from `from`. Before each step, the walk continues to a
    /// uniformly chosen neighbour with probability `q`, and stops otherwise. Close values are
    /// likely, but every value is possible. A larger `q` leads farther.
    pub fn walk<R: Rng + ?Sized>(&self, from: &Value, q: f64, rng: &mut R) -> Value {
        let q = if q > 0.0 { q.min(LARGEST_Q) } else { 0.0 };
        let mut at = from.clone();
        while rng.random_bool(q) {
            match self.neighbours(&at).choose(rng) {
                Some(next) => at = next.clone(),
                None => break,
            }
        }
        at
    }
}
