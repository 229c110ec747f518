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
//! rates. Departures:
//!
//! - The untrained policy emits all points with equal probability, like a random search. A network
//!   with random weights would be biased, and tokens with few continuations would occur too often.
//!   Consequently, the bonus is the entropy relative to this uniform distribution.
//! - Points that were tried before, or that violate a rule, are not tried; the policy emits others
//!   instead. If that fails, a random point is tried. More random points follow while the policy
//!   pauses, so that the search eventually covers the whole space.
//! - A batch has at least as many points as are tried together.
//! - Starting points are tried, and the policy learns from them as if it had emitted them.

use candle_core::Result;
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

use super::decisions::Decisions;
use super::explored::{Explored, Planner};
use super::learning::{Recurrent, rows, sure};
use super::ranking::Cost;
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "rnn";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "a recurrent network that says all knobs one after the other",
    learns_from_others: false,
    make: |knobs, start| Ok(Box::new(Controller::new(knobs, start, Parameters::default()))),
};

/// The number of sequences that the policy emits at a time, and how often it emits them for a
/// batch.
const SAID: usize = 16;
const MOST_TIMES: usize = 2;
/// The largest number of batches for which the policy pauses after it emitted nothing new.
const LONGEST_REST: usize = 4;
/// The largest number of tokens of all decisions for which a policy is trained. In larger spaces,
/// random points are as good and much cheaper.
const MOST_WORDS: usize = 20_000;

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
    policy: Option<(Recurrent, AdamW)>,
    /// The best cost, the running mean of rewards, and the results that the policy has not learned
    /// from yet.
    best: Option<Cost>,
    mean: Option<f64>,
    heard: Vec<(Point, Option<Cost>)>,
    /// The number of consecutive batches without a new point, and the number of remaining batches
    /// of the pause.
    silences: usize,
    rests: usize,
}

impl Controller {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'_>, parameters: Parameters) -> Controller {
        let parameters = Parameters { batch: parameters.batch.max(start.together).max(1), ..parameters };
        let mut explored = Explored::new(knobs, start);
        let decisions = Decisions::of(knobs);
        let words: usize = decisions.words().sum();
        let speaks =
            words <= MOST_WORDS && decisions.words().len() > 0 && decisions.words().all(|words| words > 0);
        let policy = speaks.then(|| {
            let hidden = parameters.hidden.max(1);
            let network = sure(Recurrent::new(decisions.words(), hidden, &mut explored.rng));
            let rate = ParamsAdamW { lr: parameters.rate, weight_decay: 0.0, ..ParamsAdamW::default() };
            let optimiser = sure(AdamW::new(network.vars(), rate));
            (network, optimiser)
        });
        let (best, mean, heard) = (None, None, Vec::new());
        Controller { parameters, explored, decisions, policy, best, mean, heard, silences: 0, rests: 0 }
    }

    /// Emits points until the batch is full. Emitting takes long, and a policy that emitted nothing
    /// new is unlikely to do so the next time. Therefore the policy then pauses, and longer with
    /// each consecutive failure.
    fn say_a_batch(&mut self) {
        for _ in 0..MOST_TIMES {
            let before = self.explored.drawn();
            if before < self.parameters.batch {
                self.say();
            }
            if self.explored.drawn() == before {
                break;
            }
        }
        self.silences = if self.explored.drawn() > 0 { 0 } else { (self.silences + 1).min(LONGEST_REST) };
        self.rests = self.silences;
    }

    fn say(&mut self) {
        let Some((network, _)) = &self.policy else { return };
        let open = |said: &[usize]| self.decisions.open(said);
        let said = sure(network.say(SAID, &open, &mut self.explored.rng));
        for own in said {
            if self.explored.drawn() < self.parameters.batch
                && let Some(point) = self.decisions.point(&own)
            {
                self.explored.draw(&point);
            }
        }
    }

    fn learn(&mut self) {
        let heard = std::mem::take(&mut self.heard);
        let known = heard.iter().filter_map(|(point, cost)| {
            Some((self.decisions.said(point)?, Cost::goodness(*cost, self.best)))
        });
        let (said, rewards): (Vec<Vec<usize>>, Vec<f64>) = known.unzip();
        if said.is_empty() || self.policy.is_none() {
            return;
        }
        let own = rewards.iter().sum::<f64>() / rewards.len() as f64;
        let mean = self.mean.unwrap_or(own);
        self.mean = Some(self.parameters.decay * mean + (1.0 - self.parameters.decay) * own);
        let advantages = rewards.iter().map(|reward| vec![(reward - mean) as f32]).collect::<Vec<_>>();
        sure(self.lesson(&said, &advantages));
    }

    fn lesson(&mut self, said: &[Vec<usize>], advantages: &[Vec<f32>]) -> Result<()> {
        let Some((network, optimiser)) = &mut self.policy else { return Ok(()) };
        let open = |said: &[usize]| self.decisions.open(said);
        let (likelihood, openness) = network.likelihood(said, &open)?;
        let gained = (likelihood * rows(advantages, 1)?)?;
        let loss = (gained + (openness * self.parameters.entropy)?)?.mean_all()?.neg()?;
        optimiser.backward_step(&loss)
    }
}

impl Planner for Controller {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    /// Draws points that the policy emits, or a random point if the policy emits nothing new.
    fn plan(&mut self) {
        self.learn();
        if self.rests > 0 {
            self.rests -= 1;
        } else {
            self.say_a_batch();
        }
        if self.explored.drawn() == 0 {
            self.explored.draw_any();
        }
    }
}

impl Strategy for Controller {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next()).take(count).collect()
    }

    fn tell(&mut self, results: &[TrialResult]) {
        for told in results {
            let cost = self.explored.told(told);
            if let Some(cost) = cost {
                self.best = Some(self.best.map_or(cost, |best| best.min(cost)));
            }
            if self.policy.is_some() && self.explored.is_visited(&told.point) {
                self.heard.push((told.point.clone(), cost));
            }
        }
    }
}
