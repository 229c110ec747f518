//! Applies the step `prefetch I at O.do ahead 1 of O.n`: checks the prefetch and records it in the
//! draft. Lowering emits it.
//!
//! In the example, every iteration of the loop `O.do` prefetches the elements of `I` that it will
//! use when the loop `O.n` is 1 iteration further.

use crate::draft::{Draft, Legal, Prefetch};
use crate::illegal::Illegal;
use crate::step::LoopName;

/// The most iterations to look ahead, so that subscripts do not overflow.
const MOST_AHEAD: i64 = 1 << 20;

/// Records a prefetch. Lowering emits it, once all loops are known.
pub(super) fn prefetch(
    draft: &mut Draft,
    tensor: &str,
    at: &LoopName,
    ahead: i64,
    of: &LoopName,
) -> Legal<()> {
    let prefetch = Prefetch {
        tensor: draft.find_tensor(tensor)?,
        at: draft.find_loop(at)?,
        ahead,
        of: draft.find_loop(of)?,
    };
    if !(1..=MOST_AHEAD).contains(&ahead) {
        let why = format!("{ahead} iterations ahead is not between 1 and {MOST_AHEAD}");
        return Err(Illegal::Prefetch { tensor: tensor.to_string(), at: at.to_string(), why });
    }
    draft.prefetched_lines(&prefetch)?;
    // The prefetch is attached to the current loops: their statement can no longer move elsewhere
    // without it.
    for var in draft.loops_up_to(prefetch.at) {
        draft.loops[var.index()].is_unchanged = false;
    }
    draft.prefetches.push(prefetch);
    Ok(())
}
