//! The RNN controller that G-BFS and N-A2C are compared with (Compiler-level matrix multiplication
//! optimization, section 4; Bello, Zoph, Vasudevan, Le 2017): a recurrent policy says all knobs of
//! a point, one decision after the other, and is trained by policy gradient.
//!
//! An LSTM of 64 says a batch of points; when their times are known, it learns by REINFORCE: the
//! reward is inverse to the time, less a running mean of rewards, and a bonus for what it leaves
//! open keeps it from settling. Rewards are relative to the best time, so that they are between 0
//! and 1 for every program; an invalid point has none.
//!
//! Where the papers say nothing: how a schedule is said (`decisions.rs`), the batch, and the rates.
//! Departures: before it has learned anything it says all points equally often, like a random
//! search, where a network drawn at random has its fancies and words that leave little open come
//! too often; what it leaves open is measured against that (relative entropy). Points that were
//! said before, or break a rule, are not tried but said again; where that fails a random point is
//! tried, and some more while it rests, so that in the end the whole space is seen. A batch has at
//! least as many points as are to be tried together. Points to start from are tried, and learned
//! from as if they had been said.

use candle_core::Result;
use candle_nn::{AdamW, Optimizer, ParamsAdamW};

use super::decisions::Decisions;
use super::explored::{Explored, Planner};
use super::learning::{Recurrent, rows, sure};
use super::ranking::Cost;
use super::{Start, Strategy, Told};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "rnn";

/// Sequences that are said at a time, and how often for a batch.
const SAID: usize = 16;
const MOST_TIMES: usize = 2;
/// For how many batches it is silent at most, after it had nothing new to say.
const LONGEST_REST: usize = 4;
/// Knobs that have more words in all are not learned about: random points are as good, and much
/// cheaper.
const MOST_WORDS: usize = 20_000;

/// The parameters of [`Controller`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Points that are tried between lessons.
    pub batch: usize,
    /// Width of the network.
    pub hidden: usize,
    /// How fast it learns.
    pub rate: f64,
    /// How much of the running mean of rewards is kept.
    pub decay: f64,
    /// How much a policy that leaves things open is worth, for each decision.
    pub entropy: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { batch: 8, hidden: 64, rate: 2e-2, decay: 0.9, entropy: 0.06 }
    }
}

/// A recurrent policy.
pub struct Controller {
    parameters: Parameters,
    explored: Explored,
    decisions: Decisions,
    /// None where there is nothing to decide, or too much.
    policy: Option<(Recurrent, AdamW)>,
    /// The best cost, the running mean of rewards, and what is still to be learned from.
    best: Option<Cost>,
    mean: Option<f64>,
    heard: Vec<(Point, Option<Cost>)>,
    /// How often in a row it had nothing new to say, and for how many batches it rests.
    silences: usize,
    rests: usize,
}

impl Controller {
    /// A search of `knobs`.
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

    /// Says points until there are enough. Saying takes long, and who had nothing new to say hardly
    /// has the next time: so it rests then, the longer the more often that was so.
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

    /// Points that the policy says, or a random one where it says none that is new.
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

    fn tell(&mut self, results: &[Told]) {
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
