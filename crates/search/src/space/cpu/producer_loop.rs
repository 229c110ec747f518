//! Finds the loop of a consumer at which a tensor is computed, from the location that a point
//! selects ([`ProducerLocation`]).

use tilewright_schedule::LoopName;
use tilewright_schedule::analysis::Stride;

use super::tile::Levels;
use crate::knob::Point;
use crate::space::placement::{Placement, ProducerLocation};
use crate::space::rejection::Rejection;
use crate::space::stage::Stage;

/// The possible positions inside the loops of a consumer.
pub(super) const INSIDE: [ProducerLocation; 4] = [
    ProducerLocation::WithConsumer,
    ProducerLocation::Once,
    ProducerLocation::AtOuter,
    ProducerLocation::AtBlock,
];

/// Returns the loop at which a tensor is computed, or `None` for the root. `stage`, `levels` and
/// `place` belong to the consumer.
pub(super) fn producer_loop(
    placement: &Placement,
    point: &Point,
    stage: &Stage,
    levels: &Levels,
    place: Option<&LoopName>,
) -> Result<Option<LoopName>, Rejection> {
    let found = match placement.choice(point) {
        ProducerLocation::Root | ProducerLocation::Inline => return Ok(None),
        ProducerLocation::WithConsumer => return Ok(place.cloned()),
        ProducerLocation::Once => innermost_without_recomputation(&placement.tensor, stage, levels),
        ProducerLocation::AtOuter => levels.outer.last(),
        ProducerLocation::AtBlock => levels.around_reduction(),
    };
    found.cloned().map(Some).ok_or(Rejection::NoSuchLoop)
}

/// The innermost outer loop of the consumer such that this loop and all loops around it subscript
/// the tensor.
fn innermost_without_recomputation<'l>(
    tensor: &str,
    stage: &Stage,
    levels: &'l Levels,
) -> Option<&'l LoopName> {
    let operand = stage.operands.iter().find(|operand| operand.tensor == tensor)?;
    let moves = |places: &[usize]| places.iter().all(|at| operand.strides[*at] != Stride::Elements(0));
    let outer = levels.outer.iter().zip(&levels.outer_of);
    outer.take_while(|(_, places)| moves(places)).last().map(|(own, _)| own)
}
