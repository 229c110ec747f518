//! Defines [`LearnedModel`]: the [`CostModel`] that corrects the analytical model of a target.

use std::sync::Arc;

use tilewright_ir::LoopNest;

use super::features::{RootFeatures, Speeds, root_features};
use super::weights::Weights;
use crate::cost::{Breakdown, CostModel, EstimateFeatures, Group, Quantity};

/// A trained model beside the analytical model that it corrects.
#[derive(Debug)]
pub struct LearnedModel<'a> {
    analytical: Arc<dyn CostModel + 'a>,
    speeds: Speeds,
    weights: Arc<Weights>,
}

impl<'a> LearnedModel<'a> {
    /// The model with these weights.
    pub fn new(
        analytical: Arc<dyn CostModel + 'a>,
        speeds: Speeds,
        weights: Arc<Weights>,
    ) -> LearnedModel<'a> {
        LearnedModel { analytical, speeds, weights }
    }
}

/// The features of each statement of a nest outside of loops.
pub fn features_of(analytical: &dyn CostModel, speeds: &Speeds, nest: &LoopNest) -> Vec<RootFeatures> {
    let estimates = analytical.root_estimates(nest);
    let roots = nest.roots().into_iter().zip(&estimates);
    roots.map(|(root, estimate)| root_features(nest, root, estimate, speeds)).collect()
}

impl CostModel for LearnedModel<'_> {
    fn estimate(&self, nest: &LoopNest) -> EstimateFeatures {
        EstimateFeatures::sum(self.root_estimates(nest))
    }

    fn root_estimates(&self, nest: &LoopNest) -> Vec<EstimateFeatures> {
        let estimates = self.analytical.root_estimates(nest).into_iter();
        let corrected = nest.roots().into_iter().zip(estimates).map(|(root, estimate)| {
            let features = root_features(nest, root, &estimate, &self.speeds);
            let factor = self.weights.seconds(&features) / estimate.seconds.max(f64::MIN_POSITIVE);
            estimate.scaled(factor)
        });
        corrected.collect()
    }

    fn breakdown(&self, nest: &LoopNest) -> Breakdown {
        let analytical = self.analytical.breakdown(nest);
        let seconds = self.root_seconds(nest).iter().sum();
        let by_analysis = ("by the analytical model".to_owned(), Quantity::Seconds(analytical.seconds));
        let first = Group { kernel: None, parts: vec![by_analysis] };
        Breakdown { seconds, groups: [first].into_iter().chain(analytical.groups).collect() }
    }
}
