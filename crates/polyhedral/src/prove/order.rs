//! Computes which iterations of stores and synchronisation points run before which others, as
//! relations between iterations.

use tilewright_isl::{Map, Set};

use super::nest::{Nest, Site, TimeComponent};

/// The iterations of a store or a synchronisation point, and the times at which they run.
#[derive(Clone, Copy)]
pub struct TimedIterations<'a> {
    /// The iterations that run.
    pub domain: &'a Set,
    /// The time of an iteration, from the outside in.
    pub time: &'a [TimeComponent],
    /// The number of coordinates of each iteration.
    pub coordinates: usize,
}

/// Pairs of iterations of which the first comes before the second. The iterations need not run.
pub fn before(nest: &Nest, first: &Site, second: &Site) -> Map {
    before_if_run(nest, first.timed_iterations(), second.timed_iterations())
}

/// Pairs of iterations that both run, of which the first runs before the second.
pub fn running_before(nest: &Nest, first: TimedIterations, second: TimedIterations) -> Map {
    before_if_run(nest, first, second).intersect_domain(first.domain).intersect_range(second.domain)
}

fn before_if_run(nest: &Nest, first: TimedIterations, second: TimedIterations) -> Map {
    let sizes = (first.coordinates, second.coordinates);
    let mut equal = Map::universe(&nest.context, sizes.0, sizes.1);
    let mut found = Map::empty(&nest.context, sizes.0, sizes.1);
    for moments in first.time.iter().zip(second.time) {
        match moments {
            (TimeComponent::Position(own), TimeComponent::Position(other)) if own == other => {}
            (TimeComponent::Position(own), TimeComponent::Position(other)) => {
                return if own < other { found.union(&equal) } else { found };
            }
            (TimeComponent::Loop(at), TimeComponent::Loop(other)) => {
                found = found.union(&equal.where_less(*at, *other));
                equal = equal.where_equal(*at, *other);
            }
            (TimeComponent::Side(own), TimeComponent::Side(other)) if own == other => {}
            // Iterations with equal loop values take the same side, so no such pair runs.
            (TimeComponent::Side(_), TimeComponent::Side(_)) => return found,
            _ => unreachable!("times with equal positions have the same kind of component next"),
        }
    }
    found
}

/// The order of two stores, as far as their positions in the text decide it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOrder {
    /// The first store runs before the second.
    Before,
    /// The first store runs after the second.
    After,
    /// No such pair of iterations exists, because the two would take both sides of a condition.
    Never,
    /// The values of the loops decide.
    DependsOnLoops,
}

/// The order of those iterations of two stores that agree in some loops. `is_same` receives the
/// number of a loop and returns whether both iterations have the same value of it.
pub fn order_in_text(first: &Site, second: &Site, is_same: impl Fn(usize) -> bool) -> TextOrder {
    for moments in first.time.iter().zip(&second.time) {
        match moments {
            (TimeComponent::Position(own), TimeComponent::Position(other)) if own < other => {
                return TextOrder::Before;
            }
            (TimeComponent::Position(own), TimeComponent::Position(other)) if own > other => {
                return TextOrder::After;
            }
            (TimeComponent::Side(own), TimeComponent::Side(other)) if own != other => {
                return TextOrder::Never;
            }
            (TimeComponent::Loop(at), _) if !is_same(*at) => return TextOrder::DependsOnLoops,
            _ => {}
        }
    }
    TextOrder::DependsOnLoops
}

/// Pairs of iterations of which the first runs after the second or is the same iteration.
pub fn not_before(nest: &Nest, first: &Site, second: &Site) -> Map {
    let after = before(nest, second, first).reverse();
    match std::ptr::eq(first, second) {
        true => after.union(&first.domain.identity()),
        false => after,
    }
}
