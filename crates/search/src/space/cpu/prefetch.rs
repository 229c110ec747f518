//! Adds the knobs for prefetching operands, and makes the prefetch steps of the selected values.
//!
//! The innermost loop of a reduction walks through an operand. If the operand comes from a distant
//! cache or from memory, the hardware prefetcher is often too late. A knob for every operand that
//! is used more than once says how many iterations of that loop ahead the operand is prefetched.

use tilewright_schedule::Step;
use tilewright_schedule::analysis::Stride;
use tilewright_target::Cpu;

use super::pack::Pack;
use super::tile::Levels;
use crate::knob::{Knob, Point};
use crate::space::names::Names;
use crate::space::stage::Stage;
use crate::space::{Builder, KnobId};

/// The prefetch distances in iterations; 0 means no prefetch.
const DISTANCES: [i64; 5] = [0, 4, 8, 16, 32];
/// The index in `DISTANCES` that pays for an operand too large for the near caches: an iteration
/// takes about ten cycles, and a memory access a few hundred.
const FAR_DISTANCE: usize = 4;

/// The knob that selects the prefetch distance of one operand.
#[derive(Clone, Debug)]
pub(crate) struct Prefetch {
    operand: usize,
    knob: KnobId,
}

impl Prefetch {
    /// Adds a knob for an operand if a reduced loop walks through the operand.
    pub fn new(stage: &Stage, operand: usize, builder: &mut Builder) -> Option<Prefetch> {
        let own = &stage.operands[operand];
        let walked = stage.repeated_loops(true).iter().any(|at| own.strides[*at] != Stride::Elements(0));
        let name = format!("{}.{}.prefetch", stage.name, own.tensor);
        walked.then(|| Prefetch { operand, knob: builder.add(Knob::ordinal(name, DISTANCES)) })
    }

    /// Returns the prefetch step of the chosen distance. The step must follow the promotion of the
    /// operand.
    pub fn step(
        &self,
        stage: &Stage,
        levels: &Levels,
        pack: &Pack,
        point: &Point,
        names: &Names,
    ) -> Option<Step> {
        let operand = &stage.operands[self.operand];
        let (at, place) = levels.reduced.last().zip(levels.innermost_reduced)?;
        let ahead = DISTANCES[point.choice(self.knob.0)];
        let moves = operand.strides[place] != Stride::Elements(0);
        (ahead > 0 && moves).then(|| Step::Prefetch {
            tensor: pack.buffer(stage, point, names).unwrap_or_else(|| operand.tensor.clone()),
            at: at.clone(),
            ahead,
            of: at.clone(),
        })
    }

    /// Sets the knob: constants that do not fit into the second-level cache are prefetched.
    pub fn initial(&self, stage: &Stage, target: &Cpu, point: &mut Point) {
        let operand = &stage.operands[self.operand];
        let bytes = operand.elements * stage.dtype.bytes() as f64;
        let near = target.caches.get(1).copied().unwrap_or_default() as f64;
        point.set_choice(self.knob.0, if operand.is_constant && bytes > near { FAR_DISTANCE } else { 0 });
    }
}
