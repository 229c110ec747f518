//! Emits loads whose last subscript is clamped to a range, as `a(clamp(x + d, 0, W - 1))` at the
//! borders of images.
//!
//! The lanes inside the range read elements at a constant stride, so they are loaded together under
//! a mask. All other lanes read one of the two ends, which are loaded once and broadcast.

use inkwell::values::PointerValue;
use tilewright_ir::nest::{Access, Atom, Buffer, IndexExpr, LoopVarId};

use super::bounds::Bounds;
use super::function::{Emit, Emitter};
use super::location::{Address, Location};
use super::ops::Value;

/// A subscript `max(low, min(high, free))`, of which one bound may be missing.
struct Clamp {
    low: Option<IndexExpr>,
    high: Option<IndexExpr>,
    free: IndexExpr,
}

impl Clamp {
    /// Recognises a subscript whose bounds are the same in all lanes.
    fn of(index: &IndexExpr, lane: LoopVarId) -> Option<Clamp> {
        let [term] = index.terms() else { return None };
        let [atom] = term.factors.as_slice() else { return None };
        let (Atom::Min(pair) | Atom::Max(pair)) = atom else { return None };
        if term.coefficient != 1 {
            return None;
        }
        let (bound, inner) = match (pair.0.mentions(lane), pair.1.mentions(lane)) {
            (false, true) => (&pair.0, &pair.1),
            (true, false) => (&pair.1, &pair.0),
            _ => return None,
        };
        let mut clamp =
            Clamp::of(inner, lane).unwrap_or(Clamp { low: None, high: None, free: inner.clone() });
        let side = if matches!(atom, Atom::Max(_)) { &mut clamp.low } else { &mut clamp.high };
        if side.replace(bound.clone()).is_some() {
            return None;
        }
        Some(clamp.shifted(index.constant_part()))
    }

    fn shifted(self, by: i64) -> Clamp {
        let shift = |bound: IndexExpr| bound.offset(by);
        Clamp { low: self.low.map(shift), high: self.high.map(shift), free: self.free.offset(by) }
    }
}

/// An access whose last subscript is clamped, where `free` is `start` plus a step for each lane.
struct ClampedAccess {
    clamp: Clamp,
    start: IndexExpr,
    step: i64,
    /// The offset of the row that all subscripts but the last choose.
    row: IndexExpr,
    bounds: Bounds,
}

impl<'ctx> Emitter<'ctx, '_> {
    /// Emits the load of an access whose last subscript is clamped; `None` for any other access.
    pub(super) fn load_clamped(&mut self, access: &Access) -> Emit<Option<Value<'ctx>>> {
        let Some(lanes) = self.frame.lanes else { return Ok(None) };
        let Some(clamped) = self.clamped_access(access, lanes.var) else { return Ok(None) };
        let Some(base) = self.frame.buffers.get(&access.tensor).copied() else { return Ok(None) };
        let ClampedAccess { clamp, start, step, row, bounds } = clamped;
        let nest = self.nest;
        let buffer = nest.buffer(access.tensor);
        let first = self.element_address(access.tensor, buffer, base, &row.add(&start))?;
        let (address, bytes) = (Address::Strided(first, step), buffer.bytes());
        let place = Location { address, base, dtype: buffer.dtype, checks_hold: None, bounds, bytes };

        let mask = self.load_mask(&place);
        let mut inside = mask;
        let mut ends = Vec::new();
        let low = clamp.low.map(|low| (clamp.free.sub(&low), low));
        let high = clamp.high.map(|high| (high.sub(&clamp.free), high));
        for (distance, end) in low.into_iter().chain(high) {
            let is_before_end = self.condition(&distance)?;
            let is_before_end = self.ops.splat(is_before_end, lanes.count);
            inside = Some(self.ops.and_maybe(inside, is_before_end));
            let end = self.element_address(access.tensor, buffer, base, &row.add(&end))?;
            ends.push((is_before_end, self.load_end(&place, end, is_before_end, mask)));
        }
        let elements = self.load_location(&place, inside);
        let raw = ends.into_iter().fold(elements, |raw, (keep, end)| self.ops.select(keep, raw, end));
        Ok(Some(self.decode(place.dtype, raw)))
    }

    /// Recognises an access whose last subscript alone differs between lanes, and is clamped.
    fn clamped_access(&self, access: &Access, lane: LoopVarId) -> Option<ClampedAccess> {
        let buffer = self.nest.buffer(access.tensor);
        let (last, others) = access.indices.split_last()?;
        let differs = others.iter().any(|index| index.has_data() || index.mentions(lane));
        if differs || last.has_data() || !self.machine.has_masks_for(buffer.dtype.bytes()) {
            return None;
        }
        let last = self.resolve(last);
        let clamp = Clamp::of(&last, lane).filter(|clamp| self.is_ordered(clamp))?;
        let (step, start) = clamp.free.split_on(&Atom::Var(lane))?;
        let step = step.as_constant().filter(|_| !start.mentions(lane))?;
        let (row, bounds) = self.row(others, buffer);
        let bounds = bounds.and(self.subscript_bounds(&last, buffer.shape[others.len()]));
        Some(ClampedAccess { clamp, start, step, row, bounds })
    }

    /// Whether the low bound is never above the high bound, so that their order does not matter.
    fn is_ordered(&self, clamp: &Clamp) -> bool {
        let (Some(low), Some(high)) = (&clamp.low, &clamp.high) else { return true };
        self.range(&high.sub(low)).is_some_and(|distance| distance.low >= 0)
    }

    /// The offset of the row that all subscripts but the last choose, and where it is inside.
    fn row(&self, subscripts: &[IndexExpr], buffer: &Buffer) -> (IndexExpr, Bounds) {
        let dimensions = subscripts.iter().zip(buffer.strides()).zip(&buffer.shape);
        let start = (IndexExpr::constant(0), Bounds::AllLanes);
        dimensions.fold(start, |(row, bounds), ((index, stride), extent)| {
            let index = self.resolve(index);
            let bounds = bounds.and(self.subscript_bounds(&index, *extent));
            (row.add(&index.scale(stride)), bounds)
        })
    }

    /// Loads the element at an end of the range. It need not exist where no lane reads it.
    fn load_end(
        &self,
        place: &Location<'ctx>,
        end: PointerValue<'ctx>,
        is_before_end: Value<'ctx>,
        mask: Option<Value<'ctx>>,
    ) -> Value<'ctx> {
        let readers = self.ops.and_maybe(mask, self.ops.not(is_before_end));
        let address = self.safe_address(end, place.base, Some(readers));
        self.load_aligned(self.ops.memory_type(place.dtype), address, place.dtype.bytes() as u32)
    }
}
