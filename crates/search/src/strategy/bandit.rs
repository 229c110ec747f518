//! A bandit over strategies, which divides the budget by the success of each strategy.
//!
//! The method is that of OpenTuner (Ansel et al. 2014, section 4.2). The credit of an arm is the
//! area under the curve of its successes in a window of the last proposals, where a late success
//! counts more than an early one. A bonus for rarely used arms ensures that every arm is tried
//! again. A success is a point better than all earlier points. All arms receive all results, so
//! that each can continue from what another found.
//!
//! A batch consists of pieces, each from one arm, so that several arms contribute to it. Arms
//! without proposals are skipped. The search ends when no arm has a proposal.

use std::collections::{HashMap, VecDeque};

use super::explored::Explored;
use super::ranking::Cost;
use super::{Entry, Start, Strategy, TrialResult, Unsuitable, by_name};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "bandit";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "several strategies, chosen by their recent success",
    learns_from_others: true,
    make: |knobs, start| Ok(Box::new(Bandit::new(knobs, start, Parameters::default())?)),
};

/// The parameters of [`Bandit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The names of the strategies to choose from.
    pub arms: &'static [&'static str],
    /// The number of recent proposals that determine the credit.
    pub window: usize,
    /// The weight of the bonus for rarely used arms.
    pub exploration: f64,
    /// The number of points that one arm proposes at a time.
    pub piece: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { arms: &["guided", "gbfs", "opevo"], window: 128, exploration: 0.1, piece: 4 }
    }
}

/// A proposal whose result is known.
struct Proposal {
    arm: usize,
    succeeded: bool,
}

/// A strategy that alternates between other strategies.
pub struct Bandit<'a> {
    parameters: Parameters,
    /// All points that any arm proposed, because two arms can propose the same point.
    explored: Explored,
    arms: Vec<Box<dyn Strategy + 'a>>,
    /// The arm that proposed each open point.
    proposed_by: HashMap<Point, usize>,
    window: VecDeque<Proposal>,
    /// The best cost so far.
    best: Option<Cost>,
}

impl<'a> Bandit<'a> {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'a>, parameters: Parameters) -> Result<Bandit<'a>, Unsuitable> {
        // All arms have the same starting points, and each has its own seed.
        let arm = |(at, name): (usize, &&str)| {
            by_name(name, knobs, Start { seed: start.seed.wrapping_add(at as u64), ..start.clone() })
        };
        let arms = parameters.arms.iter().enumerate().map(arm).collect::<Result<_, _>>()?;
        Ok(Bandit {
            parameters,
            arms,
            explored: Explored::new(knobs, Start { points: Vec::new(), ..start }),
            proposed_by: HashMap::new(),
            window: VecDeque::new(),
            best: None,
        })
    }

    /// The arms, ordered by decreasing credit plus bonus.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.arms.len()).collect();
        let worth: Vec<f64> = order.iter().map(|arm| self.credit(*arm) + self.bonus(*arm)).collect();
        order.sort_by(|left, right| worth[*right].total_cmp(&worth[*left]));
        order
    }

    /// The area under the curve of an arm's successes, from 0 to 1.
    fn credit(&self, arm: usize) -> f64 {
        let own = self.window.iter().filter(|proposal| proposal.arm == arm);
        let (mut area, mut whole) = (0.0, 0.0);
        for (at, proposal) in own.enumerate() {
            let weight = at as f64 + 1.0;
            whole += weight;
            area += if proposal.succeeded { weight } else { 0.0 };
        }
        if whole > 0.0 { area / whole } else { 0.0 }
    }

    fn bonus(&self, arm: usize) -> f64 {
        let open = self.proposed_by.values().filter(|by| **by == arm).count();
        let own = open + self.window.iter().filter(|proposal| proposal.arm == arm).count();
        let all = self.proposed_by.len() + self.window.len();
        match own {
            0 => f64::INFINITY,
            _ => self.parameters.exploration * (2.0 * (all as f64).log2().max(0.0) / own as f64).sqrt(),
        }
    }

    /// Returns up to `count` new points of the first arm, in the order of credit, that proposes
    /// any.
    fn piece(&mut self, count: usize) -> Vec<Point> {
        for arm in self.order() {
            let points = self.arms[arm].propose(count);
            // If two arms propose a point, it is tried once and both receive the result.
            let new: Vec<Point> = points.into_iter().filter(|point| self.explored.visit(point)).collect();
            for point in &new {
                self.proposed_by.insert(point.clone(), arm);
            }
            if !new.is_empty() {
                return new;
            }
        }
        Vec::new()
    }
}

impl Strategy for Bandit<'_> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<Point> {
        let mut all = Vec::new();
        while all.len() < count {
            let piece = self.piece(self.parameters.piece.max(1).min(count - all.len()));
            if piece.is_empty() {
                break;
            }
            all.extend(piece);
        }
        all
    }

    fn report(&mut self, results: &[TrialResult]) {
        for result in results {
            let cost = self.explored.record(result);
            let better = cost.filter(|cost| self.best.is_none_or(|best| *cost < best));
            if let Some(arm) = self.proposed_by.remove(&result.point) {
                self.window.push_back(Proposal { arm, succeeded: better.is_some() });
                while self.window.len() > self.parameters.window.max(1) {
                    self.window.pop_front();
                }
            }
            self.best = better.or(self.best);
        }
        self.arms.iter_mut().for_each(|arm| arm.report(results));
    }
}
