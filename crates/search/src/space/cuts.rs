//! Adds the knobs that split each loop of a statement into parts ([`Cuts`]).

use super::stage::{Stage, StageLoop};
use super::{Builder, KnobId};
use crate::knob::{Divisors, Knob, Point};

/// How much more than the extent may be computed, in percent, if the factors do not divide it. The
/// limit is high for short loops, which have few divisors, and low for long ones.
const WASTE_SHORT: u32 = 15;
const WASTE_LONG: u32 = 5;
/// The trip count from which a loop is long.
pub(super) const LONG_LOOP: i64 = 64;
/// The largest divisor of a loop that counts as a choice.
const MAX_DIVISORS: i64 = 64;

/// The loops of a statement that run more than once, each with its knob.
#[derive(Clone, Debug)]
pub(super) struct Cuts {
    /// The indices in the statement of the result loops and the reduced loops.
    pub spatial: Vec<usize>,
    pub reduced: Vec<usize>,
    /// The knobs that split each loop, in the order of `spatial` and then `reduced`.
    pub knobs: Vec<KnobId>,
}

impl Cuts {
    /// Adds a knob for each loop. `options` returns the number of parts of a loop, and how it may
    /// be cut.
    pub fn new(stage: &Stage, builder: &mut Builder, options: impl Fn(usize) -> (usize, Divisors)) -> Cuts {
        let (spatial, reduced) = (stage.repeated_loops(false), stage.repeated_loops(true));
        let knob = |at: &usize| {
            let (own, (parts, divisors)) = (&stage.loops[*at], options(*at));
            let name = format!("{}.{}", stage.name, own.name);
            builder.add(Knob::factorisation(name, own.trips, parts, divisors))
        };
        let knobs = spatial.iter().chain(&reduced).map(knob).collect();
        Cuts { spatial, reduced, knobs }
    }

    /// The indices of all loops.
    pub fn all(&self) -> impl Iterator<Item = usize> {
        self.spatial.iter().chain(&self.reduced).copied()
    }

    /// The trip counts of the parts of a loop; empty if the loop is not cut.
    pub fn factors<'p>(&self, point: &'p Point, at: usize) -> &'p [i64] {
        let knob = self.all().position(|own| own == at);
        knob.map_or(&[], |knob| point.factors(self.knobs[knob].0))
    }
}

/// The number of divisors of a loop that are worth a choice.
pub(super) fn divisor_count(own: &StageLoop) -> usize {
    (1..=own.trips.min(MAX_DIVISORS)).filter(|by| own.trips % by == 0).count()
}

/// Cuts that need not divide a loop.
pub(super) fn near_divisors(own: &StageLoop) -> Divisors {
    let most_waste_percent = if own.trips < LONG_LOOP { WASTE_SHORT } else { WASTE_LONG };
    Divisors::Near { most_waste_percent }
}
