//! Defines [`Weights`]: a trained model as data, and its file.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::features::RootFeatures;
use super::network::Network;
use super::trees::{Tree, value};

/// The version of the features. Weights of another version say nothing about today's features.
const VERSION: u32 = 1;
/// The largest correction of the analytical model, as a natural logarithm.
const MOST_CORRECTION: f64 = 3.0;

/// A trained model: trees, a network or both, which correct the analytical model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Weights {
    version: u32,
    /// The kind of machines, such as `avx512` or `sm_90`.
    pub family: String,
    /// The data that the model was trained with, for people.
    pub origin: String,
    /// Trees that give the natural logarithm of the ratio to the analytical time.
    pub trees: Vec<Tree>,
    /// The network, if the model has one.
    pub network: Option<Network>,
}

/// Why a file has no weights for today's features.
#[derive(Debug, Error)]
pub enum WeightsError {
    /// The text is no JSON of weights.
    #[error("it is no file of weights: {0}")]
    Format(#[from] serde_json::Error),
    /// The file is of another version of Tilewright.
    #[error("it was trained by another version of Tilewright; train again")]
    Version,
}

impl Weights {
    /// A trained model.
    pub fn new(family: String, origin: String, trees: Vec<Tree>, network: Option<Network>) -> Weights {
        Weights { version: VERSION, family, origin, trees, network }
    }

    /// Reads the text of a file.
    pub fn parse(text: &str) -> Result<Weights, WeightsError> {
        let weights: Weights = serde_json::from_str(text)?;
        let is_known = weights.version == VERSION;
        match is_known && weights.network.as_ref().is_none_or(Network::is_consistent) {
            true => Ok(weights),
            false => Err(WeightsError::Version),
        }
    }

    /// The text of a file.
    pub fn text(&self) -> Result<String, WeightsError> {
        Ok(serde_json::to_string(self)?)
    }

    /// The predicted seconds of a statement outside of loops. With trees and a network, the
    /// geometric mean of what both and the analytical model predict: it errs less than each of
    /// them on pipelines of other kinds than those of training.
    pub fn seconds(&self, root: &RootFeatures) -> f64 {
        let analytical = root.seconds.max(f64::MIN_POSITIVE);
        let by_trees = (!self.trees.is_empty()).then(|| f64::from(value(&self.trees, &root.values)));
        let by_network = self.network.as_ref().map(|own| {
            let seconds = own.seconds(&root.stages).max(f64::MIN_POSITIVE);
            (seconds / analytical).ln()
        });
        let correction: f64 = match (by_trees, by_network) {
            (Some(one), Some(other)) => (one + other) / 3.0,
            (one, other) => one.or(other).unwrap_or(0.0),
        };
        analytical * correction.clamp(-MOST_CORRECTION, MOST_CORRECTION).exp()
    }
}
