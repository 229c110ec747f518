//! Updates the weights of FlexTensor's network by AdaDelta (Zeiler 2012).
//!
//! The length of a step is the slope times the ratio of the recent steps to the recent slopes.

/// The decay of the running means, and the constant that keeps the first steps from being 0. Both
/// values are those of the paper.
const DECAY: f32 = 0.95;
const EPSILON: f32 = 1e-6;

/// The optimiser of a vector of weights.
pub(in crate::strategy) struct AdaDelta {
    /// The running means of squared slopes and of squared steps.
    slopes: Vec<f32>,
    steps: Vec<f32>,
}

impl AdaDelta {
    /// Creates an optimiser of `size` weights.
    pub fn new(size: usize) -> AdaDelta {
        AdaDelta { slopes: vec![0.0; size], steps: vec![0.0; size] }
    }

    /// Performs one step against the slopes of a loss.
    pub fn step(&mut self, weights: &mut [f32], slopes: &[f32]) {
        let means = self.slopes.iter_mut().zip(&mut self.steps);
        for ((weight, slope), (squared_slopes, squared_steps)) in weights.iter_mut().zip(slopes).zip(means) {
            *squared_slopes = decayed(*squared_slopes, slope * slope);
            let step = ((*squared_steps + EPSILON) / (*squared_slopes + EPSILON)).sqrt() * slope;
            *squared_steps = decayed(*squared_steps, step * step);
            *weight -= step;
        }
    }
}

fn decayed(mean: f32, new: f32) -> f32 {
    DECAY * mean + (1.0 - DECAY) * new
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first two steps by hand, for a slope of 2.
    #[test]
    fn steps_grow_with_the_steps_before() {
        let (mut optimiser, mut weights) = (AdaDelta::new(1), [1.0]);
        optimiser.step(&mut weights, &[2.0]);
        let first = (1e-6f32 / (0.2 + 1e-6)).sqrt() * 2.0;
        assert!((1.0 - weights[0] - first).abs() < 1e-6, "{weights:?}");
        let before = weights[0];
        optimiser.step(&mut weights, &[2.0]);
        let second = ((0.05 * first * first + 1e-6) / (0.39 + 1e-6)).sqrt() * 2.0;
        assert!((before - weights[0] - second).abs() < 1e-6, "{weights:?}");
    }
}
