//! The order in which iterations of stores run.

use tilewright_isl::Map;

use super::nest::{Moment, Nest, Site};

/// Pairs of iterations of which the first runs before the second, if each runs at all.
pub fn before(nest: &Nest, first: &Site, second: &Site) -> Map {
    let sizes = (first.coordinates.len(), second.coordinates.len());
    let mut equal = Map::universe(&nest.context, sizes.0, sizes.1);
    let mut found = Map::empty(&nest.context, sizes.0, sizes.1);
    for moments in first.time.iter().zip(&second.time) {
        match moments {
            (Moment::Place(own), Moment::Place(other)) if own == other => {}
            (Moment::Place(own), Moment::Place(other)) => {
                return if own < other { found.union(&equal) } else { found };
            }
            (Moment::Loop(at), Moment::Loop(other)) => {
                found = found.union(&equal.where_less(*at, *other));
                equal = equal.where_equal(*at, *other);
            }
            _ => unreachable!("what comes after the same place is the same"),
        }
    }
    found
}

/// Pairs of iterations of which the first does not run before the second.
pub fn not_before(nest: &Nest, first: &Site, second: &Site) -> Map {
    let after = before(nest, second, first).reverse();
    match std::ptr::eq(first, second) {
        true => after.union(&first.domain.identity()),
        false => after,
    }
}
