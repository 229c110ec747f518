//! Trains boosted trees that learn to rank, as XGBoost's do (Chen, Guestrin 2016) for AutoTVM.
//!
//! Every round computes how the score of each row should change (`pairwise.rs`), and grows one tree
//! (`tree.rs`) whose leaves approximate these changes. The tree sees features in bins (`bins.rs`).
//! A row's score is the sum of the trees. The parameters are those of AutoTVM, except for the
//! number of rounds, which AutoTVM finds by early stopping. Parameters that AutoTVM leaves open
//! have XGBoost's defaults. Training is deterministic and runs on one thread.
//!
//! The trees are our own because a library took too long to build. hessboost, with the same
//! objective and up to rounding the same scores, had 106 000 lines and took 172 s of the compiler's
//! time. It also needed twice the time of these trees for a training. Training and scoring take 0.3
//! to 0.7 ms per proposal. The largest cost of `trees` is computing the features of loop nests,
//! which takes one or two milliseconds each.

use super::bins::Bins;
use super::experience::Group;
use super::pairwise::{Slope, slopes};
use super::tree::Tree;

/// The number of boosting rounds.
const ROUNDS: usize = 60;

/// Trees that score a row in comparison with other rows.
pub(in crate::strategy) struct Trees {
    /// The number of features.
    width: usize,
    trees: Vec<Tree>,
}

impl Trees {
    /// Trains trees with groups of rows. Returns `None` if no group has two rows to compare, or if
    /// rows have no features or different numbers of them.
    pub fn fit(groups: &[&Group]) -> Option<Trees> {
        let groups: Vec<&&Group> = groups.iter().filter(|group| group.rows.len() > 1).collect();
        let rows: Vec<&[f32]> =
            groups.iter().flat_map(|group| &group.rows).map(|row| row.as_slice()).collect();
        let width = rows.first()?.len();
        if width == 0 || rows.iter().any(|row| row.len() != width) {
            return None;
        }
        let bins = Bins::new(&rows, width);
        let mut scores = vec![0.0; rows.len()];
        let mut changes = vec![Slope::default(); rows.len()];
        let trees = (0..ROUNDS).map(|_| {
            let mut from = 0;
            for group in &groups {
                let own = from..from + group.labels.len();
                slopes(&scores[own.clone()], &group.labels, &mut changes[own.clone()]);
                from = own.end;
            }
            Tree::grow(&bins, &changes, &mut scores)
        });
        Some(Trees { width, trees: trees.collect() })
    }

    /// The score of a row; higher is better. A row with another number of features has the lowest
    /// score.
    pub fn score(&self, row: &[f32]) -> f32 {
        if row.len() != self.width {
            return f32::NEG_INFINITY;
        }
        self.trees.iter().map(|tree| tree.score(row)).sum()
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    /// Random rows with the labels of a known function of three of their five features.
    fn group(rows: usize, seed: u64) -> Group {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut row = || (0..5).map(|_| rng.random_range(0.0..8.0)).collect::<Vec<f32>>();
        let rows: Vec<Vec<f32>> = (0..rows).map(|_| row()).collect();
        let label = |row: &Vec<f32>| 1.0 / (1.0 + (row[0] - 3.0).powi(2) + row[2] * row[2] + row[3]);
        Group { labels: rows.iter().map(label).collect(), rows }
    }

    /// The part of all pairs of rows that trees rank as their labels do.
    fn agreement(trees: &Trees, group: &Group) -> f64 {
        let scores: Vec<f32> = group.rows.iter().map(|row| trees.score(row)).collect();
        let pairs = || (0..scores.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        let agrees = |(one, other): &(usize, usize)| {
            (scores[*one] < scores[*other]) == (group.labels[*one] < group.labels[*other])
        };
        pairs().filter(agrees).count() as f64 / pairs().count() as f64
    }

    /// The mean label of the ten rows with the highest scores.
    fn best_ten(group: &Group, score: impl Fn(usize) -> f32) -> f32 {
        let mut order: Vec<usize> = (0..group.rows.len()).collect();
        order.sort_by(|left, right| score(*right).total_cmp(&score(*left)));
        order[..10].iter().map(|at| group.labels[*at]).sum::<f32>() / 10.0
    }

    /// The objective is about the best rows: trees find them among rows that they have not seen.
    #[test]
    fn the_best_of_a_known_function_are_found() {
        let (taught, unseen) = (group(400, 1), group(200, 2));
        let trees = Trees::fit(&[&taught]).unwrap();
        let found = best_ten(&unseen, |at| trees.score(&unseen.rows[at]));
        let best = best_ten(&unseen, |at| unseen.labels[at]);
        assert!(found > 0.8 * best, "{found} is the mean label, and {best} that of the best");
        assert!(agreement(&trees, &unseen) > 0.7);
    }

    #[test]
    fn training_repeats() {
        let group = group(100, 3);
        let scores = || {
            let trees = Trees::fit(&[&group]).unwrap();
            group.rows.iter().map(|row| trees.score(row).to_bits()).collect::<Vec<u32>>()
        };
        assert_eq!(scores(), scores());
    }

    /// Labels of different groups are never compared: here, they contradict each other.
    #[test]
    fn groups_are_ranked_apart() {
        let rows = |offset: f32| (0..10).map(|at| vec![at as f32 + offset]).collect::<Vec<Vec<f32>>>();
        let labels = |offset: f32| (0..10).map(|at| at as f32 - offset).collect::<Vec<f32>>();
        let low = Group { rows: rows(0.0), labels: labels(-100.0) };
        let high = Group { rows: rows(0.5), labels: labels(0.0) };
        let trees = Trees::fit(&[&low, &high]).unwrap();
        assert!(agreement(&trees, &low) > 0.9 && agreement(&trees, &high) > 0.9);
    }

    #[test]
    fn there_must_be_rows_to_compare() {
        let one = Group { rows: vec![vec![1.0]], labels: vec![1.0] };
        assert!(Trees::fit(&[]).is_none() && Trees::fit(&[&one, &one]).is_none());
        let empty = Group { rows: vec![vec![]; 2], labels: vec![0.0, 1.0] };
        let different = Group { rows: vec![vec![1.0], vec![1.0, 2.0]], labels: vec![0.0, 1.0] };
        assert!(Trees::fit(&[&empty]).is_none() && Trees::fit(&[&different]).is_none());
        let trees = Trees::fit(&[&group(10, 4)]).unwrap();
        assert_eq!(trees.score(&[1.0]), f32::NEG_INFINITY);
    }
}
