//! Defines [`StageFeatures`] and [`RootFeatures`]: what learned models see of a loop nest.
//!
//! The features follow those of Adams et al. 2019 and Anderson et al. 2021 (appendix A): operations
//! of the algorithm, and for each stage its points, loops, memory at several levels, and spread
//! over the machine. They are the same for CPUs and GPUs. Where the analytical model of a target
//! already computes a time, such as that of transfers between caches, the time is a feature, in
//! place of the paper's separate counts of transactions.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::Stmt;

use super::memory::Memory;
use super::operations::Operations;
use super::parallelism::Parallelism;
use super::shape::Shape;
use super::stages::{Stage, stages};
use super::terms::{TERMS, terms};
use crate::cost::EstimateFeatures;

/// The speeds of a machine that features and terms need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speeds {
    /// The cores, or the multiprocessors.
    pub units: f64,
    /// The threads that execute together; 1 on a CPU.
    pub warp: f64,
    /// The scalar operations that a unit executes in a second with all its lanes, about.
    pub operations: f64,
    /// The bytes that all units together move to and from memory in a second, about.
    pub bandwidth: f64,
    /// The seconds to start parallel work.
    pub start: f64,
}

/// The features of a stage: of one store with its loops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageFeatures {
    /// The operations of a point.
    pub operations: Operations,
    /// The loops around the stage.
    pub shape: Shape,
    /// The memory that the stage touches.
    pub memory: Memory,
    /// The spread of the stage over the machine.
    pub parallelism: Parallelism,
}

impl StageFeatures {
    /// The number of features.
    pub const COUNT: usize = Operations::COUNT + Shape::COUNT + Memory::COUNT + Parallelism::COUNT;

    fn of(nest: &LoopNest, stage: &Stage, speeds: &Speeds) -> StageFeatures {
        StageFeatures {
            operations: Operations::of(stage),
            shape: Shape::of(nest, stage),
            memory: Memory::of(nest, stage),
            parallelism: Parallelism::of(stage, speeds),
        }
    }

    /// The names of the features.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let groups = [&Operations::NAMES[..], &Shape::NAMES, &Memory::NAMES, &Parallelism::NAMES];
        groups.into_iter().flatten().copied()
    }

    /// The features as logarithms, which compress their range.
    fn values(&self) -> [f32; Self::COUNT] {
        let mut values = [0.0; Self::COUNT];
        let (operations, shape) = (self.operations.values(), self.shape.values());
        let (memory, parallelism) = (self.memory.values(), self.parallelism.values());
        let all = operations.iter().chain(&shape).chain(&memory).chain(&parallelism);
        for (value, own) in values.iter_mut().zip(all) {
            *value = (1.0 + own.max(0.0)).log2() as f32;
        }
        values
    }

    /// The instructions of all points, which weigh a stage among others.
    fn work(&self) -> f64 {
        self.shape.points * self.operations.instructions()
    }
}

/// A stage as the network sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct StageInput {
    /// The features.
    pub values: [f32; StageFeatures::COUNT],
    /// The hand-written terms, in seconds.
    pub terms: [f32; TERMS],
}

/// The features of a statement outside of loops, with all its stages.
#[derive(Clone, Debug, PartialEq)]
pub struct RootFeatures {
    /// The seconds by the analytical model.
    pub seconds: f64,
    /// One number for each feature that trees see. The number is the same for all nests of a kind
    /// of machines.
    pub values: Vec<f32>,
    /// The stages.
    pub stages: Vec<StageInput>,
}

/// Computes the features of a statement outside of loops, of which the analytical model has this
/// estimate.
pub(super) fn root_features(
    nest: &LoopNest,
    root: &Stmt,
    estimate: &EstimateFeatures,
    speeds: &Speeds,
) -> RootFeatures {
    let found: Vec<StageFeatures> =
        stages(nest, root).iter().map(|stage| StageFeatures::of(nest, stage, speeds)).collect();
    let all: f64 = found.iter().map(StageFeatures::work).sum::<f64>().max(1.0);
    let inputs = found.iter().map(|own| StageInput {
        values: own.values(),
        terms: terms(own, estimate.seconds * own.work() / all, speeds),
    });
    let stages: Vec<StageInput> = inputs.collect();
    let weights: Vec<f64> = found.iter().map(|own| own.work() / all).collect();
    RootFeatures { seconds: estimate.seconds, values: summary(estimate, &stages, &weights), stages }
}

/// The analytical estimate, the number of stages, and the mean and the largest value of each stage
/// feature.
fn summary(estimate: &EstimateFeatures, stages: &[StageInput], weights: &[f64]) -> Vec<f32> {
    let mut values = vec![(estimate.seconds.max(1e-9) * 1e6).log2() as f32];
    values.extend(estimate.shares_of_time());
    values.push((stages.len() as f32).ln_1p());
    let mut means = [0.0f32; StageFeatures::COUNT];
    let mut largest = [0.0f32; StageFeatures::COUNT];
    for (stage, weight) in stages.iter().zip(weights) {
        for (at, value) in stage.values.iter().enumerate() {
            means[at] += *weight as f32 * value;
            largest[at] = largest[at].max(*value);
        }
    }
    values.extend(means);
    values.extend(largest);
    values
}
