//! N-A2C (Compiler-level matrix multiplication optimization, section 3.4, algorithm 2): a policy
//! learns where to walk around the best point.
//!
//! An episode fills a batch by walks of 𝒯 steps that begin at the best known point. With
//! probability τ a step follows the actor's policy; otherwise its direction is random. New points
//! on the walk are tried. When their times are known, the actor and the critic learn from steps
//! that are drawn from a memory of recent steps. The reward of a step is inverse to the time of the
//! point that the step leads to.
//!
//! 𝒯 has the soft start of the paper, from long walks to short ones. After many episodes without a
//! better point, 𝒯 grows again until there is one.
//!
//! The paper does not specify τ, the sizes of the memory and the networks, and how 𝒯 changes. The
//! entropy bonus, which prevents early convergence of the policy, is also not in the paper. The two
//! layers of 128 and the rate of 0.001 are those of the authors' program. Rewards are relative to
//! the best time, so that they are between 0 and 1 for every program. An invalid point has the
//! reward 0.
//!
//! If trials of other programs are given, the actor and the critic first learn from steps that
//! trees score by these trials (`learning/teacher.rs`). The paper starts every search from scratch.
//!
//! Departures:
//!
//! - Without given points, the search begins at the trivial point, as in the experiments of the
//!   paper, and also at some random points. All points around the trivial one may be invalid or
//!   equally slow.
//! - The policy chooses only among steps that lead to points of the space, and the moves cover all
//!   kinds of knobs, not only powers of two.
//! - Walks that find nothing new become longer at once. If no walk finds anything, a random point
//!   is tried, so that the search eventually covers the whole space.
//! - An episode has at least as many points as are tried together, for machines where compilation
//!   on many cores dominates.

use std::collections::{HashMap, VecDeque};

use candle_core::{Result, Tensor};
use candle_nn::ops::{log_softmax, softmax};
use candle_nn::{AdamW, Optimizer, ParamsAdamW};
use rand::RngExt;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;

use super::explored::{Explored, Planner};
use super::learning::{Imagined, Inputs, Network, imagined, rows, sure};
use super::ranking::Cost;
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Move, Point};

pub(super) const NAME: &str = "na2c";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "walks around the best point that a policy learns to direct (N-A2C)",
    learns_from_others: true,
    make: |knobs, start| Ok(Box::new(Na2c::new(knobs, start, Parameters::default()))),
};

/// The logit offset of a direction that cannot be chosen.
const CLOSED: f32 = -1e9;
/// The number of walks in an episode without a new point after which the next walks are twice as
/// long, and after which the episode ends.
const IN_VAIN: usize = 4;
const MOST_IN_VAIN: usize = 16;
/// The largest number of steps of a walk.
const LONGEST: usize = 64;
/// The number of training steps with imagined steps.
const IMAGINED_LESSONS: usize = 40;

/// The parameters of [`Na2c`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The number of random points to begin with, if no starting points are given.
    pub first: usize,
    /// The number of points in an episode.
    pub batch: usize,
    /// 𝒯: the number of steps of a walk.
    pub steps: usize,
    /// The number of steps of the first walks. Each episode has one step less, down to 𝒯.
    pub first_steps: usize,
    /// The number of episodes without a better point after which walks grow by one step per
    /// episode.
    pub patience: usize,
    /// τ: the probability that a step follows the policy.
    pub following: f64,
    /// The number of steps in the memory.
    pub memory: usize,
    /// The number of steps in one training batch.
    pub lesson: usize,
    /// The number of training steps after an episode.
    pub lessons: usize,
    /// γ: the discount of the next point's value.
    pub discount: f64,
    /// The width of both hidden layers.
    pub hidden: usize,
    /// The learning rate.
    pub rate: f64,
    /// The weight of the entropy bonus.
    pub entropy: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            first: 16,
            batch: 5,
            steps: 3,
            first_steps: 8,
            patience: 10,
            following: 0.7,
            memory: 1024,
            lesson: 32,
            lessons: 2,
            discount: 0.9,
            hidden: 128,
            rate: 1e-3,
            entropy: 0.01,
        }
    }
}

/// A step of a walk.
struct Step {
    from: Vec<f32>,
    /// The mask of the directions: 0 for possible ones, and a very negative number for others.
    open: Vec<f32>,
    direction: usize,
    to: Vec<f32>,
    point: Point,
}

/// Search by a policy that walks around the best point.
pub struct Na2c {
    parameters: Parameters,
    explored: Explored,
    inputs: Inputs,
    actor: Network,
    critic: Network,
    optimiser: AdamW,
    /// The costs of all points with known results; `None` for invalid points.
    costs: HashMap<Point, Option<Cost>>,
    /// The point where walks begin, and its cost if it is known.
    centre: Option<(Point, Option<Cost>)>,
    memory: VecDeque<Step>,
    /// The number of episodes so far, and the last episode that found a better point.
    episodes: usize,
    improved: usize,
    /// True if results arrived since the last training.
    news: bool,
}

impl Na2c {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, mut start: Start<'_>, parameters: Parameters) -> Na2c {
        let blind = start.points.is_empty();
        start.points.extend(knobs.nth(0).filter(|_| blind));
        let parameters = Parameters { batch: parameters.batch.max(start.together).max(1), ..parameters };
        let centre =
            start.points.iter().find(|point| knobs.contains(point)).map(|point| (point.clone(), None));
        let imagined = imagined(knobs, &start);
        let mut explored = Explored::new(knobs, start);
        explored.draw_some(if blind { parameters.first } else { 0 });
        let inputs = Inputs::of(knobs);
        let hidden = parameters.hidden.max(1);
        let mut network = |outputs: usize| {
            sure(Network::new(&[inputs.width(), hidden, hidden, outputs], &mut explored.rng))
        };
        let (actor, critic) = (network(knobs.directions()), network(1));
        let vars = [actor.vars(), critic.vars()].concat();
        let rate = ParamsAdamW { lr: parameters.rate, weight_decay: 0.0, ..ParamsAdamW::default() };
        let mut method = Na2c {
            parameters,
            explored,
            inputs,
            actor,
            critic,
            optimiser: sure(AdamW::new(vars, rate)),
            costs: HashMap::new(),
            centre,
            memory: VecDeque::new(),
            episodes: 0,
            improved: 0,
            news: false,
        };
        method.learn_from(imagined);
        method
    }

    /// Trains the networks with imagined steps, which were never tried.
    fn learn_from(&mut self, imagined: Vec<Imagined>) {
        let step = |own: Imagined| {
            let open = self.open(&self.explored.knobs.directed_moves(&own.from));
            let [from, to] = [&own.from, &own.to].map(|end| self.inputs.row(&self.explored.knobs, end));
            (Step { from, open, direction: own.direction, to, point: own.to }, own.after)
        };
        let known: Vec<(Step, f32)> = imagined.into_iter().map(step).collect();
        let known: Vec<(&Step, f32)> = known.iter().map(|(step, reward)| (step, *reward)).collect();
        for _ in 0..if known.is_empty() { 0 } else { IMAGINED_LESSONS } {
            let loss = sure(self.loss(&known));
            sure(self.optimiser.backward_step(&loss));
        }
    }

    /// 𝒯 of this episode.
    fn steps(&self) -> usize {
        let Parameters { steps, first_steps, patience, .. } = self.parameters;
        let soft = first_steps.saturating_sub(self.episodes);
        let wider = (self.episodes - self.improved).saturating_sub(patience);
        (steps.max(soft).max(1) + wider).min(LONGEST)
    }

    fn walk(&mut self, steps: usize) {
        let Some((mut at, _)) = self.centre.clone() else { return };
        for _ in 0..steps {
            let mut moves = self.explored.knobs.directed_moves(&at);
            if moves.is_empty() {
                return;
            }
            let from = self.inputs.row(&self.explored.knobs, &at);
            let open = self.open(&moves);
            let chosen = match self.explored.chance(self.parameters.following) {
                true => self.follow(&from, &open, &moves),
                false => self.explored.rng.random_range(0..moves.len()),
            };
            let (direction, step) = moves.swap_remove(chosen);
            at = at.after(step);
            let to = self.inputs.row(&self.explored.knobs, &at);
            self.remember(Step { from, open, direction, to, point: at.clone() });
            if self.explored.draw(&at) && self.explored.drawn() >= self.parameters.batch {
                return;
            }
        }
    }

    fn open(&self, moves: &[(usize, Move)]) -> Vec<f32> {
        let mut open = vec![CLOSED; self.explored.knobs.directions()];
        moves.iter().for_each(|(direction, _)| open[*direction] = 0.0);
        open
    }

    /// Draws a step by the probabilities of the policy and returns its index in `moves`.
    fn follow(&mut self, from: &[f32], open: &[f32], moves: &[(usize, Move)]) -> usize {
        let chances = sure(self.policy(from, open));
        let weights = moves.iter().map(|(direction, _)| chances[*direction]);
        match WeightedIndex::new(weights) {
            Ok(chances) => chances.sample(&mut self.explored.rng),
            Err(_) => self.explored.rng.random_range(0..moves.len()),
        }
    }

    fn policy(&self, from: &[f32], open: &[f32]) -> Result<Vec<f32>> {
        let logits = self.actor.forward(&rows(&[from.to_vec()], from.len())?)?;
        softmax(&(logits + rows(&[open.to_vec()], open.len())?)?, 1)?.squeeze(0)?.to_vec1()
    }

    fn remember(&mut self, step: Step) {
        self.memory.push_back(step);
        while self.memory.len() > self.parameters.memory.max(1) {
            self.memory.pop_front();
        }
    }

    fn learn(&mut self) {
        if !std::mem::take(&mut self.news) {
            return;
        }
        for _ in 0..self.parameters.lessons {
            let known: Vec<&Step> =
                self.memory.iter().filter(|step| self.costs.contains_key(&step.point)).collect();
            if known.is_empty() {
                return;
            }
            let drawn: Vec<&Step> = (0..self.parameters.lesson.max(1))
                .map(|_| known[self.explored.rng.random_range(0..known.len())])
                .collect();
            let drawn: Vec<(&Step, f32)> =
                drawn.into_iter().map(|step| (step, self.reward(&step.point))).collect();
            let loss = sure(self.loss(&drawn));
            sure(self.optimiser.backward_step(&loss));
        }
    }

    fn reward(&self, point: &Point) -> f32 {
        let best = self.centre.as_ref().and_then(|(_, cost)| *cost);
        Cost::goodness(self.costs.get(point).copied().flatten(), best) as f32
    }

    /// The loss of the actor and the critic for steps with these rewards.
    fn loss(&self, steps: &[(&Step, f32)]) -> Result<Tensor> {
        let width = self.inputs.width();
        let all = |of: &dyn Fn(&Step) -> Vec<f32>| {
            steps.iter().map(|(step, _)| of(step)).collect::<Vec<Vec<f32>>>()
        };
        let from = rows(&all(&|step| step.from.clone()), width)?;
        let to = rows(&all(&|step| step.to.clone()), width)?;
        let open = rows(&all(&|step| step.open.clone()), self.explored.knobs.directions())?;
        let rewards: Vec<Vec<f32>> = steps.iter().map(|(_, reward)| vec![*reward]).collect();
        let rewards = rows(&rewards, 1)?;
        let directions: Vec<u32> = steps.iter().map(|(step, _)| step.direction as u32).collect();
        let directions = Tensor::from_vec(directions, (steps.len(), 1), from.device())?;

        let wanted = (rewards + (self.critic.forward(&to)?.detach() * self.parameters.discount)?)?;
        let advantage = (wanted - self.critic.forward(&from)?)?;
        let logarithms = log_softmax(&(self.actor.forward(&from)? + open)?, 1)?;
        let taken = (logarithms.gather(&directions, 1)? * advantage.detach())?;
        let entropy = (logarithms.exp()? * &logarithms)?.sum_keepdim(1)?;
        let actor = (entropy * self.parameters.entropy)?.sub(&taken)?;
        (actor + advantage.sqr()?)?.mean_all()
    }
}

impl Planner for Na2c {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    /// Runs one episode.
    fn plan(&mut self) {
        self.learn();
        let (mut steps, mut in_vain) = (self.steps(), 0);
        while self.explored.drawn() < self.parameters.batch && in_vain < MOST_IN_VAIN {
            let before = self.explored.drawn();
            self.walk(steps);
            if self.explored.drawn() == before {
                in_vain += 1;
                steps = if in_vain % IN_VAIN == 0 { 2 * steps } else { steps }.min(LONGEST);
            }
        }
        if self.explored.drawn() == 0 {
            self.explored.draw_any();
        }
        self.episodes += 1;
    }
}

impl Strategy for Na2c {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next()).take(count).collect()
    }

    fn tell(&mut self, results: &[TrialResult]) {
        for told in results {
            let cost = self.explored.told(told);
            if !self.explored.is_visited(&told.point) {
                continue;
            }
            self.news = true;
            self.costs.insert(told.point.clone(), cost);
            let better =
                |own: Cost| self.centre.as_ref().is_none_or(|(_, best)| best.is_none_or(|best| own < best));
            if let Some(cost) = cost.filter(|cost| better(*cost)) {
                self.centre = Some((told.point.clone(), Some(cost)));
                self.improved = self.episodes;
            }
        }
    }
}
