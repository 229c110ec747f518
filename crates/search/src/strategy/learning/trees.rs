//! Boosted trees that learn to rank.
//!
//! The implementation is hessboost: pure Rust, results that do not depend on the number of threads,
//! and the pairwise ranking objective of XGBoost, which AutoTVM uses. The parameters are also those
//! of AutoTVM, except for the number of rounds, which AutoTVM finds by early stopping. Training and
//! scoring take 0.4 ms per proposal. The largest cost of `trees` is computing the features of loop
//! nests, which takes one or two milliseconds each. No other crate was timed.

use hessboost::model::Iterations;
use hessboost::objective::{LambdaRank, Objective};
use hessboost::prelude::{BoostedModel, DMatrix, TrainingParams, train};

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::knob::{Knobs, Point};
use crate::strategy::ranking::Cost;
use crate::strategy::{Experience, Features, Start};

/// The number of random points that are examined to find the number of features.
const LOOKED_AT: usize = 32;
/// The number of boosting rounds.
const ROUNDS: usize = 60;

/// Rows that are ranked among each other, with their labels; a higher label is better.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::strategy) struct Group {
    pub rows: Vec<Vec<f32>>,
    pub labels: Vec<f32>,
}

/// Trees that score a row in comparison with other rows.
pub(in crate::strategy) struct Trees {
    model: BoostedModel,
}

impl Trees {
    /// Trains trees with groups of rows. Returns `None` if no group has two rows to compare.
    pub fn fit(groups: &[&Group]) -> Option<Trees> {
        let groups: Vec<&&Group> = groups.iter().filter(|group| group.rows.len() > 1).collect();
        let width = groups.first()?.rows.first()?.len();
        let rows: Vec<f32> = groups.iter().flat_map(|group| group.rows.iter().flatten()).copied().collect();
        let labels: Vec<f32> = groups.iter().flat_map(|group| &group.labels).copied().collect();
        let sizes: Vec<usize> = groups.iter().map(|group| group.rows.len()).collect();
        let data = DMatrix::from_dense(&rows, labels.len(), width).ok()?;
        let data = data.with_labels(&labels).ok()?.with_group_sizes(&sizes).ok()?;
        let parameters = TrainingParams::builder()
            .objective(Objective::RankPairwise(LambdaRank::default()))
            .max_depth(3)
            .eta(0.3)
            .nthread(1)
            .build()
            .ok()?;
        Some(Trees { model: train(&parameters, &data, ROUNDS).ok()? })
    }

    /// The score of a row; higher is better.
    pub fn score(&self, row: &[f32]) -> f32 {
        self.model.predict_margin_row(row, Iterations::Best).unwrap_or(f32::NEG_INFINITY)
    }
}

/// The trials of other programs, as far as they have the same number of features as the points of
/// this space.
pub(in crate::strategy) fn experience(
    knobs: &Knobs,
    features: &dyn Features,
    start: &Start<'_>,
) -> Vec<Group> {
    if start.experience.is_empty() {
        return Vec::new();
    }
    let mut rng = Pcg64Mcg::seed_from_u64(start.seed);
    let given = start.points.iter().filter(|point| knobs.contains(point)).cloned();
    // The given points may all be rejected, and most points of any space are.
    let drawn = (0..LOOKED_AT).map_while(|_| knobs.sample(&mut rng));
    let some: Vec<Point> = given.chain(drawn).collect();
    let width = features.of(&some).into_iter().flatten().map(|row| row.len()).next();
    let groups = start.experience.iter().map(Group::from);
    groups.filter(|group| group.rows.iter().all(|row| Some(row.len()) == width)).collect()
}

impl From<&Experience> for Group {
    fn from(own: &Experience) -> Group {
        let costs = || own.trials.iter().filter_map(|(_, cost)| cost.and_then(Cost::new));
        let best = costs().min();
        let label = |cost: &Option<f64>| Cost::goodness(cost.and_then(Cost::new), best) as f32;
        Group {
            rows: own.trials.iter().map(|(row, _)| row.clone()).collect(),
            labels: own.trials.iter().map(|(_, cost)| label(cost)).collect(),
        }
    }
}
