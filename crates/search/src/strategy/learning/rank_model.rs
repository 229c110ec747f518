//! Scores points by boosted trees ([`RankModel`]). The trees learn from the results of other points
//! in the same search and in searches of other programs.

use std::collections::{HashMap, HashSet};

use super::{Group, Trees, experience_groups};
use crate::knob::{Knobs, Point};
use crate::strategy::ranking::Cost;
use crate::strategy::{Features, Start};

/// The trees are trained again when the number of results has grown by one part in this many. With
/// few trials, that is every batch. With thousands of trials, training does not take longer than
/// measuring.
const RETRAIN_FRACTION: usize = 64;

/// The number of trials after which the score learned from other programs has half its weight.
const PRIOR_HALF_LIFE: f32 = 64.0;

/// Which features of a point the trees see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::strategy) enum FeatureSet {
    /// How the cost model divides the time of the loop nest, or the features of the point if that
    /// is not available. The trials of other programs take part in every training.
    Nests,
    /// The features of both the loop nest and the point. Separate trees learn once from the trials
    /// of other programs. Their score of a nest is one of its features. It is also added to the
    /// point's score, with a weight that decreases with every trial. On a synthetic landscape a
    /// search takes 41 trials with both, 49 and 50 trials with one of them, and 66 without.
    Everything,
}

/// The results of a search as training data, and the trees trained with them.
pub(in crate::strategy) struct RankModel<'a> {
    knobs: Knobs,
    features: Option<&'a dyn Features>,
    feature_set: FeatureSet,
    /// The trials of other programs, and the trees that have learned from them.
    experience: Vec<Group>,
    prior: Option<Trees>,
    /// All results with their costs; `None` for invalid points.
    results: Vec<(Point, Option<Cost>)>,
    best: Option<Cost>,
    rows: HashMap<Point, Option<Row>>,
    /// The trees, and the number of results when they were trained.
    trees: Option<Trees>,
    trained_results: usize,
}

/// The features of a point.
struct Row {
    numbers: Vec<f32>,
    /// The number of leading features that describe the loop nest.
    nest_features: usize,
}

/// The identity of the schedule that a point stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::strategy) enum ScheduleId {
    Known(u64),
    Point(Point),
}

impl<'a> RankModel<'a> {
    pub fn new(knobs: &Knobs, start: &Start<'a>, feature_set: FeatureSet) -> RankModel<'a> {
        let features = start.features;
        let mut before =
            features.map(|features| experience_groups(knobs, features, start)).unwrap_or_default();
        let mut prior = None;
        if feature_set == FeatureSet::Everything {
            prior = Trees::fit(&before.iter().collect::<Vec<&Group>>());
            before.clear();
        }
        RankModel {
            knobs: knobs.clone(),
            features,
            feature_set,
            experience: before,
            prior,
            results: Vec::new(),
            best: None,
            rows: HashMap::new(),
            trees: None,
            trained_results: 0,
        }
    }

    /// Returns true when trees have learned from the trials of other programs.
    pub fn has_prior(&self) -> bool {
        self.prior.is_some()
    }

    /// Records the result of a point.
    pub fn record(&mut self, point: &Point, cost: Option<Cost>) {
        if let Some(cost) = cost {
            self.best = Some(self.best.map_or(cost, |best| best.min(cost)));
        }
        self.results.push((point.clone(), cost));
    }

    /// Trains the trees if enough new results are known. Returns true if points can be scored
    /// afterwards, which needs results to compare.
    pub fn learn(&mut self) -> bool {
        if self.trees.is_none()
            || RETRAIN_FRACTION * (self.results.len() - self.trained_results) >= self.results.len()
        {
            self.trees = self.fit();
            self.trained_results = self.results.len();
        }
        self.trees.is_some() || self.prior.is_some()
    }

    fn fit(&mut self) -> Option<Trees> {
        // Rejected points alone teach nothing.
        if self.best.is_none() && self.experience.is_empty() {
            return None;
        }
        let points: Vec<Point> = self.results.iter().map(|(point, _)| point.clone()).collect();
        self.compute_features(&points);
        let mut own = Group::default();
        // A point without a cost whose nest equals that of a valid point is a duplicate, not an
        // invalid point. Skip it.
        let mut works: HashSet<Vec<u32>> = HashSet::new();
        for (point, cost) in &self.results {
            let Some(Row { numbers, nest_features: seen }) = self.row(point) else { continue };
            let is_again = works.contains(&bits(&numbers[..*seen]));
            if cost.is_some() {
                works.insert(bits(&numbers[..*seen]));
            } else if is_again {
                continue;
            }
            own.rows.push(numbers.clone());
            own.labels.push(Cost::relative_fitness(*cost, self.best) as f32);
        }
        Trees::fit(&self.experience.iter().chain([&own]).collect::<Vec<&Group>>())
    }

    /// Computes the features of points.
    pub fn compute_features(&mut self, points: &[Point]) {
        let new: Vec<Point> =
            points.iter().filter(|point| !self.rows.contains_key(*point)).cloned().collect();
        let nests = match self.features {
            Some(features) => features.compute(&new),
            None => new.iter().map(|point| Some(self.knobs.features(point))).collect(),
        };
        for (point, nest) in new.into_iter().zip(nests) {
            let row = nest.map(|nest| self.complete_row(nest, &point));
            self.rows.insert(point, row);
        }
    }

    /// The row of a point whose loop nest has the features `nest`.
    fn complete_row(&self, nest: Vec<f32>, point: &Point) -> Row {
        let seen = nest.len();
        let mut numbers = nest;
        if self.feature_set == FeatureSet::Everything && self.features.is_some() {
            let prior = self.prior.as_ref().map(|prior| prior.score(&numbers));
            numbers.extend(prior);
            numbers.extend(self.knobs.features(point));
        }
        Row { numbers, nest_features: seen }
    }

    /// The features of a point that was passed to `compute_features`; `None` if the point has no
    /// schedule.
    fn row(&self, point: &Point) -> Option<&Row> {
        self.rows.get(point)?.as_ref()
    }

    /// The score of a point that was passed to `compute_features`; higher is better.
    pub fn score(&self, point: &Point) -> f32 {
        let Some(Row { numbers, nest_features: seen }) = self.row(point) else { return f32::NEG_INFINITY };
        let own = self.trees.as_ref().map(|trees| trees.score(numbers));
        let prior = self.prior.as_ref().map(|prior| prior.score(&numbers[..*seen]));
        match (own, prior) {
            (None, None) => f32::NEG_INFINITY,
            (own, prior) => own.unwrap_or(0.0) + self.prior_weight() * prior.unwrap_or(0.0),
        }
    }

    /// The weight of the score learned from other programs, which decreases with the number of
    /// results of this search.
    fn prior_weight(&self) -> f32 {
        PRIOR_HALF_LIFE / (PRIOR_HALF_LIFE + self.trained_results as f32)
    }

    /// The identity of the schedule that a point stands for, or the point itself if that is
    /// unknown.
    pub fn schedule_id(&self, point: &Point) -> ScheduleId {
        match self.features.and_then(|features| features.schedule_id(point)) {
            Some(known) => ScheduleId::Known(known),
            None => ScheduleId::Point(point.clone()),
        }
    }
}

fn bits(row: &[f32]) -> Vec<u32> {
    row.iter().map(|number| number.to_bits()).collect()
}
