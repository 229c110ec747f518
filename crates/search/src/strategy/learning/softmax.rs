//! Computes the softmax function in logarithms: converts logits to the logarithms of probabilities.

/// Replaces logits by the logarithms of their probabilities.
pub(in crate::strategy) fn log_softmax(logits: &mut [f32]) {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = logits.iter().map(|logit| (logit - largest).exp()).sum();
    let all = largest + sum.ln();
    logits.iter_mut().for_each(|logit| *logit -= all);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_even_for_large_logits() {
        for shift in [0.0, 1e4] {
            let mut logits = [1.0, 2.0, 4.0].map(|logit: f32| logit + shift);
            log_softmax(&mut logits);
            assert!((logits.iter().map(|own| own.exp()).sum::<f32>() - 1.0).abs() < 1e-3);
            assert!((logits[2] - logits[1] - 2.0).abs() < 1e-3, "{logits:?}");
        }
    }
}
