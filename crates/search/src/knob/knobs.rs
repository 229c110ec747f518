//! The product of all choices, and points of it.

use rand::Rng;

use super::{Knob, Value};

/// Open choices that are made independently: a search space. With no knobs it has one point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Knobs(pub Vec<Knob>);

/// One value for each knob, in the order of the knobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(pub Vec<Value>);

/// A step to a neighbour: another value for one knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which knob.
    pub knob: usize,
    /// Its new value.
    pub value: Value,
}

impl Knobs {
    /// How many points there are; the largest `u128` stands for that many or more.
    pub fn size(&self) -> u128 {
        let sizes = self.0.iter().map(|knob| knob.domain.size());
        // A product that stopped at the largest number still has to become 0 for an empty domain.
        if sizes.clone().any(|size| size == 0) { 0 } else { sizes.fold(1, u128::saturating_mul) }
    }

    /// The point at `index`, below [`size`](Knobs::size); the last knob changes fastest. The first point is the plain
    /// one: nothing is tiled, every order as it was.
    pub fn nth(&self, mut index: u128) -> Option<Point> {
        if index >= self.size() {
            return None;
        }
        let mut values = Vec::with_capacity(self.0.len());
        for knob in self.0.iter().rev() {
            let size = knob.domain.size();
            values.push(knob.domain.nth(index % size)?);
            index /= size;
        }
        values.reverse();
        Some(Point(values))
    }

    /// Any point, all equally likely; none of an empty space.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Option<Point> {
        self.0.iter().map(|knob| knob.domain.sample(rng)).collect::<Option<Vec<Value>>>().map(Point)
    }

    /// Whether `point` is one of these.
    pub fn contains(&self, point: &Point) -> bool {
        self.0.len() == point.0.len()
            && self.0.iter().zip(&point.0).all(|(knob, value)| knob.domain.contains(value))
    }

    /// The steps to all neighbours of `point`: points that differ in one knob, by a neighbouring value.
    pub fn moves(&self, point: &Point) -> Vec<Move> {
        let knobs = self.0.iter().zip(&point.0).enumerate();
        knobs
            .flat_map(|(knob, (it, value))| {
                it.domain.neighbours(value).into_iter().map(move |value| Move { knob, value })
            })
            .collect()
    }

    /// All neighbours of `point`.
    pub fn neighbours(&self, point: &Point) -> Vec<Point> {
        self.moves(point).into_iter().map(|step| point.after(step)).collect()
    }

    /// A point whose every value is where a q-random walk from the value in `point` ends.
    pub fn walk<R: Rng + ?Sized>(&self, point: &Point, q: f64, rng: &mut R) -> Point {
        Point(self.0.iter().zip(&point.0).map(|(knob, value)| knob.domain.walk(value, q, rng)).collect())
    }

    /// How many features a point has.
    pub fn width(&self) -> usize {
        self.0.iter().map(|knob| knob.domain.width()).sum()
    }

    /// The features of `point`, [`width`](Knobs::width) numbers, for models that learn from points.
    pub fn features(&self, point: &Point) -> Vec<f32> {
        let mut features = Vec::with_capacity(self.width());
        for (knob, value) in self.0.iter().zip(&point.0) {
            knob.domain.features(value, &mut features);
        }
        features.resize(self.width(), 0.0);
        features
    }
}

impl Point {
    /// The point that `step` leads to.
    pub fn after(&self, step: Move) -> Point {
        let mut point = self.clone();
        if let Some(value) = point.0.get_mut(step.knob) {
            *value = step.value;
        }
        point
    }
}
