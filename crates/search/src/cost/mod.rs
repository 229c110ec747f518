//! Estimates the time of a kernel from its loops and the machine alone, without training and
//! without a run.
//!
//! The models rank the schedules of one program, so that only promising ones are compiled. The
//! heads of `cpu/` and `gpu/` describe their parts. [`EstimateFeatures`] is an estimate in the form
//! of features for models that learn. [`Breakdown`] is an estimate with named parts for the user.

mod breakdown;
pub mod cpu;
mod features;
pub mod gpu;
pub mod learned;

use std::fmt::Debug;

use tilewright_ir::LoopNest;

pub use breakdown::{Breakdown, Group, Quantity};
pub use features::EstimateFeatures;

/// The cost model of a kind of target.
pub trait CostModel: Debug + Send + Sync {
    /// Estimates a nest.
    fn estimate(&self, nest: &LoopNest) -> EstimateFeatures;

    /// Estimates each statement outside of loops ([`LoopNest::roots`]).
    fn root_estimates(&self, nest: &LoopNest) -> Vec<EstimateFeatures>;

    /// The predicted seconds of each statement outside of loops ([`LoopNest::roots`]).
    fn root_seconds(&self, nest: &LoopNest) -> Vec<f64> {
        self.root_estimates(nest).into_iter().map(|estimate| estimate.seconds).collect()
    }

    /// Estimates a nest, and names the parts of its time.
    fn breakdown(&self, nest: &LoopNest) -> Breakdown;
}
