//! Converts the trials of other programs ([`Experience`]) to training data of trees: one [`Group`]
//! of rows for each program, with the relative fitness as labels.

use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

use crate::knob::{Knobs, Point};
use crate::strategy::ranking::Cost;
use crate::strategy::{Experience, Features, Start};

/// The number of random points that are examined to find the number of features.
const SAMPLED_POINTS: usize = 32;

/// Rows that are ranked among each other, with their labels; a higher label is better.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::strategy) struct Group {
    pub rows: Vec<Vec<f32>>,
    pub labels: Vec<f32>,
}

/// The trials of other programs, as far as they have the same number of features as the points of
/// this space.
pub(in crate::strategy) fn experience_groups(
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
    let drawn = (0..SAMPLED_POINTS).map_while(|_| knobs.sample(&mut rng));
    let some: Vec<Point> = given.chain(drawn).collect();
    let width = features.compute(&some).into_iter().flatten().map(|row| row.len()).next();
    let groups = start.experience.iter().map(Group::from);
    groups.filter(|group| group.rows.iter().all(|row| Some(row.len()) == width)).collect()
}

impl From<&Experience> for Group {
    fn from(own: &Experience) -> Group {
        let costs = || own.trials.iter().filter_map(|(_, cost)| cost.and_then(Cost::new));
        let best = costs().min();
        let label = |cost: &Option<f64>| Cost::relative_fitness(cost.and_then(Cost::new), best) as f32;
        Group {
            rows: own.trials.iter().map(|(row, _)| row.clone()).collect(),
            labels: own.trials.iter().map(|(_, cost)| label(cost)).collect(),
        }
    }
}
