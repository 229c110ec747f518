//! Chooses schedules of a program to measure: the default one, the one by rules, and random ones.
//!
//! A random schedule is the result of a greedy search by a model whose predictions are disturbed
//! (`DisturbedModel`). With little disturbance the schedules are near the best; with much of it,
//! every decision is random. Both are needed: a model must know what is slow, and must tell good
//! schedules from one another.

use std::sync::Mutex;
use std::thread;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tilewright_ir::{LoopNest, Program};
use tilewright_schedule::{Schedule, schedule_by_rules};
use tilewright_search::beam::{self, BeamOptions};
use tilewright_search::cost::{Breakdown, CostModel, EstimateFeatures};
use tilewright_search::default_schedule;
use tilewright_search::kind::cost_model;
use tilewright_target::Target;

/// The standard deviations of the disturbance, as natural logarithms of times. Samples use them in
/// turn.
const DISTURBANCES: [f64; 5] = [0.2, 0.5, 1.0, 2.0, 6.0];
/// A greedy search.
const GREEDY: BeamOptions = BeamOptions { widest: 1, kept: 1, ..BeamOptions::DEFAULT };

/// Different schedules of a program, at most this many, the default schedule first.
pub fn schedules<'t>(
    program: &'t Program,
    target: impl Into<Target<'t>>,
    count: usize,
    seed: u64,
) -> Vec<Schedule> {
    let target = target.into();
    let given = [default_schedule(program, target), schedule_by_rules(program, target)];
    let random = random_schedules(program, target, count, seed);
    let mut found: Vec<Schedule> = Vec::new();
    for schedule in given.into_iter().chain(random) {
        if found.len() < count && !found.contains(&schedule) {
            found.push(schedule);
        }
    }
    found
}

/// Random schedules, on all cores. Some may be equal.
fn random_schedules(program: &Program, target: Target<'_>, count: usize, seed: u64) -> Vec<Schedule> {
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get()).min(count.max(1));
    let one = |number: usize| random_schedule(program, target, number, seed);
    let found = thread::scope(|scope| {
        let share = |first: usize| {
            scope.spawn(move || (first..count).step_by(threads).map(|at| (at, one(at))).collect::<Vec<_>>())
        };
        let running: Vec<_> = (0..threads).map(share).collect();
        running.into_iter().flat_map(|own| own.join().unwrap_or_default()).collect::<Vec<_>>()
    });
    let mut found = found;
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().filter_map(|(_, schedule)| schedule).collect()
}

/// The result of a greedy search with a disturbed model.
fn random_schedule(program: &Program, target: Target<'_>, number: usize, seed: u64) -> Option<Schedule> {
    let model = DisturbedModel {
        model: &*cost_model(target),
        disturbance: DISTURBANCES[number % DISTURBANCES.len()],
        rng: Mutex::new(Pcg64Mcg::seed_from_u64(seed.wrapping_mul(4096).wrapping_add(number as u64))),
    };
    let found = beam::search(program, target, &model, &GREEDY).ok()?;
    let by_rules = schedule_by_rules(program, target);
    found.ranked.into_iter().map(|(schedule, _)| schedule).find(|schedule| *schedule != by_rules)
}

/// A model whose predictions are multiplied by random factors.
#[derive(Debug)]
struct DisturbedModel<'m> {
    model: &'m dyn CostModel,
    disturbance: f64,
    rng: Mutex<Pcg64Mcg>,
}

impl DisturbedModel<'_> {
    fn factor(&self) -> f64 {
        let mut rng = self.rng.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // The sum of twelve even numbers is nearly normal, with the variance 1.
        let normal = (0..12).map(|_| rng.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        (self.disturbance * normal).exp()
    }
}

impl CostModel for DisturbedModel<'_> {
    fn estimate(&self, nest: &LoopNest) -> EstimateFeatures {
        self.model.estimate(nest).scaled(self.factor())
    }

    fn root_estimates(&self, nest: &LoopNest) -> Vec<EstimateFeatures> {
        self.model.root_estimates(nest).into_iter().map(|own| own.scaled(self.factor())).collect()
    }

    fn breakdown(&self, nest: &LoopNest) -> Breakdown {
        self.model.breakdown(nest)
    }
}
