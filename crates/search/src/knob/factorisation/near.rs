//! Products that may exceed the extent a little.
//!
//! The inner factors are free, and the outermost is the least that reaches the extent, so a factorisation is *its inner
//! factors*; whether it is allowed depends on their product alone. With `p` that product and `a = ceil(extent / p)`, the
//! rule is `a * p <= most`. Two things follow that the rest builds on:
//!
//! - A divisor of an allowed product is allowed: `p / d` needs at most `a * d` in front, which makes the same product.
//! - The allowed products are the intervals from `ceil(extent / a)` to `most / a`, one for each `a`.
//!
//! Counting goes by the table of allowed products, each with the number of its ordered factorisations. For the table to
//! stay small, products above [`TABLE`] must divide the extent: tiles of that size are larger than any cache, and where
//! they are wanted, an exact one will do.
//!
//! Neighbours: a prime factor moves between inner factors; one inner factor is multiplied or divided by a prime of the
//! extent, or by 2 or 3; or one inner factor goes to the next smaller or larger number that is allowed beside the others.
//! The exact moves are among these. The last kind alone connects everything: by the first fact above each inner factor can
//! go down to 1.

use super::exact;
use super::primes::{Primes, smallest_factors};

/// The largest inner product that need not divide the extent.
const TABLE: i64 = 1 << 18;

/// The near factorisations of an extent.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Near {
    extent: i64,
    /// The largest product of all factors.
    most: i64,
    /// How many inner factors there are.
    inner: usize,
    primes: Primes,
    /// Primes by which an inner factor is multiplied or divided.
    scales: Vec<i64>,
    /// Divisors of the extent beyond the table, smallest first.
    beyond: Vec<i64>,
    /// Allowed inner products, smallest first.
    products: Vec<i64>,
    /// For each allowed product, the number of factorisations with a smaller one; and the number of all.
    starts: Vec<u128>,
}

impl Near {
    /// `extent`, which is positive, with `inner` factors after the outermost.
    pub fn new(extent: i64, inner: usize, most_waste_percent: u32) -> Near {
        let waste = i128::from(extent) * i128::from(most_waste_percent) / 100;
        let most = i64::try_from(i128::from(extent) + waste).unwrap_or(i64::MAX);
        let primes = Primes::of(extent);
        let mut scales: Vec<i64> = primes.0.iter().map(|&(prime, _)| prime).collect();
        scales.extend([2, 3].into_iter().filter(|&prime| !primes.have(prime)));
        let beyond = primes.divisors().into_iter().filter(|&divisor| divisor > TABLE).collect();
        let mut near =
            Near { extent, most, inner, primes, scales, beyond, products: Vec::new(), starts: vec![0] };
        near.tabulate();
        near
    }

    fn tabulate(&mut self) {
        // Without inner factors their product is 1.
        let largest = if self.inner == 0 { 1 } else { self.most.min(TABLE) };
        let counts = factorisation_counts(largest as usize, self.inner);
        for product in 1..=largest {
            if self.allows(product) {
                self.add(product, counts[product as usize]);
            }
        }
        if self.inner > 0 {
            for product in self.beyond.clone() {
                self.add(product, exact::count(&self.factors_of(product), self.inner));
            }
        }
    }

    fn add(&mut self, product: i64, ways: u128) {
        self.products.push(product);
        self.starts.push(self.count().saturating_add(ways));
    }

    /// How many factorisations there are.
    pub fn count(&self) -> u128 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The factorisation at `index`, below the count; at 0 the inner factors are 1.
    pub fn nth(&self, index: u128) -> Vec<i64> {
        let at = self.starts.partition_point(|&start| start <= index).saturating_sub(1);
        let product = self.products[at.min(self.products.len() - 1)];
        let inner = exact::nth(&self.factors_of(product), self.inner, index - self.starts[at]);
        self.whole(&inner)
    }

    /// What an inner factor can be beside others of this product, smallest first.
    pub fn inner_factors(&self, others: i64) -> Vec<i64> {
        let multiples = self.products.iter().filter(|product| others > 0 && *product % others == 0);
        multiples.map(|product| product / others).collect()
    }

    /// Whether `factors`, which are as many as there should be, are one of these.
    pub fn contains(&self, factors: &[i64]) -> bool {
        let (outermost, inner) = (factors[0], &factors[1..]);
        exact::product(inner)
            .is_some_and(|product| self.allows(product) && outermost == self.outermost(product))
    }

    /// The neighbours of `factors`, which is one of these.
    pub fn neighbours(&self, factors: &[i64]) -> Vec<Vec<i64>> {
        let inner = &factors[1..];
        let mut neighbours = Vec::new();
        for at in 0..inner.len() {
            self.changes(inner, at, &mut neighbours);
            self.transfers(inner, at, &mut neighbours);
        }
        // A step and a multiplication may lead to the same place.
        neighbours.sort_unstable();
        neighbours.dedup();
        neighbours
    }

    /// Other numbers for the inner factor at `at`.
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
                neighbours.push(self.whole(&changed));
            }
        }
    }

    /// One prime of the inner factor at `from` goes to another inner factor.
    fn transfers(&self, inner: &[i64], from: usize, neighbours: &mut Vec<Vec<i64>>) {
        for (prime, _) in self.factors_of(inner[from]).0 {
            for to in (0..inner.len()).filter(|&to| to != from) {
                let mut moved = inner.to_vec();
                moved[from] /= prime;
                moved[to] *= prime;
                neighbours.push(self.whole(&moved));
            }
        }
    }

    /// The next larger number than `value` whose product with `others` is allowed.
    fn next_larger(&self, others: i64, value: i64) -> Option<i64> {
        let last = self.most.min(TABLE) / others;
        let mut next = value + 1;
        while next <= last {
            let outermost = self.outermost(others * next);
            if self.reaches(outermost, others * next) {
                return Some(next);
            }
            // Nothing more is allowed with this outermost factor, which is not 1 as `next` is small enough for that.
            next = div_ceil(div_ceil(self.extent, outermost - 1), others);
        }
        let found = self.beyond.iter().find(|&&product| product > others * value && product % others == 0);
        found.map(|product| product / others)
    }

    /// The next smaller number than `value` whose product with `others` is allowed.
    fn next_smaller(&self, others: i64, value: i64) -> Option<i64> {
        let mut products = self.beyond.iter().rev();
        let found = products.find(|&&product| product < others * value && product % others == 0);
        if let Some(product) = found {
            return Some(product / others);
        }
        let mut next = (value - 1).min(TABLE / others);
        while next > 0 {
            let outermost = self.outermost(others * next);
            if self.reaches(outermost, others * next) {
                return Some(next);
            }
            next = self.most / outermost / others;
        }
        None
    }

    fn allows(&self, product: i64) -> bool {
        self.extent % product == 0 || product <= TABLE && self.reaches(self.outermost(product), product)
    }

    fn reaches(&self, outermost: i64, product: i64) -> bool {
        outermost.checked_mul(product).is_some_and(|whole| whole <= self.most)
    }

    fn outermost(&self, product: i64) -> i64 {
        div_ceil(self.extent, product)
    }

    fn whole(&self, inner: &[i64]) -> Vec<i64> {
        let product = inner.iter().product();
        std::iter::once(self.outermost(product)).chain(inner.iter().copied()).collect()
    }

    fn factors_of(&self, number: i64) -> Primes {
        Primes::with(number, &self.primes.0)
    }
}

/// Of positive numbers; the one in `std` is not stable for `i64`.
fn div_ceil(number: i64, by: i64) -> i64 {
    (number - 1) / by + 1
}

/// For each number up to `limit`, in how many ways it is an ordered product of `parts` factors.
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
