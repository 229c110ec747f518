//! Converts the estimate of a cost model for a loop nest to features, from which other models
//! learn.
//!
//! A learning model can correct the cost model with these features: it learns that this machine
//! waits longer for memory, or that spills cost less. The number of features is the same for every
//! program on a kind of machine. Times are relative to those of the program's default schedule, so
//! that knowledge from one program applies to another.

/// The largest ratio of times, as a power of two. Larger ratios are clamped to it.
const MAX_LOG_RATIO: f64 = 16.0;

/// The estimate of the model for a nest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EstimateFeatures {
    /// The estimated seconds of a call.
    pub seconds: f64,
    /// The seconds of its parts, which overlap.
    pub(in crate::cost) times: Vec<f64>,
    /// Other numbers, which are not scaled.
    pub(in crate::cost) shares: Vec<f64>,
}

impl EstimateFeatures {
    /// The same estimate, if everything took this many times as long.
    pub fn scaled(self, factor: f64) -> EstimateFeatures {
        let times = self.times.into_iter().map(|time| time * factor).collect();
        EstimateFeatures { seconds: self.seconds * factor, times, shares: self.shares }
    }

    /// The estimate of several parts of a program that run one after another. Numbers that are no
    /// times are those of the longest part.
    pub fn sum(parts: impl IntoIterator<Item = EstimateFeatures>) -> EstimateFeatures {
        let (mut sum, mut longest) = (EstimateFeatures::default(), f64::NEG_INFINITY);
        for part in parts {
            sum.seconds += part.seconds;
            sum.times.resize(part.times.len().max(sum.times.len()), 0.0);
            sum.times.iter_mut().zip(&part.times).for_each(|(sum, time)| *sum += time);
            if part.seconds > longest {
                (sum.shares, longest) = (part.shares, part.seconds);
            }
        }
        sum
    }

    /// The parts as shares of the whole, and the other numbers.
    pub(in crate::cost) fn shares_of_time(&self) -> impl Iterator<Item = f32> {
        let whole = self.seconds.max(f64::MIN_POSITIVE);
        let parts = self.times.iter().map(move |time| (time / whole).min(MAX_LOG_RATIO) as f32);
        parts.chain(self.shares.iter().map(|share| *share as f32))
    }

    /// The features of the nest, where `default` is the estimated seconds of the default schedule.
    pub fn features(&self, default: f64) -> Vec<f32> {
        let whole = self.seconds.max(f64::MIN_POSITIVE);
        let relative = |time: f64, to: f64| {
            let ratio = (time / to.max(f64::MIN_POSITIVE)).max(f64::MIN_POSITIVE);
            ratio.log2().clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO) as f32
        };
        let mut features = vec![relative(self.seconds, default)];
        features.extend(self.times.iter().map(|time| relative(*time, default)));
        features.extend(self.times.iter().map(|time| (time / whole).min(MAX_LOG_RATIO) as f32));
        features.extend(self.shares.iter().map(|share| *share as f32));
        features
    }
}
