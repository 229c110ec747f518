//! Grows boosted regression trees for [`tilewright_search::cost::learned::trees`].
//!
//! A row is a statement outside of loops; the time of a schedule is the sum over its rows. Each
//! tree follows the slopes of the loss of whole schedules with respect to the rows (Chen, Guestrin
//! 2016, sections 2 and 3): a row that takes most of the time of its schedule has a steep slope,
//! and one that takes little has hardly any.

use tilewright_search::cost::learned::trees::{Node, Tree};

use crate::examples::Program;
use crate::loss::residuals;

/// The number of trees, the decisions from the root to a leaf, and the part of the best change that
/// a tree makes.
const TREES: usize = 120;
const DEPTH: usize = 3;
const RATE: f64 = 0.12;
/// The number of bins of a feature.
const BINS: usize = 24;
/// The penalty of large leaf values, and the least sum of second derivatives in a leaf.
const PENALTY: f64 = 8.0;
const LEAST_SECOND: f64 = 6.0;

/// Grows trees for the schedules of some programs.
pub fn grow(programs: &[&Program]) -> Vec<Tree> {
    let rows = Rows::new(programs);
    let mut corrections = vec![0.0; rows.features.len()];
    let mut trees = Vec::with_capacity(TREES);
    for _ in 0..TREES {
        let slopes = rows.slopes(programs, &corrections);
        let tree = TreeBuilder { rows: &rows, slopes: &slopes, nodes: vec![Node::Leaf(0.0)] }.grow();
        for (correction, features) in corrections.iter_mut().zip(&rows.features) {
            *correction += f64::from(tree.value(features));
        }
        trees.push(tree);
    }
    trees
}

/// The first and second derivative of the loss with respect to a row.
#[derive(Clone, Copy, Debug, Default)]
struct Slope {
    first: f64,
    second: f64,
}

impl Slope {
    fn plus(self, other: Slope) -> Slope {
        Slope { first: self.first + other.first, second: self.second + other.second }
    }

    fn minus(self, other: Slope) -> Slope {
        Slope { first: self.first - other.first, second: self.second - other.second }
    }

    /// How much the loss decreases if these rows share a leaf.
    fn gain(self) -> f64 {
        self.first * self.first / (self.second + PENALTY)
    }
}

/// All rows, in the order of programs, schedules and statements.
struct Rows<'p> {
    features: Vec<&'p [f32]>,
    /// The bin of each feature of each row, and the least value of each bin.
    bins: Vec<Vec<u8>>,
    cuts: Vec<Vec<f32>>,
}

impl<'p> Rows<'p> {
    fn new(programs: &[&'p Program]) -> Rows<'p> {
        let examples = programs.iter().flat_map(|program| &program.schedules);
        let features: Vec<&[f32]> =
            examples.flat_map(|own| &own.roots).map(|root| root.values.as_slice()).collect();
        let count = features.first().map_or(0, |row| row.len());
        let cuts: Vec<Vec<f32>> = (0..count).map(|at| cuts(features.iter().map(|row| row[at]))).collect();
        let bin = |row: &&[f32]| {
            let own = row.iter().zip(&cuts);
            own.map(|(value, cuts)| cuts.partition_point(|cut| cut <= value) as u8).collect()
        };
        Rows { bins: features.iter().map(bin).collect(), features, cuts }
    }

    fn slopes(&self, programs: &[&Program], corrections: &[f64]) -> Vec<Slope> {
        let mut slopes = Vec::with_capacity(self.features.len());
        for program in programs {
            let mut at = slopes.len();
            let seconds: Vec<Vec<f64>> = program
                .schedules
                .iter()
                .map(|own| {
                    let rows = own.roots.iter().zip(&corrections[at..]);
                    at += own.roots.len();
                    rows.map(|(root, correction)| root.seconds * correction.exp()).collect()
                })
                .collect();
            let predicted: Vec<f64> = seconds.iter().map(|rows| rows.iter().sum()).collect();
            let measured: Vec<f64> = program.schedules.iter().map(|own| own.seconds).collect();
            let residuals = residuals(&predicted, &measured);
            for ((rows, whole), residual) in seconds.iter().zip(&predicted).zip(residuals) {
                let share = |row: &f64| row / whole.max(f64::MIN_POSITIVE);
                slopes.extend(
                    rows.iter()
                        .map(share)
                        .map(|share| Slope { first: residual * share, second: share * share }),
                );
            }
        }
        slopes
    }
}

/// The least values of the bins of a feature, without that of the first.
fn cuts(values: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut values: Vec<f32> = values.collect();
    values.sort_by(f32::total_cmp);
    let mut cuts: Vec<f32> = (1..BINS).map(|at| values[at * values.len() / BINS]).collect();
    cuts.dedup();
    cuts.retain(|cut| values.first().is_some_and(|first| cut > first));
    cuts
}

/// A tree while it grows.
struct TreeBuilder<'r> {
    rows: &'r Rows<'r>,
    slopes: &'r [Slope],
    nodes: Vec<Node>,
}

/// The best split of a node.
struct Split {
    gain: f64,
    feature: usize,
    bin: usize,
}

impl TreeBuilder<'_> {
    fn grow(mut self) -> Tree {
        let rows: Vec<usize> = (0..self.slopes.len()).collect();
        self.split(0, rows, DEPTH);
        Tree(self.nodes)
    }

    /// Splits a node as long as that decreases the loss, and sets the values of its leaves.
    fn split(&mut self, node: usize, rows: Vec<usize>, depth: usize) {
        let total = rows.iter().fold(Slope::default(), |sum, row| sum.plus(self.slopes[*row]));
        let best = if depth > 0 { self.best_split(&rows, total) } else { None };
        let Some(Split { feature, bin, .. }) = best else {
            self.nodes[node] = Node::Leaf((-RATE * total.first / (total.second + PENALTY)) as f32);
            return;
        };
        let below = self.nodes.len();
        self.nodes[node] = Node::Split(feature as u16, self.rows.cuts[feature][bin], below as u16);
        self.nodes.extend([Node::Leaf(0.0); 2]);
        let is_low = |row: &usize| usize::from(self.rows.bins[*row][feature]) <= bin;
        let (low, high): (Vec<usize>, Vec<usize>) = rows.into_iter().partition(is_low);
        self.split(below, low, depth - 1);
        self.split(below + 1, high, depth - 1);
    }

    fn best_split(&self, rows: &[usize], total: Slope) -> Option<Split> {
        let features = self.rows.cuts.len();
        let mut sums = vec![[Slope::default(); BINS]; features];
        for row in rows {
            let slope = self.slopes[*row];
            for (sums, bin) in sums.iter_mut().zip(&self.rows.bins[*row]) {
                let sum = &mut sums[usize::from(*bin)];
                *sum = sum.plus(slope);
            }
        }
        let mut best = Split { gain: 1e-3, feature: 0, bin: 0 };
        let mut is_found = false;
        for (feature, sums) in sums.iter().enumerate() {
            let mut low = Slope::default();
            for (bin, sum) in sums.iter().enumerate().take(self.rows.cuts[feature].len()) {
                low = low.plus(*sum);
                let high = total.minus(low);
                let gain = low.gain() + high.gain() - total.gain();
                if gain > best.gain && low.second.min(high.second) > LEAST_SECOND {
                    (best, is_found) = (Split { gain, feature, bin }, true);
                }
            }
        }
        is_found.then_some(best)
    }
}

#[cfg(test)]
mod tests {
    use tilewright_search::cost::learned::trees::value;

    use super::*;
    use crate::examples::made_up::programs;

    #[test]
    fn trees_learn_what_makes_schedules_slow() {
        let programs = programs();
        let trees = grow(&programs.iter().collect::<Vec<_>>());
        let factor = |slow: f32| value(&trees, &[0.5, slow]).exp();
        // The mean error of a program hardly counts, so only the ratio is known.
        let ratio = factor(1.0) / factor(0.0);
        assert!((3.0..5.0).contains(&ratio), "{ratio}");
    }
}
