//! Makes training data for networks from the trials of other programs: steps between points of the
//! new space, scored by trees ([`PredictedStep`]).
//!
//! A network chooses among the directions of one space, so its weights are useless in another
//! space. Trees over the features of loop nests can be transferred. They score points of the new
//! space before any is tried, and the network first learns from steps between such points.

use rand::SeedableRng;
use rand::seq::IteratorRandom;
use rand_pcg::Pcg64Mcg;

use super::{Group, Trees, experience_groups};
use crate::knob::{Knobs, Point};
use crate::strategy::{Features, Start};

/// The number of imagined steps that a network learns from before the search.
const STEPS: usize = 192;

/// A step that was never tried, with the predicted fitness of both ends: 1 for the best point, less
/// for others, 0 for rejected points.
pub(in crate::strategy) struct PredictedStep {
    pub from: Point,
    pub direction: usize,
    pub to: Point,
    pub before: f32,
    pub after: f32,
}

/// Returns steps near the starting points, scored by what was learned from other programs. Returns
/// nothing if there are no trials of other programs.
pub(in crate::strategy) fn predicted_steps(knobs: &Knobs, start: &Start<'_>) -> Vec<PredictedStep> {
    let Some(features) = start.features else { return Vec::new() };
    let groups = experience_groups(knobs, features, start);
    let Some(trees) = Trees::fit(&groups.iter().collect::<Vec<&Group>>()) else { return Vec::new() };
    // A stream of random numbers that is independent of the search's own.
    let rng = &mut Pcg64Mcg::seed_from_u64(!start.seed);
    let mut steps = Vec::new();
    for at in 0..STEPS {
        let from = match start.points.get(at % (2 * start.points.len()).max(1)) {
            Some(point) if knobs.contains(point) => Some(point.clone()),
            _ => knobs.sample(rng),
        };
        let Some(from) = from else { break };
        if let Some((direction, step)) = knobs.directed_moves(&from).into_iter().choose(rng) {
            steps.push((direction, from.with_move(step), from));
        }
    }
    let ends: Vec<Point> = steps.iter().flat_map(|(_, to, from)| [from.clone(), to.clone()]).collect();
    let fitness = fitness(&trees, features, &ends);
    let judged = steps.into_iter().zip(fitness.chunks_exact(2));
    judged
        .map(|((direction, to, from), fitness)| PredictedStep {
            from,
            direction,
            to,
            before: fitness[0],
            after: fitness[1],
        })
        .collect()
}

/// The predicted fitness of points, relative to the best of them.
fn fitness(trees: &Trees, features: &dyn Features, points: &[Point]) -> Vec<f32> {
    let scores: Vec<Option<f32>> =
        features.compute(points).into_iter().map(|row| Some(trees.score(&row?))).collect();
    let best = scores.iter().flatten().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.into_iter().map(|score| score.map_or(0.0, |score| (score - best).exp())).collect()
}
