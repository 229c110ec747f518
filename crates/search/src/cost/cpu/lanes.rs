//! Tells how the lanes of a vector access memory, in the kinds that code generation distinguishes.
//!
//! Code generation loads elements at constant distances as whole vectors and shuffles them into
//! place, also where a subscript is divided, as in `x(i/2)`. A subscript that is clamped to a range
//! is one masked load and two broadcasts. Lanes at all other distances are gathered one by one.

use tilewright_ir::nest::{Access, Atom, IndexExpr, Term};

use super::frames::{FrameKind, Frames};
use super::instructions::Frameset;

/// The largest number of elements between the first and the last lane, in lanes, for which code
/// generation loads all of them.
const WIDEST_SPAN: f64 = 4.0;

/// How the lanes of a vector access a buffer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LaneAccess {
    /// All lanes access the same element, or there are no lanes.
    Same,
    /// The lanes access adjacent elements.
    Adjacent,
    /// The lanes access elements at constant distances, of which so many are between the first and
    /// the last lane.
    Pattern {
        /// The number of elements.
        span: f64,
    },
    /// The lanes access adjacent elements, of which those beyond an edge are the edge.
    Clamped,
    /// The lanes access elements at any distances.
    Scattered,
}

impl LaneAccess {
    /// How the open vector loop accesses a buffer with these strides.
    pub fn of(frames: &Frames, access: &Access, strides: &[i64]) -> LaneAccess {
        let Some((lane, count)) = lanes(frames) else { return LaneAccess::Same };
        let lane_of = |atom: &Atom| matches!(atom, Atom::Var(var) if frames.depth(*var) == Some(lane));
        let mentions = |index: &&(&IndexExpr, &i64)| index.0.any_atom(&mut |atom| lane_of(atom));
        let pairs: Vec<(&IndexExpr, &i64)> = access.indices.iter().zip(strides).collect();
        let moving: Vec<&(&IndexExpr, &i64)> = pairs.iter().filter(mentions).collect();
        match moving.iter().map(|(index, stride)| linear_step(index, **stride, &lane_of)).sum::<Option<f64>>()
        {
            Some(0.0) => return LaneAccess::Same,
            Some(1.0) => return LaneAccess::Adjacent,
            Some(step) => return spanning(step.abs() * (count - 1.0) + 1.0, count),
            None => {}
        }
        let mut offsets = vec![0; count as usize];
        for (index, stride) in &moving {
            if !index.terms().iter().all(|term| is_constant_but_for(term, &lane_of)) {
                return if moving.len() == 1 && is_clamped(index, &lane_of) && **stride == 1 {
                    LaneAccess::Clamped
                } else {
                    LaneAccess::Scattered
                };
            }
            for (at, offset) in offsets.iter_mut().enumerate() {
                let value = index.eval(&mut |atom| Some(if lane_of(atom) { at as i64 } else { 0 }));
                *offset += value.unwrap_or(0) * **stride;
            }
        }
        let (least, most) = (offsets.iter().min(), offsets.iter().max());
        match least.zip(most).map_or(0, |(least, most)| most - least) {
            0 => LaneAccess::Same,
            distance => spanning(distance as f64 + 1.0, count),
        }
    }
}

fn spanning(span: f64, count: f64) -> LaneAccess {
    if span <= WIDEST_SPAN * count { LaneAccess::Pattern { span } } else { LaneAccess::Scattered }
}

/// The elements between adjacent lanes; `None` if the distance is not constant.
fn linear_step(index: &IndexExpr, stride: i64, lane_of: &dyn Fn(&Atom) -> bool) -> Option<f64> {
    let mut occurs = 0;
    index.visit_atoms(&mut |atom| occurs += usize::from(lane_of(atom)));
    let linear = index.terms().iter().filter(|term| matches!(term.factors.as_slice(), [one] if lane_of(one)));
    let coefficients: Vec<f64> = linear.map(|term| term.coefficient as f64).collect();
    (occurs == coefficients.len()).then(|| coefficients.iter().sum::<f64>() * stride as f64)
}

/// Whether a term depends on the lane alone, or not on the lane.
fn is_constant_but_for(term: &Term, lane_of: &dyn Fn(&Atom) -> bool) -> bool {
    let (mut on_lane, mut on_others) = (false, false);
    for factor in &term.factors {
        IndexExpr::atom(factor.clone()).visit_atoms(&mut |atom| match atom {
            Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Data(_) => {
                on_lane |= lane_of(atom);
                on_others |= !lane_of(atom);
            }
            _ => {}
        });
    }
    !on_lane || !on_others
}

/// Whether a subscript is a minimum or maximum of the lane and of bounds that no lane changes.
fn is_clamped(index: &IndexExpr, lane_of: &dyn Fn(&Atom) -> bool) -> bool {
    let [term] = index.terms() else { return false };
    let [Atom::Min(pair) | Atom::Max(pair)] = term.factors.as_slice() else { return false };
    let mentions = |side: &IndexExpr| side.any_atom(&mut |atom| lane_of(atom));
    let inner = match (mentions(&pair.0), mentions(&pair.1)) {
        (true, false) => &pair.0,
        (false, true) => &pair.1,
        _ => return false,
    };
    linear_step(inner, 1, lane_of) == Some(1.0) || is_clamped(inner, lane_of)
}

/// The position of the open vector loop, and its number of lanes.
pub(super) fn lanes(frames: &Frames) -> Option<(usize, f64)> {
    let place =
        (0..frames.stack.len()).rev().find(|place| frames.frame_at(*place).kind == FrameKind::Vector)?;
    Some((place, frames.frame_at(place).trips))
}

/// Returns true for a number of lanes that is not a power of two. Such vectors are loaded and
/// stored in pieces.
pub(super) fn is_ragged(lanes: f64) -> bool {
    lanes.log2().fract() != 0.0
}

/// A set of frames without the open vector loop.
pub(super) fn without_lanes(frames: &Frames, deps: Frameset) -> Frameset {
    lanes(frames).map_or(deps, |(place, _)| deps & !super::instructions::bit(place))
}
