//! Defines a domain (the possible values of a knob) of numbers where close numbers behave alike: an
//! unroll factor, a number of threads.

/// Numbers, smallest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ordinal(Vec<i64>);

impl Ordinal {
    /// Creates a domain of these numbers, sorted and without repetitions.
    pub fn new(values: impl IntoIterator<Item = i64>) -> Ordinal {
        let mut values: Vec<i64> = values.into_iter().collect();
        values.sort_unstable();
        values.dedup();
        Ordinal(values)
    }

    /// The numbers, smallest first.
    pub fn values(&self) -> &[i64] {
        &self.0
    }

    pub(super) fn size(&self) -> u128 {
        self.0.len() as u128
    }

    /// Returns the indices of the next smaller and the next larger number.
    pub(super) fn neighbours(&self, at: usize) -> Vec<usize> {
        if at >= self.0.len() {
            return Vec::new();
        }
        let (smaller, larger) = (at.checked_sub(1), at + 1);
        smaller.into_iter().chain((larger < self.0.len()).then_some(larger)).collect()
    }

    pub(super) fn width(&self) -> usize {
        1
    }

    /// The feature is the rank, from 0 to 1. The numbers themselves often grow exponentially, which
    /// a model would have to undo.
    pub(super) fn features(&self, at: usize, features: &mut Vec<f32>) {
        features.push(at as f32 / self.0.len().saturating_sub(1).max(1) as f32);
    }
}
