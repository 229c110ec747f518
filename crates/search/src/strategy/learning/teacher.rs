//! What was learned from other programs, as a teacher for networks.
//!
//! The directions that a network chooses among are those of one space, so what it learned there
//! says nothing elsewhere. Trees over the features of loop nests do: they judge points of the new
//! space before any is tried, and a network learns from steps between such points first.

use rand::SeedableRng;
use rand::seq::IteratorRandom;
use rand_pcg::Pcg64Mcg;

use super::{Group, Trees, experience};
use crate::knob::{Knobs, Point};
use crate::strategy::{Features, Start};

/// Steps that a network learns from before it searches.
const STEPS: usize = 192;

/// A step that was never made, with how good its ends should be: 1 for the best, less for others, 0
/// for what is refused.
pub(in crate::strategy) struct Imagined {
    pub from: Point,
    pub direction: usize,
    pub to: Point,
    pub before: f32,
    pub after: f32,
}

/// Steps around points to start from, as judged by what was learned from other programs; none where
/// nothing was.
pub(in crate::strategy) fn imagined(knobs: &Knobs, start: &Start<'_>) -> Vec<Imagined> {
    let Some(features) = start.features else { return Vec::new() };
    let groups = experience(knobs, features, start);
    let Some(trees) = Trees::fit(&groups.iter().collect::<Vec<&Group>>()) else { return Vec::new() };
    // Another stream than the search's own.
    let rng = &mut Pcg64Mcg::seed_from_u64(!start.seed);
    let mut steps = Vec::new();
    for at in 0..STEPS {
        let from = match start.points.get(at % (2 * start.points.len()).max(1)) {
            Some(point) if knobs.contains(point) => Some(point.clone()),
            _ => knobs.sample(rng),
        };
        let Some(from) = from else { break };
        if let Some((direction, step)) = knobs.directed_moves(&from).into_iter().choose(rng) {
            steps.push((direction, from.after(step), from));
        }
    }
    let ends: Vec<Point> = steps.iter().flat_map(|(_, to, from)| [from.clone(), to.clone()]).collect();
    let fitness = fitness(&trees, features, &ends);
    let judged = steps.into_iter().zip(fitness.chunks_exact(2));
    judged
        .map(|((direction, to, from), fitness)| Imagined {
            from,
            direction,
            to,
            before: fitness[0],
            after: fitness[1],
        })
        .collect()
}

/// How fast points should be, in comparison with the best of them.
fn fitness(trees: &Trees, features: &dyn Features, points: &[Point]) -> Vec<f32> {
    let scores: Vec<Option<f32>> =
        features.of(points).into_iter().map(|row| Some(trees.score(&row?))).collect();
    let best = scores.iter().flatten().copied().fold(f32::NEG_INFINITY, f32::max);
    scores.into_iter().map(|score| score.map_or(0.0, |score| (score - best).exp())).collect()
}
