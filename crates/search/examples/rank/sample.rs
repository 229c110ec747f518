//! Points of a space: anywhere, and near the one that static analysis chooses.

use rand::RngExt;
use rand_pcg::Pcg64Mcg;
use tilewright::Schedule;
use tilewright_search::knob::Point;
use tilewright_search::space::Space;

/// Draws until one is accepted, at most so often.
const DRAWS: usize = 20_000;
/// One point in so many is near the first.
const NEAR: u32 = 3;
/// Knobs that are turned to get there.
const TURNED: usize = 3;

/// A schedule that the space accepts.
pub fn schedule(space: &Space<'_>, rng: &mut Pcg64Mcg) -> Option<Schedule> {
    let near = rng.random_ratio(1, NEAR);
    (0..DRAWS).find_map(|_| {
        let drawn = space.knobs().sample(rng)?;
        space.decode(&if near { turned(space.initial(), &drawn, rng) } else { drawn }).ok()
    })
}

/// A point with a few knobs as in another.
fn turned(mut point: Point, other: &Point, rng: &mut Pcg64Mcg) -> Point {
    for _ in 0..rng.random_range(1..=TURNED) {
        let at = rng.random_range(0..point.0.len());
        point.0[at] = other.0[at].clone();
    }
    point
}
