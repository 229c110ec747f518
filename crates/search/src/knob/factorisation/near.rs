//! Counts and enumerates factorisations whose product may exceed the extent a little.
//!
//! The inner factors are free, and the outermost factor is the smallest one that covers the extent.
//! Hence the inner factors alone determine the factorisation, and their product alone decides
//! whether it is allowed. Let `p` be that product, `a = ceil(extent / p)` the outermost factor, and
//! `most` the largest allowed product of all factors. Then the condition is `a * p <= most`. The
//! rest of this module relies on two consequences:
//!
//! - A divisor of an allowed product is allowed: `p / d` needs an outermost factor of at most
//!   `a * d`, which gives the same total product.
//! - The allowed products form one interval for each `a`, from `ceil(extent / a)` to `most / a`.
//!
//! A table of the allowed products, each with the number of its ordered factorisations, gives the
//! count and the enumeration. To keep the table small, products above [`TABLE_LIMIT`] must divide
//! the extent. Such tiles have more than 2^18 iterations along one loop, so exact factorisations
//! are sufficient there.
//!
//! There are three kinds of neighbours:
//!
//! - a prime moves from one inner factor to another;
//! - one inner factor is multiplied or divided by a prime of the extent, or by 2 or 3;
//! - one inner factor changes to the next smaller or larger number that is allowed with the other
//!   inner factors.
//!
//! These include all moves of exact factorisations. The third kind alone connects all
//! factorisations, because by the first consequence above each inner factor can decrease to 1.

use super::exact;
use super::primes::{Primes, smallest_factors};

/// The largest inner product that need not divide the extent.
const TABLE_LIMIT: i64 = 1 << 18;

/// The set of near factorisations of an extent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NearFactorisations {
    extent: i64,
    /// The largest allowed product of all factors.
    largest_product: i64,
    /// The number of inner factors.
    inner: usize,
    primes: Primes,
    /// The primes by which a step multiplies or divides an inner factor.
    scales: Vec<i64>,
    /// The divisors of the extent above `TABLE_LIMIT`, smallest first.
    large_divisors: Vec<i64>,
    /// The allowed products of the inner factors, smallest first.
    products: Vec<i64>,
    /// For each allowed product, the number of factorisations with a smaller product. The last
    /// entry is the total number.
    starts: Vec<u128>,
}

impl NearFactorisations {
    /// Tabulates the factorisations of `extent`, which must be positive, with `inner` factors after
    /// the outermost one.
    pub fn new(extent: i64, inner: usize, most_waste_percent: u32) -> NearFactorisations {
        let waste = i128::from(extent) * i128::from(most_waste_percent) / 100;
        let most = i64::try_from(i128::from(extent) + waste).unwrap_or(i64::MAX);
        let primes = Primes::factorise(extent);
        let mut scales: Vec<i64> = primes.0.iter().map(|&(prime, _)| prime).collect();
        scales.extend([2, 3].into_iter().filter(|&prime| !primes.contains(prime)));
        let beyond = primes.divisors().into_iter().filter(|&divisor| divisor > TABLE_LIMIT).collect();
        let mut near = NearFactorisations {
            extent,
            largest_product: most,
            inner,
            primes,
            scales,
            large_divisors: beyond,
            products: Vec::new(),
            starts: vec![0],
        };
        near.tabulate();
        near
    }

    fn tabulate(&mut self) {
        // The empty product of no inner factors is 1.
        let largest = if self.inner == 0 { 1 } else { self.largest_product.min(TABLE_LIMIT) };
        let counts = factorisation_counts(largest as usize, self.inner);
        for product in 1..=largest {
            if self.allows(product) {
                self.add(product, counts[product as usize]);
            }
        }
        if self.inner > 0 {
            for product in self.large_divisors.clone() {
                self.add(product, exact::count(&self.factors_of(product), self.inner));
            }
        }
    }

    fn add(&mut self, product: i64, ways: u128) {
        self.products.push(product);
        self.starts.push(self.count().saturating_add(ways));
    }

    /// The number of factorisations.
    pub fn count(&self) -> u128 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Returns the factorisation at `index`, which must be below the count. At index 0 all inner
    /// factors are 1.
    pub fn nth(&self, index: u128) -> Vec<i64> {
        let at = self.starts.partition_point(|&start| start <= index).saturating_sub(1);
        let product = self.products[at.min(self.products.len() - 1)];
        let inner = exact::nth(&self.factors_of(product), self.inner, index - self.starts[at]);
        self.complete(&inner)
    }

    /// Returns the possible values of one inner factor, smallest first, where `others` is the
    /// product of the other inner factors.
    pub fn inner_factors(&self, others: i64) -> Vec<i64> {
        let multiples = self.products.iter().filter(|product| others > 0 && *product % others == 0);
        multiples.map(|product| product / others).collect()
    }

    /// Checks whether `factors` is a factorisation of this set. The caller has checked their
    /// number.
    pub fn contains(&self, factors: &[i64]) -> bool {
        let (outermost, inner) = (factors[0], &factors[1..]);
        exact::product(inner)
            .is_some_and(|product| self.allows(product) && outermost == self.outermost(product))
    }

    /// Returns the neighbours of `factors`, which must be a factorisation of this set.
    pub fn neighbours(&self, factors: &[i64]) -> Vec<Vec<i64>> {
        let inner = &factors[1..];
        let mut neighbours = Vec::new();
        for at in 0..inner.len() {
            self.changes(inner, at, &mut neighbours);
            self.transfers(inner, at, &mut neighbours);
        }
        // A step to the next number and a multiplication can give the same neighbour.
        neighbours.sort_unstable();
        neighbours.dedup();
        neighbours
    }

    /// Adds the neighbours that change the inner factor at `at` only.
    fn changes(&self, inner: &[i64], at: usize, neighbours: &mut Vec<Vec<i64>>) {
        let value = inner[at];
        let others = inner.iter().product::<i64>() / value;
        let divided = self.scales.iter().filter(|&prime| value % prime == 0).map(|prime| value / prime);
        let multiplied = self.scales.iter().filter_map(|prime| value.checked_mul(*prime));
        let steps = [self.next_smaller(others, value), self.next_larger(others, value)].into_iter().flatten();
        for value in divided.chain(multiplied).chain(steps) {
            if others.checked_mul(value).is_some_and(|product| self.allows(product)) {
                let mut changed = inner.to_vec();
                changed[at] = value;
                neighbours.push(self.complete(&changed));
            }
        }
    }

    /// Adds the neighbours that move one prime of the inner factor at `from` to another inner
    /// factor.
    fn transfers(&self, inner: &[i64], from: usize, neighbours: &mut Vec<Vec<i64>>) {
        for (prime, _) in self.factors_of(inner[from]).0 {
            for to in (0..inner.len()).filter(|&to| to != from) {
                let mut moved = inner.to_vec();
                moved[from] /= prime;
                moved[to] *= prime;
                neighbours.push(self.complete(&moved));
            }
        }
    }

    /// Returns the smallest number above `value` whose product with `others` is allowed.
    fn next_larger(&self, others: i64, value: i64) -> Option<i64> {
        let last = self.largest_product.min(TABLE_LIMIT) / others;
        let mut next = value + 1;
        while next <= last {
            let outermost = self.outermost(others * next);
            if self.is_within_waste(outermost, others * next) {
                return Some(next);
            }
            // No larger product is allowed with this outermost factor. The factor is not 1:
            // `next <= last`, so `others * next` would have been allowed.
            next = div_ceil(div_ceil(self.extent, outermost - 1), others);
        }
        let found =
            self.large_divisors.iter().find(|&&product| product > others * value && product % others == 0);
        found.map(|product| product / others)
    }

    /// Returns the largest number below `value` whose product with `others` is allowed.
    fn next_smaller(&self, others: i64, value: i64) -> Option<i64> {
        let mut products = self.large_divisors.iter().rev();
        let found = products.find(|&&product| product < others * value && product % others == 0);
        if let Some(product) = found {
            return Some(product / others);
        }
        let mut next = (value - 1).min(TABLE_LIMIT / others);
        while next > 0 {
            let outermost = self.outermost(others * next);
            if self.is_within_waste(outermost, others * next) {
                return Some(next);
            }
            next = self.largest_product / outermost / others;
        }
        None
    }

    fn allows(&self, product: i64) -> bool {
        self.extent % product == 0
            || product <= TABLE_LIMIT && self.is_within_waste(self.outermost(product), product)
    }

    fn is_within_waste(&self, outermost: i64, product: i64) -> bool {
        outermost.checked_mul(product).is_some_and(|whole| whole <= self.largest_product)
    }

    fn outermost(&self, product: i64) -> i64 {
        div_ceil(self.extent, product)
    }

    fn complete(&self, inner: &[i64]) -> Vec<i64> {
        let product = inner.iter().product();
        std::iter::once(self.outermost(product)).chain(inner.iter().copied()).collect()
    }

    fn factors_of(&self, number: i64) -> Primes {
        Primes::factorise_with(number, &self.primes.0)
    }
}

/// Divides positive numbers and rounds up. `i64::div_ceil` of `std` is not stable.
fn div_ceil(number: i64, by: i64) -> i64 {
    (number - 1) / by + 1
}

/// For each number up to `limit`, the number of ways to write it as an ordered product of `parts`
/// factors.
fn factorisation_counts(limit: usize, parts: usize) -> Vec<u128> {
    let smallest = smallest_factors(limit);
    let mut counts = vec![1u128; limit + 1];
    for number in 2..=limit {
        let (mut rest, mut exponent) = (number, 0);
        while rest % smallest[number] == 0 {
            rest /= smallest[number];
            exponent += 1;
        }
        counts[number] = counts[rest].saturating_mul(exact::compositions(exponent, parts));
    }
    counts
}
