//! Estimates how many warps take a branch ([`Path`]).
//!
//! A warp takes a branch if one of its threads does. Conditions depend on loops in ways that are
//! easier to try than to derive, so they are evaluated for a sample of the warps and iterations.

use tilewright_ir::nest::{Atom, IndexExpr, LoopVarId};

/// The number of samples. A branch that none of them takes is taken by few warps.
const SAMPLES: usize = 48;
const LEAST_SHARE: f64 = 0.25 / SAMPLES as f64;
/// The threads of a warp that are looked at, as shares of the warp.
const LANES: [f64; 4] = [0.0, 0.3, 0.7, 0.999];
/// The assumed share of warps that take the unlikely side of a branch whose condition depends on
/// data or sizes.
const UNLIKELY: f64 = 0.05;
/// The multiples of the square root of a prime are spread evenly between whole numbers, and those
/// of several primes independently of each other.
const PRIMES: [f64; 12] = [2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0, 19.0, 23.0, 29.0, 31.0, 37.0];

/// The branches around a statement, each with its conditions and whether they hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Path<'a>(Vec<(&'a [IndexExpr], bool)>);

/// The loops of a kernel that a sample chooses iterations of.
pub(super) struct Iterations<'l> {
    /// The loops other than those over threads.
    pub others: &'l [(LoopVarId, i64)],
    /// The loops over threads, the fastest-varying one first.
    pub threads: &'l [(LoopVarId, i64)],
    /// The number of threads of a warp.
    pub warp: i64,
}

impl<'a> Path<'a> {
    /// Enters a branch.
    pub fn push(&mut self, conditions: &'a [IndexExpr], hold: bool) {
        self.0.push((conditions, hold));
    }

    /// Leaves the last branch.
    pub fn pop(&mut self) {
        self.0.pop();
    }

    /// The share of the warps and iterations that take all branches.
    pub fn share(&self, iterations: &Iterations) -> f64 {
        let is_known =
            |(conditions, _): &&(&[IndexExpr], bool)| iterations.value(conditions, 0, 0.0).is_some();
        let unknown = self.0.iter().filter(|own| !is_known(own) && !own.1).count();
        let known: Vec<_> = self.0.iter().filter(is_known).collect();
        if known.is_empty() {
            return UNLIKELY.powi(unknown as i32);
        }
        let takes = |sample: usize, lane: f64| {
            known.iter().all(|(conditions, hold)| iterations.value(conditions, sample, lane) == Some(*hold))
        };
        let taken = (0..SAMPLES).filter(|sample| LANES.iter().any(|lane| takes(*sample, *lane))).count();
        (taken as f64 / SAMPLES as f64).max(LEAST_SHARE) * UNLIKELY.powi(unknown as i32)
    }
}

impl Iterations<'_> {
    /// Whether all conditions hold in a sample; `None` if that depends on data or sizes.
    fn value(&self, conditions: &[IndexExpr], sample: usize, lane: f64) -> Option<bool> {
        let mut leaf = |atom: &Atom| match atom {
            Atom::Var(var) => self.iteration(*var, sample, lane),
            _ => None,
        };
        let mut all = true;
        for condition in conditions {
            all &= condition.eval(&mut leaf)? >= 0;
        }
        Some(all)
    }

    /// The iteration of a loop in a sample. Each loop has a sequence of its own.
    fn iteration(&self, var: LoopVarId, sample: usize, lane: f64) -> Option<i64> {
        let spread = |position: usize, trips: i64| {
            let step = PRIMES[position % PRIMES.len()].sqrt();
            ((step * (sample as f64 + 0.5)).fract() * trips as f64) as i64
        };
        if let Some(position) = self.others.iter().position(|(own, _)| *own == var) {
            return Some(spread(position, self.others[position].1));
        }
        let all: i64 = self.threads.iter().map(|(_, trips)| trips).product();
        let warps = (all + self.warp - 1) / self.warp.max(1);
        let thread = spread(self.others.len(), warps) * self.warp + (lane * self.warp as f64) as i64;
        let mut rest = thread.min(all - 1).max(0);
        for (own, trips) in self.threads {
            // A loop without iterations has conditions too.
            let trips = (*trips).max(1);
            if *own == var {
                return Some(rest % trips);
            }
            rest /= trips;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: LoopVarId = LoopVarId(0);
    const THREAD: LoopVarId = LoopVarId(1);
    const ROUND: LoopVarId = LoopVarId(2);

    /// The share of the warps that take branches with these conditions, in blocks of 256 threads.
    fn share(rounds: i64, branches: &[(IndexExpr, bool)]) -> f64 {
        let iterations =
            Iterations { others: &[(BLOCK, 64), (ROUND, rounds)], threads: &[(THREAD, 256)], warp: 32 };
        let mut path = Path::default();
        for (condition, hold) in branches {
            path.push(std::slice::from_ref(condition), *hold);
        }
        path.share(&iterations)
    }

    fn below(var: LoopVarId, limit: i64) -> IndexExpr {
        IndexExpr::constant(limit - 1).sub(&IndexExpr::var(var))
    }

    #[test]
    fn a_warp_takes_a_branch_if_one_of_its_threads_does() {
        let close = |found: f64, wanted: f64| assert!((found - wanted).abs() < 0.06, "{found} {wanted}");
        close(share(1, &[(below(BLOCK, 32), true)]), 0.5);
        close(share(1, &[(below(BLOCK, 16), true)]), 0.25);
        close(share(1, &[(below(BLOCK, 16), false)]), 0.75);
        // One of eight warps has the first threads.
        close(share(1, &[(below(THREAD, 10), true)]), 0.125);
        // All warps have even threads.
        let even = IndexExpr::constant(0).sub(&IndexExpr::var(THREAD).modulo(&IndexExpr::constant(2)));
        close(share(1, &[(even, true)]), 1.0);
        close(share(1, &[(below(BLOCK, 32), true), (below(THREAD, 128), true)]), 0.25);
        close(share(6, &[(below(ROUND, 2), true)]), 1.0 / 3.0);
    }

    #[test]
    fn loops_are_sampled_independently_of_each_other() {
        // 1296 elements in rounds of 256 threads.
        let element = IndexExpr::var(ROUND).scale(256).add(&IndexExpr::var(THREAD));
        let fits = IndexExpr::constant(1295).sub(&element);
        let found = share(6, &[(fits, true)]);
        assert!((found - 41.0 / 48.0).abs() < 0.08, "{found}");
    }

    #[test]
    fn loops_without_iterations_are_no_failure() {
        let iterations = Iterations { others: &[(BLOCK, 0)], threads: &[(THREAD, 0)], warp: 32 };
        let mut path = Path::default();
        let conditions = [below(BLOCK, 1), below(THREAD, 1)];
        path.push(&conditions, true);
        assert!(path.share(&iterations).is_finite());
    }
}
