//! Draws points of a space: anywhere, or near the point that static analysis chooses.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use tilewright::Schedule;
use tilewright_search::knob::Point;
use tilewright_search::space::Space;

/// The largest number of draws until the space accepts a point.
const DRAWS: usize = 20_000;
/// One draw in this many is near the initial point.
const NEAR: u32 = 3;
/// The largest number of knobs in which such a point differs from the initial point.
const MAX_CHANGED_KNOBS: usize = 3;

/// Draws a schedule that the space accepts.
pub fn schedule(space: &Space<'_>, rng: &mut Pcg64Mcg) -> Option<Schedule> {
    let near = rng.random_ratio(1, NEAR);
    (0..DRAWS).find_map(|_| {
        let drawn = space.knobs().sample(rng)?;
        space.decode(&if near { with_values_of(space.initial_point(), &drawn, rng) } else { drawn }).ok()
    })
}

/// Returns `point` with the values of a few knobs taken from `other`.
fn with_values_of(mut point: Point, other: &Point, rng: &mut Pcg64Mcg) -> Point {
    for _ in 0..rng.random_range(1..=MAX_CHANGED_KNOBS) {
        let at = rng.random_range(0..point.0.len());
        point.0[at] = other.0[at].clone();
    }
    point
}
