//! Defines a domain (the possible values of a knob) whose values are all orders of some loops.

use rand::Rng;
use rand::seq::SliceRandom;

/// All orders of this number of elements, which are numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation(pub usize);

impl Permutation {
    pub(super) fn size(&self) -> u128 {
        (1..=self.0 as u128).fold(1, u128::saturating_mul)
    }

    /// Decodes `index` in the factorial number system: digit `k` selects the next element among the
    /// `k` remaining ones.
    pub(super) fn nth(&self, mut index: u128) -> Option<Vec<usize>> {
        if index >= self.size() {
            return None;
        }
        let mut digits = Vec::with_capacity(self.0);
        for left in 1..=self.0 as u128 {
            digits.push((index % left) as usize);
            index /= left;
        }
        let mut left: Vec<usize> = (0..self.0).collect();
        Some(digits.into_iter().rev().map(|digit| left.remove(digit)).collect())
    }

    pub(super) fn shuffled<R: Rng + ?Sized>(&self, rng: &mut R) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.0).collect();
        order.shuffle(rng);
        order
    }

    pub(super) fn contains(&self, order: &[usize]) -> bool {
        let mut present = vec![false; self.0];
        order.len() == self.0
            && order.iter().all(|&element| {
                present.get_mut(element).is_some_and(|present| !std::mem::replace(present, true))
            })
    }

    /// Returns all orders that differ by an exchange of two elements.
    pub(super) fn neighbours(&self, order: &[usize]) -> Vec<Vec<usize>> {
        if !self.contains(order) {
            return Vec::new();
        }
        let mut neighbours = Vec::with_capacity(order.len() * order.len().saturating_sub(1) / 2);
        for first in 0..order.len() {
            for second in first + 1..order.len() {
                let mut exchanged = order.to_vec();
                exchanged.swap(first, second);
                neighbours.push(exchanged);
            }
        }
        neighbours
    }

    pub(super) fn width(&self) -> usize {
        self.0
    }

    /// The features are the positions of the elements, from 0 (outermost) to 1.
    pub(super) fn features(&self, order: &[usize], features: &mut Vec<f32>) {
        let start = features.len();
        features.resize(start + self.0, 0.0);
        let last = self.0.saturating_sub(1).max(1) as f32;
        for (position, &element) in order.iter().enumerate() {
            features[start + element] = position as f32 / last;
        }
    }
}
