//! Grows one tree of a boosted ensemble by histograms (Chen, Guestrin 2016, section 3).
//!
//! A node is split where the loss decreases most, in the quadratic approximation by first and
//! second derivatives. A histogram has the sums of these derivatives for every bin of every
//! feature. The histogram of the larger child is the difference between those of its parent and
//! the smaller child.

use super::bins::{Bins, Column};
use super::pairwise::Slope;

/// The number of decisions from the root to a leaf.
const DEPTH: u32 = 3;
const LEAVES: usize = 1 << DEPTH;
/// η: the part of the best change that a tree makes.
const RATE: f64 = 0.3;
/// λ: the penalty of large leaf values.
const PENALTY: f64 = 1.0;
/// The least sum of second derivatives in a child.
const MIN_SECOND: f64 = 1.0;
/// The least decrease of the loss that justifies a split.
const MIN_GAIN: f64 = 1e-6;

/// A complete binary tree. The children of node n are 2n + 1 and 2n + 2. Below a node without a
/// split, all leaves have the same value.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tree {
    splits: [Split; LEAVES - 1],
    leaves: [f32; LEAVES],
}

/// Rows whose feature is at least `cut` go to the second child.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Split {
    feature: usize,
    cut: f32,
}

impl Tree {
    /// Grows a tree that changes the scores of rows against these slopes, and changes the scores.
    pub fn grow(bins: &Bins, slopes: &[Slope], scores: &mut [f32]) -> Tree {
        let none = Split { feature: 0, cut: f32::INFINITY };
        let tree = Tree { splits: [none; LEAVES - 1], leaves: [0.0; LEAVES] };
        let mut growing = TreeBuilder { tree, bins, slopes, scores };
        let rows: Vec<u32> = (0..bins.rows as u32).collect();
        let total = slopes.iter().fold(Slope::default(), |sum, own| sum + *own);
        let histogram = growing.histogram(&rows);
        growing.grow(Node { index: 0, rows, total }, histogram);
        growing.tree
    }

    /// The value of the leaf that a row belongs to.
    pub fn score(&self, row: &[f32]) -> f32 {
        let mut node = 0;
        for _ in 0..DEPTH {
            let Split { feature, cut } = self.splits[node];
            node = 2 * node + 1 + usize::from(row[feature] >= cut);
        }
        self.leaves[node + 1 - LEAVES]
    }
}

/// A tree while it grows.
struct TreeBuilder<'a> {
    tree: Tree,
    bins: &'a Bins,
    slopes: &'a [Slope],
    scores: &'a mut [f32],
}

/// A node with its rows and the sum of their slopes.
struct Node {
    index: usize,
    rows: Vec<u32>,
    total: Slope,
}

/// The best split of a node: the rows up to this bin of a column, and the sum of their slopes.
struct BestSplit<'a> {
    gain: f64,
    column: &'a Column,
    bin: u8,
    low: Slope,
}

impl<'a> TreeBuilder<'a> {
    /// Grows the tree below a node, given the node's histogram.
    fn grow(&mut self, node: Node, histogram: Vec<Slope>) {
        let Some(best) = self.best_split(node.total, &histogram) else { return self.set_leaves(node) };
        let (low, high) = self.split(node, &best);
        if low.index >= LEAVES - 1 {
            self.set_leaves(low);
            return self.set_leaves(high);
        }
        let (small, large) = if low.rows.len() < high.rows.len() { (low, high) } else { (high, low) };
        let of_small = self.histogram(&small.rows);
        let of_large = histogram.iter().zip(&of_small).map(|(all, small)| *all - *small).collect();
        self.grow(small, of_small);
        self.grow(large, of_large);
    }

    /// The sum of the slopes of rows, for every bin of every column.
    fn histogram(&self, rows: &[u32]) -> Vec<Slope> {
        let mut sums = vec![Slope::default(); self.bins.count];
        let slopes: Vec<Slope> = rows.iter().map(|row| self.slopes[*row as usize]).collect();
        for column in &self.bins.columns {
            let sums = &mut sums[column.range()];
            for (row, slope) in rows.iter().zip(&slopes) {
                let sum = &mut sums[usize::from(column.bins[*row as usize])];
                *sum = *sum + *slope;
            }
        }
        sums
    }

    /// The split that decreases the loss most. If several do, it is the first one.
    fn best_split(&self, total: Slope, histogram: &[Slope]) -> Option<BestSplit<'a>> {
        let mut best: Option<BestSplit<'a>> = None;
        for column in &self.bins.columns {
            let mut low = Slope::default();
            for (bin, own) in histogram[column.range()].iter().take(column.cuts.len()).enumerate() {
                low = low + *own;
                let gain = gain(low, total - low) - loss_decrease(total);
                if gain > best.as_ref().map_or(MIN_GAIN, |best| best.gain) {
                    best = Some(BestSplit { gain, column, bin: bin as u8, low });
                }
            }
        }
        best
    }

    /// Splits a node into its children.
    fn split(&mut self, node: Node, best: &BestSplit<'_>) -> (Node, Node) {
        let BestSplit { column, bin, low, .. } = *best;
        let cut = column.cuts[usize::from(bin)];
        self.tree.splits[node.index] = Split { feature: column.feature, cut };
        let is_low = |row: &u32| column.bins[*row as usize] <= bin;
        let (lows, highs) = node.rows.into_iter().partition(is_low);
        let first = 2 * node.index + 1;
        (
            Node { index: first, rows: lows, total: low },
            Node { index: first + 1, rows: highs, total: node.total - low },
        )
    }

    /// Gives all leaves below a node the same value.
    fn set_leaves(&mut self, node: Node) {
        let value = (-RATE * node.total.first / (node.total.second + PENALTY)) as f32;
        let (mut first, mut count) = (node.index, 1);
        while first < LEAVES - 1 {
            (first, count) = (2 * first + 1, 2 * count);
        }
        self.tree.leaves[first + 1 - LEAVES..][..count].fill(value);
        node.rows.iter().for_each(|row| self.scores[*row as usize] += value);
    }
}

/// Twice the decrease of the loss when both children have their best values, or 0 if a child is too
/// small.
fn gain(low: Slope, high: Slope) -> f64 {
    match low.second >= MIN_SECOND && high.second >= MIN_SECOND {
        true => loss_decrease(low) + loss_decrease(high),
        false => 0.0,
    }
}

/// Twice the decrease of the loss when rows with these sums have the best value.
fn loss_decrease(rows: Slope) -> f64 {
    rows.first * rows.first / (rows.second + PENALTY)
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    use super::*;

    /// Rows of three features from 0 to 9, and slopes.
    fn random(rows: usize, seed: u64) -> (Vec<Vec<f32>>, Vec<Slope>) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let row = |rng: &mut Pcg64Mcg| (0..3).map(|_| rng.random_range(0..10) as f32).collect();
        let rows: Vec<Vec<f32>> = (0..rows).map(|_| row(&mut rng)).collect();
        let slopes = rows.iter().map(|_| Slope { first: rng.random_range(-1.0..1.0), second: 0.3 });
        (rows.clone(), slopes.collect())
    }

    fn grown(rows: &[Vec<f32>], slopes: &[Slope]) -> (Tree, Vec<f32>) {
        let bins = Bins::new(&rows.iter().map(Vec::as_slice).collect::<Vec<&[f32]>>(), rows[0].len());
        let mut scores = vec![0.0; rows.len()];
        (Tree::grow(&bins, slopes, &mut scores), scores)
    }

    #[test]
    fn a_step_is_found() {
        let rows: Vec<Vec<f32>> = (0..20).map(|at| vec![7.0, at as f32]).collect();
        let slope = |row: &Vec<f32>| Slope { first: if row[1] < 13.0 { 1.0 } else { -1.0 }, second: 1.0 };
        let slopes: Vec<Slope> = rows.iter().map(slope).collect();
        let (tree, scores) = grown(&rows, &slopes);
        assert_eq!(tree.splits[0], Split { feature: 1, cut: 13.0 });
        assert!(rows.iter().zip(&scores).all(|(row, score)| (row[1] < 13.0) == (*score < 0.0)), "{scores:?}");
    }

    /// The scores of the rows become those that the tree gives.
    #[test]
    fn scores_are_those_of_the_tree() {
        let (rows, slopes) = random(200, 1);
        let (tree, scores) = grown(&rows, &slopes);
        assert!(rows.iter().zip(&scores).all(|(row, score)| tree.score(row) == *score));
    }

    /// The root has the split with the largest gain of all.
    #[test]
    fn no_split_is_better_than_the_first() {
        for seed in 0..20 {
            let (rows, slopes) = random(60, seed);
            let of = |feature: usize, cut: f32| {
                let mut sums = [Slope::default(); 2];
                for (row, slope) in rows.iter().zip(&slopes) {
                    let side = &mut sums[usize::from(row[feature] >= cut)];
                    *side = *side + *slope;
                }
                gain(sums[0], sums[1])
            };
            let all = (0..3).flat_map(|feature| (0..10).map(move |cut| (feature, cut as f32)));
            let best = all.map(|(feature, cut)| of(feature, cut)).fold(0.0, f64::max);
            let Split { feature, cut } = grown(&rows, &slopes).0.splits[0];
            assert!((of(feature, cut) - best).abs() < 1e-9, "seed {seed}");
        }
    }

    #[test]
    fn nodes_without_gain_are_not_split() {
        let rows: Vec<Vec<f32>> = (0..20).map(|at| vec![at as f32]).collect();
        let (tree, _) = grown(&rows, &[Slope { first: 1.0, second: 1.0 }; 20]);
        assert!((tree.leaves[0] + 0.3 * 20.0 / 21.0).abs() < 1e-6 && tree.leaves == [tree.leaves[0]; LEAVES]);
        // Both children need a sum of second derivatives of at least 1.
        let light = |row: &Vec<f32>| Slope { first: f64::from(row[0]) - 10.0, second: 0.09 };
        let (tree, _) = grown(&rows, &rows.iter().map(light).collect::<Vec<Slope>>());
        assert_eq!(tree.leaves, [tree.leaves[0]; LEAVES]);
    }
}
