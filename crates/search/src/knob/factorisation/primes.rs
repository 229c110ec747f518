//! Factorises numbers into primes, and lists their divisors.

/// The prime factors of a positive number with their exponents, smallest prime first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Primes(pub Vec<(i64, u32)>);

impl Primes {
    /// Factorises by trial division, which is fast enough for any extent that a loop can have.
    pub fn factorise(number: i64) -> Primes {
        Primes::factorise_with(number, &[])
    }

    /// Tries the primes in `likely` first, so that a number without other primes is factorised at
    /// once.
    pub fn factorise_with(number: i64, likely: &[(i64, u32)]) -> Primes {
        let mut rest = number;
        let mut found: Vec<(i64, u32)> = Vec::new();
        let mut divide = |rest: &mut i64, prime: i64| {
            let exponent = divide_out(rest, prime);
            if exponent > 0 {
                found.push((prime, exponent));
            }
        };
        for &(prime, _) in likely {
            divide(&mut rest, prime);
        }
        let mut candidate = 2;
        while candidate <= rest / candidate {
            divide(&mut rest, candidate);
            candidate += if candidate == 2 { 1 } else { 2 };
        }
        if rest > 1 {
            found.push((rest, 1));
        }
        found.sort_unstable();
        Primes(found)
    }

    /// Whether the number is a multiple of `prime`.
    pub fn contains(&self, prime: i64) -> bool {
        self.0.iter().any(|&(other, _)| other == prime)
    }

    /// All divisors, smallest first.
    pub fn divisors(&self) -> Vec<i64> {
        let mut divisors = vec![1];
        for &(prime, exponent) in &self.0 {
            let without = divisors.len();
            for at in 0..without * exponent as usize {
                divisors.push(divisors[at] * prime);
            }
        }
        divisors.sort_unstable();
        divisors
    }
}

/// Divides `rest` by `prime` as often as possible and returns the number of divisions.
fn divide_out(rest: &mut i64, prime: i64) -> u32 {
    let mut exponent = 0;
    while *rest % prime == 0 {
        *rest /= prime;
        exponent += 1;
    }
    exponent
}

/// The smallest prime factor of each number up to `limit`. The entries of 0 and 1 are 0 and 1.
pub(super) fn smallest_factors(limit: usize) -> Vec<usize> {
    let mut smallest: Vec<usize> = (0..=limit).collect();
    for prime in (2..).take_while(|prime| prime * prime <= limit) {
        if smallest[prime] == prime {
            for multiple in (prime * prime..=limit).step_by(prime) {
                smallest[multiple] = smallest[multiple].min(prime);
            }
        }
    }
    smallest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_products_of_their_primes() {
        let smallest = smallest_factors(3000);
        for number in 1..=3000i64 {
            let primes = Primes::factorise(number);
            assert_eq!(
                primes.0.iter().map(|&(prime, exponent)| prime.pow(exponent)).product::<i64>(),
                number
            );
            assert!(primes.0.iter().all(|&(prime, _)| smallest[prime as usize] == prime as usize));
            assert_eq!(primes, Primes::factorise_with(number, &[(3, 1), (97, 1)]));
            let divisors: Vec<i64> = (1..=number).filter(|divisor| number % divisor == 0).collect();
            assert_eq!(primes.divisors(), divisors);
        }
    }

    #[test]
    fn large_numbers_are_quick() {
        assert_eq!(Primes::factorise(1 << 40).0, [(2, 40)]);
        assert_eq!(Primes::factorise((1 << 31) - 1).0, [((1 << 31) - 1, 1)]);
        assert_eq!(Primes::factorise(i64::MAX).0.len(), 6);
    }
}
