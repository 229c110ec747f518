//! Defines the domain of factorisations: a loop's extent as an ordered product of the extents of
//! the loops that it is split into, outermost first.
//!
//! [`Divisors::Exact`] is the factorisation parameter of OpEvo (section 3). For extents that are
//! powers of two it is also the state space of G-BFS (section 3.2). The product of the factors
//! equals the extent, and neighbours differ by one prime that moved from one factor to another.
//! `exact.rs` counts and enumerates these factorisations by the exponents of the primes.
//!
//! [`Divisors::Near`] is for extents with few divisors, such as primes. A product may be a little
//! larger than the extent, and the last tile is then only partly full. `near.rs` implements these
//! factorisations.

mod exact;
mod near;
mod primes;

use std::sync::Arc;

use near::NearFactorisations;
use primes::Primes;

/// The set of ways to write an extent as an ordered product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factorisation {
    extent: i64,
    parts: usize,
    divisors: Divisors,
    table: Table,
}

/// Which products are allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divisors {
    /// Products that equal the extent.
    Exact,
    /// Also products that exceed the extent a little. The inner factors are free; the outermost
    /// factor is the smallest one that covers the extent.
    Near {
        /// The largest allowed excess of the product, in percent of the extent.
        most_waste_percent: u32,
    },
}

/// Data that `Factorisation::new` computes once.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Table {
    None,
    Exact(Primes),
    /// Shared between clones because the table can be large.
    Near(Arc<NearFactorisations>),
}

impl Factorisation {
    /// Creates the domain of the factorisations of `extent` into `parts` factors.
    ///
    /// The domain is empty if the extent is not positive, or if `parts` is 0 and the extent is
    /// not 1. The construction takes time proportional to the square root of the extent. For
    /// [`Divisors::Near`] the time is about proportional to the extent itself, up to a limit.
    pub fn new(extent: i64, parts: usize, divisors: Divisors) -> Factorisation {
        let ways = match divisors {
            _ if extent < 1 => Table::None,
            Divisors::Near { most_waste_percent } if parts > 0 => {
                Table::Near(Arc::new(NearFactorisations::new(extent, parts - 1, most_waste_percent)))
            }
            _ => Table::Exact(Primes::factorise(extent)),
        };
        Factorisation { extent, parts, divisors, table: ways }
    }

    /// The extent that is factorised.
    pub fn extent(&self) -> i64 {
        self.extent
    }

    /// The number of factors.
    pub fn parts(&self) -> usize {
        self.parts
    }

    /// Which products are allowed.
    pub fn divisors(&self) -> Divisors {
        self.divisors
    }

    pub(super) fn size(&self) -> u128 {
        match &self.table {
            Table::None => 0,
            Table::Exact(primes) => exact::count(primes, self.parts),
            Table::Near(near) => near.count(),
        }
    }

    pub(super) fn nth(&self, index: u128) -> Option<Vec<i64>> {
        if index >= self.size() {
            return None;
        }
        match &self.table {
            Table::None => None,
            Table::Exact(primes) => Some(exact::nth(primes, self.parts, index)),
            Table::Near(near) => Some(near.nth(index)),
        }
    }

    pub(super) fn contains(&self, factors: &[i64]) -> bool {
        factors.len() == self.parts
            && match &self.table {
                Table::None => false,
                Table::Exact(_) => exact::product(factors) == Some(self.extent),
                Table::Near(near) => near.contains(factors),
            }
    }

    pub(super) fn neighbours(&self, factors: &[i64]) -> Vec<Vec<i64>> {
        if !self.contains(factors) {
            return Vec::new();
        }
        match &self.table {
            Table::None => Vec::new(),
            Table::Exact(primes) => exact::neighbours(primes, factors),
            Table::Near(near) => near.neighbours(factors),
        }
    }

    /// Returns the possible values of one inner factor, smallest first, where `others` is the
    /// product of the other inner factors. An inner factor is any factor after the first.
    pub(crate) fn inner_factors(&self, others: i64) -> Vec<i64> {
        match &self.table {
            Table::None => Vec::new(),
            Table::Exact(_) if others < 1 || self.extent % others != 0 => Vec::new(),
            Table::Exact(_) => Primes::factorise(self.extent / others).divisors(),
            Table::Near(near) => near.inner_factors(others),
        }
    }

    /// Completes `inner`, the factors after the first, with the first factor. The caller has chosen
    /// the inner factors one by one from `inner_factors`.
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
