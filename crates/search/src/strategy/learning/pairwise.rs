//! Computes the objective of trees that learn to rank: the derivatives of the pairwise logistic
//! loss, with XGBoost's choice and weights of pairs (LambdaMART; Burges 2010).
//!
//! Each of the [`TOP`] rows with the highest scores forms a pair with every row of a lower score. A
//! pair whose labels differ has the loss ln(1 + e^-d), where d is the score of the better row less
//! the score of the other. A pair weighs more if its scores are close. The slopes of a group are
//! scaled such that a group with many pairs does not outweigh all others.

use std::ops::{Add, Sub};

use super::sigmoid::sigmoid;

/// The number of rows with the highest scores that are compared with all others.
const TOP: usize = 32;
/// The distance of scores at which a pair has half the weight of a pair with equal scores.
const HALF_WEIGHT_DISTANCE: f32 = 0.01;
/// The least second derivative of a pair.
const MIN_SECOND: f32 = 1e-16;

/// The first and second derivative of the loss with respect to the score of a row, or their sums
/// over several rows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Slope {
    pub first: f64,
    pub second: f64,
}

impl Add for Slope {
    type Output = Slope;

    fn add(self, other: Slope) -> Slope {
        Slope { first: self.first + other.first, second: self.second + other.second }
    }
}

impl Sub for Slope {
    type Output = Slope;

    fn sub(self, other: Slope) -> Slope {
        Slope { first: self.first - other.first, second: self.second - other.second }
    }
}

/// Computes the slopes of the rows of one group, given their scores and labels.
pub(super) fn slopes(scores: &[f32], labels: &[f32], out: &mut [Slope]) {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|left, right| scores[*right].total_cmp(&scores[*left]));
    let mut sorted = Sorted::sort(&order, scores, labels);
    (0..order.len().min(TOP)).for_each(|at| sorted.compare(at));
    // Each pair pulls at two rows.
    let total = 2.0 * f64::from(sum(&sorted.absolute_first));
    let scale = if total > 0.0 { (1.0 + total).log2() / total } else { 1.0 };
    for (at, row) in order.into_iter().enumerate() {
        let (first, second) = (f64::from(sorted.first[at]), f64::from(sorted.second[at]));
        out[row] = Slope { first: scale * first, second: scale * second };
    }
}

/// The rows of a group in the order of their scores, highest first. Each quantity has a vector of
/// its own, so that the compiler vectorises the loops over rows.
struct Sorted {
    scores: Vec<f32>,
    labels: Vec<f32>,
    /// The sums of the derivatives of all pairs so far.
    first: Vec<f32>,
    second: Vec<f32>,
    /// The sum of the absolute first derivatives of the pairs in which the row is the lower one.
    absolute_first: Vec<f32>,
    /// The derivatives of the pairs of one row and each row below it.
    pair_first: Vec<f32>,
    pair_second: Vec<f32>,
}

impl Sorted {
    fn sort(order: &[usize], scores: &[f32], labels: &[f32]) -> Sorted {
        let zeros = || vec![0.0; order.len()];
        Sorted {
            scores: order.iter().map(|row| scores[*row]).collect(),
            labels: order.iter().map(|row| labels[*row]).collect(),
            first: zeros(),
            second: zeros(),
            absolute_first: zeros(),
            pair_first: zeros(),
            pair_second: zeros(),
        }
    }

    /// Adds the slopes of the pairs of row `at` and each row below it.
    fn compare(&mut self, at: usize) {
        let (score, label, below) = (self.scores[at], self.labels[at], at + 1..);
        // If all scores are equal, as before the first round, closeness means nothing.
        let is_even = self.scores.first() == self.scores.last();
        let (pulls, bends) = (&mut self.pair_first[below.clone()], &mut self.pair_second[below.clone()]);
        let others = self.scores[below.clone()].iter().zip(&self.labels[below.clone()]);
        for ((pull, bend), (other, its_label)) in pulls.iter_mut().zip(bends.iter_mut()).zip(others) {
            (*pull, *bend) = pair(score - other, label - its_label, is_even);
        }
        let pulled = self.first[below.clone()].iter_mut().zip(&mut self.absolute_first[below.clone()]);
        for ((first, pulled), pull) in pulled.zip(pulls.iter()) {
            *first -= pull;
            *pulled += pull.abs();
        }
        self.second[below].iter_mut().zip(bends.iter()).for_each(|(second, bend)| *second += bend);
        self.first[at] += sum(pulls);
        self.second[at] += sum(bends);
    }
}

/// The first and second derivative of the loss of a pair with respect to the score of the first
/// row, given the differences of scores and labels. Both are 0 if the labels are equal.
fn pair(distance: f32, labels: f32, is_even: bool) -> (f32, f32) {
    let sign = f32::from(u8::from(labels > 0.0)) - f32::from(u8::from(labels < 0.0));
    let weight = if is_even { 1.0 } else { 1.0 / (distance.abs() + HALF_WEIGHT_DISTANCE) };
    let chance = sigmoid(sign * distance);
    let bend = 2.0 * (chance * (1.0 - chance)).max(MIN_SECOND);
    (sign * (chance - 1.0) * weight, sign * sign * bend * weight)
}

/// The sum of numbers, by several partial sums that the compiler keeps in a vector.
fn sum(numbers: &[f32]) -> f32 {
    let (eights, rest) = numbers.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for eight in eights {
        sums.iter_mut().zip(eight).for_each(|(sum, own)| *sum += own);
    }
    sums.iter().chain(rest).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scores: &[f32], labels: &[f32]) -> Vec<Slope> {
        let mut out = vec![Slope::default(); scores.len()];
        slopes(scores, labels, &mut out);
        out
    }

    #[test]
    fn pairs_have_the_slopes_of_the_logistic_loss() {
        for (distance, labels) in [(0.3f32, 1.0f32), (-1.2, 0.5), (0.7, -2.0), (-0.1, -1.0)] {
            let sign = f64::from(labels.signum());
            let loss = |distance: f64| (1.0 + (-sign * distance).exp()).ln();
            let (at, step) = (f64::from(distance), 1e-4);
            let first = (loss(at + step) - loss(at - step)) / (2.0 * step);
            let second = (loss(at + step) - 2.0 * loss(at) + loss(at - step)) / (step * step);
            let (pull, bend) = pair(distance, labels, true);
            assert!((f64::from(pull) - first).abs() < 1e-5, "{pull} {first}");
            // XGBoost doubles the second derivative.
            assert!((f64::from(bend) - 2.0 * second).abs() < 1e-4, "{bend} {second}");
            let (near, weight) =
                (pair(distance, labels, false).0, 1.0 / (distance.abs() + HALF_WEIGHT_DISTANCE));
            assert!((near - pull * weight).abs() < 1e-4);
        }
        assert_eq!(pair(0.4, 0.0, false), (0.0, 0.0));
    }

    #[test]
    fn better_rows_are_pulled_up_and_worse_ones_down() {
        let slopes = of(&[0.0; 3], &[0.2, 1.0, 0.0]);
        assert!(slopes[1].first < slopes[0].first && slopes[0].first < slopes[2].first, "{slopes:?}");
        assert!(slopes.iter().map(|own| own.first).sum::<f64>().abs() < 1e-6);
        assert!(slopes.iter().all(|own| own.second > 0.0));
        assert_eq!(of(&[0.1, 0.5], &[1.0, 1.0]), [Slope::default(); 2]);
        assert_eq!(of(&[], &[]), []);
    }

    /// The last row differs from all others. The rows of the highest scores form pairs with it, and
    /// the rows between do not.
    #[test]
    fn only_the_highest_scores_are_compared_with_all() {
        let count = TOP + 10;
        let scores: Vec<f32> = (0..count).map(|at| -0.1 * at as f32).collect();
        let mut labels = vec![1.0; count];
        labels[count - 1] = 0.0;
        let slopes = of(&scores, &labels);
        assert!(slopes[..TOP].iter().all(|own| own.first < 0.0));
        assert!(slopes[TOP..count - 1].iter().all(|own| *own == Slope::default()));
        assert!(slopes[count - 1].first > 0.0);
    }

    #[test]
    fn many_pairs_do_not_outweigh_few() {
        let labels: Vec<f32> = (0..500).map(|at| at as f32).collect();
        let strength = |count: usize| {
            of(&vec![0.0; count], &labels[..count]).iter().map(|own| own.first.abs()).sum::<f64>()
        };
        assert!(strength(500) < 20.0 * strength(2), "{} {}", strength(500), strength(2));
    }

    #[test]
    fn sums_of_any_length() {
        for count in [0, 3, 8, 21] {
            let numbers: Vec<f32> = (0..count).map(|at| at as f32).collect();
            assert_eq!(sum(&numbers), (count * (count - 1).max(0) / 2) as f32);
        }
    }
}
