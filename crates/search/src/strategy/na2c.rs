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
//! trees score by these trials (`learning/transfer.rs`). The paper starts every search from
//! scratch.
//!
//! Departures from the paper:
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

use rand::RngExt;
use rand::distr::Distribution;
use rand::distr::weighted::WeightedIndex;

use super::explored::{Explored, Planner};
use super::learning::{Adam, Inputs, Matrix, Network, PredictedStep, log_softmax, predicted_steps};
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
const MASKED_LOGIT: f32 = -1e9;
/// The number of walks in an episode without a new point after which the next walks are twice as
/// long, and after which the episode ends.
const WALKS_BEFORE_LONGER: usize = 4;
const MAX_FAILED_WALKS: usize = 16;
/// The largest number of steps of a walk.
const MAX_WALK_STEPS: usize = 64;
/// The number of training steps with imagined steps.
const PRETRAINING_STEPS: usize = 40;

/// The parameters of [`Na2c`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The number of random points to begin with, if no starting points are given.
    pub random_points: usize,
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
    pub policy_probability: f64,
    /// The number of steps in the memory.
    pub memory: usize,
    /// The number of steps in one training batch.
    pub training_batch: usize,
    /// The number of training steps after an episode.
    pub training_steps: usize,
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
            random_points: 16,
            batch: 5,
            steps: 3,
            first_steps: 8,
            patience: 10,
            policy_probability: 0.7,
            memory: 1024,
            training_batch: 32,
            training_steps: 2,
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
    mask: Vec<f32>,
    direction: usize,
    to: Vec<f32>,
    point: Point,
}

/// A network and its optimiser.
struct Learner {
    network: Network,
    optimiser: Adam,
}

impl Learner {
    /// Performs one training step against the slopes of the loss.
    fn step(&mut self, slopes: &[f32]) {
        self.optimiser.step(self.network.weights(), slopes);
    }
}

/// Search by a policy that walks around the best point.
pub struct Na2c {
    parameters: Parameters,
    explored: Explored,
    inputs: Inputs,
    actor: Learner,
    critic: Learner,
    /// The costs of all points with known results; `None` for invalid points.
    costs: HashMap<Point, Option<Cost>>,
    /// The point where walks begin, and its cost if it is known.
    centre: Option<(Point, Option<Cost>)>,
    memory: VecDeque<Step>,
    /// The number of episodes so far, and the last episode that found a better point.
    episodes: usize,
    last_improvement: usize,
    /// True if results arrived since the last training.
    has_new_results: bool,
}

impl Na2c {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, mut start: Start<'_>, parameters: Parameters) -> Na2c {
        let is_without_start = start.points.is_empty();
        start.points.extend(knobs.nth(0).filter(|_| is_without_start));
        let parameters =
            Parameters { batch: parameters.batch.max(start.parallel_trials).max(1), ..parameters };
        let centre =
            start.points.iter().find(|point| knobs.contains(point)).map(|point| (point.clone(), None));
        let imagined = predicted_steps(knobs, &start);
        let mut explored = Explored::new(knobs, start);
        explored.queue_random_points(if is_without_start { parameters.random_points } else { 0 });
        let inputs = Inputs::new(knobs);
        let hidden = parameters.hidden.max(1);
        let mut learner = |outputs: usize| {
            let network = Network::new(&[inputs.width(), hidden, hidden, outputs], &mut explored.rng);
            Learner { optimiser: Adam::new(network.size(), parameters.rate), network }
        };
        let (actor, critic) = (learner(knobs.directions()), learner(1));
        let mut method = Na2c {
            parameters,
            explored,
            inputs,
            actor,
            critic,
            costs: HashMap::new(),
            centre,
            memory: VecDeque::new(),
            episodes: 0,
            last_improvement: 0,
            has_new_results: false,
        };
        method.pretrain(imagined);
        method
    }

    /// Trains the networks with imagined steps, which were never tried.
    fn pretrain(&mut self, imagined: Vec<PredictedStep>) {
        let step = |own: PredictedStep| {
            let open = self.direction_mask(&self.explored.knobs.directed_moves(&own.from));
            let [from, to] = [&own.from, &own.to].map(|end| self.inputs.row(&self.explored.knobs, end));
            (Step { from, mask: open, direction: own.direction, to, point: own.to }, own.after)
        };
        let known: Vec<(Step, f32)> = imagined.into_iter().map(step).collect();
        let known: Vec<(&Step, f32)> = known.iter().map(|(step, reward)| (step, *reward)).collect();
        for _ in 0..if known.is_empty() { 0 } else { PRETRAINING_STEPS } {
            let slopes = self.slopes(&known);
            self.step(&slopes);
        }
    }

    /// 𝒯 of this episode.
    fn steps(&self) -> usize {
        let Parameters { steps, first_steps, patience, .. } = self.parameters;
        let soft = first_steps.saturating_sub(self.episodes);
        let wider = (self.episodes - self.last_improvement).saturating_sub(patience);
        (steps.max(soft).max(1) + wider).min(MAX_WALK_STEPS)
    }

    fn walk(&mut self, steps: usize) {
        let Some((mut at, _)) = self.centre.clone() else { return };
        for _ in 0..steps {
            let mut moves = self.explored.knobs.directed_moves(&at);
            if moves.is_empty() {
                return;
            }
            let from = self.inputs.row(&self.explored.knobs, &at);
            let open = self.direction_mask(&moves);
            let chosen = match self.explored.with_probability(self.parameters.policy_probability) {
                true => self.sample_policy(&from, &open, &moves),
                false => self.explored.rng.random_range(0..moves.len()),
            };
            let (direction, step) = moves.swap_remove(chosen);
            at = at.with_move(step);
            let to = self.inputs.row(&self.explored.knobs, &at);
            self.remember(Step { from, mask: open, direction, to, point: at.clone() });
            if self.explored.queue_if_new(&at) && self.explored.queued() >= self.parameters.batch {
                return;
            }
        }
    }

    fn direction_mask(&self, moves: &[(usize, Move)]) -> Vec<f32> {
        let mut open = vec![MASKED_LOGIT; self.explored.knobs.directions()];
        moves.iter().for_each(|(direction, _)| open[*direction] = 0.0);
        open
    }

    /// Draws a step by the probabilities of the policy and returns its index in `moves`.
    fn sample_policy(&mut self, from: &[f32], open: &[f32], moves: &[(usize, Move)]) -> usize {
        let mut logits = self.actor.network.outputs(from.to_vec());
        logits.iter_mut().zip(open).for_each(|(logit, open)| *logit += open);
        log_softmax(&mut logits);
        let weights = moves.iter().map(|(direction, _)| logits[*direction].exp());
        match WeightedIndex::new(weights) {
            Ok(chances) => chances.sample(&mut self.explored.rng),
            Err(_) => self.explored.rng.random_range(0..moves.len()),
        }
    }

    fn remember(&mut self, step: Step) {
        self.memory.push_back(step);
        while self.memory.len() > self.parameters.memory.max(1) {
            self.memory.pop_front();
        }
    }

    fn learn(&mut self) {
        if !std::mem::take(&mut self.has_new_results) {
            return;
        }
        for _ in 0..self.parameters.training_steps {
            let known: Vec<&Step> =
                self.memory.iter().filter(|step| self.costs.contains_key(&step.point)).collect();
            if known.is_empty() {
                return;
            }
            let drawn: Vec<&Step> = (0..self.parameters.training_batch.max(1))
                .map(|_| known[self.explored.rng.random_range(0..known.len())])
                .collect();
            let drawn: Vec<(&Step, f32)> =
                drawn.into_iter().map(|step| (step, self.reward(&step.point))).collect();
            let slopes = self.slopes(&drawn);
            self.step(&slopes);
        }
    }

    fn reward(&self, point: &Point) -> f32 {
        let best = self.centre.as_ref().and_then(|(_, cost)| *cost);
        Cost::relative_fitness(self.costs.get(point).copied().flatten(), best) as f32
    }

    /// The slopes of the losses of the actor and the critic, for steps with these rewards.
    fn slopes(&self, steps: &[(&Step, f32)]) -> [Vec<f32>; 2] {
        let (actor, critic) = (&self.actor.network, &self.critic.network);
        let rows = |end: fn(&Step) -> &[f32]| {
            Matrix::from_rows(self.inputs.width(), steps.iter().map(|(step, _)| end(step)))
        };
        let ahead = critic.forward(rows(|step| &step.to));
        let values = critic.forward(rows(|step| &step.from));
        let each = steps.iter().zip(&values.outputs().numbers).zip(&ahead.outputs().numbers);
        let discount = self.parameters.discount as f32;
        let advantages: Vec<f32> =
            each.map(|(((_, reward), value), ahead)| reward + discount * ahead - value).collect();
        let of_critic = critic.backward(&values, critic_slopes(&advantages));
        let values = actor.forward(rows(|step| &step.from));
        let slopes = actor_slopes(steps, &advantages, self.parameters.entropy as f32, values.outputs());
        [actor.backward(&values, slopes), of_critic]
    }

    /// Performs one training step of both networks.
    fn step(&mut self, [actor, critic]: &[Vec<f32>; 2]) {
        self.actor.step(actor);
        self.critic.step(critic);
    }
}

/// The slopes of the critic's loss with respect to its values. The loss is the mean of the squared
/// advantages, and an advantage decreases by as much as the value increases.
fn critic_slopes(advantages: &[f32]) -> Matrix {
    let share = 1.0 / advantages.len() as f32;
    let numbers = advantages.iter().map(|advantage| -2.0 * share * advantage).collect();
    Matrix { rows: advantages.len(), columns: 1, numbers }
}

/// The slopes of the actor's loss with respect to its logits. The loss is the mean of -A ln π(d),
/// for the direction d of a step and its advantage A, less the weighted entropy of the policy π.
fn actor_slopes(steps: &[(&Step, f32)], advantages: &[f32], entropy: f32, logits: &Matrix) -> Matrix {
    let (share, mut slopes) = (1.0 / steps.len() as f32, logits.clone());
    for (at, ((step, _), advantage)) in steps.iter().zip(advantages).enumerate() {
        let row = slopes.row_mut(at);
        row.iter_mut().zip(&step.mask).for_each(|(logit, open)| *logit += open);
        log_softmax(row);
        let certainty: f32 = row.iter().map(|logarithm| logarithm.exp() * logarithm).sum();
        for logarithm in row.iter_mut() {
            *logarithm = share * logarithm.exp() * (advantage + entropy * (*logarithm - certainty));
        }
        row[step.direction] -= share * advantage;
    }
    slopes
}

impl Planner for Na2c {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    /// Runs one episode.
    fn plan(&mut self) {
        self.learn();
        let (mut steps, mut in_vain) = (self.steps(), 0);
        while self.explored.queued() < self.parameters.batch && in_vain < MAX_FAILED_WALKS {
            let before = self.explored.queued();
            self.walk(steps);
            if self.explored.queued() == before {
                in_vain += 1;
                steps =
                    if in_vain % WALKS_BEFORE_LONGER == 0 { 2 * steps } else { steps }.min(MAX_WALK_STEPS);
            }
        }
        if self.explored.queued() == 0 {
            self.explored.queue_random();
        }
        self.episodes += 1;
    }
}

impl Strategy for Na2c {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next_point()).take(count).collect()
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            let cost = self.explored.record(result);
            if !self.explored.is_visited(&result.point) {
                continue;
            }
            self.has_new_results = true;
            self.costs.insert(result.point.clone(), cost);
            let better =
                |own: Cost| self.centre.as_ref().is_none_or(|(_, best)| best.is_none_or(|best| own < best));
            if let Some(cost) = cost.filter(|cost| better(*cost)) {
                self.centre = Some((result.point.clone(), Some(cost)));
                self.last_improvement = self.episodes;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The slopes with respect to the logits are those of small changes of the logits.
    #[test]
    fn slopes_of_the_actor_are_those_of_small_changes() {
        let step = |direction: usize, open: [f32; 4]| Step {
            from: Vec::new(),
            mask: open.to_vec(),
            direction,
            to: Vec::new(),
            point: Point::default(),
        };
        let steps = [step(1, [0.0; 4]), step(0, [0.0, MASKED_LOGIT, 0.0, 0.0])];
        let steps: Vec<(&Step, f32)> = steps.iter().map(|step| (step, 0.0)).collect();
        let (advantages, entropy) = ([0.7, -0.4], 0.3);
        let loss = |logits: &Matrix| -> f32 {
            let each = steps.iter().zip(advantages).enumerate().map(|(at, ((step, _), advantage))| {
                let mut row: Vec<f32> = logits.row(at).iter().zip(&step.mask).map(|(a, b)| a + b).collect();
                log_softmax(&mut row);
                let certainty: f32 = row.iter().map(|logarithm| logarithm.exp() * logarithm).sum();
                entropy * certainty - advantage * row[step.direction]
            });
            each.sum::<f32>() / 2.0
        };
        let logits = Matrix::from_rows(4, [&[0.3, -0.2, 0.9, 0.1][..], &[-0.5, 0.4, 0.2, 0.8]]);
        let slopes = actor_slopes(&steps, &advantages, entropy, &logits);
        for at in 0..8 {
            let moved = |by: f32| {
                let mut other = logits.clone();
                other.numbers[at] += by;
                loss(&other)
            };
            let expected = (moved(0.01) - moved(-0.01)) / 0.02;
            assert!((slopes.numbers[at] - expected).abs() < 1e-4, "{at}: {} {expected}", slopes.numbers[at]);
        }
    }
}
