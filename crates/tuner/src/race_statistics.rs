//! Computes the times of kernels from a race, in which every round samples each kernel once.
//! Times are relative to the mean time of their round, since a slow moment of the machine slows
//! all kernels down.

use tilewright_cache::outcome::{lower_quartile, median};

/// A kernel's time relative to the others', and its error. The error of a median of n samples is
/// about their distance from it, divided by the square root of n.
pub(crate) struct RelativeTime {
    pub median: f64,
    pub error: f64,
}

/// The relative times of kernels, from their samples in the order of the rounds.
pub(crate) fn relative_times(samples: &[&[f64]]) -> Vec<RelativeTime> {
    let scale = round_means(samples);
    let of = |own: &&[f64]| {
        let ratios: Vec<f64> = own.iter().zip(&scale).map(|(sample, scale)| sample / scale).collect();
        let median = median_or_infinity(&ratios);
        let noise =
            median_or_infinity(&ratios.iter().map(|ratio| (ratio - median).abs()).collect::<Vec<_>>());
        RelativeTime { median, error: 2.0 * noise / (scale.len().max(1) as f64).sqrt() }
    };
    samples.iter().map(of).collect()
}

/// The times of kernels in undisturbed rounds, in seconds.
pub(crate) fn race_seconds(samples: &[Vec<f64>]) -> Vec<f64> {
    let samples: Vec<&[f64]> = samples.iter().map(Vec::as_slice).collect();
    let round = lower_quartile(&round_means(&samples)).unwrap_or(f64::INFINITY);
    relative_times(&samples).into_iter().map(|own| own.median * round).collect()
}

/// The geometric mean.
pub(crate) fn geometric_mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    (values.map(f64::ln).sum::<f64>() / count).exp()
}

/// The geometric mean time of a kernel in every round.
fn round_means(samples: &[&[f64]]) -> Vec<f64> {
    let rounds = samples.iter().map(|own| own.len()).min().unwrap_or(0);
    (0..rounds).map(|round| geometric_mean(samples.iter().map(|own| own[round]))).collect()
}

fn median_or_infinity(values: &[f64]) -> f64 {
    median(values).unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_those_of_rounds_that_were_not_disturbed() {
        // Half of the rounds take twice as long, and in one round only the first kernel does.
        let slow = |round: usize| if round.is_multiple_of(2) { 1.0 } else { 2.0 };
        let mut first: Vec<f64> = (0..20).map(slow).collect();
        let second: Vec<f64> = first.iter().map(|own| 3.0 * own).collect();
        first[4] *= 2.0;
        let seconds = race_seconds(&[first, second]);
        assert!((seconds[0] - 1.0).abs() < 1e-9 && (seconds[1] - 3.0).abs() < 1e-9, "{seconds:?}");
    }
}
