//! Implements a recurrent network that emits sequences of tokens: an LSTM (Hochreiter, Schmidhuber
//! 1997) with a separate vocabulary for each position.
//!
//! As in `network.rs`, all weights are one vector. [`Recurrent::forward`] computes the
//! probabilities of the tokens of given sequences. [`Recurrent::backward`] computes the slopes of a
//! loss with respect to the weights, from those with respect to the logits of the tokens.

use std::ops::Range;

use rand::{Rng, RngExt};

use super::matrix::{Matrix, transposed};
use super::sigmoid::{sigmoid, tanh};
use super::softmax::log_softmax;

/// The logit of a token that cannot follow. It is finite, because -∞ times a probability of 0 is
/// not a number.
const MASKED_LOGIT: f32 = -1e9;
/// The number of gates: forget, input, candidate and output.
const GATES: usize = 4;

/// The network.
pub(in crate::strategy) struct Recurrent {
    hidden: usize,
    positions: Vec<PositionWeights>,
    /// All weights: those from the last token and the last output to the gates, the biases of the
    /// gates, the embedding of the start of a sequence, and those of the positions.
    weights: Vec<f32>,
}

/// Where the weights of one position are.
struct PositionWeights {
    /// The number of tokens.
    tokens: usize,
    /// The embeddings of the tokens.
    embeddings: Range<usize>,
    /// The weights and biases of the tokens' logits.
    logits: Range<usize>,
    biases: Range<usize>,
}

/// The state of the network at one position, with a row for each sequence.
pub(in crate::strategy) struct PositionState {
    /// The logarithms of the tokens' probabilities, and those before any training.
    pub logarithms: Matrix,
    pub prior: Matrix,
    /// The inputs of the gates: the embedding of the last token and the last output.
    inputs: Matrix,
    /// The cell before this position.
    before: Matrix,
    gates: Matrix,
    cell: Matrix,
    output: Matrix,
}

impl Recurrent {
    /// Creates a network for positions with these numbers of tokens.
    pub fn new<R: Rng + ?Sized>(words: impl Iterator<Item = usize>, hidden: usize, rng: &mut R) -> Recurrent {
        let mut network = Recurrent { hidden, positions: Vec::new(), weights: Vec::new() };
        network.draw(hidden, GATES * hidden, rng);
        network.draw(hidden, GATES * hidden, rng);
        network.add_zeros(GATES * hidden);
        network.draw(1, hidden, rng);
        for words in words {
            let meaning = network.draw(words, hidden, rng);
            // The logits are 0 before training, so that the tokens have the probabilities that
            // `prior` gives.
            let (logits, biases) = (network.add_zeros(hidden * words), network.add_zeros(words));
            network.positions.push(PositionWeights { tokens: words, embeddings: meaning, logits, biases });
        }
        network
    }

    /// Adds random weights of `rows` inputs each.
    fn draw<R: Rng + ?Sized>(&mut self, rows: usize, columns: usize, rng: &mut R) -> Range<usize> {
        let bound = (3.0 / rows.max(1) as f32).sqrt();
        let start = self.weights.len();
        self.weights.extend((0..rows * columns).map(|_| rng.random_range(-bound..bound)));
        start..self.weights.len()
    }

    fn add_zeros(&mut self, count: usize) -> Range<usize> {
        let start = self.weights.len();
        self.weights.resize(start + count, 0.0);
        start..self.weights.len()
    }

    /// The weights from the inputs to the gates.
    fn gate_weights(&self) -> Range<usize> {
        0..2 * GATES * self.hidden * self.hidden
    }

    /// The biases of the gates.
    fn gate_biases(&self) -> Range<usize> {
        let start = self.gate_weights().end;
        start..start + GATES * self.hidden
    }

    /// The embedding of the start of a sequence.
    fn start_embedding(&self) -> Range<usize> {
        let start = self.gate_biases().end;
        start..start + self.hidden
    }

    /// The embedding of a token.
    fn embedding(&self, place: usize, word: usize) -> Range<usize> {
        let start = self.positions[place].embeddings.start + word * self.hidden;
        start..start + self.hidden
    }

    /// All weights.
    pub fn weights(&mut self) -> &mut [f32] {
        &mut self.weights
    }

    /// The number of weights.
    pub fn size(&self) -> usize {
        self.weights.len()
    }

    /// Emits `count` sequences. `prior` returns the log probabilities of the next tokens before any
    /// training, up to a constant, and -∞ for tokens that cannot follow.
    pub fn sample<R: Rng + ?Sized>(
        &self,
        count: usize,
        prior: &dyn Fn(&[usize]) -> Vec<f32>,
        rng: &mut R,
    ) -> Vec<Vec<usize>> {
        let mut said: Vec<Vec<usize>> = vec![Vec::with_capacity(self.positions.len()); count];
        let mut last = None;
        for at in 0..self.positions.len() {
            let before: Vec<&[usize]> = said.iter().map(Vec::as_slice).collect();
            let next = self.step(at, &before, prior, last.as_ref());
            for (row, own) in said.iter_mut().enumerate() {
                own.push(sample_token(next.logarithms.row(row), rng.random()));
            }
            last = Some(next);
        }
        said
    }

    /// Computes the state at every position of given sequences.
    pub fn forward(
        &self,
        sequences: &[Vec<usize>],
        prior: &dyn Fn(&[usize]) -> Vec<f32>,
    ) -> Vec<PositionState> {
        let mut all: Vec<PositionState> = Vec::with_capacity(self.positions.len());
        for at in 0..self.positions.len() {
            let before: Vec<&[usize]> = sequences.iter().map(|own| &own[..at]).collect();
            all.push(self.step(at, &before, prior, all.last()));
        }
        all
    }

    /// Computes the state at position `at`, which follows these tokens and the position `last`.
    fn step(
        &self,
        at: usize,
        said: &[&[usize]],
        prior: &dyn Fn(&[usize]) -> Vec<f32>,
        last: Option<&PositionState>,
    ) -> PositionState {
        let inputs = self.inputs(said, last);
        let before = last.map_or_else(|| Matrix::zeros(said.len(), self.hidden), |last| last.cell.clone());
        let gates = self.gate_values(&inputs);
        let (cell, output) = self.update_cell(&gates, &before);
        let mut unlearned = prior_logits(said, prior, self.positions[at].tokens);
        let mut logarithms = self.logits(at, &output);
        let each = logarithms.numbers.iter_mut().zip(&unlearned.numbers);
        each.for_each(|(logit, open)| *logit += open);
        for row in 0..said.len() {
            log_softmax(logarithms.row_mut(row));
            log_softmax(unlearned.row_mut(row));
        }
        PositionState { logarithms, prior: unlearned, inputs, before, gates, cell, output }
    }

    /// The values of the gates, from 0 to 1.
    fn gate_values(&self, inputs: &Matrix) -> Matrix {
        let mut gates = inputs.times(&self.weights[self.gate_weights()], GATES * self.hidden);
        gates.add_to_rows(&self.weights[self.gate_biases()]);
        gates.numbers.iter_mut().for_each(|gate| *gate = sigmoid(*gate));
        gates
    }

    /// The learned part of the logits of a position's tokens.
    fn logits(&self, at: usize, output: &Matrix) -> Matrix {
        let PositionWeights { tokens: words, logits, biases, .. } = &self.positions[at];
        let mut sums = output.times(&self.weights[logits.clone()], *words);
        sums.add_to_rows(&self.weights[biases.clone()]);
        sums
    }

    /// The inputs of the gates after these tokens.
    fn inputs(&self, said: &[&[usize]], last: Option<&PositionState>) -> Matrix {
        let mut inputs = Matrix::zeros(said.len(), 2 * self.hidden);
        for (row, said) in said.iter().enumerate() {
            let meaning = match said.split_last() {
                Some((word, before)) => self.embedding(before.len(), *word),
                None => self.start_embedding(),
            };
            let (of_word, of_output) = inputs.row_mut(row).split_at_mut(self.hidden);
            of_word.copy_from_slice(&self.weights[meaning]);
            last.into_iter().for_each(|last| of_output.copy_from_slice(last.output.row(row)));
        }
        inputs
    }

    /// The next cell and output.
    fn update_cell(&self, gates: &Matrix, before: &Matrix) -> (Matrix, Matrix) {
        let (mut cell, mut output) = (before.clone(), before.clone());
        for row in 0..before.rows {
            let [forget, input, candidate, out] = self.each_gate(gates.row(row));
            let cells = cell.row_mut(row).iter_mut().zip(output.row_mut(row));
            for (at, (cell, output)) in cells.enumerate() {
                *cell = forget[at] * *cell + input[at] * scaled_candidate(candidate[at]);
                *output = out[at] * tanh(*cell);
            }
        }
        (cell, output)
    }

    /// A row of all gates as the four gates.
    fn each_gate<'a>(&self, row: &'a [f32]) -> [&'a [f32]; GATES] {
        [0, 1, 2, 3].map(|gate| &row[gate * self.hidden..][..self.hidden])
    }

    /// Computes the slopes of a loss with respect to the weights, from those with respect to the
    /// logits at each position of the sequences.
    pub fn backward(
        &self,
        sequences: &[Vec<usize>],
        all: &[PositionState],
        of_logits: &[Matrix],
    ) -> Vec<f32> {
        let mut slopes = vec![0.0; self.weights.len()];
        // The slopes with respect to the inputs and the cell of the position after the current one.
        let mut of_inputs = Matrix::zeros(sequences.len(), 2 * self.hidden);
        let mut of_cell = Matrix::zeros(sequences.len(), self.hidden);
        let from_gates = transposed(&self.weights[self.gate_weights()], 2 * self.hidden, GATES * self.hidden);
        for (at, (position, of_logits)) in all.iter().zip(of_logits).enumerate().rev() {
            let place = &self.positions[at];
            position.output.add_transposed_times(of_logits, &mut slopes[place.logits.clone()]);
            of_logits.add_rows_to(&mut slopes[place.biases.clone()]);
            let mut of_output = of_logits.times_transposed(&self.weights[place.logits.clone()], self.hidden);
            self.add_outputs(&of_inputs, &mut of_output);
            let of_gates = self.through_cell(position, &of_output, &mut of_cell);
            position.inputs.add_transposed_times(&of_gates, &mut slopes[self.gate_weights()]);
            of_gates.add_rows_to(&mut slopes[self.gate_biases()]);
            of_inputs = of_gates.times(&from_gates, 2 * self.hidden);
            self.add_embeddings(sequences, at, &of_inputs, &mut slopes);
        }
        slopes
    }

    /// Adds the slopes of the next position with respect to the output of this one.
    fn add_outputs(&self, of_inputs: &Matrix, of_output: &mut Matrix) {
        for row in 0..of_inputs.rows {
            let own = of_output.row_mut(row).iter_mut();
            own.zip(&of_inputs.row(row)[self.hidden..]).for_each(|(own, next)| *own += next);
        }
    }

    /// Computes the slopes with respect to the sums in the gates. `of_cell` has the slopes with
    /// respect to the cell of this position as far as later positions use it; it becomes those with
    /// respect to the cell before.
    fn through_cell(&self, position: &PositionState, of_output: &Matrix, of_cell: &mut Matrix) -> Matrix {
        let mut slopes = Matrix::zeros(of_output.rows, GATES * self.hidden);
        for row in 0..of_output.rows {
            let [forget, input, candidate, out] = self.each_gate(position.gates.row(row));
            let (cell, before) = (position.cell.row(row), position.before.row(row));
            let (slopes, of_cell) = (slopes.row_mut(row), of_cell.row_mut(row));
            for (at, of_output) in of_output.row(row).iter().enumerate() {
                let shown = tanh(cell[at]);
                let through = of_cell[at] + of_output * out[at] * tanh_slope(shown);
                let of_gates = [
                    through * before[at] * sigmoid_slope(forget[at]),
                    through * scaled_candidate(candidate[at]) * sigmoid_slope(input[at]),
                    through * input[at] * 2.0 * sigmoid_slope(candidate[at]),
                    of_output * shown * sigmoid_slope(out[at]),
                ];
                for (gate, slope) in of_gates.into_iter().enumerate() {
                    slopes[gate * self.hidden + at] = slope;
                }
                of_cell[at] = through * forget[at];
            }
        }
        slopes
    }

    /// Adds the slopes with respect to the embeddings of the tokens before a position.
    fn add_embeddings(&self, said: &[Vec<usize>], at: usize, of_inputs: &Matrix, slopes: &mut [f32]) {
        for (row, said) in said.iter().enumerate() {
            let meaning = match at.checked_sub(1) {
                Some(before) => self.embedding(before, said[before]),
                None => self.start_embedding(),
            };
            let of_word = &of_inputs.row(row)[..self.hidden];
            slopes[meaning].iter_mut().zip(of_word).for_each(|(sum, own)| *sum += own);
        }
    }
}

/// The slope of the sigmoid where it has this value.
fn sigmoid_slope(value: f32) -> f32 {
    value * (1.0 - value)
}

/// The slope of the hyperbolic tangent where it has this value.
fn tanh_slope(value: f32) -> f32 {
    1.0 - value * value
}

/// Scales the candidate gate, a sigmoid like the other gates, from 0..1 to -1..1.
fn scaled_candidate(gate: f32) -> f32 {
    2.0 * gate - 1.0
}

/// The values of `prior` after each of the sequences.
fn prior_logits(said: &[&[usize]], prior: &dyn Fn(&[usize]) -> Vec<f32>, words: usize) -> Matrix {
    let numbers = said.iter().flat_map(|own| prior(own)).map(|open| open.max(MASKED_LOGIT)).collect();
    Matrix { rows: said.len(), columns: words, numbers }
}

/// Returns the token that a number between 0 and 1 selects.
fn sample_token(logarithms: &[f32], mut at: f32) -> usize {
    for (word, logarithm) in logarithms.iter().enumerate() {
        let chance = logarithm.exp();
        if at < chance {
            return word;
        }
        at -= chance;
    }
    // Because of rounding, the probabilities can add up to slightly less than 1.
    let likeliest =
        (0..logarithms.len()).max_by(|left, right| logarithms[*left].total_cmp(&logarithms[*right]));
    likeliest.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    const WORDS: [usize; 4] = [3, 2, 4, 3];

    /// No token follows itself, and the others have different probabilities.
    fn open(said: &[usize]) -> Vec<f32> {
        let log =
            |word: usize| if said.last() == Some(&word) { f32::NEG_INFINITY } else { word as f32 / 4.0 };
        (0..WORDS[said.len()]).map(log).collect()
    }

    fn network(rng: &mut Pcg64Mcg) -> Recurrent {
        Recurrent::new(WORDS.into_iter(), 5, rng)
    }

    #[test]
    fn an_untrained_network_has_the_prior_probabilities() {
        let rng = &mut Pcg64Mcg::seed_from_u64(1);
        let network = network(rng);
        let said = network.sample(300, &open, rng);
        assert!(said.iter().all(|own| own.windows(2).all(|pair| pair[0] != pair[1])), "a token is repeated");
        let first = |word: usize| said.iter().filter(|own| own[0] == word).count();
        assert!(first(0) < first(2) && first(0) > 50, "{} {} {}", first(0), first(1), first(2));
        for position in network.forward(&said, &open) {
            assert_eq!(position.logarithms, position.prior);
        }
    }

    const FACTORS: [f32; 3] = [0.7, -0.4, 1.0];

    /// The sum of the sequences' log probabilities with factors.
    fn likelihood(network: &Recurrent, said: &[Vec<usize>]) -> f64 {
        let mut sum = 0.0;
        for (at, position) in network.forward(said, &open).iter().enumerate() {
            for (row, (said, factor)) in said.iter().zip(FACTORS).enumerate() {
                sum += f64::from(factor) * f64::from(position.logarithms.row(row)[said[at]]);
            }
        }
        sum
    }

    /// The slopes of the likelihood with respect to the logits of a position.
    fn of_logits(at: usize, position: &PositionState, said: &[Vec<usize>]) -> Matrix {
        let mut slopes = position.logarithms.clone();
        for (row, (said, factor)) in said.iter().zip(FACTORS).enumerate() {
            slopes.row_mut(row).iter_mut().for_each(|own| *own = -factor * own.exp());
            slopes.row_mut(row)[said[at]] += factor;
        }
        slopes
    }

    /// The slopes with respect to all weights are those of small changes of the weights.
    #[test]
    fn slopes_are_those_of_small_changes() {
        let rng = &mut Pcg64Mcg::seed_from_u64(2);
        let mut network = network(rng);
        network.weights().iter_mut().for_each(|weight| *weight += rng.random_range(-0.5..0.5));
        let said = network.sample(3, &open, rng);
        let heard = network.forward(&said, &open);
        let of_logits = heard.iter().enumerate().map(|(at, position)| of_logits(at, position, &said));
        let slopes = network.backward(&said, &heard, &of_logits.collect::<Vec<Matrix>>());
        for (at, slope) in slopes.iter().enumerate() {
            let mut moved = |by: f32| {
                network.weights[at] += by;
                let moved = likelihood(&network, &said);
                network.weights[at] -= by;
                moved
            };
            let expected = (moved(0.01) - moved(-0.01)) / 0.02;
            assert!((f64::from(*slope) - expected).abs() < 5e-3, "weight {at}: {slope}, not {expected}");
        }
    }

    #[test]
    fn a_number_selects_a_token() {
        let logarithms = [0.2f32, 0.5, 0.3].map(f32::ln);
        assert_eq!(
            [0.0, 0.1, 0.3, 0.69, 0.71, 0.999].map(|at| sample_token(&logarithms, at)),
            [0, 0, 1, 1, 2, 2]
        );
        assert_eq!(sample_token(&[0.3f32, 0.6].map(f32::ln), 0.99), 1);
    }
}
