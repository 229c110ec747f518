//! Evolution whose children are screened by boosted trees before they are tried.
//!
//! From OpEvo come the children of the best points, which change a few knobs by steps to
//! neighbouring values. From AutoTVM come the trees, which learn to rank the points that were
//! tried. The strategy breeds several times as many children as it tries, and the trees select.
//! Hence it stays near good points, as walks among neighbours do, and skips most bad points, as a
//! model can.
//!
//! 1. Parents are drawn from the best twelve points by rank; the best is drawn most often.
//! 2. A child takes its values from one parent, or each value from one of two parents. Then it
//!    takes some steps to neighbours.
//! 3. A child that stands for the same schedule as another child or a tried point is dropped. So
//!    are rejected children.
//! 4. The batch consists of the remaining children with the highest scores, and a few random ones.
//!
//! The trees see features of the loop nest and features of the point. The former apply to every
//! program; the latter express what was learned in this search. If trials of other programs are
//! given, a second set of trees learns from them. Their score of a point is one of its features. It
//! is also added to the point's score, with a weight that decreases with every trial. As long as
//! there are no parents, the batch is chosen from random points; if nothing is known at all, the
//! choice is random too.

use std::collections::HashSet;

use rand::RngExt;
use rand::seq::{IndexedRandom, IteratorRandom};

use super::explored::{Explored, Planner};
use super::learning::{FeatureSet, RankModel, ScheduleId};
use super::ranking::Ranking;
use super::{Entry, Start, Strategy, TrialResult};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "guided";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "children of the best points, selected by boosted trees",
    learns_from_others: true,
    make: |knobs, start| Ok(Box::new(Guided::new(knobs, start, Parameters::default()))),
};

/// The upper limit of the probability of a further step, so that every walk ends.
const MAX_STEP_PROBABILITY: f64 = 0.95;

/// The parameters of [`Guided`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// The number of points that are tried between two trainings.
    pub batch: usize,
    /// The number of children that are bred for each one that is tried.
    pub children_per_trial: usize,
    /// The number of best points that are parents.
    pub parents: usize,
    /// The probability that a child has two parents.
    pub crossover: f64,
    /// The probability that a child takes one more step.
    pub step_probability: f64,
    /// The share of a batch that is chosen at random.
    pub random_share: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters {
            batch: 8,
            children_per_trial: 4,
            parents: 12,
            crossover: 0.3,
            step_probability: 0.4,
            random_share: 0.1,
        }
    }
}

/// Evolution guided by boosted trees.
pub struct Guided<'a> {
    parameters: Parameters,
    explored: Explored,
    rank_model: RankModel<'a>,
    ranking: Ranking,
    /// The schedules of all tried points.
    tried_schedules: HashSet<ScheduleId>,
}

impl<'a> Guided<'a> {
    /// Creates a search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'a>, parameters: Parameters) -> Guided<'a> {
        let batch = parameters.batch.max(start.parallel_trials).max(1);
        Guided {
            parameters: Parameters { batch, ..parameters },
            rank_model: RankModel::new(knobs, &start, FeatureSet::Everything),
            explored: Explored::new(knobs, start),
            ranking: Ranking::default(),
            tried_schedules: HashSet::new(),
        }
    }

    /// Breeds children that were not visited before.
    fn breed(&mut self) -> Vec<Point> {
        let Parameters { batch, children_per_trial: bred, parents, .. } = self.parameters;
        let parents: Vec<Point> =
            self.ranking.iter().take(parents.max(1)).map(|(point, _)| point.clone()).collect();
        let mut children: Vec<Point> = Vec::new();
        let mut born = HashSet::new();
        for _ in 0..2 * batch * bred {
            if children.len() >= batch * bred {
                break;
            }
            let child = self.child(&parents);
            if !self.explored.is_visited(&child)
                && self.explored.knobs.allows(&child)
                && born.insert(child.clone())
            {
                children.push(child);
            }
        }
        children
    }

    /// Draws random points that were not visited before, for the time without parents.
    fn random_candidates(&mut self) -> Vec<Point> {
        let Parameters { batch, children_per_trial: bred, .. } = self.parameters;
        let Explored { knobs, rng, .. } = &mut self.explored;
        let drawn: Vec<Point> = (0..batch * bred).map_while(|_| knobs.sample(rng)).collect();
        drawn.into_iter().filter(|point| !self.explored.is_visited(point)).collect()
    }

    /// Keeps one child for each schedule that is new and not rejected.
    fn distinct_candidates(&mut self, mut children: Vec<Point>) -> Vec<Point> {
        let Guided { rank_model, tried_schedules: tried, .. } = self;
        let mut others = HashSet::new();
        children.retain(|child| {
            let meaning = rank_model.schedule_id(child);
            !tried.contains(&meaning) && others.insert(meaning)
        });
        rank_model.compute_features(&children);
        children.retain(|child| rank_model.score(child).is_finite());
        children
    }

    fn child(&mut self, parents: &[Point]) -> Point {
        let Parameters { crossover, step_probability: further, .. } = self.parameters;
        let mut child = self.draw_parent(parents).clone();
        if self.explored.with_probability(crossover) {
            let other = self.draw_parent(parents);
            for (own, other) in child.0.iter_mut().zip(&other.0) {
                if self.explored.with_probability(0.5) {
                    own.clone_from(other);
                }
            }
        }
        loop {
            let Explored { knobs, rng, .. } = &mut self.explored;
            let open_knobs = (0..knobs.len()).filter(|knob| knobs[*knob].domain.size() > 1);
            let Some(knob) = open_knobs.choose(rng) else { return child };
            if let Some(value) = knobs[knob].domain.neighbours(&child.0[knob]).choose(rng) {
                child.0[knob].clone_from(value);
            }
            if !self.explored.with_probability(further.min(MAX_STEP_PROBABILITY)) {
                return child;
            }
        }
    }

    /// Draws a parent: the better of two random ones.
    fn draw_parent<'p>(&mut self, parents: &'p [Point]) -> &'p Point {
        let rng = &mut self.explored.rng;
        let (one, other) = (rng.random_range(0..parents.len()), rng.random_range(0..parents.len()));
        &parents[one.min(other)]
    }

    /// Draws the batch: the children with the highest scores, and a few random ones.
    fn choose(&mut self, children: Vec<Point>) {
        let score = |child: &Point| self.rank_model.score(child);
        let mut ranked: Vec<(f32, Point)> =
            children.into_iter().map(|child| (score(&child), child)).collect();
        ranked.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
        while self.explored.queued() < self.parameters.batch && !ranked.is_empty() {
            let any = self.explored.with_probability(self.parameters.random_share);
            let at = if any { self.explored.rng.random_range(0..ranked.len()) } else { 0 };
            let (_, point) = ranked.remove(at);
            self.explored.queue_if_new(&point);
        }
    }
}

impl Planner for Guided<'_> {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    fn plan(&mut self) {
        // Rejected points alone teach nothing.
        let knows = !self.ranking.is_empty() || self.rank_model.has_prior();
        if knows && self.rank_model.learn() {
            let children = if self.ranking.is_empty() { self.random_candidates() } else { self.breed() };
            let children = self.distinct_candidates(children);
            self.choose(children);
        }
        if self.explored.queued() == 0 {
            while self.explored.queued() < self.parameters.batch && self.explored.queue_random() {}
        }
    }
}

impl Strategy for Guided<'_> {
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
                self.ranking.insert(result.point.clone(), cost);
            }
            if self.explored.is_visited(&result.point) {
                self.rank_model.record(&result.point, cost);
                self.tried_schedules.insert(self.rank_model.schedule_id(&result.point));
            }
        }
    }
}
