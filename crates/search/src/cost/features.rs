//! The estimate of the cost model for a nest as features, from which other models learn.
//!
//! A learning model can correct the cost model with these features: it learns that this machine
//! waits longer for memory, or that spills cost less. The number of features is the same for every
//! program on a kind of machine. Times are relative to those of the program's default schedule, so
//! that knowledge from one program applies to another.

use tilewright_ir::LoopNest;

use super::{Model, cpu, gpu};

/// The number of cache levels that have their own feature.
const LEVELS: usize = 4;
/// The largest ratio of times, as a power of two. Larger ratios are clamped to it.
const FURTHEST: f64 = 16.0;

/// The estimate of the model for a nest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EstimateFeatures {
    /// The estimated seconds of a call.
    pub seconds: f64,
    /// The seconds of its parts, which overlap.
    times: Vec<f64>,
    /// Other numbers, which are not scaled.
    shares: Vec<f64>,
}

impl Model<'_> {
    /// Estimates a nest.
    pub fn estimate(&self, nest: &LoopNest) -> EstimateFeatures {
        match self {
            Model::Cpu(target, machine) => of_cpu(cpu::estimate(nest, target, machine)),
            Model::Gpu(target) => of_gpu(&gpu::estimate(nest, target)),
        }
    }
}

impl EstimateFeatures {
    /// The features of the nest, where `default` is the estimated seconds of the default schedule.
    pub fn features(&self, default: f64) -> Vec<f32> {
        let whole = self.seconds.max(f64::MIN_POSITIVE);
        let relative = |time: f64, to: f64| {
            let ratio = (time / to.max(f64::MIN_POSITIVE)).max(f64::MIN_POSITIVE);
            ratio.log2().clamp(-FURTHEST, FURTHEST) as f32
        };
        let mut features = vec![relative(self.seconds, default)];
        features.extend(self.times.iter().map(|time| relative(*time, default)));
        features.extend(self.times.iter().map(|time| (time / whole).min(FURTHEST) as f32));
        features.extend(self.shares.iter().map(|share| *share as f32));
        features
    }
}

fn of_cpu(estimate: cpu::Estimate) -> EstimateFeatures {
    let cpu::Estimate { seconds, parts } = estimate;
    let mut times = vec![parts.compute, parts.memory_instructions, parts.loops, parts.threads, parts.spills];
    let mut transfers = parts.transfers;
    transfers.resize(LEVELS, 0.0);
    times.extend(transfers);
    EstimateFeatures { seconds, times, shares: vec![parts.masked_lanes, parts.idle_cores] }
}

/// Adds up the times of all kernels. The numbers of blocks and threads are those of the longest
/// kernel.
fn of_gpu(estimate: &gpu::Estimate) -> EstimateFeatures {
    let sum = |of: fn(&gpu::Parts) -> f64| estimate.kernels.iter().map(of).sum::<f64>();
    let times = vec![
        sum(|own| own.compute),
        sum(|own| own.issue),
        sum(|own| own.shared),
        sum(|own| own.sectors),
        sum(|own| own.memory),
        sum(|own| own.latency),
    ];
    let longest = estimate.kernels.iter().max_by(|one, other| one.seconds.total_cmp(&other.seconds));
    let logarithm = |number: f64| number.max(1.0).log2();
    let shares = longest.map_or(vec![0.0; 3], |own| {
        vec![logarithm(own.blocks), logarithm(own.threads), logarithm(own.resident)]
    });
    let kernels = estimate.kernels.len() as f64;
    EstimateFeatures { seconds: estimate.seconds, times, shares: [shares, vec![kernels]].concat() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_as_many_and_do_not_depend_on_the_size_of_the_program() {
        let parts = |scale: f64| cpu::Parts {
            compute: scale,
            transfers: vec![0.5 * scale; 2],
            idle_cores: 0.25,
            ..cpu::Parts::default()
        };
        let of = |scale: f64| {
            of_cpu(cpu::Estimate { seconds: 2.0 * scale, parts: parts(scale) }).features(4.0 * scale)
        };
        assert_eq!(of(1.0), of(1e-6));
        assert_eq!(of(1.0).len(), 1 + 2 * (5 + LEVELS) + 2);
        assert_eq!(of(1.0)[..2], [-1.0, -2.0]);
        assert!(of(1.0).iter().all(|feature| feature.is_finite()));
    }

    #[test]
    fn kernels_of_a_device_add_up() {
        let kernel =
            |seconds: f64, blocks: f64| gpu::Parts { seconds, blocks, compute: 1.0, ..gpu::Parts::default() };
        let estimate = gpu::Estimate { seconds: 3.0, kernels: vec![kernel(1.0, 64.0), kernel(2.0, 8.0)] };
        let look = of_gpu(&estimate);
        assert_eq!((look.times[0], look.shares[0], look.shares[3]), (2.0, 3.0, 2.0));
        assert_eq!(of_gpu(&gpu::Estimate::default()).features(1.0).len(), look.features(1.0).len());
    }
}
