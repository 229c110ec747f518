//! Operands that are asked for ahead of their use.
//!
//! The innermost loop of a reduction walks through an operand, and where that comes from a far cache or from memory,
//! the machine's own prefetching is often too late. A knob for every operand that is used more than once says how many
//! iterations of that loop ahead it is asked for.

use tilewright_schedule::Step;
use tilewright_schedule::analysis::Stride;
use tilewright_target::Cpu;

use super::pack::Pack;
use super::tile::Levels;
use crate::knob::{Knob, Point};
use crate::space::names::Names;
use crate::space::stage::Stage;
use crate::space::{Builder, KnobId};

/// How far ahead, in iterations; the first is not at all.
const AHEAD: [i64; 5] = [0, 4, 8, 16, 32];
/// What pays for an operand that no near cache can hold: an iteration is some ten cycles, and memory a few hundred.
const FAR: usize = 4;

/// The knob of one operand.
#[derive(Clone, Debug)]
pub(crate) struct Ahead {
    operand: usize,
    knob: KnobId,
}

impl Ahead {
    /// Adds a knob for an operand, if there is a reduction that walks through it.
    pub fn new(stage: &Stage, operand: usize, builder: &mut Builder) -> Option<Ahead> {
        let own = &stage.operands[operand];
        let walked = stage.busy(true).iter().any(|at| own.strides[*at] != Stride::Elements(0));
        let name = format!("{}.{}.ahead", stage.name, own.tensor);
        walked.then(|| Ahead { operand, knob: builder.add(Knob::ordinal(name, AHEAD)) })
    }

    /// The step that was chosen. It comes after the operand's promotion.
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
        let ahead = AHEAD[point.choice(self.knob.0)];
        let moves = operand.strides[place] != Stride::Elements(0);
        (ahead > 0 && moves).then(|| Step::Prefetch {
            tensor: pack.buffer(stage, point, names).unwrap_or_else(|| operand.tensor.clone()),
            at: at.clone(),
            ahead,
            of: at.clone(),
        })
    }

    /// Sets the knob: constants that the second cache cannot hold are asked for.
    pub fn initial(&self, stage: &Stage, target: &Cpu, point: &mut Point) {
        let operand = &stage.operands[self.operand];
        let bytes = operand.elements * stage.dtype.bytes() as f64;
        let near = target.caches.get(1).copied().unwrap_or_default() as f64;
        point.set_choice(self.knob.0, if operand.constant && bytes > near { FAR } else { 0 });
    }
}
