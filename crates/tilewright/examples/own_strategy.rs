//! A search strategy written by the user: a random walk that only moves to better points.
//!
//!     cargo run --release -p tilewright --example own_strategy
//!
//! A strategy proposes points of the space and receives their costs. It never measures and never
//! waits, so the tuner can compile and measure several points at a time.

use std::collections::HashSet;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tilewright::knob::{Knobs, Point};
use tilewright::strategy::{Entry, Start, Strategy, TrialResult};
use tilewright::{Error, Module, Tune, serve_if_worker};

/// Proposes neighbours of the best point, and random points if there are none.
struct Downhill {
    knobs: Knobs,
    rng: Pcg64,
    /// The points to propose first: the default schedule, and the points that the cost model
    /// prefers.
    start: Vec<Point>,
    best: Option<(f64, Point)>,
    proposed: HashSet<Point>,
}

impl Downhill {
    /// Returns a starting point, a neighbour of the best point, or a random point of the space.
    fn candidate(&mut self) -> Option<Point> {
        if let Some(point) = self.start.pop() {
            return Some(point);
        }
        let neighbours = self.best.as_ref().map_or(Vec::new(), |(_, best)| self.knobs.neighbours(best));
        match neighbours.len() {
            0 => self.knobs.sample(&mut self.rng),
            many => Some(neighbours[self.rng.random_range(0..many)].clone()),
        }
    }
}

impl Strategy for Downhill {
    fn name(&self) -> &'static str {
        "downhill"
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        let mut batch = Vec::new();
        // A small space runs out of new points, so the number of attempts is limited.
        for _ in 0..100 * count {
            if batch.len() == count {
                break;
            }
            let Some(point) = self.candidate() else { break };
            if self.proposed.insert(point.clone()) {
                batch.push(point);
            }
        }
        batch
    }

    fn report(&mut self, results: &[TrialResult]) {
        for TrialResult { point, cost } in results {
            let Some(cost) = cost else { continue };
            if self.best.as_ref().is_none_or(|(best, _)| cost < best) {
                self.best = Some((*cost, point.clone()));
            }
        }
    }
}

const DOWNHILL: Entry = Entry {
    name: "downhill",
    description: "a random walk that only goes downhill",
    learns_from_others: false,
    make: |knobs, mut start: Start<'_>| {
        start.points.reverse();
        Ok(Box::new(Downhill {
            knobs: knobs.clone(),
            rng: Pcg64::seed_from_u64(start.seed),
            start: start.points,
            best: None,
            proposed: HashSet::new(),
        }))
    },
};

fn main() -> Result<(), Error> {
    serve_if_worker();
    let module =
        Module::parse("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }")?;
    let program = module.program("mm", [("M", 256), ("K", 256), ("N", 256)])?;
    let tuned = program.tune(&Tune::default().strategy(DOWNHILL).time(Duration::from_secs(5)))?;
    println!("{} trials in {:.1} s", tuned.trials, tuned.elapsed.as_secs_f64());
    println!("default {:.1} us, found {:.1} us", 1e6 * tuned.default_seconds, 1e6 * tuned.seconds);
    Ok(())
}
