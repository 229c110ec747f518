//! N-A2C (Compiler-level matrix multiplication optimization, section 3.4, algorithm 2): a policy
//! learns where to walk around the best point.
//!
//! An episode fills a batch: walks of 𝒯 steps begin at the best point known. With the probability τ
//! a step follows the actor's policy, else it goes anywhere; points that are new are tried. When
//! their times are known, the actor and the critic learn from steps drawn from a memory of the last
//! ones. The reward of a step is inverse to the time of the point it leads to.
//!
//! 𝒯 has the soft start of the paper, from long walks to short ones, and grows again after many
//! episodes without a better point, until there is one.
//!
//! Where the paper says nothing: τ, the sizes of memory and networks, how 𝒯 changes, and that an
//! entropy bonus keeps the policy from settling at once. Two layers of 128 and a rate of 0.001 are
//! those of the authors' program. Rewards are relative to the best time, so that they are between 0
//! and 1 for every program; an invalid point has none.
//!
//! Where there is experience with other programs, actor and critic learn from steps that trees
//! judge by it before the search begins (`learning/teacher.rs`); the paper starts every search
//! anew.
//!
//! Departures: where no points are given, the search begins at the plain one, as in the paper's
//! experiments, and at some random ones beside it, since all around the plain one may be invalid,
//! or as slow. The policy only chooses among steps that lead to points of the space, and the moves
//! are those of all kinds of knobs, not only of powers of two. Walks that find nothing new become
//! longer at once, and where none is found at all a random point is tried, so that in the end the
//! whole space is seen. An episode has at least as many points as are to be tried together, where
//! compiling on many cores takes longest.

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
use super::{Start, Strategy, Told};
use crate::knob::{Knobs, Move, Point};

pub(super) const NAME: &str = "na2c";

/// What keeps a direction from being chosen: its logit is so much smaller.
const CLOSED: f32 = -1e9;
/// Walks of an episode that find nothing before those that follow are twice as long, and before the
/// episode is over.
const IN_VAIN: usize = 4;
const MOST_IN_VAIN: usize = 16;
/// Steps of the longest walks.
const LONGEST: usize = 64;
/// How often imagined steps are learned from.
const IMAGINED_LESSONS: usize = 40;

/// The parameters of [`Na2c`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Random points to begin with, where none are given.
    pub first: usize,
    /// Points of an episode.
    pub batch: usize,
    /// 𝒯: steps of a walk.
    pub steps: usize,
    /// Steps of the first walks; each episode has one less, down to 𝒯.
    pub first_steps: usize,
    /// Episodes without a better point after which walks become longer, one step an episode.
    pub patience: usize,
    /// τ: how likely a step follows the policy.
    pub following: f64,
    /// Steps that are remembered.
    pub memory: usize,
    /// Steps that are learned from at a time.
    pub lesson: usize,
    /// How often it learns after an episode.
    pub lessons: usize,
    /// γ: what the next point's value counts.
    pub discount: f64,
    /// Width of both hidden layers.
    pub hidden: usize,
    /// How fast they learn.
    pub rate: f64,
    /// How much a policy that leaves things open is worth.
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
    /// 0 for directions that led somewhere, and a very small number for others.
    open: Vec<f32>,
    direction: usize,
    to: Vec<f32>,
    point: Point,
}

/// A policy that walks around the best point.
pub struct Na2c {
    parameters: Parameters,
    explored: Explored,
    inputs: Inputs,
    actor: Network,
    critic: Network,
    optimiser: AdamW,
    /// Costs of all points that were told; none for invalid ones.
    costs: HashMap<Point, Option<Cost>>,
    /// Where walks begin, and its cost if it is known.
    centre: Option<(Point, Option<Cost>)>,
    memory: VecDeque<Step>,
    /// Episodes so far, and the last one that has found a better point.
    episodes: usize,
    improved: usize,
    /// Whether something was told since the last lesson.
    news: bool,
}

impl Na2c {
    /// A search of `knobs`.
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

    /// Learns from steps that nobody has made.
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

    /// A step in a direction that the policy chooses.
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

    /// What is wrong with the actor and the critic, seen from some steps and their rewards.
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

    /// An episode.
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

    fn tell(&mut self, results: &[Told]) {
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
