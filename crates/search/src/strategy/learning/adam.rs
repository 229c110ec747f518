//! Updates the weights of a network by Adam (Kingma, Ba 2015): a step along the running mean of the
//! slopes, divided by the root of the running mean of their squares.

/// β₁ and β₂, the decays of the running means, and ε. All values are those of the paper.
const DECAY: f32 = 0.9;
const SQUARES_DECAY: f32 = 0.999;
const EPSILON: f32 = 1e-8;

/// The optimiser of a vector of weights.
pub(in crate::strategy) struct Adam {
    rate: f32,
    /// The running means of slopes and of squared slopes.
    means: Vec<f32>,
    squares: Vec<f32>,
    /// The powers of both decays: the weight of the zeros that the means began with.
    zero_weights: [f32; 2],
}

impl Adam {
    /// Creates an optimiser of `size` weights with this learning rate.
    pub fn new(size: usize, rate: f64) -> Adam {
        Adam { rate: rate as f32, means: vec![0.0; size], squares: vec![0.0; size], zero_weights: [1.0; 2] }
    }

    /// Performs one step against the slopes of a loss.
    pub fn step(&mut self, weights: &mut [f32], slopes: &[f32]) {
        let [of_zeros, of_zero_squares] = &mut self.zero_weights;
        *of_zeros *= DECAY;
        *of_zero_squares *= SQUARES_DECAY;
        let (scale, square_scale) = (self.rate / (1.0 - *of_zeros), 1.0 / (1.0 - *of_zero_squares));
        let means = self.means.iter_mut().zip(&mut self.squares);
        for ((weight, slope), (mean, square)) in weights.iter_mut().zip(slopes).zip(means) {
            *mean = DECAY * *mean + (1.0 - DECAY) * slope;
            *square = SQUARES_DECAY * *square + (1.0 - SQUARES_DECAY) * slope * slope;
            *weight -= scale * *mean / ((square_scale * *square).sqrt() + EPSILON);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first step has the length of the rate, whatever the slope.
    #[test]
    fn the_first_step_is_the_rate() {
        let (mut optimiser, mut weights) = (Adam::new(3, 0.01), [1.0, 1.0, 1.0]);
        optimiser.step(&mut weights, &[1e-3, -40.0, 0.0]);
        assert!((weights[0] - 0.99).abs() < 1e-5 && (weights[1] - 1.01).abs() < 1e-5, "{weights:?}");
        assert_eq!(weights[2], 1.0);
    }

    #[test]
    fn a_parabola_is_descended() {
        let (mut optimiser, mut weights) = (Adam::new(2, 0.05), [3.0, -1.0]);
        for _ in 0..500 {
            let slopes = [2.0 * (weights[0] - 1.0), 20.0 * (weights[1] - 2.0)];
            optimiser.step(&mut weights, &slopes);
        }
        assert!((weights[0] - 1.0).abs() < 1e-2 && (weights[1] - 2.0).abs() < 1e-2, "{weights:?}");
    }
}
