//! The RNN controller that the paper on G-BFS and N-A2C compares with (Compiler-level matrix
//! multiplication optimization, section 4; Bello, Zoph, Vasudevan, Le 2017).
//!
//! A recurrent policy emits all knobs of a point as a sequence of decisions and is trained by
//! policy gradient. The policy is an LSTM of width 64. It emits a batch of points, and learns by
//! REINFORCE when their times are known. The advantage of a point is its reward, which is inverse
//! to its time, less a running mean of rewards. An entropy bonus prevents early convergence.
//! Rewards are relative to the best time, so that they are between 0 and 1 for every program. An
//! invalid point has the reward 0.
//!
//! The papers do not specify how a schedule is encoded (`decisions.rs`), the batch size, and the
//! rates. Departures from the papers:
//!
//! - The untrained policy emits all points with equal probability, like a random search. A network
//!   with random weights would be biased, and tokens with few continuations would occur too often.
//!   Consequently, the bonus is the entropy relative to this uniform distribution.
//! - Points that were tried before, or that violate a rule, are not tried; the policy emits others
//!   instead. If that fails, a random point is tried. More random points follow while the policy
//!   pauses, so that the search eventually covers the whole space.
//! - A batch has at least as many points as are tried together.
//! - Starting points are tried, and the policy learns from them as if it had emitted them.

use super::decisions::Decisions;
use super::explored::{Explored, Planner};
use super::learning::{Adam, Matrix, PositionState, Recurrent};
use super::ranking::Cost;
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "rnn";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "a recurrent network that emits all knobs one after the other",
    learns_from_others: false,
    make: |knobs, start| Ok(Box::new(Controller::new(knobs, start, Parameters::default()))),
};

/// The number of sequences that the policy emits at a time, and how often it emits them for a
/// batch.
const SEQUENCES: usize = 16;
const MAX_ROUNDS: usize = 2;
/// The largest number of batches for which the policy pauses after it emitted nothing new.
const MAX_PAUSE: usize = 4;
/// The largest number of tokens of all decisions for which a policy is trained. In larger spaces,
/// random points are as good and much cheaper.
const MAX_TOKENS: usize = 20_000;

/// The parameters of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The number of points that are tried between two trainings.
    pub batch: usize,
    /// The width of the network.
    pub hidden: usize,
    /// The learning rate.
    pub rate: f64,
    /// The decay of the running mean of rewards.
    pub decay: f64,
    /// The weight of the entropy bonus, per decision.
    pub entropy: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { batch: 8, hidden: 64, rate: 2e-2, decay: 0.9, entropy: 0.06 }
    }
}

/// Search by a recurrent policy.
pub struct Controller {
    parameters: Parameters,
    explored: Explored,
    decisions: Decisions,
    /// The policy and its optimiser. `None` if there are no decisions, or too many tokens.
    policy: Option<(Recurrent, Adam)>,
    /// The best cost, the running mean of rewards, and the results that the policy has not learned
    /// from yet.
    best: Option<Cost>,
    mean: Option<f64>,
    results: Vec<(Point, Option<Cost>)>,
    /// The number of consecutive batches without a new point, and the number of remaining batches
    /// of the pause.
    failures: usize,
    pause: usize,
}

impl Controller {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'_>, parameters: Parameters) -> Controller {
        let parameters =
            Parameters { batch: parameters.batch.max(start.parallel_trials).max(1), ..parameters };
        let mut explored = Explored::new(knobs, start);
        let decisions = Decisions::new(knobs);
        let words: usize = decisions.vocabulary_sizes().sum();
        let has_policy = words <= MAX_TOKENS
            && decisions.vocabulary_sizes().len() > 0
            && decisions.vocabulary_sizes().all(|words| words > 0);
        let policy = has_policy.then(|| {
            let hidden = parameters.hidden.max(1);
            let network = Recurrent::new(decisions.vocabulary_sizes(), hidden, &mut explored.rng);
            let optimiser = Adam::new(network.size(), parameters.rate);
            (network, optimiser)
        });
        let (best, mean, heard) = (None, None, Vec::new());
        Controller {
            parameters,
            explored,
            decisions,
            policy,
            best,
            mean,
            results: heard,
            failures: 0,
            pause: 0,
        }
    }

    /// Emits points until the batch is full. Emitting takes long, and a policy that emitted nothing
    /// new is unlikely to do so the next time. Therefore the policy then pauses, and longer with
    /// each consecutive failure.
    fn sample_batch(&mut self) {
        for _ in 0..MAX_ROUNDS {
            let before = self.explored.queued();
            if before < self.parameters.batch {
                self.sample_points();
            }
            if self.explored.queued() == before {
                break;
            }
        }
        self.failures = if self.explored.queued() > 0 { 0 } else { (self.failures + 1).min(MAX_PAUSE) };
        self.pause = self.failures;
    }

    fn sample_points(&mut self) {
        let Some((network, _)) = &self.policy else { return };
        let open = |said: &[usize]| self.decisions.log_completions(said);
        let said = network.sample(SEQUENCES, &open, &mut self.explored.rng);
        for own in said {
            if self.explored.queued() < self.parameters.batch
                && let Some(point) = self.decisions.decode(&own)
            {
                self.explored.queue_if_new(&point);
            }
        }
    }

    fn learn(&mut self) {
        let heard = std::mem::take(&mut self.results);
        let known = heard.iter().filter_map(|(point, cost)| {
            Some((self.decisions.encode(point)?, Cost::relative_fitness(*cost, self.best)))
        });
        let (said, rewards): (Vec<Vec<usize>>, Vec<f64>) = known.unzip();
        if said.is_empty() || self.policy.is_none() {
            return;
        }
        let own = rewards.iter().sum::<f64>() / rewards.len() as f64;
        let mean = self.mean.unwrap_or(own);
        self.mean = Some(self.parameters.decay * mean + (1.0 - self.parameters.decay) * own);
        let advantages: Vec<f32> = rewards.iter().map(|reward| (reward - mean) as f32).collect();
        self.train(&said, &advantages);
    }

    fn train(&mut self, sequences: &[Vec<usize>], advantages: &[f32]) {
        let Some((network, optimiser)) = &mut self.policy else { return };
        let heard = network.forward(sequences, &|said| self.decisions.log_completions(said));
        let slopes = heard.iter().enumerate().map(|(at, position)| {
            let words: Vec<usize> = sequences.iter().map(|said| said[at]).collect();
            logit_slopes(position, &words, advantages, self.parameters.entropy as f32)
        });
        let slopes = network.backward(sequences, &heard, &slopes.collect::<Vec<Matrix>>());
        optimiser.step(network.weights(), &slopes);
    }
}

/// The slopes of the loss with respect to the logits at one position, where each sequence has one
/// of `tokens`. The loss is the mean of -A ln π(token), for the advantage A of a sequence, less the
/// weighted entropy of the policy π relative to the untrained one.
fn logit_slopes(position: &PositionState, tokens: &[usize], advantages: &[f32], entropy: f32) -> Matrix {
    let (share, mut slopes) = (1.0 / tokens.len() as f32, position.logarithms.clone());
    for (at, (word, advantage)) in tokens.iter().zip(advantages).enumerate() {
        let learned = |(logarithm, before): (&f32, &f32)| logarithm.exp() * (logarithm - before);
        let unlearned = position.prior.row(at);
        let certainty: f32 = slopes.row(at).iter().zip(unlearned).map(learned).sum();
        for (own, before) in slopes.row_mut(at).iter_mut().zip(unlearned) {
            *own = share * own.exp() * (advantage + entropy * (*own - before - certainty));
        }
        slopes.row_mut(at)[*word] -= share * advantage;
    }
    slopes
}

impl Planner for Controller {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    /// Draws points that the policy emits, or a random point if the policy emits nothing new.
    fn plan(&mut self) {
        self.learn();
        if self.pause > 0 {
            self.pause -= 1;
        } else {
            self.sample_batch();
        }
        if self.explored.queued() == 0 {
            self.explored.queue_random();
        }
    }
}

impl Strategy for Controller {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next_point()).take(count).collect()
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            let cost = self.explored.record(result);
            if let Some(cost) = cost {
                self.best = Some(self.best.map_or(cost, |best| best.min(cost)));
            }
            if self.policy.is_some() && self.explored.is_visited(&result.point) {
                self.results.push((result.point.clone(), cost));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    const ENTROPY: f32 = 0.4;
    const ADVANTAGES: [f32; 3] = [0.8, -0.5, 0.1];

    fn open(said: &[usize]) -> Vec<f32> {
        if said.is_empty() { vec![0.0, 0.5, 1.0] } else { vec![0.3, f32::NEG_INFINITY, 0.0, 0.2] }
    }

    /// The loss by its definition.
    fn loss(network: &Recurrent, said: &[Vec<usize>]) -> f64 {
        let mut loss = 0.0;
        for (at, position) in network.forward(said, &open).iter().enumerate() {
            for (row, (said, advantage)) in said.iter().zip(ADVANTAGES).enumerate() {
                let (now, before) = (position.logarithms.row(row), position.prior.row(row));
                let learned = now.iter().zip(before).map(|(now, before)| now.exp() * (now - before));
                let openness = -learned.sum::<f32>();
                loss -= f64::from(advantage * now[said[at]] + ENTROPY * openness);
            }
        }
        loss / said.len() as f64
    }

    /// The slopes with respect to the weights are those of small changes of the weights.
    #[test]
    fn slopes_are_those_of_small_changes() {
        let rng = &mut Pcg64Mcg::seed_from_u64(1);
        let mut network = Recurrent::new([3, 4].into_iter(), 4, rng);
        network.weights().iter_mut().for_each(|weight| *weight += rng.random_range(-0.5..0.5));
        let said = network.sample(3, &open, rng);
        let heard = network.forward(&said, &open);
        let of_logits = heard.iter().enumerate().map(|(at, position)| {
            let words: Vec<usize> = said.iter().map(|said| said[at]).collect();
            logit_slopes(position, &words, &ADVANTAGES, ENTROPY)
        });
        let slopes = network.backward(&said, &heard, &of_logits.collect::<Vec<Matrix>>());
        for (at, slope) in slopes.iter().enumerate() {
            let mut moved = |by: f32| {
                network.weights()[at] += by;
                let loss = loss(&network, &said);
                network.weights()[at] -= by;
                loss
            };
            let expected = (moved(0.01) - moved(-0.01)) / 0.02;
            assert!((f64::from(*slope) - expected).abs() < 2e-3, "weight {at}: {slope}, not {expected}");
        }
    }
}
