//! A recurrent network that says words one after the other: an LSTM with words of its own at every
//! place.

use candle_core::{DType, Device, Result, Tensor, Var};
use candle_nn::ops::{log_softmax, sigmoid};
use rand::{Rng, RngExt};

/// What keeps a word from being said. It is finite, since -∞ times a chance of 0 is no number.
const CLOSED: f32 = -1e9;

/// The network.
pub(in crate::strategy) struct Recurrent {
    hidden: usize,
    /// From the last word, and from what is remembered, to the four gates.
    from_word: Var,
    from_state: Var,
    gates: Var,
    /// What is before the first word.
    begin: Var,
    places: Vec<Place>,
}

/// The words that can be at a place.
struct Place {
    /// What they mean to what follows.
    meaning: Var,
    /// How likely they are.
    logits: Var,
    biases: Var,
}

/// What is remembered of the words so far, for several sequences.
struct State {
    output: Tensor,
    cell: Tensor,
    /// The meaning of the last word.
    last: Tensor,
}

impl Recurrent {
    /// A network for places with so many words each.
    pub fn new<R: Rng + ?Sized>(
        words: impl Iterator<Item = usize>,
        hidden: usize,
        rng: &mut R,
    ) -> Result<Recurrent> {
        // Words are as likely as they are without it, before it has learned anything.
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

    /// All that is learned.
    pub fn vars(&self) -> Vec<Var> {
        let shared = [&self.from_word, &self.from_state, &self.gates, &self.begin];
        let own = self.places.iter().flat_map(|place| [&place.meaning, &place.logits, &place.biases]);
        shared.into_iter().chain(own).cloned().collect()
    }

    /// Says so many sequences. `open` says how likely words follow, but for what was learned: a
    /// logarithm each, -∞ for those that cannot.
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

    /// The logarithm of the probability of each of some sequences; and how open it is what comes at
    /// all places together: 0 where nothing was learned, the less the more it is decided (the
    /// entropy relative to `open`).
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

    /// What is remembered next, and the logarithms of the chances of all words.
    fn next(&self, state: &State, place: &Place, unlearned: &Tensor) -> Result<(State, Tensor)> {
        let gates = (state.last.matmul(&self.from_word)? + state.output.matmul(&self.from_state)?)?;
        // One function for all of them at once, since small tensors cost by the operation: what is
        // new is in 0 to 1, and stretched.
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

/// What `open` says after each of some sequences.
fn unlearned(said: &[Vec<usize>], open: &dyn Fn(&[usize]) -> Vec<f32>) -> Result<Tensor> {
    let rows: Vec<Vec<f32>> = said.iter().map(|own| open(own)).collect();
    let width = rows.first().map_or(0, Vec::len);
    let numbers = rows.concat().into_iter().map(|open| open.max(CLOSED)).collect();
    Tensor::from_vec(numbers, (said.len(), width), &Device::Cpu)
}

/// The word that a number between 0 and 1 falls on.
fn drawn(chances: &[f32], mut at: f32) -> usize {
    for (word, chance) in chances.iter().enumerate() {
        if at < *chance {
            return word;
        }
        at -= chance;
    }
    // The chances add up to a little less than 1.
    let likeliest = (0..chances.len()).max_by(|left, right| chances[*left].total_cmp(&chances[*right]));
    likeliest.unwrap_or(0)
}
