//! Decides which loops are emitted as vector instructions, and which loops are unrolled.

use tilewright_ir::nest::{For, LoopKind};

/// The maximum number of lanes of one vector. A longer vector loop runs serially.
const MAX_LANES: i64 = 64;

/// The lane count of a loop that is emitted as vectors; `None` for any other loop.
pub(super) fn vector_lanes(inner: &For) -> Option<u32> {
    match (inner.kind, inner.extent.as_constant()) {
        (LoopKind::Vector, Some(extent @ 2..=MAX_LANES)) => Some(extent as u32),
        _ => None,
    }
}

/// Whether the loop is unrolled, so that its variable is a constant in every copy of the body.
pub(super) fn is_unrolled(inner: &For) -> bool {
    let extent = inner.extent.as_constant();
    matches!((inner.kind, extent), (LoopKind::Unrolled, Some(_)) | (_, Some(..=1)))
}
