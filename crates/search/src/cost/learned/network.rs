//! Predicts by the network of Adams et al. 2019 and Anderson et al. 2021: small layers turn the
//! features of a stage into positive coefficients of the hand-written terms of its time.
//!
//! The features of the algorithm and those of the schedule pass through a layer each. Both results
//! together pass through another layer, which gives the coefficients.

use serde::{Deserialize, Serialize};

use super::features::{StageFeatures, StageInput};
use super::operations::Operations;
use super::terms::TERMS;

/// The outputs of the layer for the algorithm, and of the layer for the schedule.
pub const HEADS: [usize; 2] = [8, 24];
/// The inputs of these layers.
pub const INPUTS: [usize; 2] = [Operations::COUNT, StageFeatures::COUNT - Operations::COUNT];

/// A layer: the weights of each output, one output after the other, and a number that is added to
/// each output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// The weights of each output.
    pub weights: Vec<f32>,
    /// The number that is added to each output.
    pub biases: Vec<f32>,
}

impl Layer {
    /// The outputs before they are bent.
    pub fn apply(&self, inputs: &[f32]) -> Vec<f32> {
        let rows = self.weights.chunks(inputs.len().max(1)).zip(&self.biases);
        rows.map(|(row, bias)| {
            bias + row.iter().zip(inputs).map(|(weight, input)| weight * input).sum::<f32>()
        })
        .collect()
    }
}

/// The network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// The mean of each feature, and one by its deviation.
    pub means: Vec<f32>,
    /// One by the deviation of each feature.
    pub scales: Vec<f32>,
    /// The layer for the algorithm, the layer for the schedule, and the layer of the coefficients.
    pub layers: [Layer; 3],
}

/// All numbers of a prediction, from which training computes slopes.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The features, scaled.
    pub inputs: Vec<f32>,
    /// The outputs of the first two layers.
    pub hidden: Vec<f32>,
    /// The coefficients before they are made positive.
    pub raw: Vec<f32>,
    /// The seconds of the stage.
    pub seconds: f64,
}

impl Network {
    /// The predicted seconds of stages together.
    pub fn seconds(&self, stages: &[StageInput]) -> f64 {
        stages.iter().map(|stage| self.trace(stage).seconds).sum()
    }

    /// Predicts the seconds of a stage.
    pub fn trace(&self, stage: &StageInput) -> Trace {
        let scaled = stage.values.iter().zip(&self.means).zip(&self.scales);
        // Features far beyond those of training count as the farthest.
        let inputs: Vec<f32> =
            scaled.map(|((value, mean), scale)| ((value - mean) * scale).clamp(-4.0, 4.0)).collect();
        let (algorithm, schedule) = inputs.split_at(INPUTS[0].min(inputs.len()));
        let hidden = [self.layers[0].apply(algorithm), self.layers[1].apply(schedule)].concat();
        let hidden: Vec<f32> = hidden.into_iter().map(|value| value.max(0.1 * value)).collect();
        let raw = self.layers[2].apply(&hidden);
        let coefficients = raw.iter().map(|value| f64::from(positive(*value)));
        let seconds = coefficients.zip(stage.terms).map(|(own, term)| own * f64::from(term)).sum();
        Trace { inputs, hidden, raw, seconds }
    }

    /// Whether the layers have the sizes that this version computes with.
    pub(super) fn is_consistent(&self) -> bool {
        let [inputs, outputs] = [[INPUTS[0], INPUTS[1], HEADS[0] + HEADS[1]], [HEADS[0], HEADS[1], TERMS]];
        let sizes = self.layers.iter().zip(inputs.into_iter().zip(outputs));
        let are_layers = sizes.into_iter().all(|(layer, (inputs, outputs))| {
            layer.weights.len() == inputs * outputs && layer.biases.len() == outputs
        });
        are_layers && [&self.means, &self.scales].iter().all(|own| own.len() == StageFeatures::COUNT)
    }
}

/// A positive number that grows with its argument: softplus.
pub fn positive(value: f32) -> f32 {
    if value > 20.0 { value } else { value.exp().ln_1p() }
}
