//! The Q-method (FlexTensor, section 5.1): steps from good points in the direction that a network
//! values most.
//!
//! A network X of four layers maps a point to a value for every direction. From every start, the
//! search takes one or several steps, each in the open direction with the largest value. The gain
//! of a step from p to e, (E_e - E_p)/E_p, is recorded. Every five trials, X is trained with the
//! recorded steps. The target of a step is its gain plus α times the largest value that an older
//! copy Y of the network gives for e. AdaDelta updates X, and Y then becomes a copy of X.
//!
//! The paper writes the loss as (X(e) - target)². The value of a step from p is X(p) in the
//! direction of the step, so X(p) is trained here. An invalid point has the performance 0. The
//! paper does not specify γ, α, the widths, the numbers of starts and steps, and the number of
//! training rounds.
//!
//! If trials of other programs are given, X first learns from steps that trees score by these
//! trials (`learning/transfer.rs`). The paper starts every search from scratch.
//!
//! Departures from the paper:
//!
//! - If several prime factors can move in a direction, one of them is chosen at random.
//! - Points whose neighbours were all visited are no longer starts. The search begins at the given
//!   points, or at random ones. When no start is left, it continues from random points.
//! - There are at least as many starts as points are tried together, for machines where compilation
//!   on many cores dominates. A trial is one step from each start, and training follows every five
//!   trials.

use std::collections::HashMap;

use rand::RngExt;
use rand::seq::IteratorRandom;

use super::explored::{Explored, Planner};
use super::learning::{AdaDelta, Inputs, Matrix, Network, PredictedStep, predicted_steps};
use super::pool::Pool;
use super::ranking::Cost;
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "q-method";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "steps from good points in the direction that a network values most (FlexTensor)",
    learns_from_others: true,
    make: |knobs, start| Ok(Box::new(QMethod::new(knobs, start, Parameters::default()))),
};

/// The number of trials between two trainings.
const TRIALS_BETWEEN_TRAININGS: usize = 5;
/// The number of training rounds with imagined steps, and the largest gain of an imagined step.
const PRETRAINING_ROUNDS: usize = 60;
const MAX_PREDICTED_GAIN: f32 = 2.0;

/// The parameters of [`QMethod`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The number of starts in a trial.
    pub starts: usize,
    /// The number of steps from each start.
    pub steps: usize,
    /// γ: how strongly the draw of starts prefers better points.
    pub gamma: f64,
    /// The number of random points to begin with, if no starting points are given.
    pub random_points: usize,
    /// α: the discount of the best direction from the next point.
    pub discount: f64,
    /// The width of the hidden layers.
    pub hidden: usize,
    /// The largest number of steps in one training batch.
    pub training_batch: usize,
    /// The number of training rounds after each five trials.
    pub rounds: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            starts: 2,
            steps: 1,
            gamma: 32.0,
            random_points: 16,
            discount: 0.7,
            hidden: 64,
            training_batch: 128,
            rounds: 8,
        }
    }
}

/// A step that was taken or imagined.
struct Step {
    from: Point,
    direction: usize,
    to: Point,
}

impl Step {
    /// Converts an imagined step, and returns it with its predicted gain.
    fn from_prediction(own: PredictedStep) -> (Step, f32) {
        let brought = (own.after / own.before - 1.0).min(MAX_PREDICTED_GAIN);
        (Step { from: own.from, direction: own.direction, to: own.to }, brought)
    }
}

/// Search in directions that a network chooses.
pub struct QMethod {
    parameters: Parameters,
    explored: Explored,
    inputs: Inputs,
    /// The network X and its optimiser.
    network: Network,
    optimiser: AdaDelta,
    /// The older copy Y of the network.
    target_network: Network,
    /// The costs of all points with known results; `None` for invalid points.
    costs: HashMap<Point, Option<Cost>>,
    pool: Pool,
    steps: Vec<Step>,
    /// Imagined steps with their predicted gains.
    predicted: Vec<(Step, f32)>,
    trials: usize,
}

impl QMethod {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'_>, parameters: Parameters) -> QMethod {
        let first = if start.points.is_empty() { parameters.random_points } else { 0 };
        let parameters =
            Parameters { starts: parameters.starts.max(start.parallel_trials).max(1), ..parameters };
        let imagined = predicted_steps(knobs, &start)
            .into_iter()
            .filter(|own| own.before > 0.0)
            .map(Step::from_prediction)
            .collect();
        let mut explored = Explored::new(knobs, start);
        explored.queue_random_points(first);
        let inputs = Inputs::new(knobs);
        let hidden = parameters.hidden.max(1);
        let widths = [inputs.width(), hidden, hidden, hidden, knobs.directions()];
        let network = Network::new(&widths, &mut explored.rng);
        let mut method = QMethod {
            parameters,
            explored,
            inputs,
            optimiser: AdaDelta::new(network.size()),
            target_network: network.clone(),
            network,
            costs: HashMap::new(),
            pool: Pool::default(),
            steps: Vec::new(),
            predicted: imagined,
            trials: 0,
        };
        method.pretrain();
        method
    }

    /// Trains the network with imagined steps.
    fn pretrain(&mut self) {
        for _ in 0..if self.predicted.is_empty() { 0 } else { PRETRAINING_ROUNDS } {
            let known: Vec<(&Step, f32)> =
                self.predicted.iter().map(|(step, brought)| (step, *brought)).collect();
            let slopes = self.slopes(&known);
            self.optimiser.step(self.network.weights(), &slopes);
        }
        self.target_network = self.network.clone();
    }

    /// Takes some steps from `start`, each in the best direction.
    fn walk(&mut self, start: &Point) {
        let mut at = start.clone();
        for step in 0..self.parameters.steps.max(1) {
            match self.step(&at) {
                Some(next) => at = next,
                None if step == 0 => return self.pool.remove(start),
                None => return,
            }
        }
    }

    /// Draws the neighbour in the best direction that leads to an unvisited point.
    fn step(&mut self, at: &Point) -> Option<Point> {
        let Explored { knobs, .. } = &self.explored;
        let moves =
            knobs.directed_moves(at).into_iter().map(|(direction, step)| (direction, at.with_move(step)));
        let open: Vec<(usize, Point)> = moves.filter(|(_, point)| !self.explored.is_visited(point)).collect();
        if open.is_empty() {
            return None;
        }
        let values = self.network.outputs(self.inputs.row(knobs, at));
        let best = open
            .iter()
            .map(|(direction, _)| *direction)
            .max_by(|left, right| values[*left].total_cmp(&values[*right]))?;
        let several = open.into_iter().filter(|(direction, _)| *direction == best);
        let (direction, to) = several.choose(&mut self.explored.rng)?;
        self.explored.queue_if_new(&to);
        self.steps.push(Step { from: at.clone(), direction, to: to.clone() });
        Some(to)
    }

    fn learn(&mut self) {
        let own = self.steps.iter().filter_map(|step| Some((step, self.gain(step)?)));
        // Imagined steps stay in the training data until there are as many real steps.
        let taught = self.predicted.iter().map(|(step, brought)| (step, *brought));
        let known: Vec<(&Step, f32)> = own.chain(taught.skip(self.steps.len())).collect();
        if known.is_empty() {
            return;
        }
        let most = self.parameters.training_batch.max(1);
        for _ in 0..self.parameters.rounds {
            let drawn: Vec<(&Step, f32)> = match known.len() <= most {
                true => known.clone(),
                false => (0..most).map(|_| known[self.explored.rng.random_range(0..known.len())]).collect(),
            };
            let slopes = self.slopes(&drawn);
            self.optimiser.step(self.network.weights(), &slopes);
        }
        self.target_network = self.network.clone();
    }

    /// The gain of a step, once the costs of both ends are known: (E_e - E_p) / E_p.
    fn gain(&self, step: &Step) -> Option<f32> {
        let (from, to) = (self.costs.get(&step.from)?.as_ref()?, self.costs.get(&step.to)?);
        Some(to.map_or(-1.0, |to| (to.fitness() / from.fitness() - 1.0) as f32))
    }

    /// The slopes of the loss of steps with these gains. The loss is the mean of the squared
    /// differences between the values of the steps and their targets.
    fn slopes(&self, steps: &[(&Step, f32)]) -> Vec<f32> {
        let rows = |end: fn(&Step) -> &Point| {
            let rows: Vec<Vec<f32>> =
                steps.iter().map(|(step, _)| self.inputs.row(&self.explored.knobs, end(step))).collect();
            Matrix::from_rows(self.inputs.width(), rows.iter().map(Vec::as_slice))
        };
        let ahead = self.target_network.forward(rows(|step| &step.to));
        let values = self.network.forward(rows(|step| &step.from));
        let mut slopes = Matrix::zeros(steps.len(), self.explored.knobs.directions());
        for (at, (step, brought)) in steps.iter().enumerate() {
            let best = ahead.outputs().row(at).iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let target = brought + self.parameters.discount as f32 * best;
            let away = values.outputs().row(at)[step.direction] - target;
            slopes.row_mut(at)[step.direction] = 2.0 * away / steps.len() as f32;
        }
        self.network.backward(&values, slopes)
    }
}

impl Planner for QMethod {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    /// Draws steps from the starts, or random points.
    fn plan(&mut self) {
        self.trials += 1;
        if self.trials.is_multiple_of(TRIALS_BETWEEN_TRAININGS) {
            self.learn();
        }
        while self.explored.queued() == 0 {
            let starts =
                self.pool.draw(self.parameters.starts, self.parameters.gamma, &mut self.explored.rng);
            if starts.is_empty() && !self.explored.queue_random() {
                return;
            }
            starts.into_iter().for_each(|start| self.walk(&start));
        }
    }
}

impl Strategy for QMethod {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next_point()).take(count).collect()
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            let cost = self.explored.record(result);
            if self.explored.is_visited(&result.point) {
                self.costs.insert(result.point.clone(), cost);
            }
            if let Some(cost) = cost {
                self.pool.insert(result.point.clone(), cost);
            }
        }
    }
}
