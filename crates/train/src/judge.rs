//! Judges models by programs of kinds that they were not trained with.
//!
//! Each kind is left out once: models are trained with the other random pipelines and with what the
//! user has tuned, and predict the schedules of the kind. Groups of given programs are predicted by
//! models of all of these.
//! Two numbers count for a program: the rank correlation of predicted and measured times, and how
//! much longer the schedule takes that the model ranks first than the fastest one.

use std::collections::BTreeSet;
use std::thread;

use tilewright_pipelines::Kind;
use tilewright_search::cost::learned::Weights;

use crate::examples::{Example, Program};
use crate::{boosting, descent, tuned};

/// A kind of models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelKind {
    /// The analytical model of the target.
    Analytical,
    /// The network alone.
    Network,
    /// Trees that correct the analytical model.
    Trees,
    /// The geometric mean of the network, the trees and the analytical model.
    Ensemble,
}

impl ModelKind {
    /// All kinds of models.
    pub const ALL: [ModelKind; 4] =
        [ModelKind::Analytical, ModelKind::Network, ModelKind::Trees, ModelKind::Ensemble];

    /// The name of the kind.
    pub fn name(self) -> &'static str {
        match self {
            ModelKind::Analytical => "analytical",
            ModelKind::Network => "network",
            ModelKind::Trees => "trees",
            ModelKind::Ensemble => "ensemble",
        }
    }

    /// The part of trained weights that a model of this kind uses.
    pub fn part_of(self, weights: &Weights) -> Weights {
        let mut own = weights.clone();
        if !matches!(self, ModelKind::Trees | ModelKind::Ensemble) {
            own.trees.clear();
        }
        if !matches!(self, ModelKind::Network | ModelKind::Ensemble) {
            own.network = None;
        }
        own
    }
}

/// How a model predicts a program.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// The model.
    pub model: ModelKind,
    /// The kind of the program, which the model has not seen.
    pub kind: String,
    /// The program.
    pub program: String,
    /// The rank correlation of predicted and measured times (Spearman), from -1 to 1.
    pub correlation: f64,
    /// The time of the schedule that is predicted fastest, as a multiple of the fastest time.
    pub chosen: f64,
    /// The predicted and the measured seconds of each schedule.
    pub times: Vec<(f64, f64)>,
}

/// Trains the network and trees with some programs.
pub fn train(programs: &[&Program], family: &str) -> Weights {
    let schedules: usize = programs.iter().map(|program| program.schedules.len()).sum();
    let origin = format!("{schedules} schedules of {} programs", programs.len());
    let (trees, network) = thread::scope(|scope| {
        let trees = scope.spawn(|| boosting::grow(programs));
        let network = descent::train(programs, 1);
        (trees.join().unwrap_or_default(), network)
    });
    Weights::new(family.to_owned(), origin, trees, Some(network))
}

/// Whether models are trained with a kind: with random pipelines, and with what a user has tuned.
fn is_trained_with(kind: &str) -> bool {
    kind == tuned::KIND || Kind::ALL.iter().any(|own| own.name() == kind)
}

/// The programs that models are trained with, if those of a kind are left out.
pub fn training_programs<'p>(programs: &'p [Program], left_out: &str) -> Vec<&'p Program> {
    programs.iter().filter(|own| is_trained_with(&own.kind) && own.kind != left_out).collect()
}

/// Judges all kinds of models. `watch` learns of each kind of programs that is left out.
pub fn judge(programs: &[Program], family: &str, watch: &mut dyn FnMut(&str)) -> Vec<Judgement> {
    let kinds: BTreeSet<&str> = programs.iter().map(|own| own.kind.as_str()).collect();
    let mut judgements = Vec::new();
    for kind in kinds {
        watch(kind);
        let others = training_programs(programs, kind);
        if others.is_empty() {
            continue;
        }
        let weights = train(&others, family);
        for model in ModelKind::ALL {
            let weights = model.part_of(&weights);
            let own = programs.iter().filter(|own| own.kind == kind);
            judgements.extend(own.map(|program| judgement(model, &weights, program)));
        }
    }
    judgements
}

fn judgement(model: ModelKind, weights: &Weights, program: &Program) -> Judgement {
    let predict = |own: &Example| own.roots.iter().map(|root| weights.seconds(root)).sum::<f64>();
    let times: Vec<(f64, f64)> = program.schedules.iter().map(|own| (predict(own), own.seconds)).collect();
    let fastest = times.iter().map(|(_, measured)| *measured).fold(f64::INFINITY, f64::min);
    let first = times.iter().min_by(|one, other| one.0.total_cmp(&other.0));
    Judgement {
        model,
        kind: program.kind.clone(),
        program: program.name.clone(),
        correlation: rank_correlation(&times),
        chosen: first.map_or(1.0, |(_, measured)| measured / fastest),
        times,
    }
}

/// The means of the judgements of a model: the correlation, and the geometric mean of `chosen`.
pub fn means<'j>(judgements: impl IntoIterator<Item = &'j Judgement>) -> (f64, f64) {
    let (mut correlation, mut chosen, mut count) = (0.0, 0.0, 0.0);
    for own in judgements {
        correlation += own.correlation;
        chosen += own.chosen.ln();
        count += 1.0;
    }
    (correlation / f64::max(count, 1.0), (chosen / f64::max(count, 1.0)).exp())
}

/// The kind of models whose chosen schedules are fastest.
pub fn best(judgements: &[Judgement]) -> ModelKind {
    let chosen = |model: &ModelKind| means(judgements.iter().filter(|own| own.model == *model)).1;
    let found = ModelKind::ALL.into_iter().min_by(|one, other| chosen(one).total_cmp(&chosen(other)));
    found.unwrap_or(ModelKind::Analytical)
}

/// Spearman's rank correlation of pairs.
fn rank_correlation(pairs: &[(f64, f64)]) -> f64 {
    let one = ranks(&pairs.iter().map(|pair| pair.0).collect::<Vec<f64>>());
    let other = ranks(&pairs.iter().map(|pair| pair.1).collect::<Vec<f64>>());
    let middle = (pairs.len() as f64 - 1.0) / 2.0;
    let product = |left: &[f64], right: &[f64]| {
        left.iter().zip(right).map(|(left, right)| (left - middle) * (right - middle)).sum::<f64>()
    };
    let scale = (product(&one, &one) * product(&other, &other)).sqrt();
    if scale > 0.0 { product(&one, &other) / scale } else { 0.0 }
}

/// The rank of each value; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|own| **own < value).count() as f64;
    let equal = |value: f64| values.iter().filter(|own| **own == value).count() as f64;
    values.iter().map(|value| below(*value) + (equal(*value) - 1.0) / 2.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate_whatever_the_distances() {
        assert_eq!(rank_correlation(&[(1.0, 1.0), (2.0, 10.0), (3.0, 1000.0)]), 1.0);
        assert_eq!(rank_correlation(&[(1.0, 3.0), (2.0, 2.0), (3.0, 1.0)]), -1.0);
        assert_eq!(rank_correlation(&[(1.0, 1.0), (1.0, 2.0)]), 0.0);
    }
}
