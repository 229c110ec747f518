//! The q-random walk (OpEvo, section 4.3, equation 3).

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

use super::{Domain, Value};

/// A walk with q = 1 would never stop; with this one it ends after a thousand steps or so.
const LARGEST_Q: f64 = 0.999;

impl Domain {
    /// Where a walk from `from` ends that, before each step, goes on to any of the neighbours with probability `q` and
    /// stops otherwise. Close values are likely, yet every value is possible; a larger `q` goes farther.
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
