//! Defines the loss that models are trained for.
//!
//! A search compares the schedules of one program, so an error that all schedules of a program
//! share matters little. The residual of a schedule is the logarithm of its predicted time less
//! that of its measured time, less most of the mean of these over the program. The loss is half of
//! the sum of the squares of the residuals.

/// The part of the mean error of a program that does not count.
const FORGIVEN: f64 = 0.9;
/// Residuals count as no larger than this, so that single outliers do not decide.
const LARGEST: f64 = 1.0;

/// The residuals of the schedules of a program, from their predicted and measured seconds.
pub(crate) fn residuals(predicted: &[f64], measured: &[f64]) -> Vec<f64> {
    let pairs = predicted.iter().zip(measured);
    let errors: Vec<f64> = pairs.map(|(own, wanted)| own.max(f64::MIN_POSITIVE).ln() - wanted.ln()).collect();
    let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
    errors.iter().map(|error| (error - FORGIVEN * mean).clamp(-LARGEST, LARGEST)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_all_schedules_share_counts_little() {
        let shared = residuals(&[2.0, 4.0], &[1.0, 2.0]);
        let own = residuals(&[2.0, 2.0], &[1.0, 4.0]);
        assert!(shared.iter().all(|residual| (residual - 0.1 * 2f64.ln()).abs() < 1e-12), "{shared:?}");
        assert!(own.iter().all(|residual| residual.abs() > 0.6), "{own:?}");
    }
}
