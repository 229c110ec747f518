//! Converts points to inputs of networks: the features of a point, each normalised to a range of
//! about 0 to 1.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::knob::{Knobs, Point};

/// The number of random points that determine the range of each feature.
const SAMPLED_POINTS: usize = 256;

/// The normalisation of features to a range of about 0 to 1.
pub(in crate::strategy) struct Inputs {
    low: Vec<f32>,
    span: Vec<f32>,
}

impl Inputs {
    /// Determines the ranges of the features of a space.
    pub fn new(knobs: &Knobs) -> Inputs {
        // A separate generator, so that the draws here do not affect the search.
        let mut rng = Pcg64Mcg::seed_from_u64(0);
        let (mut low, mut high) =
            (vec![f32::INFINITY; knobs.width()], vec![f32::NEG_INFINITY; knobs.width()]);
        for _ in 0..SAMPLED_POINTS {
            let Some(point) = knobs.sample(&mut rng) else { break };
            for (at, feature) in knobs.features(&point).into_iter().enumerate() {
                low[at] = low[at].min(feature);
                high[at] = high[at].max(feature);
            }
        }
        let span = low.iter().zip(&high).map(|(low, high)| if high > low { high - low } else { 1.0 });
        let span = span.collect();
        low.iter_mut().filter(|low| !low.is_finite()).for_each(|low| *low = 0.0);
        Inputs { low, span }
    }

    /// The number of inputs of a point.
    pub fn width(&self) -> usize {
        self.low.len()
    }

    /// The normalised features of a point.
    pub fn row(&self, knobs: &Knobs, point: &Point) -> Vec<f32> {
        let features = knobs.features(point).into_iter();
        features.zip(&self.low).zip(&self.span).map(|((own, low), span)| (own - low) / span).collect()
    }
}
