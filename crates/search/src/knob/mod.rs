//! Defines knobs: the choices that a schedule leaves open, classified as in OpEvo (section 3).
//!
//! | domain | values | neighbours |
//! |---|---|---|
//! | [`Factorisation`] | a loop's extent as an ordered product | a prime moved from one factor to another |
//! | [`Permutation`] | an order of loops | two elements exchanged |
//! | [`Ordinal`] | one of several numbers | the next smaller and the next larger number |
//! | [`Categorical`] | one of several names | all other names |
//!
//! The neighbour relation is symmetric, no value is its own neighbour, and a path of neighbours
//! connects any two values. Each kind of domain has its own file with the same few functions, and
//! [`Domain`] dispatches to them. [`Knobs`] is the product of all knobs, and [`Point`] is one
//! element of this product. `text.rs` defines the text form of points.
//!
//! Domains may be empty (an extent of 0, an empty list), and then the product is empty too. Sizes
//! are exact up to `u128::MAX` and saturate there.

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
pub use text::{ParseError, PrintedPoint};

use rand::{Rng, RngExt};

/// One open choice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Knob {
    /// The name of the choice. It must not contain white space, so that the text form of points can
    /// be parsed.
    pub name: String,
    /// The values to choose from.
    pub domain: Domain,
}

/// The set of values that a knob can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Domain {
    /// The extents of the loops that one loop is split into.
    Factorisation(Factorisation),
    /// An order of elements.
    Permutation(Permutation),
    /// Numbers, where close numbers behave alike.
    Ordinal(Ordinal),
    /// Unordered names.
    Categorical(Categorical),
}

/// A chosen value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Factors, outermost first.
    Factors(Vec<i64>),
    /// The elements in their order: each number below the count occurs once.
    Order(Vec<usize>),
    /// An index into the list of an ordinal or categorical domain.
    Choice(usize),
}

impl Knob {
    /// A knob that splits a loop of `extent` iterations into `parts` loops.
    pub fn factorisation(name: impl Into<String>, extent: i64, parts: usize, divisors: Divisors) -> Knob {
        Knob { name: name.into(), domain: Domain::Factorisation(Factorisation::new(extent, parts, divisors)) }
    }

    /// A knob that orders `elements` elements.
    pub fn permutation(name: impl Into<String>, elements: usize) -> Knob {
        Knob { name: name.into(), domain: Domain::Permutation(Permutation(elements)) }
    }

    /// A knob that selects one of `values`.
    pub fn ordinal(name: impl Into<String>, values: impl IntoIterator<Item = i64>) -> Knob {
        Knob { name: name.into(), domain: Domain::Ordinal(Ordinal::new(values)) }
    }

    /// A knob that selects one of `choices`.
    pub fn categorical<C: Into<String>>(
        name: impl Into<String>,
        choices: impl IntoIterator<Item = C>,
    ) -> Knob {
        Knob { name: name.into(), domain: Domain::Categorical(Categorical::new(choices)) }
    }
}

impl Domain {
    /// The number of values.
    pub fn size(&self) -> u128 {
        match self {
            Domain::Factorisation(it) => it.size(),
            Domain::Permutation(it) => it.size(),
            Domain::Ordinal(it) => it.size(),
            Domain::Categorical(it) => it.size(),
        }
    }

    /// Returns the value at `index`, which must be below [`size`](Domain::size). Value 0 is the
    /// trivial one: the loop that is not split, the original order, the smallest number, the first
    /// name.
    pub fn nth(&self, index: u128) -> Option<Value> {
        match self {
            Domain::Factorisation(it) => it.nth(index).map(Value::Factors),
            Domain::Permutation(it) => it.nth(index).map(Value::Order),
            Domain::Ordinal(it) => choice(index, it.size()),
            Domain::Categorical(it) => choice(index, it.size()),
        }
    }

    /// Draws a value with equal probability for all values. Returns `None` if the domain is empty.
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Option<Value> {
        match self {
            // Indices do not suffice: 35 elements have more orders than a `u128` can count.
            Domain::Permutation(it) => Some(Value::Order(it.shuffled(rng))),
            _ => match self.size() {
                0 => None,
                size => self.nth(rng.random_range(0..size)),
            },
        }
    }

    /// Returns true when `value` belongs to this domain.
    pub fn contains(&self, value: &Value) -> bool {
        match (self, value) {
            (Domain::Factorisation(it), Value::Factors(factors)) => it.contains(factors),
            (Domain::Permutation(it), Value::Order(order)) => it.contains(order),
            (Domain::Ordinal(it), Value::Choice(at)) => (*at as u128) < it.size(),
            (Domain::Categorical(it), Value::Choice(at)) => (*at as u128) < it.size(),
            _ => false,
        }
    }

    /// Returns the neighbours of `value`, each once and in a fixed order. Returns nothing if
    /// `value` does not belong to this domain.
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

    /// The number of features of a value.
    pub fn width(&self) -> usize {
        match self {
            Domain::Factorisation(it) => it.width(),
            Domain::Permutation(it) => it.width(),
            Domain::Ordinal(it) => it.width(),
            Domain::Categorical(it) => it.width(),
        }
    }

    /// Appends the features of `value`, which are [`width`](Domain::width) numbers, as input for
    /// models that learn from points. If `value` does not belong to this domain, all its features
    /// are 0.
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
