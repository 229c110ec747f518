//! A recurrent network that emits a sequence of tokens: an LSTM with a separate vocabulary for each
//! position.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::ops::{log_softmax, sigmoid};
use rand::{Rng, RngExt};

/// The logit of a token that cannot follow. It is finite, because -∞ times a probability of 0 is
/// not a number.
const CLOSED: f32 = -1e9;

/// The network.
pub(in crate::strategy) struct Recurrent {
    hidden: usize,
    /// The weights from the last token and from the last output to the four gates, and the biases
    /// of the gates.
    from_word: Var,
    from_state: Var,
    gates: Var,
    /// The embedding of the start of a sequence.
    begin: Var,
    places: Vec<Place>,
}

/// The vocabulary of one position.
struct Place {
    /// The embeddings of the tokens.
    meaning: Var,
    /// The weights and biases of the tokens' logits.
    logits: Var,
    biases: Var,
}

/// The LSTM state after the tokens so far, for several sequences.
struct State {
    output: Tensor,
    cell: Tensor,
    /// The embedding of the last token.
    last: Tensor,
}

impl Recurrent {
    /// Creates a network for positions with these numbers of tokens.
    pub fn new<R: Rng + ?Sized>(
        words: impl Iterator<Item = usize>,
        hidden: usize,
        rng: &mut R,
    ) -> Result<Recurrent> {
        // The logits are 0 before training, so that the tokens have the probabilities that `open`
        // gives.
        let nothing = |rows: usize, columns: usize| Var::zeros((rows, columns), DType::F32, &Device::Cpu);
        let mut drawn = |rows: usize, columns: usize| {
            let bound = (3.0 / rows.max(1) as f32).sqrt();
            let weights = (0..rows * columns).map(|_| rng.random_range(-bound..bound)).collect();
            Var::from_vec(weights, (rows, columns), &Device::Cpu)
        };
        Ok(Recurrent {
            hidden,
            from_word: drawn(hidden, 4 * hidden)?,
            from_state: drawn(hidden, 4 * hidden)?,
            gates: nothing(1, 4 * hidden)?,
            begin: drawn(1, hidden)?,
            places: words
                .map(|words| {
                    let (logits, biases) = (nothing(hidden, words)?, nothing(1, words)?);
                    Ok(Place { meaning: drawn(words, hidden)?, logits, biases })
                })
                .collect::<Result<_>>()?,
        })
    }

    /// All trainable variables.
    pub fn vars(&self) -> Vec<Var> {
        let shared = [&self.from_word, &self.from_state, &self.gates, &self.begin];
        let own = self.places.iter().flat_map(|place| [&place.meaning, &place.logits, &place.biases]);
        shared.into_iter().chain(own).cloned().collect()
    }

    /// Emits `count` sequences. `open` returns the log probabilities of the next tokens before any
    /// training, up to a constant, and -∞ for tokens that cannot follow.
    pub fn say<R: Rng + ?Sized>(
        &self,
        count: usize,
        open: &dyn Fn(&[usize]) -> Vec<f32>,
        rng: &mut R,
    ) -> Result<Vec<Vec<usize>>> {
        let mut said: Vec<Vec<usize>> = vec![Vec::with_capacity(self.places.len()); count];
        let mut state = self.begin(count)?;
        for place in &self.places {
            let (next, logarithms) = self.next(&state, place, &unlearned(&said, open)?)?;
            let chances: Vec<Vec<f32>> = logarithms.exp()?.to_vec2()?;
            let mut words = Vec::with_capacity(count);
            for (own, chances) in said.iter_mut().zip(&chances) {
                let word = drawn(chances, rng.random());
                own.push(word);
                words.push(word as u32);
            }
            state = self.heard(next, place, words)?;
        }
        Ok(said)
    }

    /// Returns the log probability of each sequence, and its entropy relative to `open`, summed
    /// over all positions. The relative entropy is 0 for an untrained network, and decreases as the
    /// policy becomes more certain.
    pub fn likelihood(
        &self,
        said: &[Vec<usize>],
        open: &dyn Fn(&[usize]) -> Vec<f32>,
    ) -> Result<(Tensor, Tensor)> {
        let mut state = self.begin(said.len())?;
        let mut total = Tensor::zeros((said.len(), 1), DType::F32, &Device::Cpu)?;
        let mut openness = total.clone();
        for (at, place) in self.places.iter().enumerate() {
            let before: Vec<Vec<usize>> = said.iter().map(|own| own[..at].to_vec()).collect();
            let unlearned = unlearned(&before, open)?;
            let (next, logarithms) = self.next(&state, place, &unlearned)?;
            let words: Vec<u32> = said.iter().map(|own| own[at] as u32).collect();
            let taken = Tensor::from_vec(words.clone(), (said.len(), 1), &Device::Cpu)?;
            total = (total + logarithms.gather(&taken, 1)?)?;
            let learned = (&logarithms - log_softmax(&unlearned, 1)?)?;
            openness = (openness - (logarithms.exp()? * learned)?.sum_keepdim(1)?)?;
            state = self.heard(next, place, words)?;
        }
        Ok((total, openness))
    }

    fn begin(&self, count: usize) -> Result<State> {
        let zeros = Tensor::zeros((count, self.hidden), DType::F32, &Device::Cpu)?;
        let last = self.begin.broadcast_as((count, self.hidden))?.contiguous()?;
        Ok(State { output: zeros.clone(), cell: zeros, last })
    }

    /// Returns the next state and the log probabilities of all tokens.
    fn next(&self, state: &State, place: &Place, unlearned: &Tensor) -> Result<(State, Tensor)> {
        let gates = (state.last.matmul(&self.from_word)? + state.output.matmul(&self.from_state)?)?;
        // One sigmoid computes all four gates, because the cost of small tensors is the number of
        // operations. The third gate is then rescaled from 0..1 to -1..1.
        let gates = sigmoid(&gates.broadcast_add(&self.gates)?)?.chunk(4, 1)?;
        let cell = ((&gates[0] * &state.cell)? + (&gates[1] * gates[2].affine(2.0, -1.0)?)?)?;
        let output = (&gates[3] * cell.tanh()?)?;
        let logits = output.matmul(&place.logits)?.broadcast_add(&place.biases)?;
        let logarithms = log_softmax(&(logits + unlearned)?, 1)?;
        Ok((State { output, cell, last: state.last.clone() }, logarithms))
    }

    fn heard(&self, state: State, place: &Place, words: Vec<u32>) -> Result<State> {
        let count = words.len();
        let last = place.meaning.index_select(&Tensor::from_vec(words, count, &Device::Cpu)?, 0)?;
        Ok(State { last, ..state })
    }
}

/// The values of `open` after each of the sequences.
fn unlearned(said: &[Vec<usize>], open: &dyn Fn(&[usize]) -> Vec<f32>) -> Result<Tensor> {
    let rows: Vec<Vec<f32>> = said.iter().map(|own| open(own)).collect();
    let width = rows.first().map_or(0, Vec::len);
    let numbers = rows.concat().into_iter().map(|open| open.max(CLOSED)).collect();
    Tensor::from_vec(numbers, (said.len(), width), &Device::Cpu)
}

/// Returns the token that a number between 0 and 1 selects.
fn drawn(chances: &[f32], mut at: f32) -> usize {
    for (word, chance) in chances.iter().enumerate() {
        if at < *chance {
            return word;
        }
        at -= chance;
    }
    // Because of rounding, the probabilities can add up to slightly less than 1.
    let likeliest = (0..chances.len()).max_by(|left, right| chances[*left].total_cmp(&chances[*right]));
    likeliest.unwrap_or(0)
}
