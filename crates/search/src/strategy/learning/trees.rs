//! Boosted trees that learn to rank.
//!
//! hessboost: pure Rust, the same trees whatever the number of threads, and XGBoost's pairwise
//! ranking objective, which is AutoTVM's. The parameters are AutoTVM's too, but for the number of
//! rounds, which it finds by early stopping. Learning and asking take 0.4 ms a proposal; what takes
//! longest in `trees` is the features of loop nests, one or two milliseconds each. No other crate
//! was timed.

use hessboost::model::Iterations;
use hessboost::objective::{LambdaRank, Objective};
use hessboost::prelude::{BoostedModel, DMatrix, TrainingParams, train};

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::knob::{Knobs, Point};
use crate::strategy::ranking::Cost;
use crate::strategy::{Experience, Features, Start};

/// Points that are looked at to see how many features there are.
const LOOKED_AT: usize = 32;
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

/// What was tried elsewhere, if it is told in the same features.
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
    // Those given may all be refused, and most of any space is.
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
