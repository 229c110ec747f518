//! The product of all choices, and points of it.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Knob, Value};

/// Open choices: a search space. With no knobs it has one point.
///
/// Choices are made independently, except for [rules](Knobs::rule): points that break one are part of the space, and are
/// never proposed.
#[derive(Clone, Default)]
pub struct Knobs {
    list: Vec<Knob>,
    rules: Vec<Rule>,
}

/// What the values of neighbouring knobs must have in common.
#[derive(Clone)]
struct Rule {
    knobs: Range<usize>,
    holds: Arc<dyn Fn(&Point) -> bool + Send + Sync>,
}

/// How often values are drawn until they keep a rule.
const DRAWS: usize = 20_000;
/// How often a walk is begun again until it ends where the rule is kept.
const WALKS: usize = 64;

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
    /// The product of these.
    pub fn new(list: Vec<Knob>) -> Knobs {
        Knobs { list, rules: Vec::new() }
    }

    /// Adds a knob.
    pub fn push(&mut self, knob: Knob) {
        self.list.push(knob);
    }

    /// From now on, only points for which this holds are proposed. It looks at these knobs alone, and no other rule looks
    /// at them.
    pub fn rule(&mut self, knobs: Range<usize>, holds: impl Fn(&Point) -> bool + Send + Sync + 'static) {
        self.rules.push(Rule { knobs, holds: Arc::new(holds) });
    }

    /// Whether a point keeps all rules.
    pub fn allows(&self, point: &Point) -> bool {
        self.rules.iter().all(|rule| (rule.holds)(point))
    }

    /// The share of the points that keep all rules, estimated rule by rule from so many draws.
    pub fn allowed_share(&self, draws: usize, seed: u64) -> f64 {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let Some(mut point) = self.nth(0) else { return 0.0 };
        let mut share = 1.0;
        for rule in &self.rules {
            let mut kept = 0;
            for _ in 0..draws {
                for knob in rule.knobs.clone() {
                    point.0[knob] = self.list[knob].domain.sample(&mut rng).unwrap_or(Value::Choice(0));
                }
                kept += usize::from((rule.holds)(&point));
            }
            share *= kept as f64 / draws.max(1) as f64;
        }
        share
    }

    /// How many points there are; the largest `u128` stands for that many or more.
    pub fn size(&self) -> u128 {
        let sizes = self.list.iter().map(|knob| knob.domain.size());
        // A product that stopped at the largest number still has to become 0 for an empty domain.
        if sizes.clone().any(|size| size == 0) { 0 } else { sizes.fold(1, u128::saturating_mul) }
    }

    /// The point at `index`, below [`size`](Knobs::size); the last knob changes fastest. The first point is the plain
    /// one: nothing is tiled, every order as it was.
    pub fn nth(&self, mut index: u128) -> Option<Point> {
        if index >= self.size() {
            return None;
        }
        let mut values = Vec::with_capacity(self.list.len());
        for knob in self.list.iter().rev() {
            let size = knob.domain.size();
            values.push(knob.domain.nth(index % size)?);
            index /= size;
        }
        values.reverse();
        Some(Point(values))
    }

    /// Any point that keeps the rules, all equally likely; none of an empty space. Where nearly all points break a rule,
    /// one that does may be found.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Option<Point> {
        let values = self.list.iter().map(|knob| knob.domain.sample(rng)).collect::<Option<Vec<Value>>>();
        let mut point = Point(values?);
        for rule in &self.rules {
            for _ in 0..DRAWS {
                if (rule.holds)(&point) {
                    break;
                }
                for knob in rule.knobs.clone() {
                    point.0[knob] = self.list[knob].domain.sample(rng)?;
                }
            }
        }
        Some(point)
    }

    /// Whether `point` is one of these.
    pub fn contains(&self, point: &Point) -> bool {
        self.list.len() == point.0.len()
            && self.list.iter().zip(&point.0).all(|(knob, value)| knob.domain.contains(value))
    }

    /// The steps to all neighbours of `point` that keep the rules: points that differ in one knob, by a neighbouring
    /// value.
    pub fn moves(&self, point: &Point) -> Vec<Move> {
        let knobs = self.list.iter().zip(&point.0).enumerate();
        let all = knobs.flat_map(|(knob, (it, value))| {
            it.domain.neighbours(value).into_iter().map(move |value| Move { knob, value })
        });
        if self.rules.is_empty() {
            return all.collect();
        }
        all.filter(|step| self.allows(&point.after(step.clone()))).collect()
    }

    /// All neighbours of `point`.
    pub fn neighbours(&self, point: &Point) -> Vec<Point> {
        self.moves(point).into_iter().map(|step| point.after(step)).collect()
    }

    /// A point whose every value is where a q-random walk from the value in `point` ends. Walks that break a rule are
    /// begun again.
    pub fn walk<R: Rng + ?Sized>(&self, point: &Point, q: f64, rng: &mut R) -> Point {
        let walked = |knob: usize, rng: &mut R| self.list[knob].domain.walk(&point.0[knob], q, rng);
        let mut found = Point((0..self.list.len()).map(|knob| walked(knob, rng)).collect());
        for rule in &self.rules {
            for _ in 0..WALKS {
                if (rule.holds)(&found) {
                    break;
                }
                for knob in rule.knobs.clone() {
                    found.0[knob] = walked(knob, rng);
                }
            }
        }
        found
    }

    /// How many features a point has.
    pub fn width(&self) -> usize {
        self.list.iter().map(|knob| knob.domain.width()).sum()
    }

    /// The features of `point`, [`width`](Knobs::width) numbers, for models that learn from points.
    pub fn features(&self, point: &Point) -> Vec<f32> {
        let mut features = Vec::with_capacity(self.width());
        for (knob, value) in self.list.iter().zip(&point.0) {
            knob.domain.features(value, &mut features);
        }
        features.resize(self.width(), 0.0);
        features
    }
}

impl Deref for Knobs {
    type Target = [Knob];

    fn deref(&self) -> &[Knob] {
        &self.list
    }
}

/// Of the knobs alone: rules are code.
impl PartialEq for Knobs {
    fn eq(&self, other: &Knobs) -> bool {
        self.list == other.list
    }
}

impl fmt::Debug for Knobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.list).finish()
    }
}

impl Point {
    /// The place in its list of a knob's value; 0 for other kinds of knob.
    pub fn choice(&self, knob: usize) -> usize {
        match self.0.get(knob) {
            Some(Value::Choice(at)) => *at,
            _ => 0,
        }
    }

    /// The factors of a knob's value; none for other kinds of knob.
    pub fn factors(&self, knob: usize) -> &[i64] {
        match self.0.get(knob) {
            Some(Value::Factors(factors)) => factors,
            _ => &[],
        }
    }

    /// The order of a knob's value; none for other kinds of knob.
    pub fn order(&self, knob: usize) -> &[usize] {
        match self.0.get(knob) {
            Some(Value::Order(order)) => order,
            _ => &[],
        }
    }

    /// Chooses another from a knob's list.
    pub fn set_choice(&mut self, knob: usize, at: usize) {
        if let Some(value) = self.0.get_mut(knob) {
            *value = Value::Choice(at);
        }
    }

    /// The point that `step` leads to.
    pub fn after(&self, step: Move) -> Point {
        let mut point = self.clone();
        if let Some(value) = point.0.get_mut(step.knob) {
            *value = step.value;
        }
        point
    }
}
