//! Knobs: the choices that a schedule leaves open, as OpEvo (section 3) sorts them.
//!
//! | domain | values | neighbours |
//! |---|---|---|
//! | [`Factorisation`] | a loop's extent as an ordered product | a prime factor moved from one place to another |
//! | [`Permutation`] | an order of loops | two elements exchanged |
//! | [`Ordinal`] | one of several numbers | the next smaller and the next larger |
//! | [`Categorical`] | one of several names | all others |
//!
//! Being neighbours is mutual, no value is its own neighbour, and every value can be reached from every other. Each kind
//! has its file with the same few functions; [`Domain`] passes on to them. [`Knobs`] is the product of all choices and
//! [`Point`] one element of it; `text.rs` is how points read.
//!
//! Domains may be empty (an extent of 0, a list of nothing); then so is the product. Sizes are exact as far as a `u128`
//! goes, and stop at its largest value.

mod categorical;
mod direction;
mod factorisation;
mod knobs;
mod ordinal;
mod permutation;
mod text;
mod walk;

pub use categorical::Categorical;
pub use factorisation::{Divisors, Factorisation};
pub use knobs::{Knobs, Move, Point};
pub use ordinal::Ordinal;
pub use permutation::Permutation;
pub use text::{ParseError, Printed};

use rand::{Rng, RngExt};

/// One open choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// What the choice is called; without white space, so that points can be read back.
    pub name: String,
    /// What there is to choose from.
    pub domain: Domain,
}

/// What there is to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// The extents of the loops that one loop is split into.
    Factorisation(Factorisation),
    /// An order.
    Permutation(Permutation),
    /// Numbers, of which close ones behave alike.
    Ordinal(Ordinal),
    /// Names that have nothing to do with each other.
    Categorical(Categorical),
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Factors, outermost first.
    Factors(Vec<i64>),
    /// Elements in their order: each number below the count, once.
    Order(Vec<usize>),
    /// The place in the list of an ordinal or categorical domain.
    Choice(usize),
}

impl Knob {
    /// A loop of `extent` iterations as `parts` loops.
    pub fn factorisation(name: impl Into<String>, extent: i64, parts: usize, divisors: Divisors) -> Knob {
        Knob { name: name.into(), domain: Domain::Factorisation(Factorisation::new(extent, parts, divisors)) }
    }

    /// An order of `elements` things.
    pub fn permutation(name: impl Into<String>, elements: usize) -> Knob {
        Knob { name: name.into(), domain: Domain::Permutation(Permutation(elements)) }
    }

    /// One of `values`.
    pub fn ordinal(name: impl Into<String>, values: impl IntoIterator<Item = i64>) -> Knob {
        Knob { name: name.into(), domain: Domain::Ordinal(Ordinal::new(values)) }
    }

    /// One of `choices`.
    pub fn categorical<C: Into<String>>(
        name: impl Into<String>,
        choices: impl IntoIterator<Item = C>,
    ) -> Knob {
        Knob { name: name.into(), domain: Domain::Categorical(Categorical::new(choices)) }
    }
}

impl Domain {
    /// How many values there are.
    pub fn size(&self) -> u128 {
        match self {
            Domain::Factorisation(it) => it.size(),
            Domain::Permutation(it) => it.size(),
            Domain::Ordinal(it) => it.size(),
            Domain::Categorical(it) => it.size(),
        }
    }

    /// The value at `index`, below [`size`](Domain::size). The first is the plain one: a loop that is not split, the order
    /// as it was, the smallest number, the first name.
    pub fn nth(&self, index: u128) -> Option<Value> {
        match self {
            Domain::Factorisation(it) => it.nth(index).map(Value::Factors),
            Domain::Permutation(it) => it.nth(index).map(Value::Order),
            Domain::Ordinal(it) => choice(index, it.size()),
            Domain::Categorical(it) => choice(index, it.size()),
        }
    }

    /// Any value, all equally likely; none of an empty domain.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Option<Value> {
        match self {
            // There are more orders of 35 things than a `u128` can count.
            Domain::Permutation(it) => Some(Value::Order(it.shuffled(rng))),
            _ => match self.size() {
                0 => None,
                size => self.nth(rng.random_range(0..size)),
            },
        }
    }

    /// Whether `value` is one of these.
    pub fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Domain::Factorisation(it), Value::Factors(factors)) => it.contains(factors),
            (Domain::Permutation(it), Value::Order(order)) => it.contains(order),
            (Domain::Ordinal(it), Value::Choice(at)) => (*at as u128) < it.size(),
            (Domain::Categorical(it), Value::Choice(at)) => (*at as u128) < it.size(),
            _ => false,
        }
    }

    /// The values next to `value`, each once and in a fixed order; none where `value` is not one of these.
    pub fn neighbours(&self, value: &Value) -> Vec<Value> {
        match (self, value) {
            (Domain::Factorisation(it), Value::Factors(factors)) => {
                it.neighbours(factors).into_iter().map(Value::Factors).collect()
            }
            (Domain::Permutation(it), Value::Order(order)) => {
                it.neighbours(order).into_iter().map(Value::Order).collect()
            }
            (Domain::Ordinal(it), Value::Choice(at)) => {
                it.neighbours(*at).into_iter().map(Value::Choice).collect()
            }
            (Domain::Categorical(it), Value::Choice(at)) => {
                it.neighbours(*at).into_iter().map(Value::Choice).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How many features a value has.
    pub fn width(&self) -> usize {
        match self {
            Domain::Factorisation(it) => it.width(),
            Domain::Permutation(it) => it.width(),
            Domain::Ordinal(it) => it.width(),
            Domain::Categorical(it) => it.width(),
        }
    }

    /// Adds the features of `value`, [`width`](Domain::width) numbers, for models that learn from points. A value that is
    /// not one of these has zeros.
    pub fn features(&self, value: &Value, features: &mut Vec<f32>) {
        let end = features.len() + self.width();
        if self.contains(value) {
            match (self, value) {
                (Domain::Factorisation(it), Value::Factors(factors)) => it.features(factors, features),
                (Domain::Permutation(it), Value::Order(order)) => it.features(order, features),
                (Domain::Ordinal(it), Value::Choice(at)) => it.features(*at, features),
                (Domain::Categorical(it), Value::Choice(at)) => it.features(*at, features),
                _ => {}
            }
        }
        features.resize(end, 0.0);
    }
}

fn choice(index: u128, size: u128) -> Option<Value> {
    (index < size).then_some(Value::Choice(index as usize))
}
