//! Trees that judge points by what became of others in the same search, and in those of other programs.

use std::collections::HashMap;

use super::{Group, Trees, experience};
use crate::knob::{Knobs, Point};
use crate::strategy::ranking::Cost;
use crate::strategy::{Features, Start};

/// What a judge sees of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::strategy) enum Sight {
    /// Where the cost model thinks that the time of its loop nest goes; without that, the point's own numbers.
    Nests,
    /// Both.
    NestsAndPoints,
}

/// What was tried, as rows of numbers.
pub(in crate::strategy) struct Judge<'a> {
    knobs: Knobs,
    features: Option<&'a dyn Features>,
    /// Numbers of the point itself that rows end with.
    own: usize,
    /// What was learned elsewhere.
    before: Vec<Group>,
    /// All that was told, with its cost; none where it is invalid.
    told: Vec<(Point, Option<Cost>)>,
    best: Option<Cost>,
    rows: HashMap<Point, Option<Vec<f32>>>,
}

impl<'a> Judge<'a> {
    pub fn new(knobs: &Knobs, start: &Start<'a>, sight: Sight) -> Judge<'a> {
        let features = start.features;
        let own = if features.is_none() || sight == Sight::NestsAndPoints { knobs.width() } else { 0 };
        let mut before = features.map(|features| experience(knobs, features, start)).unwrap_or_default();
        // What points of other spaces were made of says nothing here.
        for row in before.iter_mut().flat_map(|group| &mut group.rows) {
            row.resize(row.len() + own, 0.0);
        }
        let (knobs, rows) = (knobs.clone(), HashMap::new());
        Judge { knobs, features, own, before, told: Vec::new(), best: None, rows }
    }

    /// Notes what became of a point.
    pub fn tell(&mut self, point: &Point, cost: Option<Cost>) {
        if let Some(cost) = cost {
            self.best = Some(self.best.map_or(cost, |best| best.min(cost)));
        }
        self.told.push((point.clone(), cost));
    }

    /// What was learned by now; nothing where there is nothing to compare. Rows that several points have are as good as the
    /// best of them: the others stand for the same, and were not tried again.
    pub fn trees(&mut self) -> Option<Trees> {
        let points: Vec<Point> = self.told.iter().map(|(point, _)| point.clone()).collect();
        self.look(&points);
        let mut own = Group::default();
        let mut places: HashMap<Vec<u32>, usize> = HashMap::new();
        for (point, cost) in &self.told {
            let Some(row) = self.row(point) else { continue };
            let label = Cost::goodness(*cost, self.best) as f32;
            let at = *places.entry(bits(row)).or_insert(own.rows.len());
            if at == own.rows.len() {
                own.rows.push(row.to_vec());
                own.labels.push(label);
            }
            own.labels[at] = own.labels[at].max(label);
        }
        Trees::fit(&self.before.iter().chain([&own]).collect::<Vec<&Group>>())
    }

    /// Finds out the numbers of points.
    pub fn look(&mut self, points: &[Point]) {
        let new: Vec<Point> =
            points.iter().filter(|point| !self.rows.contains_key(*point)).cloned().collect();
        let mut rows = match self.features {
            Some(features) => features.of(&new),
            None => vec![Some(Vec::new()); new.len()],
        };
        for (row, point) in rows.iter_mut().zip(&new) {
            if let (Some(row), true) = (row, self.own > 0) {
                row.extend(self.knobs.features(point));
            }
        }
        self.rows.extend(new.into_iter().zip(rows));
    }

    /// The numbers of a point that was looked at; none where it stands for nothing.
    fn row(&self, point: &Point) -> Option<&[f32]> {
        self.rows.get(point)?.as_deref()
    }

    /// How good a point should be that was looked at.
    pub fn score(&self, trees: &Trees, point: &Point) -> f32 {
        self.row(point).map_or(f32::NEG_INFINITY, |row| trees.score(row))
    }

    /// What a point that was looked at stands for, as far as that can be seen: points of which it is the same are the same
    /// to the machine.
    pub fn likeness(&self, point: &Point) -> Option<Vec<u32>> {
        let row = self.row(point)?;
        let seen = if self.features.is_some() { row.len() - self.own } else { row.len() };
        Some(bits(&row[..seen]))
    }
}

fn bits(row: &[f32]) -> Vec<u32> {
    row.iter().map(|number| number.to_bits()).collect()
}
