//! Points as the numbers that networks take.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::knob::{Knobs, Point};

/// Points that are drawn to see how far features range.
const DRAWN: usize = 256;

/// The features of points, each from about 0 to about 1.
pub(in crate::strategy) struct Inputs {
    low: Vec<f32>,
    span: Vec<f32>,
}

impl Inputs {
    /// Of the points of a space.
    pub fn of(knobs: &Knobs) -> Inputs {
        // A generator of its own: what is drawn here changes nothing about a search.
        let mut rng = Pcg64Mcg::seed_from_u64(0);
        let (mut low, mut high) =
            (vec![f32::INFINITY; knobs.width()], vec![f32::NEG_INFINITY; knobs.width()]);
        for _ in 0..DRAWN {
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

    /// How many numbers a point is.
    pub fn width(&self) -> usize {
        self.low.len()
    }

    /// The numbers of a point.
    pub fn row(&self, knobs: &Knobs, point: &Point) -> Vec<f32> {
        let features = knobs.features(point).into_iter();
        features.zip(&self.low).zip(&self.span).map(|((own, low), span)| (own - low) / span).collect()
    }
}
