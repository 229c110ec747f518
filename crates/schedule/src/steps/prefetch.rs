//! `prefetch I at e.do ahead 1 of O.n`.

use crate::draft::{Draft, Legal, Prefetch};
use crate::illegal::Illegal;
use crate::step::LoopName;

/// The furthest that anybody looks ahead: subscripts must not overflow.
const FURTHEST: i64 = 1 << 20;

/// Notes down what to ask for. Lowering writes it, once all loops are known.
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
    if !(1..=FURTHEST).contains(&ahead) {
        let why = format!("{ahead} iterations ahead is not between 1 and {FURTHEST}");
        return Err(Illegal::Prefetch { tensor: tensor.to_string(), at: at.to_string(), why });
    }
    draft.asked_for(&prefetch)?;
    // It belongs to these loops as they are: their statement cannot go elsewhere without it.
    for var in draft.loops_up_to(prefetch.at) {
        draft.loops[var.index()].pristine = false;
    }
    draft.prefetches.push(prefetch);
    Ok(())
}
