//! Finds the loop of a consumer at which a tensor is computed.

use tilewright_schedule::LoopName;
use tilewright_schedule::analysis::Stride;

use super::tile::Levels;
use crate::knob::Point;
use crate::space::placement::{Choice, Placement};
use crate::space::rejection::Rejection;
use crate::space::stage::Stage;

/// The possible positions inside the loops of a consumer.
pub(super) const INSIDE: [Choice; 4] = [Choice::WithConsumer, Choice::Once, Choice::AtOuter, Choice::AtBlock];

/// Returns the loop at which a tensor is computed, or `None` for the root. `stage`, `levels` and
/// `place` belong to the consumer.
pub(super) fn place(
    placement: &Placement,
    point: &Point,
    stage: &Stage,
    levels: &Levels,
    place: Option<&LoopName>,
) -> Result<Option<LoopName>, Rejection> {
    let found = match placement.choice(point) {
        Choice::Root | Choice::Inline => return Ok(None),
        Choice::WithConsumer => return Ok(place.cloned()),
        Choice::Once => innermost_of_its_own(&placement.tensor, stage, levels),
        Choice::AtOuter => levels.outer.last(),
        Choice::AtBlock => levels.around_reduction(),
    };
    found.cloned().map(Some).ok_or(Rejection::NoPlace)
}

/// The innermost outer loop of the consumer such that this loop and all loops around it subscript
/// the tensor.
fn innermost_of_its_own<'l>(tensor: &str, stage: &Stage, levels: &'l Levels) -> Option<&'l LoopName> {
    let operand = stage.operands.iter().find(|operand| operand.tensor == tensor)?;
    let moves = |places: &[usize]| places.iter().all(|at| operand.strides[*at] != Stride::Elements(0));
    let outer = levels.outer.iter().zip(&levels.outer_of);
    outer.take_while(|(_, places)| moves(places)).last().map(|(own, _)| own)
}
