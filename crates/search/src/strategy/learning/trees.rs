//! Boosted trees that learn to rank.
//!
//! hessboost: pure Rust, the same trees whatever the number of threads, and XGBoost's pairwise ranking objective, which is
//! AutoTVM's. The parameters are AutoTVM's too, but for the number of rounds, which it finds by early stopping.

use hessboost::model::Iterations;
use hessboost::objective::{LambdaRank, Objective};
use hessboost::prelude::{BoostedModel, DMatrix, TrainingParams, train};

/// Trees that are added up.
const ROUNDS: usize = 60;

/// Rows that are ranked among each other, with how good they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::strategy) struct Group {
    pub rows: Vec<Vec<f32>>,
    pub labels: Vec<f32>,
}

/// Trees that say how good a row is in comparison with others.
pub(in crate::strategy) struct Trees {
    model: BoostedModel,
}

impl Trees {
    /// Learns from groups; nothing where there is nothing to compare.
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

    /// How good a row should be.
    pub fn score(&self, row: &[f32]) -> f32 {
        self.model.predict_margin_row(row, Iterations::Best).unwrap_or(f32::NEG_INFINITY)
    }
}
