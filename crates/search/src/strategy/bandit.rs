//! A bandit over strategies, which gives each its share of the budget by what it has delivered.
//!
//! As OpenTuner does it (Ansel et al. 2014, section 4.2): an arm's credit is the area under the
//! curve of its successes in a window of the last proposals, where a late success counts more than
//! an early one, and a bonus keeps arms from being forgotten. A success is a point better than all
//! before. All arms are told all results, so that what one finds is a start for the others.
//!
//! A batch is asked for in pieces, from one arm each, so that several have their turn in it. Arms
//! that have nothing to ask for are passed over; when none has, the search is over.

use std::collections::{HashMap, VecDeque};

use super::explored::Explored;
use super::ranking::Cost;
use super::{Start, Strategy, Told, Unsuitable, by_name};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "bandit";

/// The parameters of [`Bandit`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The strategies to choose from.
    pub arms: &'static [&'static str],
    /// Proposals that credit is given for.
    pub window: usize,
    /// What it is worth to try an arm that was hardly tried.
    pub exploration: f64,
    /// Points that are asked for at a time.
    pub piece: usize,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { arms: &["guided", "gbfs", "opevo"], window: 128, exploration: 0.1, piece: 4 }
    }
}

/// A proposal that was told.
struct Proposal {
    arm: usize,
    succeeded: bool,
}

/// Strategies that take turns.
pub struct Bandit<'a> {
    parameters: Parameters,
    /// What was asked for at all: two arms may think of the same point.
    explored: Explored,
    arms: Vec<Box<dyn Strategy + 'a>>,
    /// Who has asked for a point that is open.
    asked_by: HashMap<Point, usize>,
    window: VecDeque<Proposal>,
    /// The best cost so far.
    best: Option<Cost>,
}

impl<'a> Bandit<'a> {
    /// A search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'a>, parameters: Parameters) -> Result<Bandit<'a>, Unsuitable> {
        // All have the same points to start from, and a seed of their own.
        let arm = |(at, name): (usize, &&str)| {
            by_name(name, knobs, Start { seed: start.seed.wrapping_add(at as u64), ..start.clone() })
        };
        let arms = parameters.arms.iter().enumerate().map(arm).collect::<Result<_, _>>()?;
        Ok(Bandit {
            parameters,
            arms,
            explored: Explored::new(knobs, Start { points: Vec::new(), ..start }),
            asked_by: HashMap::new(),
            window: VecDeque::new(),
            best: None,
        })
    }

    /// Arms by their credit, the most first.
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
        let open = self.asked_by.values().filter(|by| **by == arm).count();
        let own = open + self.window.iter().filter(|proposal| proposal.arm == arm).count();
        let all = self.asked_by.len() + self.window.len();
        match own {
            0 => f64::INFINITY,
            _ => self.parameters.exploration * (2.0 * (all as f64).log2().max(0.0) / own as f64).sqrt(),
        }
    }

    /// Up to `count` points of the arm that has most credit and something to ask for.
    fn piece(&mut self, count: usize) -> Vec<Point> {
        for arm in self.order() {
            let points = self.arms[arm].ask(count);
            // What another arm has asked for is told to both.
            let new: Vec<Point> = points.into_iter().filter(|point| self.explored.visit(point)).collect();
            for point in &new {
                self.asked_by.insert(point.clone(), arm);
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

    fn ask(&mut self, count: usize) -> Vec<Point> {
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

    fn tell(&mut self, results: &[Told]) {
        for told in results {
            let cost = self.explored.told(told);
            let better = cost.filter(|cost| self.best.is_none_or(|best| *cost < best));
            if let Some(arm) = self.asked_by.remove(&told.point) {
                self.window.push_back(Proposal { arm, succeeded: better.is_some() });
                while self.window.len() > self.parameters.window.max(1) {
                    self.window.pop_front();
                }
            }
            self.best = better.or(self.best);
        }
        self.arms.iter_mut().for_each(|arm| arm.tell(results));
    }
}
