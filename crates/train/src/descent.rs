//! Trains the network of [`tilewright_search::cost::learned::network`] by gradient descent (Adam;
//! Kingma, Ba 2015).
//!
//! The network is so small that its derivatives are a page of code, and a machine learning
//! framework takes longer to build than the compiler: docs/cost-model.md has the numbers.

use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tilewright_search::cost::learned::StageFeatures;
use tilewright_search::cost::learned::StageInput;
use tilewright_search::cost::learned::TERMS;
use tilewright_search::cost::learned::network::{HEADS, INPUTS, Layer, Network, Trace};

use crate::examples::Program;
use crate::loss::residuals;

/// The passes over all programs, and the length of the first and of the last steps.
const PASSES: usize = 20;
const RATES: (f32, f32) = (4e-3, 2e-4);
/// The decay of the means of slopes and of their squares.
const DECAYS: (f32, f32) = (0.9, 0.99);
/// The part of weights that a step takes away, times its length.
const WEIGHT_DECAY: f32 = 0.02;

/// Trains a network with the schedules of some programs.
pub fn train(programs: &[&Program], seed: u64) -> Network {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut network = initial(programs, &mut rng);
    let mut steps = Steps::new(&network);
    let mut order: Vec<usize> = (0..programs.len()).collect();
    for pass in 0..PASSES {
        order.shuffle(&mut rng);
        let part = pass as f32 / PASSES as f32;
        let rate = RATES.0 * (RATES.1 / RATES.0).powf(part);
        for at in &order {
            let slopes = slopes(&network, programs[*at]);
            steps.take(&mut network, &slopes, rate);
        }
    }
    network
}

/// A network whose time is the analytical one, plus a little of the other terms.
fn initial(programs: &[&Program], rng: &mut Pcg64Mcg) -> Network {
    let stages = || {
        let examples = programs.iter().flat_map(|program| &program.schedules);
        examples.flat_map(|own| &own.roots).flat_map(|root| &root.stages)
    };
    let count = stages().count().max(1) as f64;
    let mut sums = vec![(0.0, 0.0); StageFeatures::COUNT];
    for stage in stages() {
        for (sum, value) in sums.iter_mut().zip(stage.values) {
            let value = f64::from(value);
            *sum = (sum.0 + value, sum.1 + value * value);
        }
    }
    let mean = |sum: &(f64, f64)| sum.0 / count;
    let deviation = |sum: &(f64, f64)| (sum.1 / count - mean(sum) * mean(sum)).max(0.0).sqrt();
    let mut layer = |inputs: usize, outputs: usize, size: f32, bias: f32| Layer {
        weights: (0..inputs * outputs)
            .map(|_| size * rng.random_range(-1.0f32..1.0) / (inputs as f32).sqrt())
            .collect(),
        biases: vec![bias; outputs],
    };
    let mut layers = [
        layer(INPUTS[0], HEADS[0], 1.7, 0.0),
        layer(INPUTS[1], HEADS[1], 1.7, 0.0),
        layer(HEADS[0] + HEADS[1], TERMS, 0.5, -3.0),
    ];
    // The softplus of 0.54 is 1.
    layers[2].biases[TERMS - 1] = 0.54;
    Network {
        means: sums.iter().map(|sum| mean(sum) as f32).collect(),
        scales: sums.iter().map(|sum| (1.0 / deviation(sum).max(0.1)) as f32).collect(),
        layers,
    }
}

/// The slopes of the loss of a program's schedules with respect to each layer.
fn slopes(network: &Network, program: &Program) -> [Layer; 3] {
    let mut slopes = network.layers.clone().map(|layer| Layer {
        weights: vec![0.0; layer.weights.len()],
        biases: vec![0.0; layer.biases.len()],
    });
    let traced: Vec<Vec<(&StageInput, Trace)>> = program
        .schedules
        .iter()
        .map(|own| {
            let stages = own.roots.iter().flat_map(|root| &root.stages);
            stages.map(|stage| (stage, network.trace(stage))).collect()
        })
        .collect();
    let predicted: Vec<f64> =
        traced.iter().map(|own| own.iter().map(|(_, trace)| trace.seconds).sum()).collect();
    let measured: Vec<f64> = program.schedules.iter().map(|own| own.seconds).collect();
    let residuals = residuals(&predicted, &measured);
    let scale = 1.0 / program.schedules.len().max(1) as f64;
    for ((own, whole), residual) in traced.iter().zip(&predicted).zip(residuals) {
        let slope = scale * residual / whole.max(f64::MIN_POSITIVE);
        for (stage, trace) in own {
            add_slopes(&mut slopes, network, stage, trace, slope);
        }
    }
    slopes
}

/// Adds the slopes of a stage, given the slope with respect to its seconds.
fn add_slopes(slopes: &mut [Layer; 3], network: &Network, stage: &StageInput, trace: &Trace, slope: f64) {
    let raw: Vec<f32> = trace
        .raw
        .iter()
        .zip(stage.terms)
        .map(|(raw, term)| (slope * f64::from(term)) as f32 / (1.0 + (-raw).exp()))
        .collect();
    let mut hidden = vec![0.0f32; trace.hidden.len()];
    for (row, slope) in network.layers[2].weights.chunks(hidden.len()).zip(&raw) {
        hidden.iter_mut().zip(row).for_each(|(hidden, weight)| *hidden += slope * weight);
    }
    for (slope, value) in hidden.iter_mut().zip(&trace.hidden) {
        *slope *= if *value > 0.0 { 1.0 } else { 0.1 };
    }
    let (algorithm, schedule) = trace.inputs.split_at(INPUTS[0]);
    let (of_algorithm, of_schedule) = hidden.split_at(HEADS[0]);
    add_outer(&mut slopes[0], of_algorithm, algorithm);
    add_outer(&mut slopes[1], of_schedule, schedule);
    add_outer(&mut slopes[2], &raw, &trace.hidden);
}

/// Adds the slopes of a layer, given those of its outputs.
fn add_outer(layer: &mut Layer, outputs: &[f32], inputs: &[f32]) {
    let rows = layer.weights.chunks_mut(inputs.len()).zip(&mut layer.biases);
    for ((row, bias), slope) in rows.zip(outputs) {
        *bias += slope;
        row.iter_mut().zip(inputs).for_each(|(weight, input)| *weight += slope * input);
    }
}

/// The means of slopes and of their squares.
struct Steps {
    means: Vec<(f32, f32)>,
    count: i32,
}

impl Steps {
    fn new(network: &Network) -> Steps {
        let weights = network.layers.iter().map(|layer| layer.weights.len() + layer.biases.len());
        Steps { means: vec![(0.0, 0.0); weights.sum()], count: 0 }
    }

    fn take(&mut self, network: &mut Network, slopes: &[Layer; 3], rate: f32) {
        self.count += 1;
        let unbiased = (1.0 - DECAYS.0.powi(self.count), 1.0 - DECAYS.1.powi(self.count));
        let mut means = self.means.iter_mut();
        for (layer, slopes) in network.layers.iter_mut().zip(slopes) {
            let weights = layer.weights.iter_mut().chain(&mut layer.biases);
            let slopes = slopes.weights.iter().chain(&slopes.biases);
            for ((weight, slope), (mean, square)) in weights.zip(slopes).zip(&mut means) {
                *mean = DECAYS.0 * *mean + (1.0 - DECAYS.0) * slope;
                *square = DECAYS.1 * *square + (1.0 - DECAYS.1) * slope * slope;
                let step = (*mean / unbiased.0) / ((*square / unbiased.1).sqrt() + 1e-8);
                *weight -= rate * (step + WEIGHT_DECAY * *weight);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::made_up::programs;

    #[test]
    fn the_network_learns_what_makes_schedules_slow() {
        let programs = programs();
        let network = train(&programs.iter().collect::<Vec<_>>(), 1);
        let seconds = |at: usize| network.seconds(&programs[0].schedules[at].roots[0].stages);
        let ratio = seconds(1) / seconds(0);
        assert!((2.5..6.0).contains(&ratio), "{ratio}");
        // The same seed gives the same network.
        assert_eq!(train(&programs.iter().collect::<Vec<_>>(), 1), network);
    }
}
