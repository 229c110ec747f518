//! The order in which iterations of stores run.

use tilewright_isl::{Map, Set};

use super::nest::{Moment, Nest, Site};

/// Iterations of something, and when they run.
#[derive(Clone, Copy)]
pub struct When<'a> {
    /// The iterations that run.
    pub domain: &'a Set,
    /// The time of an iteration, from the outside in.
    pub time: &'a [Moment],
    /// How many coordinates each has.
    pub coordinates: usize,
}

/// Pairs of iterations of which the first runs before the second, if each runs at all.
pub fn before(nest: &Nest, first: &Site, second: &Site) -> Map {
    before_if_run(nest, first.when(), second.when())
}

/// Pairs of iterations that run, the first before the second.
pub fn running_before(nest: &Nest, first: When, second: When) -> Map {
    before_if_run(nest, first, second).of(first.domain).onto(second.domain)
}

fn before_if_run(nest: &Nest, first: When, second: When) -> Map {
    let sizes = (first.coordinates, second.coordinates);
    let mut equal = Map::universe(&nest.context, sizes.0, sizes.1);
    let mut found = Map::empty(&nest.context, sizes.0, sizes.1);
    for moments in first.time.iter().zip(second.time) {
        match moments {
            (Moment::Place(own), Moment::Place(other)) if own == other => {}
            (Moment::Place(own), Moment::Place(other)) => {
                return if own < other { found.union(&equal) } else { found };
            }
            (Moment::Loop(at), Moment::Loop(other)) => {
                found = found.union(&equal.where_less(*at, *other));
                equal = equal.where_equal(*at, *other);
            }
            (Moment::Side(own), Moment::Side(other)) if own == other => {}
            // Iterations with the same loops take the same side.
            (Moment::Side(_), Moment::Side(_)) => return found,
            _ => unreachable!("what comes after the same place is the same"),
        }
    }
    found
}

/// The order of two stores, as far as the text alone decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InText {
    /// The first runs before the second.
    Before,
    /// It runs after it.
    After,
    /// There are no two such iterations: they would take both sides of a condition.
    Never,
    /// The loops decide.
    Open,
}

/// The order of iterations of two stores for which the loops that `is_same` accepts, by their number, have the same values.
pub fn in_text(first: &Site, second: &Site, is_same: impl Fn(usize) -> bool) -> InText {
    for moments in first.time.iter().zip(&second.time) {
        match moments {
            (Moment::Place(own), Moment::Place(other)) if own < other => return InText::Before,
            (Moment::Place(own), Moment::Place(other)) if own > other => return InText::After,
            (Moment::Side(own), Moment::Side(other)) if own != other => return InText::Never,
            (Moment::Loop(at), _) if !is_same(*at) => return InText::Open,
            _ => {}
        }
    }
    InText::Open
}

/// Pairs of iterations of which the first does not run before the second.
pub fn not_before(nest: &Nest, first: &Site, second: &Site) -> Map {
    let after = before(nest, second, first).reverse();
    match std::ptr::eq(first, second) {
        true => after.union(&first.domain.identity()),
        false => after,
    }
}
