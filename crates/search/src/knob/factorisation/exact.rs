//! Counts and enumerates the ordered factorisations of a number.
//!
//! The exponent of each prime is distributed over the factors independently of the other primes.
//! Hence the count is a product of binomial coefficients, and an index is a mixed-radix number with
//! one digit for each prime.

use super::primes::Primes;

/// The number of ordered factorisations into `parts` factors.
pub(super) fn count(primes: &Primes, parts: usize) -> u128 {
    primes.0.iter().map(|&(_, exponent)| compositions(exponent, parts)).fold(1, u128::saturating_mul)
}

/// Returns the factorisation at `index`. At index 0 the first factor is the whole number and the
/// others are 1.
pub(super) fn nth(primes: &Primes, parts: usize, mut index: u128) -> Vec<i64> {
    let mut factors = vec![1; parts];
    for &(prime, exponent) in &primes.0 {
        let ways = compositions(exponent, parts).max(1);
        distribute(prime, exponent, index % ways, &mut factors);
        index /= ways;
    }
    factors
}

/// Returns the product of the factors if all are positive and the product fits into an `i64`.
pub(super) fn product(factors: &[i64]) -> Option<i64> {
    factors
        .iter()
        .try_fold(1i64, |product, &factor| if factor > 0 { product.checked_mul(factor) } else { None })
}

/// Returns all factorisations that differ from `factors` by one prime moved from one factor to
/// another.
pub(super) fn neighbours(primes: &Primes, factors: &[i64]) -> Vec<Vec<i64>> {
    let mut neighbours = Vec::new();
    for &(prime, _) in &primes.0 {
        for from in (0..factors.len()).filter(|&from| factors[from] % prime == 0) {
            for to in (0..factors.len()).filter(|&to| to != from) {
                let mut moved = factors.to_vec();
                moved[from] /= prime;
                moved[to] *= prime;
                neighbours.push(moved);
            }
        }
    }
    neighbours
}

/// The number of ways to write `total` as an ordered sum of `parts` non-negative numbers: the
/// binomial coefficient of `total + parts - 1` over `total`.
pub(super) fn compositions(total: u32, parts: usize) -> u128 {
    if parts == 0 {
        return u128::from(total == 0);
    }
    let mut ways: u128 = 1;
    for taken in 1..=u128::from(total) {
        // The division is exact: after each step, `ways` is itself a binomial coefficient.
        match ways.checked_mul(parts as u128 - 1 + taken) {
            Some(product) => ways = product / taken,
            None => return u128::MAX,
        }
    }
    ways
}

/// Multiplies `factors` by powers of `prime` whose exponents are the composition of `total` at
/// `index`.
fn distribute(prime: i64, mut total: u32, mut index: u128, factors: &mut [i64]) {
    for at in 0..factors.len() {
        let after = factors.len() - at - 1;
        // Compositions with a larger exponent for this factor have smaller indices.
        let mut share = total;
        loop {
            let ways = compositions(total - share, after);
            if index < ways || share == 0 {
                break;
            }
            index -= ways;
            share -= 1;
        }
        factors[at] *= prime.pow(share);
        total -= share;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compositions_are_binomials() {
        assert_eq!(compositions(9, 4), 220);
        assert_eq!(compositions(0, 0), 1);
        assert_eq!(compositions(3, 0), 0);
        assert_eq!(compositions(62, 1), 1);
        assert_eq!(compositions(62, usize::MAX), u128::MAX);
    }

    #[test]
    fn the_first_is_not_split() {
        let primes = Primes::factorise(360);
        assert_eq!(nth(&primes, 3, 0), [360, 1, 1]);
        let last = count(&primes, 3) - 1;
        assert_eq!(nth(&primes, 3, last), [1, 1, 360]);
    }
}
