//! Emits stores, which replace an element or reduce a value into it.
//!
//! In a vector loop, lanes that reduce into one element are first reduced to a single value. Where
//! lanes replace one element, the last lane wins. Where lanes reduce into elements at arbitrary
//! addresses, several lanes may have the same element, so they run one after the other. Lanes of an
//! atomic store do so too: each updates its element at once.

use inkwell::attributes::AttributeLoc;
use inkwell::values::PointerValue;
use inkwell::{AtomicOrdering, AtomicRMWBinOp, FloatPredicate};
use tilewright_ir::nest::Store;
use tilewright_ir::{DType, ReduceOp};

use super::arith::StoredValue;
use super::function::{Emit, Emitter, VectorLoop};
use super::location::{Address, Location, strided};
use super::ops::{BUILT, RESULT, Value, element_type, lanes_of};
use super::registers::Slot;

impl<'ctx> Emitter<'ctx, '_> {
    pub(super) fn store(&mut self, store: &Store) -> Emit<()> {
        self.with_certain_accesses(store, |this| this.with_neighbours(store, |this| this.emit_store(store)))
    }

    fn emit_store(&mut self, store: &Store) -> Emit<()> {
        let dtype = self.nest.buffer(store.target.tensor).dtype;
        let stored = self.stored_value(store)?;
        if let Some(slot) = self.slot(&store.target) {
            return self.store_register(store, &slot, stored, dtype);
        }
        let place = self.locate(&store.target)?;
        match (self.frame.lanes, &place.address) {
            (None, Address::Element(pointer)) => {
                let pointer = *pointer;
                self.guarded(place.checks_hold, |this| this.update(store, pointer, stored))
            }
            (Some(lanes), Address::Element(pointer)) => {
                self.store_uniform(store, lanes, &place, *pointer, stored)
            }
            (Some(lanes), Address::Pattern(..) | Address::Scattered(..)) if store.reduce.is_some() => {
                self.update_lane_by_lane(store, lanes, &place, stored)
            }
            (Some(lanes), Address::Strided(..)) if store.is_atomic => {
                self.update_lane_by_lane(store, lanes, &place, stored)
            }
            (Some(lanes), _) => self.store_lanes(store, lanes, &place, stored),
            (None, _) => unreachable!("addresses differ between lanes only inside a vector loop"),
        }
    }

    fn store_register(
        &mut self,
        store: &Store,
        slot: &Slot<'ctx>,
        stored: StoredValue<'ctx>,
        dtype: DType,
    ) -> Emit<()> {
        let target = &store.target;
        let is_vector_slot = slot.has_lanes(self.register_storage[&target.tensor]);
        let mask = self.mask();
        let stored = match (self.frame.lanes, store.reduce) {
            (Some(lanes), Some(op)) if !is_vector_slot => {
                StoredValue::Value(self.reduce_active_lanes(op, lanes, self.single_value(stored), dtype))
            }
            (Some(lanes), None) if !is_vector_slot => {
                StoredValue::Value(self.last_lane(lanes, mask, self.single_value(stored)))
            }
            _ => stored,
        };
        let old = self.load_slot(target, slot);
        let new = match store.reduce {
            Some(op) => self.reduce_value(op, old, stored, target.tensor),
            None => self.single_value(stored),
        };
        let new = self.rounded(dtype, new);
        let new = match mask {
            Some(_) if is_vector_slot && self.overwritable_lanes.contains(&target.tensor) => new,
            Some(mask) if is_vector_slot => self.ops.select(mask, new, old),
            Some(mask) => {
                let any = self.ops.any(mask);
                self.ops.select(any.into(), new, old)
            }
            None => new,
        };
        self.store_slot(target, slot, new);
        Ok(())
    }

    /// Reduces the values of all active lanes to one value.
    fn reduce_active_lanes(
        &self,
        op: ReduceOp,
        lanes: VectorLoop<'ctx>,
        value: Value<'ctx>,
        dtype: DType,
    ) -> Value<'ctx> {
        let compute = dtype.compute_type();
        let mut value = self.ops.splat(value, lanes.count);
        if let Some(mask) = lanes.mask {
            value = self.ops.select(mask, value, self.neutral(op, compute));
        }
        if compute.is_float() && matches!(op, ReduceOp::Min | ReduceOp::Max) {
            // NaNs become the neutral element, which has the same effect. The reduction of lanes
            // without NaN takes few instructions.
            let number = self.ops.fcmp(FloatPredicate::ORD, value, value);
            value = self.ops.select(number, value, self.neutral(op, compute));
        }
        self.reduce_lanes(op, value, compute)
    }

    /// The value of the last active lane.
    fn last_lane(
        &self,
        lanes: VectorLoop<'ctx>,
        mask: Option<Value<'ctx>>,
        value: Value<'ctx>,
    ) -> Value<'ctx> {
        if lanes_of(value).is_none() {
            return value;
        }
        let Some(mask) = mask else { return self.ops.extract(value, lanes.count - 1) };
        let bits = self.ops.int_type(lanes.count);
        let bits = self.ops.builder.build_bit_cast(mask, bits, "").expect(BUILT);
        let zero_is_fine = self.ops.bit(false);
        let leading = self
            .ops
            .intrinsic("llvm.ctlz", &[bits.get_type()], &[bits, zero_is_fine])
            .try_as_basic_value()
            .expect_basic(RESULT);
        let leading = self.ops.resize(leading, self.ops.int_type(32), false);
        // If no lane is active, the value is unused, so any lane will do; this takes lane 0.
        let last = self.ops.int_like(leading, lanes.count as i64 - 1);
        let lane =
            self.ops.elementwise("llvm.smax", &[self.ops.sub(last, leading), self.ops.int_like(leading, 0)]);
        let (vector, lane) = (value.into_vector_value(), lane.into_int_value());
        self.ops.builder.build_extract_element(vector, lane, "").expect(BUILT)
    }

    /// Emits under a scalar condition, if there is one.
    fn guarded(
        &mut self,
        condition: Option<Value<'ctx>>,
        emit: impl FnOnce(&mut Self) -> Emit<()>,
    ) -> Emit<()> {
        let Some(condition) = condition else { return emit(self) };
        let mut done = Ok(());
        self.emit_if(condition.into_int_value(), |this| done = emit(this));
        done
    }

    /// Replaces one element, or reduces a value into it.
    fn update(&mut self, store: &Store, pointer: PointerValue<'ctx>, stored: StoredValue<'ctx>) -> Emit<()> {
        let buffer = store.target.tensor;
        let dtype = self.nest.buffer(buffer).dtype;
        let align = dtype.bytes() as u32;
        if let (true, Some(op)) = (store.is_atomic, store.reduce) {
            let value = self.encode(dtype, self.single_value(stored));
            self.update_atomically(op, pointer, value, dtype);
            return Ok(());
        }
        let value = match store.reduce {
            Some(op) => {
                let raw = self.load_aligned(self.ops.memory_type(dtype), pointer, align);
                self.reduce_value(op, self.decode(dtype, raw), stored, buffer)
            }
            None => self.single_value(stored),
        };
        self.store_aligned(pointer, self.encode(dtype, value), align);
        Ok(())
    }

    /// Reduces an integer into an element at once. The threads of a parallel loop meet before any
    /// of them reads the element, so no order of the updates is needed.
    fn update_atomically(&self, op: ReduceOp, pointer: PointerValue<'ctx>, value: Value<'ctx>, dtype: DType) {
        let op = match (op, dtype.is_signed_integer()) {
            (ReduceOp::Add, _) => AtomicRMWBinOp::Add,
            (ReduceOp::Min, true) => AtomicRMWBinOp::Min,
            (ReduceOp::Min, false) => AtomicRMWBinOp::UMin,
            (ReduceOp::Max, true) => AtomicRMWBinOp::Max,
            (ReduceOp::Max, false) => AtomicRMWBinOp::UMax,
            (ReduceOp::Mul, _) => unreachable!("`verify_nest` accepts no atomic products"),
        };
        let value = value.into_int_value();
        self.ops.builder.build_atomicrmw(op, pointer, value, AtomicOrdering::Monotonic).expect(BUILT);
    }

    /// Emits a store where all lanes access one element.
    fn store_uniform(
        &mut self,
        store: &Store,
        lanes: VectorLoop<'ctx>,
        place: &Location<'ctx>,
        pointer: PointerValue<'ctx>,
        stored: StoredValue<'ctx>,
    ) -> Emit<()> {
        let value = self.single_value(stored);
        let value = match store.reduce {
            Some(op) => self.reduce_active_lanes(op, lanes, value, place.dtype),
            None => self.last_lane(lanes, lanes.mask, value),
        };
        let running = lanes.mask.map(|mask| Value::from(self.ops.any(mask)));
        let condition = match (place.checks_hold, running) {
            (Some(allowed), running) => Some(self.ops.and_maybe(running, allowed)),
            (None, running) => running,
        };
        self.guarded(condition, |this| this.update(store, pointer, StoredValue::Value(value)))
    }

    /// Emits a store where each lane has an element of its own. In a plain store, lanes may share
    /// an element; the last lane wins.
    fn store_lanes(
        &mut self,
        store: &Store,
        lanes: VectorLoop<'ctx>,
        place: &Location<'ctx>,
        stored: StoredValue<'ctx>,
    ) -> Emit<()> {
        let mask = match place.checks_hold {
            Some(allowed) => {
                let allowed = self.ops.splat(allowed, lanes.count);
                Some(self.ops.and_maybe(lanes.mask, allowed))
            }
            None => lanes.mask,
        };
        let stored = stored.map(|value| self.ops.splat(value, lanes.count));
        let value = match store.reduce {
            Some(op) => {
                let raw = self.load_location(place, mask);
                let old = self.decode(place.dtype, raw);
                self.reduce_value(op, old, stored, store.target.tensor)
            }
            None => self.single_value(stored),
        };
        let raw = self.encode(place.dtype, value);
        let align = place.dtype.bytes() as u32;
        match (&place.address, mask) {
            (Address::Strided(first, 1), None) => self.store_aligned(*first, raw, align),
            (Address::Strided(first, 1), Some(mask)) => self.masked_store(*first, raw, mask, align),
            (Address::Strided(first, step), mask)
                if self.store_pattern(place, *first, &strided(*step, lanes.count), raw, mask) => {}
            (_, mask) => {
                let pointers = self.lane_pointers(place, lanes.count);
                self.scatter(raw, pointers, mask, lanes.count, align);
            }
        }
        Ok(())
    }

    fn store_aligned(&self, pointer: PointerValue<'ctx>, value: Value<'ctx>, align: u32) {
        let instruction = self.ops.builder.build_store(pointer, value).expect(BUILT);
        instruction.set_alignment(align).expect("a store has an alignment");
    }

    /// Stores neighbouring elements, in the lanes of the mask.
    pub(super) fn masked_store(
        &self,
        first: PointerValue<'ctx>,
        raw: Value<'ctx>,
        mask: Value<'ctx>,
        align: u32,
    ) {
        let lanes = lanes_of(raw).expect("masked stores are made inside vector loops");
        if let Some(lane) = self.only_lane(mask, lanes) {
            // LLVM 22 turns such a masked store of a narrowed vector into a store of the whole wide
            // element.
            let pointer = self.ops.element_ptr(element_type(raw), first, self.ops.int(i64::from(lane)));
            return self.store_aligned(pointer, self.ops.extract(raw, lane), align);
        }
        let types = [raw.get_type(), self.ops.ptr()];
        let call = self.ops.intrinsic("llvm.masked.store", &types, &[raw, first.into(), mask]);
        call.add_attribute(AttributeLoc::Param(1), self.attribute("align", align as u64));
    }

    fn scatter(
        &self,
        raw: Value<'ctx>,
        pointers: Value<'ctx>,
        mask: Option<Value<'ctx>>,
        lanes: u32,
        align: u32,
    ) {
        let mask = self.full_mask(mask, lanes);
        let types = [raw.get_type(), pointers.get_type()];
        let call = self.ops.intrinsic("llvm.masked.scatter", &types, &[raw, pointers, mask]);
        call.add_attribute(AttributeLoc::Param(1), self.attribute("align", align as u64));
    }

    /// Updates one lane after the other, because several lanes may access one element.
    fn update_lane_by_lane(
        &mut self,
        store: &Store,
        lanes: VectorLoop<'ctx>,
        place: &Location<'ctx>,
        stored: StoredValue<'ctx>,
    ) -> Emit<()> {
        let pointers = self.lane_pointers(place, lanes.count);
        let mask = match place.checks_hold {
            Some(allowed) => Some(self.ops.and_maybe(lanes.mask, self.ops.splat(allowed, lanes.count))),
            None => lanes.mask,
        };
        for lane in 0..lanes.count {
            let pointer = self.ops.extract(pointers, lane).into_pointer_value();
            let lane_value = stored.map(|value| match lanes_of(value) {
                Some(_) => self.ops.extract(value, lane),
                None => value,
            });
            let running = mask.map(|mask| self.ops.extract(mask, lane));
            self.guarded(running, |this| this.update(store, pointer, lane_value))?;
        }
        Ok(())
    }

    /// The only active lane of a constant mask, if there is exactly one.
    fn only_lane(&self, mask: Value<'ctx>, lanes: u32) -> Option<u32> {
        if !mask.into_vector_value().is_const() {
            return None;
        }
        // An element extracted from a constant is a constant.
        let is_on = |lane: u32| {
            let bit = self.ops.extract(mask, lane).into_int_value();
            bit.get_zero_extended_constant().map(|bit| bit != 0)
        };
        let bits = (0..lanes).map(is_on).collect::<Option<Vec<bool>>>()?;
        let first = bits.iter().position(|on| *on)?;
        (bits.iter().filter(|on| **on).count() == 1).then_some(first as u32)
    }
}
