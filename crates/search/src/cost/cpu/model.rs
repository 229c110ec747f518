//! Implements [`CostModel`] for a CPU: converts an [`Estimate`] to features for models that learn,
//! and to a [`Breakdown`] for the user.

use tilewright_ir::LoopNest;
use tilewright_target::Cpu;

use super::{Estimate, Machine, Parts, estimate};
use crate::cost::{Breakdown, CostModel, EstimateFeatures, Group, Quantity};

/// The number of cache levels that have their own feature.
const LEVELS: usize = 4;

/// A CPU, with the speeds of its parts.
#[derive(Clone, Debug)]
pub struct Model<'a> {
    cpu: &'a Cpu,
    machine: Machine,
}

impl<'a> Model<'a> {
    /// The model with typical speeds.
    pub fn typical(cpu: &'a Cpu) -> Model<'a> {
        Model { cpu, machine: Machine::typical(cpu) }
    }
}

impl CostModel for Model<'_> {
    fn estimate(&self, nest: &LoopNest) -> EstimateFeatures {
        let Estimate { seconds, parts, .. } = estimate(nest, self.cpu, &self.machine);
        features(seconds, parts)
    }

    fn root_estimates(&self, nest: &LoopNest) -> Vec<EstimateFeatures> {
        let Estimate { roots, root_parts, .. } = estimate(nest, self.cpu, &self.machine);
        roots.into_iter().zip(root_parts).map(|(seconds, parts)| features(seconds, parts)).collect()
    }

    fn breakdown(&self, nest: &LoopNest) -> Breakdown {
        let Estimate { seconds, parts, .. } = estimate(nest, self.cpu, &self.machine);
        let transfers = parts.transfers.iter().enumerate();
        let transfers = transfers.map(|(level, time)| (format!("into cache {}", level + 1), *time));
        let before = [("instructions", parts.compute), ("loads and stores", parts.memory_instructions)];
        let after = [("loops", parts.loops), ("threads", parts.threads), ("spills", parts.spills)];
        let [before, after] = [before.to_vec(), after.to_vec()]
            .map(|rows| rows.into_iter().map(|(name, time)| (name.to_owned(), time)));
        let times = before.chain(transfers).chain(after);
        let shares = [("masked lanes", parts.masked_lanes), ("idle cores", parts.idle_cores)];
        let shares = shares.map(|(name, share)| (name.to_owned(), Quantity::Share(share)));
        let parts = times.map(|(name, time)| (name, Quantity::Seconds(time))).chain(shares).collect();
        Breakdown { seconds, groups: vec![Group { kernel: None, parts }] }
    }
}

fn features(seconds: f64, parts: Parts) -> EstimateFeatures {
    let mut times = vec![parts.compute, parts.memory_instructions, parts.loops, parts.threads, parts.spills];
    let mut transfers = parts.transfers;
    transfers.resize(LEVELS, 0.0);
    times.extend(transfers);
    EstimateFeatures { seconds, times, shares: vec![parts.masked_lanes, parts.idle_cores] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_as_many_and_do_not_depend_on_the_size_of_the_program() {
        let parts = |scale: f64| Parts {
            compute: scale,
            transfers: vec![0.5 * scale; 2],
            idle_cores: 0.25,
            ..Parts::default()
        };
        let of = |scale: f64| features(2.0 * scale, parts(scale)).features(4.0 * scale);
        assert_eq!(of(1.0), of(1e-6));
        assert_eq!(of(1.0).len(), 1 + 2 * (5 + LEVELS) + 2);
        assert_eq!(of(1.0)[..2], [-1.0, -2.0]);
        assert!(of(1.0).iter().all(|feature| feature.is_finite()));
    }
}
