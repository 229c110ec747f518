//! Implements small fully connected networks.
//!
//! All weights of a network are one vector, so that an optimiser is a loop over two vectors: the
//! weights, and the slopes (derivatives) of a loss with respect to them. A strategy computes the
//! slopes with respect to the outputs, and [`Network::backward`] the slopes with respect to the
//! weights.
//!
//! The networks are our own because a library took too long to build: candle-core alone took 118 s
//! of the compiler's time. Proposals of `na2c` and `q-method` take 0.5 to 1.5 ms each (release, one
//! core), as they did with candle.

use rand::{Rng, RngExt};

use super::matrix::Matrix;

/// Layers with ReLU between them.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::strategy) struct Network {
    /// The widths of the layers, the width of the input first.
    widths: Vec<usize>,
    /// For each layer, the weights by input and output, then the biases.
    weights: Vec<f32>,
}

/// The inputs of all layers, and the outputs of the last one.
pub(in crate::strategy) struct Activations(Vec<Matrix>);

impl Activations {
    /// The outputs of the network.
    pub fn outputs(&self) -> &Matrix {
        &self.0[self.0.len() - 1]
    }
}

impl Network {
    /// Creates layers of these widths, the width of the input first, with He initialisation.
    pub fn new<R: Rng + ?Sized>(widths: &[usize], rng: &mut R) -> Network {
        let mut weights = Vec::new();
        for pair in widths.windows(2) {
            let bound = (6.0 / pair[0].max(1) as f32).sqrt();
            weights.extend((0..pair[0] * pair[1]).map(|_| rng.random_range(-bound..bound)));
            weights.extend((0..pair[1]).map(|_| 0.0));
        }
        Network { widths: widths.to_vec(), weights }
    }

    /// All weights and biases.
    pub fn weights(&mut self) -> &mut [f32] {
        &mut self.weights
    }

    /// The number of weights and biases.
    pub fn size(&self) -> usize {
        self.weights.len()
    }

    /// Computes the outputs for rows of inputs, and keeps what [`Network::backward`] needs.
    pub fn forward(&self, rows: Matrix) -> Activations {
        let mut values = vec![rows];
        let (mut layers, mut rest) = (self.widths.windows(2), self.weights.as_slice());
        while let Some(&[inputs, outputs]) = layers.next() {
            let (layer, next) = rest.split_at((inputs + 1) * outputs);
            let (weights, biases) = layer.split_at(inputs * outputs);
            let mut sums = values[values.len() - 1].times(weights, outputs);
            sums.add_to_rows(biases);
            if layers.len() > 0 {
                sums.numbers.iter_mut().for_each(|sum| *sum = sum.max(0.0));
            }
            values.push(sums);
            rest = next;
        }
        Activations(values)
    }

    /// The outputs for one row of inputs.
    pub fn outputs(&self, row: Vec<f32>) -> Vec<f32> {
        let row = Matrix { rows: 1, columns: row.len(), numbers: row };
        self.forward(row).0.pop().map_or(Vec::new(), |outputs| outputs.numbers)
    }

    /// Computes the slopes of a loss with respect to the weights, from those with respect to the
    /// outputs.
    pub fn backward(&self, values: &Activations, of_outputs: Matrix) -> Vec<f32> {
        let mut all = vec![0.0; self.weights.len()];
        let (mut end, mut slopes) = (all.len(), of_outputs);
        for (layer, input) in self.widths.windows(2).zip(&values.0).rev() {
            let (inputs, outputs) = (layer[0], layer[1]);
            let start = end - (inputs + 1) * outputs;
            let (of_weights, of_biases) = all[start..end].split_at_mut(inputs * outputs);
            input.add_transposed_times(&slopes, of_weights);
            slopes.add_rows_to(of_biases);
            // The input of the first layer does not depend on any weight.
            if start > 0 {
                slopes = slopes.times_transposed(&self.weights[start..][..inputs * outputs], inputs);
                let closed =
                    slopes.numbers.iter_mut().zip(&input.numbers).filter(|(_, input)| **input <= 0.0);
                closed.for_each(|(slope, _)| *slope = 0.0);
            }
            end = start;
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::strategy::learning::Adam;

    fn random(rows: usize, columns: usize, rng: &mut Pcg64Mcg) -> Matrix {
        let numbers = (0..rows * columns).map(|_| rng.random_range(-1.0..1.0)).collect();
        Matrix { rows, columns, numbers }
    }

    /// The slopes with respect to all weights are those of small changes of the weights. The loss
    /// is the sum of the outputs with random factors.
    #[test]
    fn slopes_are_those_of_small_changes() {
        let rng = &mut Pcg64Mcg::seed_from_u64(1);
        let mut network = Network::new(&[3, 6, 5, 2], rng);
        network.weights().iter_mut().for_each(|weight| *weight += rng.random_range(-0.2..0.2));
        let (rows, factors) = (random(7, 3, rng), random(7, 2, rng));
        let loss = |network: &Network| -> f64 {
            let outputs = network.forward(rows.clone());
            let terms = outputs.outputs().numbers.iter().zip(&factors.numbers);
            terms.map(|(output, factor)| f64::from(output * factor)).sum()
        };
        let slopes = network.backward(&network.forward(rows.clone()), factors.clone());
        for (at, slope) in slopes.iter().enumerate() {
            let moved = |by: f32| {
                let mut other = network.clone();
                other.weights()[at] += by;
                loss(&other)
            };
            let step = 1e-3;
            let expected = (moved(step) - moved(-step)) / f64::from(2.0 * step);
            assert!((f64::from(*slope) - expected).abs() < 1e-2, "weight {at}: {slope}, not {expected}");
        }
    }

    #[test]
    fn one_row_is_as_several() {
        let rng = &mut Pcg64Mcg::seed_from_u64(2);
        let (network, rows) = (Network::new(&[4, 8, 3], rng), random(5, 4, rng));
        let all = network.forward(rows.clone());
        assert!((0..5).all(|at| network.outputs(rows.row(at).to_vec()) == all.outputs().row(at)));
    }

    #[test]
    fn a_known_function_is_learned() {
        let rng = &mut Pcg64Mcg::seed_from_u64(3);
        let mut network = Network::new(&[2, 16, 16, 1], rng);
        let mut optimiser = Adam::new(network.size(), 0.01);
        let rows = random(64, 2, rng);
        let mut loss = 0.0;
        for _ in 0..400 {
            let values = network.forward(rows.clone());
            let wanted = (0..64).map(|at| rows.row(at)[0] * rows.row(at)[1]);
            let mut away = values.outputs().clone();
            away.numbers.iter_mut().zip(wanted).for_each(|(output, wanted)| *output -= wanted);
            loss = away.numbers.iter().map(|away| away * away).sum::<f32>() / 64.0;
            away.numbers.iter_mut().for_each(|away| *away *= 2.0 / 64.0);
            let slopes = network.backward(&values, away);
            optimiser.step(network.weights(), &slopes);
        }
        assert!(loss < 1e-3, "the mean squared error is {loss}");
    }
}
