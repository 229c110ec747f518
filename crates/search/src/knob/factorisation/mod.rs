//! A loop's extent as an ordered product: the extents of the loops that it is split into, outermost first.
//!
//! [`Divisors::Exact`] is OpEvo's factorisation parameter (section 3), and with extents that are powers of two the state
//! space of G-BFS (section 3.2): the product of the factors is the extent, and neighbours differ by one prime factor that
//! moved. `exact.rs` counts and numbers them by the exponents of the primes.
//!
//! [`Divisors::Near`] is for extents with few divisors, such as primes: a product may be a little larger than the extent,
//! and the last tile is then not full. `near.rs` has that.

mod exact;
mod near;
mod primes;

use std::sync::Arc;

use near::Near;
use primes::Primes;

/// The ways to write an extent as an ordered product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factorisation {
    extent: i64,
    parts: usize,
    divisors: Divisors,
    ways: Ways,
}

/// Which products there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisors {
    /// Those that are the extent.
    Exact,
    /// Also those that exceed it a little. The inner factors are free; the outermost is as large as it must be.
    Near {
        /// By how many percent of the extent a product may exceed it.
        most_waste_percent: u32,
    },
}

/// What was worked out in advance.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ways {
    None,
    Exact(Primes),
    /// Shared, for its table may be large.
    Near(Arc<Near>),
}

impl Factorisation {
    /// `extent` as a product of `parts` factors. There are none if the extent is not positive, or if there are no parts
    /// and the extent is not 1. The time is the square root of the extent, and for near ones about the extent itself up
    /// to a limit.
    pub fn new(extent: i64, parts: usize, divisors: Divisors) -> Factorisation {
        let ways = match divisors {
            _ if extent < 1 => Ways::None,
            Divisors::Near { most_waste_percent } if parts > 0 => {
                Ways::Near(Arc::new(Near::new(extent, parts - 1, most_waste_percent)))
            }
            _ => Ways::Exact(Primes::of(extent)),
        };
        Factorisation { extent, parts, divisors, ways }
    }

    /// What is written as a product.
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// How many factors there are.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Which products there are.
    pub fn divisors(&self) -> Divisors {
        self.divisors
    }

    pub(super) fn size(&self) -> u128 {
        match &self.ways {
            Ways::None => 0,
            Ways::Exact(primes) => exact::count(primes, self.parts),
            Ways::Near(near) => near.count(),
        }
    }

    pub(super) fn nth(&self, index: u128) -> Option<Vec<i64>> {
        if index >= self.size() {
            return None;
        }
        match &self.ways {
            Ways::None => None,
            Ways::Exact(primes) => Some(exact::nth(primes, self.parts, index)),
            Ways::Near(near) => Some(near.nth(index)),
        }
    }

    pub(super) fn contains(&self, factors: &[i64]) -> bool {
        factors.len() == self.parts
            && match &self.ways {
                Ways::None => false,
                Ways::Exact(_) => exact::product(factors) == Some(self.extent),
                Ways::Near(near) => near.contains(factors),
            }
    }

    pub(super) fn neighbours(&self, factors: &[i64]) -> Vec<Vec<i64>> {
        if !self.contains(factors) {
            return Vec::new();
        }
        match &self.ways {
            Ways::None => Vec::new(),
            Ways::Exact(primes) => exact::neighbours(primes, factors),
            Ways::Near(near) => near.neighbours(factors),
        }
    }

    /// What a factor after the first can be beside others after the first whose product is given, smallest first.
    pub(crate) fn inner_factors(&self, others: i64) -> Vec<i64> {
        match &self.ways {
            Ways::None => Vec::new(),
            Ways::Exact(_) if others < 1 || self.extent % others != 0 => Vec::new(),
            Ways::Exact(_) => Primes::of(self.extent / others).divisors(),
            Ways::Near(near) => near.inner_factors(others),
        }
    }

    /// The factorisation with these factors after the first, which were chosen one by one of what there was.
    pub(crate) fn with_inner(&self, inner: &[i64]) -> Option<Vec<i64>> {
        let product = exact::product(inner)?;
        let first = (self.extent + product - 1) / product;
        let factors: Vec<i64> = std::iter::once(first).chain(inner.iter().copied()).collect();
        self.contains(&factors).then_some(factors)
    }

    pub(super) fn width(&self) -> usize {
        self.parts
    }

    pub(super) fn features(&self, factors: &[i64], features: &mut Vec<f32>) {
        features.extend(factors.iter().map(|&factor| (factor as f32).log2()));
    }
}
