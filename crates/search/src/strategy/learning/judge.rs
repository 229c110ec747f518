//! Trees that judge points by what became of others in the same search, and in those of other
//! programs.

use std::collections::{HashMap, HashSet};

use super::{Group, Trees, experience};
use crate::knob::{Knobs, Point};
use crate::strategy::ranking::Cost;
use crate::strategy::{Features, Start};

/// What was told makes a difference once it is this part more: until then the trees stay as they
/// are. With few trials that is every batch, and with thousands learning does not take longer than
/// measuring.
const NEW: usize = 64;

/// After so many trials, what was learned elsewhere counts half.
const FADES: f32 = 64.0;

/// What a judge sees of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::strategy) enum Sight {
    /// Where the cost model thinks that the time of its loop nest goes; without that, the point's
    /// own numbers. What was tried elsewhere is learned from again with all that is told.
    Nests,
    /// Both. What was tried elsewhere is learned from once, by other trees. What they think of a
    /// nest is one of its numbers, and is added to the score, less with every trial: on a made-up
    /// landscape a search takes 41 trials with both, 49 and 50 with either, and 66 without.
    Everything,
}

/// What was tried, as rows of numbers.
pub(in crate::strategy) struct Judge<'a> {
    knobs: Knobs,
    features: Option<&'a dyn Features>,
    sight: Sight,
    /// What was tried elsewhere, and trees that have learned from it.
    before: Vec<Group>,
    prior: Option<Trees>,
    /// All that was told, with its cost; none where it is invalid.
    told: Vec<(Point, Option<Cost>)>,
    best: Option<Cost>,
    rows: HashMap<Point, Option<Row>>,
    /// The trees, and how much was told when they learned.
    trees: Option<Trees>,
    learned: usize,
}

/// The numbers of a point.
struct Row {
    numbers: Vec<f32>,
    /// So many of them are what is known of its nest.
    seen: usize,
}

/// What a point stands for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::strategy) enum Meaning {
    Known(u64),
    Itself(Point),
}

impl<'a> Judge<'a> {
    pub fn new(knobs: &Knobs, start: &Start<'a>, sight: Sight) -> Judge<'a> {
        let features = start.features;
        let mut before = features.map(|features| experience(knobs, features, start)).unwrap_or_default();
        let mut prior = None;
        if sight == Sight::Everything {
            prior = Trees::fit(&before.iter().collect::<Vec<&Group>>());
            before.clear();
        }
        Judge {
            knobs: knobs.clone(),
            features,
            sight,
            before,
            prior,
            told: Vec::new(),
            best: None,
            rows: HashMap::new(),
            trees: None,
            learned: 0,
        }
    }

    /// Whether it has learned from what was tried elsewhere.
    pub fn knows_others(&self) -> bool {
        self.prior.is_some()
    }

    /// Notes what became of a point.
    pub fn tell(&mut self, point: &Point, cost: Option<Cost>) {
        if let Some(cost) = cost {
            self.best = Some(self.best.map_or(cost, |best| best.min(cost)));
        }
        self.told.push((point.clone(), cost));
    }

    /// Learns from what was told. Whether it can judge then: where there is nothing to compare, it
    /// cannot.
    pub fn learn(&mut self) -> bool {
        if self.trees.is_none() || NEW * (self.told.len() - self.learned) >= self.told.len() {
            self.trees = self.fit();
            self.learned = self.told.len();
        }
        self.trees.is_some() || self.prior.is_some()
    }

    fn fit(&mut self) -> Option<Trees> {
        // What was only refused teaches nothing.
        if self.best.is_none() && self.before.is_empty() {
            return None;
        }
        let points: Vec<Point> = self.told.iter().map(|(point, _)| point.clone()).collect();
        self.look(&points);
        let mut own = Group::default();
        // Of points that look alike the first that works counts: of the others nothing is told.
        let mut works: HashSet<Vec<u32>> = HashSet::new();
        for (point, cost) in &self.told {
            let Some(Row { numbers, seen }) = self.row(point) else { continue };
            let is_again = works.contains(&bits(&numbers[..*seen]));
            if cost.is_some() {
                works.insert(bits(&numbers[..*seen]));
            } else if is_again {
                continue;
            }
            own.rows.push(numbers.clone());
            own.labels.push(Cost::goodness(*cost, self.best) as f32);
        }
        Trees::fit(&self.before.iter().chain([&own]).collect::<Vec<&Group>>())
    }

    /// Finds out the numbers of points.
    pub fn look(&mut self, points: &[Point]) {
        let new: Vec<Point> =
            points.iter().filter(|point| !self.rows.contains_key(*point)).cloned().collect();
        let nests = match self.features {
            Some(features) => features.of(&new),
            None => new.iter().map(|point| Some(self.knobs.features(point))).collect(),
        };
        for (point, nest) in new.into_iter().zip(nests) {
            let row = nest.map(|nest| self.completed(nest, &point));
            self.rows.insert(point, row);
        }
    }

    /// The row of a point whose nest has these numbers.
    fn completed(&self, nest: Vec<f32>, point: &Point) -> Row {
        let seen = nest.len();
        let mut numbers = nest;
        if self.sight == Sight::Everything && self.features.is_some() {
            let prior = self.prior.as_ref().map(|prior| prior.score(&numbers));
            numbers.extend(prior);
            numbers.extend(self.knobs.features(point));
        }
        Row { numbers, seen }
    }

    /// The numbers of a point that was looked at; none where it stands for nothing.
    fn row(&self, point: &Point) -> Option<&Row> {
        self.rows.get(point)?.as_ref()
    }

    /// How good a point should be that was looked at.
    pub fn score(&self, point: &Point) -> f32 {
        let Some(Row { numbers, seen }) = self.row(point) else { return f32::NEG_INFINITY };
        let own = self.trees.as_ref().map(|trees| trees.score(numbers));
        let prior = self.prior.as_ref().map(|prior| prior.score(&numbers[..*seen]));
        match (own, prior) {
            (None, None) => f32::NEG_INFINITY,
            (own, prior) => own.unwrap_or(0.0) + self.weight_of_prior() * prior.unwrap_or(0.0),
        }
    }

    /// What was learned elsewhere counts less the more was learned here.
    fn weight_of_prior(&self) -> f32 {
        FADES / (FADES + self.learned as f32)
    }

    /// What a point stands for, where somebody knows; otherwise itself.
    pub fn meaning(&self, point: &Point) -> Meaning {
        match self.features.and_then(|features| features.meaning(point)) {
            Some(known) => Meaning::Known(known),
            None => Meaning::Itself(point.clone()),
        }
    }
}

fn bits(row: &[f32]) -> Vec<u32> {
    row.iter().map(|number| number.to_bits()).collect()
}
