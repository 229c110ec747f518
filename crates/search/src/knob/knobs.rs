//! Defines the search space as the product of all knobs ([`Knobs`]), its elements ([`Point`]), and
//! the steps between neighbouring points ([`Move`]).

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::{Knob, Value};

/// A search space: the product of open choices. Without knobs, it has exactly one point.
///
/// Knobs are independent of each other, except for [rules](Knobs::add_rule). Points that violate a
/// rule belong to the space but are never proposed.
#[derive(Clone, Default)]
pub struct Knobs {
    list: Vec<Knob>,
    rules: Vec<Rule>,
}

/// A condition on the values of a contiguous range of knobs.
#[derive(Clone)]
struct Rule {
    knobs: Range<usize>,
    holds: Arc<dyn Fn(&Point) -> bool + Send + Sync>,
}

/// The largest number of draws of the knobs of one rule until their values satisfy the rule.
const DRAWS: usize = 20_000;
/// The largest number of random walks of the knobs of one rule until their values satisfy the rule.
const WALKS: usize = 64;

/// One value for each knob, in the order of the knobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(pub Vec<Value>);

/// A step to a neighbour: a new value for one knob.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The index of the knob.
    pub knob: usize,
    /// The knob's new value.
    pub value: Value,
}

impl Knobs {
    /// Creates the product of these knobs, without rules.
    pub fn new(list: Vec<Knob>) -> Knobs {
        Knobs { list, rules: Vec::new() }
    }

    /// Adds a knob.
    pub fn push(&mut self, knob: Knob) {
        self.list.push(knob);
    }

    /// Adds a rule: only points for which `holds` returns true are proposed from now on. `holds`
    /// may read only the values of `knobs`, and no other rule may read these.
    pub fn add_rule(&mut self, knobs: Range<usize>, holds: impl Fn(&Point) -> bool + Send + Sync + 'static) {
        self.rules.push(Rule { knobs, holds: Arc::new(holds) });
    }

    /// Returns true when the point satisfies all rules.
    pub fn allows(&self, point: &Point) -> bool {
        self.rules.iter().all(|rule| (rule.holds)(point))
    }

    /// Estimates the share of all points that satisfy the rules, with `draws` random draws for each
    /// rule.
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

    /// The number of points. `u128::MAX` stands for that number or more.
    pub fn size(&self) -> u128 {
        let sizes = self.list.iter().map(|knob| knob.domain.size());
        // A saturated product would not become 0 for an empty domain that comes later.
        if sizes.clone().any(|size| size == 0) { 0 } else { sizes.fold(1, u128::saturating_mul) }
    }

    /// The decimal logarithm of the number of points; negative infinity if there is none.
    pub fn size_log10(&self) -> f64 {
        self.list.iter().map(|knob| (knob.domain.size() as f64).log10()).sum()
    }

    /// Returns the point at `index`, which must be below [`size`](Knobs::size). The last knob
    /// changes fastest. Point 0 is the trivial one: no loop is tiled, and every order is the
    /// original order.
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

    /// Draws a point that satisfies the rules, with equal probability for all such points. Returns
    /// `None` if the space is empty. If nearly all points violate a rule, the drawn point may
    /// violate it too.
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

    /// Returns true when `point` belongs to this space, whether or not it satisfies the rules.
    pub fn contains(&self, point: &Point) -> bool {
        self.list.len() == point.0.len()
            && self.list.iter().zip(&point.0).all(|(knob, value)| knob.domain.contains(value))
    }

    /// Returns the steps to all neighbours of `point` that satisfy the rules. A neighbour differs
    /// in one knob, whose values are neighbours in the knob's domain.
    pub fn moves(&self, point: &Point) -> Vec<Move> {
        let knobs = self.list.iter().zip(&point.0).enumerate();
        let all = knobs.flat_map(|(knob, (it, value))| {
            it.domain.neighbours(value).into_iter().map(move |value| Move { knob, value })
        });
        if self.rules.is_empty() {
            return all.collect();
        }
        all.filter(|step| self.allows(&point.with_move(step.clone()))).collect()
    }

    /// Returns all neighbours of `point` that satisfy the rules.
    pub fn neighbours(&self, point: &Point) -> Vec<Point> {
        self.moves(point).into_iter().map(|step| point.with_move(step)).collect()
    }

    /// Performs a q-random walk from the value of each knob in `point` and returns the point of all
    /// end values. Knobs whose end values violate a rule repeat their walks, at most `WALKS` times.
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

    /// The number of features of a point.
    pub fn width(&self) -> usize {
        self.list.iter().map(|knob| knob.domain.width()).sum()
    }

    /// The features of `point`, which are [`width`](Knobs::width) numbers, as input for models that
    /// learn from points.
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

/// Compares the knobs only, because the rules are closures.
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
    /// The index that the knob's value selects from its list; 0 if the knob has no list.
    pub fn choice(&self, knob: usize) -> usize {
        match self.0.get(knob) {
            Some(Value::Choice(at)) => *at,
            _ => 0,
        }
    }

    /// The factors that the knob has as its value; empty if the knob is not a factorisation.
    pub fn factors(&self, knob: usize) -> &[i64] {
        match self.0.get(knob) {
            Some(Value::Factors(factors)) => factors,
            _ => &[],
        }
    }

    /// The order that the knob has as its value; empty if the knob is not a permutation.
    pub fn order(&self, knob: usize) -> &[usize] {
        match self.0.get(knob) {
            Some(Value::Order(order)) => order,
            _ => &[],
        }
    }

    /// Makes the knob select the entry at `at` of its list.
    pub fn set_choice(&mut self, knob: usize, at: usize) {
        if let Some(value) = self.0.get_mut(knob) {
            *value = Value::Choice(at);
        }
    }

    /// Returns the point that `step` leads to.
    pub fn with_move(&self, step: Move) -> Point {
        let mut point = self.clone();
        if let Some(value) = point.0.get_mut(step.knob) {
            *value = step.value;
        }
        point
    }
}
