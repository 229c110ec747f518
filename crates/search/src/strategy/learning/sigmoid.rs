//! Computes the logistic function and the hyperbolic tangent, in arithmetic that the compiler
//! vectorises.
//!
//! The exponential function of the standard library computes one number at a time, and training
//! trees would spend most of its time there. The approximation here (Cephes) is off by at most a
//! few units in the last place.

use std::f32::consts::LOG2_E;

/// 1.5 · 2²³. The sum of this number and a small one has no fraction.
const ROUNDING_SHIFT: f32 = 12_582_912.0;
/// ln 2 in two parts. Products of the first part and small integers are exact.
const LN_2: [f32; 2] = [0.693_359_4, -2.121_944_4e-4];
/// The coefficients of the approximation of (eˣ - 1 - x) / x², highest power first.
const EXP_COEFFICIENTS: [f32; 6] =
    [1.987_569_2e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

/// 1 / (1 + e⁻ˣ).
pub(super) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// The hyperbolic tangent.
pub(super) fn tanh(x: f32) -> f32 {
    2.0 * sigmoid(2.0 * x) - 1.0
}

/// eˣ, where x is limited to the exponents of normal numbers.
fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 88.0);
    let shifted = x * LOG2_E + ROUNDING_SHIFT;
    let power = shifted - ROUNDING_SHIFT;
    let rest = x - power * LN_2[0] - power * LN_2[1];
    let series = EXP_COEFFICIENTS.iter().fold(0.0, |sum, coefficient| sum * rest + coefficient);
    let fraction = series * rest * rest + rest + 1.0;
    // The last bits of `shifted` are the integer `power`, which is added to the exponent.
    f32::from_bits(fraction.to_bits().wrapping_add(shifted.to_bits() << 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_close_to_the_exact_values() {
        for at in -8000..8000 {
            let x = at as f32 / 100.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exp(x)) / exact - 1.0).abs() < 3e-7, "{x}");
            assert!((f64::from(sigmoid(x)) - 1.0 / (1.0 + 1.0 / exact)).abs() < 2e-7, "{x}");
            assert!((f64::from(tanh(x)) - f64::from(x).tanh()).abs() < 3e-7, "{x}");
        }
    }

    #[test]
    fn extremes_are_finite() {
        for x in [f32::INFINITY, 1e30, 89.0] {
            assert!(sigmoid(x) == 1.0 && tanh(x) == 1.0);
            assert!((0.0..1e-37).contains(&sigmoid(-x)) && tanh(-x) == -1.0);
        }
    }
}
