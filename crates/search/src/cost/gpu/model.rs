//! Implements [`CostModel`] for a GPU: converts an [`Estimate`] to features for models that learn,
//! and to a [`Breakdown`] for the user.

use tilewright_ir::LoopNest;
use tilewright_target::Gpu;

use super::{Estimate, Parts, estimate, estimate_roots};
use crate::cost::{Breakdown, CostModel, EstimateFeatures, Group, Quantity};

/// A GPU, whose description has the speeds of its parts.
#[derive(Clone, Debug)]
pub struct Model<'a>(pub &'a Gpu);

impl CostModel for Model<'_> {
    fn estimate(&self, nest: &LoopNest) -> EstimateFeatures {
        features(&estimate(nest, self.0))
    }

    fn root_estimates(&self, nest: &LoopNest) -> Vec<EstimateFeatures> {
        estimate_roots(nest, self.0).iter().map(features).collect()
    }

    fn breakdown(&self, nest: &LoopNest) -> Breakdown {
        let Estimate { seconds, kernels, .. } = estimate(nest, self.0);
        Breakdown { seconds, groups: kernels.iter().enumerate().map(|(at, own)| group(at, own)).collect() }
    }
}

fn group(at: usize, own: &Parts) -> Group {
    let blocks = format!("{:.0} of {:.0} threads", own.blocks, own.threads);
    let resident = format!("{:.0} on a multiprocessor", own.resident);
    let amounts = [("blocks", blocks), ("resident blocks", resident)];
    let times = [
        ("arithmetic", own.compute),
        ("instructions", own.issue),
        ("shared memory", own.shared),
        ("sectors", own.sectors),
        ("memory", own.memory),
        ("waiting", own.latency),
    ];
    let amounts = amounts.map(|(name, amount)| (name.to_owned(), Quantity::Amount(amount)));
    let times = times.map(|(name, time)| (name.to_owned(), Quantity::Seconds(time)));
    let parts = amounts.into_iter().chain(times).collect();
    Group { kernel: Some((format!("kernel {}", at + 1), own.seconds)), parts }
}

/// Adds up the times of all kernels. The numbers of blocks and threads are those of the longest
/// kernel.
fn features(estimate: &Estimate) -> EstimateFeatures {
    let sum = |of: fn(&Parts) -> f64| estimate.kernels.iter().map(of).sum::<f64>();
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
    fn kernels_of_a_device_add_up() {
        let kernel = |seconds: f64, blocks: f64| Parts { seconds, blocks, compute: 1.0, ..Parts::default() };
        let estimate = Estimate {
            seconds: 3.0,
            kernels: vec![kernel(1.0, 64.0), kernel(2.0, 8.0)],
            ..Estimate::default()
        };
        let look = features(&estimate);
        assert_eq!((look.times[0], look.shares[0], look.shares[3]), (2.0, 3.0, 2.0));
        assert_eq!(features(&Estimate::default()).features(1.0).len(), look.features(1.0).len());
    }
}
