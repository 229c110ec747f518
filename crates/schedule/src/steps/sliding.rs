//! Determines what `compute_at P, C.yi store_at C.yo` computes in each iteration of `C.yi`, if a
//! buffer keeps the rows of P that earlier iterations have computed.
//!
//! Iteration `y` needs the rows from `low(y)` up to `end(y)`, and both rise with `y`. The first
//! iteration computes all of its rows. Each later one computes the rows from `end(y-1)` on, because
//! the iterations before it have computed those below. With a window of three rows that moves by
//! one row:
//!
//! ```text
//! y = 0   rows 0 1 2
//! y = 1            3
//! y = 2              4
//! ```
//!
//! The window never moves back. So a ring of as many rows as the longest window holds all rows that
//! are still needed.

use tilewright_ir::interval::{lower_bound, upper_bound};
use tilewright_ir::nest::{Access, Atom, BufferId, IndexExpr, LoopKind, LoopVarId};

use crate::draft::region::{Interval, clip};
use crate::draft::simplify::Ranges;
use crate::draft::{Draft, KeptParts, Legal, Parent, StatementId};
use crate::illegal::Illegal;
use crate::step::{LoopLevel, Storage};

/// The rows of a tensor that one iteration of a loop adds to a buffer, and the buffer.
pub(super) struct Window {
    /// The dimension along which the rows are counted: the one that the loop moves along.
    pub dimension: usize,
    /// The part that an iteration computes.
    pub new_part: Vec<Interval>,
    /// The loop in whose iterations the buffer exists; none if it exists during the whole call.
    pub stored_at: Option<LoopVarId>,
    /// The part that the buffer has room for, if it is not folded.
    pub stored_part: Vec<Interval>,
    /// The number of rows of the ring.
    pub fold: Option<i64>,
    /// The loops inside `stored_at`, up to the loop at which the tensor is computed.
    pub loops: Vec<LoopVarId>,
}

/// The window for a tensor that is computed at the loop `place`, each iteration of which needs
/// `region`.
pub(super) fn window(
    draft: &Draft,
    tensor: BufferId,
    uses: &[(StatementId, Access)],
    (place, region): (LoopVarId, &[Interval]),
    storage: &Storage,
) -> Legal<Window> {
    let refuse = |why: String| Illegal::StoreAt {
        tensor: draft.buffers[tensor.index()].buffer.name.clone(),
        at: storage.at.to_string(),
        why,
    };
    let stored_at = match &storage.at {
        LoopLevel::Root => None,
        LoopLevel::Loop(name) => Some(draft.find_loop(name)?),
    };
    let mut loops = draft.loops_up_to(place);
    if let Some(stored_at) = stored_at {
        let around = loops.iter().position(|var| *var == stored_at).filter(|at| at + 1 < loops.len());
        let at = around.ok_or_else(|| {
            refuse(format!("that loop is not around `{}`", draft.qualified_loop_name(place)))
        })?;
        loops.drain(..=at);
    }
    let rows = Rows::new(draft, tensor, uses, place, region).map_err(refuse)?;
    let mut new_part = region.to_vec();
    new_part[rows.dimension] = rows.new_rows(draft, place).map_err(refuse)?;
    if let Some(fold) = storage.fold
        && rows.most().is_none_or(|most| fold < most)
    {
        let rows = rows.most().map_or("an unknown number of".to_string(), |most| most.to_string());
        return Err(refuse(format!("an iteration needs {rows} rows at once, and the ring has {fold}")));
    }
    let shape = &draft.buffers[tensor.index()].buffer.shape;
    let stored = |at: usize| {
        let found = stored_interval(draft, uses, place, (at, shape[at]), &loops);
        let room = found.filter(|found| has_room(found, &new_part[at], &rows.ranges));
        room.unwrap_or_else(|| Interval::whole(shape[at]))
    };
    let stored_part = (0..region.len()).map(stored).collect();
    Ok(Window { dimension: rows.dimension, new_part, stored_at, stored_part, fold: storage.fold, loops })
}

/// The interval of one dimension that all iterations of the loops need together.
fn stored_interval(
    draft: &Draft,
    uses: &[(StatementId, Access)],
    place: LoopVarId,
    (dimension, extent): (usize, i64),
    loops: &[LoopVarId],
) -> Option<Interval> {
    let (low, high) = draft.bounds_without_clamps(uses, dimension, place)?;
    let all = draft.loops_up_to(place);
    let (outside, _) = all.split_at(all.len() - loops.len());
    let everywhere = draft.ranges_of(&all);
    let mut inside = Ranges::default();
    for var in loops {
        inside.set_extent(*var, everywhere.extent(*var)?);
    }
    clip(&lower_bound(&low, &inside)?, &upper_bound(&high, &inside)?, extent, &draft.ranges_of(outside))
}

/// Returns true when the part that an iteration computes is provably inside the room for all parts.
/// A part may be larger than what is needed, because its size is a number.
fn has_room(room: &Interval, part: &Interval, ranges: &Ranges) -> bool {
    let end = part.low.add(&part.available);
    ranges.never_negative(&part.low.sub(&room.low))
        && ranges.never_negative(&room.low.offset(room.extent).sub(&end))
}

/// The rows that an iteration needs, without regard to the ends of the tensor: from `low` up to
/// `end`, in terms of the loop.
struct Rows {
    dimension: usize,
    /// The number of rows of the tensor.
    extent: i64,
    low: IndexExpr,
    end: IndexExpr,
    /// The ranges of the loop and of the loops around it.
    ranges: Ranges,
}

impl Rows {
    fn new(
        draft: &Draft,
        tensor: BufferId,
        uses: &[(StatementId, Access)],
        place: LoopVarId,
        region: &[Interval],
    ) -> Result<Rows, String> {
        let name = draft.qualified_loop_name(place);
        let moves = |at: &usize| region[*at].low.mentions(place) || region[*at].available.mentions(place);
        let moving: Vec<usize> = (0..region.len()).filter(moves).collect();
        let dimension = match moving[..] {
            [dimension] => dimension,
            [] => return Err(format!("every iteration of `{name}` needs the same part")),
            _ => return Err(format!("the part that is needed moves in several dimensions along `{name}`")),
        };
        let bounds = draft.bounds_without_clamps(uses, dimension, place);
        let (low, high) = bounds.ok_or_else(|| "the rows that are needed depend on data".to_string())?;
        let end = high.offset(1);
        if !rises_with(&low, place) || !rises_with(&end, place) {
            return Err(format!("the rows that are needed do not move forward along `{name}`"));
        }
        let extent = draft.buffers[tensor.index()].buffer.shape[dimension];
        Ok(Rows { dimension, extent, low, end, ranges: draft.ranges_of(&draft.loops_up_to(place)) })
    }

    /// The most rows that one iteration needs.
    fn most(&self) -> Option<i64> {
        self.ranges.greatest_value(&self.end.sub(&self.low))
    }

    /// The rows that an iteration computes: those that no earlier iteration has.
    fn new_rows(&self, draft: &Draft, place: LoopVarId) -> Result<Interval, String> {
        let at = |expr: &IndexExpr, value: &IndexExpr| {
            expr.substitute(&mut |atom| (*atom == Atom::Var(place)).then(|| value.clone()))
        };
        let (zero, var) = (IndexExpr::constant(0), IndexExpr::var(place));
        let previous_end = at(&self.end, &var.offset(-1));
        let mut later = self.ranges.clone();
        later.assume_nonnegative(&var.offset(-1));
        let common = previous_end.sub(&self.low);
        // Where iterations have no rows in common, each computes all that it needs.
        if later.never_negative(&common.scale(-1)) {
            return Ok(self.clipped(&self.low));
        }
        // The rows that an iteration before the first would have computed.
        let before = at(&previous_end, &zero).sub(&at(&self.low, &zero));
        let Some(before) = before.as_constant().filter(|_| later.never_negative(&common)) else {
            let name = draft.qualified_loop_name(place);
            return Err(format!("the rows that two iterations of `{name}` have in common are not known"));
        };
        let is_later = var.minimum(&IndexExpr::constant(1));
        Ok(self.clipped(&previous_end.offset(-before).add(&is_later.scale(before))))
    }

    /// The rows from `from` up to the end of the window that the tensor has.
    fn clipped(&self, from: &IndexExpr) -> Interval {
        let zero = IndexExpr::constant(0);
        let from = self.ranges.simplify(&from.maximum(&zero));
        let to = self.ranges.simplify(&self.end.minimum(&IndexExpr::constant(self.extent)));
        let available = self.ranges.simplify(&to.sub(&from).maximum(&zero));
        let extent = self.ranges.greatest_value(&available).unwrap_or(self.extent).min(self.extent);
        Interval { low: from, extent, available }
    }
}

/// Returns true when an expression never becomes smaller while the variable grows.
fn rises_with(expr: &IndexExpr, var: LoopVarId) -> bool {
    expr.terms().iter().all(|term| {
        let rises = |atom: &Atom| match atom {
            Atom::Var(_) => true,
            Atom::Min(pair) | Atom::Max(pair) => rises_with(&pair.0, var) && rises_with(&pair.1, var),
            Atom::FloorDiv(pair) => {
                rises_with(&pair.0, var) && pair.1.as_constant().is_some_and(|divisor| divisor > 0)
            }
            _ => false,
        };
        match term.factors.as_slice() {
            [atom] if term.coefficient > 0 => !IndexExpr::from(term).mentions(var) || rises(atom),
            _ => !IndexExpr::from(term).mentions(var),
        }
    })
}

/// Refuses a step that has changed the order in which parts of a tensor are computed and kept.
pub(super) fn check_kept_parts(draft: &Draft) -> Legal<()> {
    draft.kept_parts.iter().try_for_each(|kept| check_order(draft, kept))
}

fn check_order(draft: &Draft, kept: &KeptParts) -> Legal<()> {
    let buffer = &draft.buffers[kept.tensor.index()];
    let refuse = |why: String| {
        let at = buffer.allocated_at.map_or("root".to_string(), |at| draft.qualified_loop_name(at));
        Err(Illegal::StoreAt { tensor: buffer.buffer.name.clone(), at, why })
    };
    for writer in draft.writers(Parent::Body, kept.tensor) {
        let path = draft.path(writer);
        let inside = buffer.allocated_at.and_then(|at| path.iter().position(|var| *var == at));
        let first = inside.map_or(0, |at| at + 1);
        if path.get(first..first + kept.loops.len()) != Some(&kept.loops[..]) {
            let why = "a later step changes the loops along which its parts are kept: put that step first";
            return refuse(why.to_string());
        }
    }
    let concurrent =
        |var: &&LoopVarId| !matches!(draft.loop_of(**var).kind, LoopKind::Serial | LoopKind::Unrolled);
    match kept.loops.iter().find(concurrent) {
        Some(var) => {
            let name = draft.qualified_loop_name(*var);
            refuse(format!("the iterations of `{name}` must run in order, because later ones use its parts"))
        }
        None => Ok(()),
    }
}
