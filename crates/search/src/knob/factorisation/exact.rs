//! Ordered factorisations of a number.
//!
//! Each prime's exponent is distributed over the factors independently of the others, so the count is a product of
//! binomials and an index is a number with one digit a prime.

use super::primes::Primes;

/// How many factorisations into `parts` factors there are.
pub(super) fn count(primes: &Primes, parts: usize) -> u128 {
    primes.0.iter().map(|&(_, exponent)| compositions(exponent, parts)).fold(1, u128::saturating_mul)
}

/// The factorisation at `index`; at 0 everything is in the first factor.
pub(super) fn nth(primes: &Primes, parts: usize, mut index: u128) -> Vec<i64> {
    let mut factors = vec![1; parts];
    for &(prime, exponent) in &primes.0 {
        let ways = compositions(exponent, parts).max(1);
        distribute(prime, exponent, index % ways, &mut factors);
        index /= ways;
    }
    factors
}

/// The product, where all factors are positive and it fits.
pub(super) fn product(factors: &[i64]) -> Option<i64> {
    factors
        .iter()
        .try_fold(1i64, |product, &factor| if factor > 0 { product.checked_mul(factor) } else { None })
}

/// All that differ by one prime factor that moved from one place to another.
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

/// In how many ways `total` is an ordered sum of `parts` numbers from 0: the binomial of `total + parts - 1` over `total`.
pub(super) fn compositions(total: u32, parts: usize) -> u128 {
    if parts == 0 {
        return u128::from(total == 0);
    }
    let mut ways: u128 = 1;
    for taken in 1..=u128::from(total) {
        // Each product of binomials is a whole number before the next factor comes in.
        match ways.checked_mul(parts as u128 - 1 + taken) {
            Some(product) => ways = product / taken,
            None => return u128::MAX,
        }
    }
    ways
}

/// Multiplies `factors` by the powers of `prime` that the composition of `total` at `index` gives them.
fn distribute(prime: i64, mut total: u32, mut index: u128, factors: &mut [i64]) {
    for at in 0..factors.len() {
        let after = factors.len() - at - 1;
        // The largest share comes first.
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
        let primes = Primes::of(360);
        assert_eq!(nth(&primes, 3, 0), [360, 1, 1]);
        let last = count(&primes, 3) - 1;
        assert_eq!(nth(&primes, 3, last), [1, 1, 360]);
    }
}
