//! Emits the load of an element, or of one element for each lane of a vector loop.
//!
//! Neighbouring elements are loaded as one vector, and elements a few apart as several vectors that
//! are shuffled together. All other elements are gathered. A load is masked if some lanes may be
//! inactive, unless the access is always within its buffer.

use inkwell::attributes::AttributeLoc;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValue, PointerValue};
use tilewright_ir::nest::Access;

use super::function::{Emit, Emitter};
use super::location::{Address, Location};
use super::ops::{BUILT, RESULT, Value};

/// The largest stride at which loading all elements in between is cheaper than gathering.
const MAX_SHUFFLED_STRIDE: i64 = 4;

impl<'ctx> Emitter<'ctx, '_> {
    /// Emits the value of an element.
    pub(super) fn load(&mut self, access: &Access) -> Emit<Value<'ctx>> {
        if let Some(slot) = self.slot(access) {
            return Ok(self.load_slot(access, &slot));
        }
        let place = self.locate(access)?;
        let mask = self.mask().filter(|_| !place.in_bounds);
        let raw = self.load_location(&place, mask);
        Ok(self.decode(place.dtype, raw))
    }

    /// Loads the element or elements at a place, in the lanes of the mask.
    pub(super) fn load_location(&self, place: &Location<'ctx>, mask: Option<Value<'ctx>>) -> Value<'ctx> {
        let element = self.ops.memory_type(place.dtype);
        let align = place.dtype.bytes() as u32;
        let lanes = || self.frame.lanes.expect("addresses differ between lanes only in a vector loop").count;
        match place.address {
            Address::Element(pointer) => {
                self.load_aligned(element, self.safe_address(pointer, place.base, mask), align)
            }
            Address::Strided(first, 1) => {
                let kind = self.ops.widen(element, Some(lanes()));
                match mask {
                    None => self.load_aligned(kind, first, align),
                    Some(mask) => self.masked_load(kind.into_vector_type(), first, mask, align),
                }
            }
            Address::Strided(first, step) if step.abs() <= MAX_SHUFFLED_STRIDE && mask.is_none() => {
                self.load_strided(place, first, step, lanes())
            }
            Address::Strided(first, step) => {
                let pointers = self.strided_pointers(place, first, step, lanes());
                self.gather(place, pointers, mask, lanes())
            }
            Address::Scattered(pointers) => self.gather(place, pointers, mask, lanes()),
        }
    }

    /// Replaces an address that may be outside its buffer with the buffer's start where no lane is
    /// active.
    fn safe_address(
        &self,
        pointer: PointerValue<'ctx>,
        base: PointerValue<'ctx>,
        mask: Option<Value<'ctx>>,
    ) -> PointerValue<'ctx> {
        let Some(mask) = mask else { return pointer };
        let any = self.ops.any(mask);
        self.ops.select(any.into(), pointer.into(), base.into()).into_pointer_value()
    }

    pub(super) fn load_aligned(
        &self,
        kind: BasicTypeEnum<'ctx>,
        pointer: PointerValue<'ctx>,
        align: u32,
    ) -> Value<'ctx> {
        let value = self.ops.builder.build_load(kind, pointer, "").expect(BUILT);
        let instruction = value.as_instruction_value().expect("a load is an instruction");
        instruction.set_alignment(align).expect("a load has an alignment");
        value
    }

    fn masked_load(
        &self,
        kind: VectorType<'ctx>,
        pointer: PointerValue<'ctx>,
        mask: Value<'ctx>,
        align: u32,
    ) -> Value<'ctx> {
        let arguments = [pointer.into(), mask, kind.const_zero().into()];
        let call = self.ops.intrinsic("llvm.masked.load", &[kind.into(), self.ops.ptr()], &arguments);
        call.add_attribute(AttributeLoc::Param(0), self.attribute("align", align as u64));
        call.try_as_basic_value().expect_basic(RESULT)
    }

    /// Loads elements `step` apart: loads as many whole vectors as span the elements, then picks
    /// each lane from its vector. The last vector ends with the last element, so nothing beyond it
    /// is read.
    fn load_strided(
        &self,
        place: &Location<'ctx>,
        first: PointerValue<'ctx>,
        step: i64,
        lanes: u32,
    ) -> Value<'ctx> {
        let element = self.ops.memory_type(place.dtype);
        let kind = self.ops.widen(element, Some(lanes));
        let (count, distance) = (lanes as i64, step.abs());
        let last = (count - 1) * distance + 1 - count;
        let lowest = if step > 0 { 0 } else { (count - 1) * step };
        let mut whole: Option<Value<'ctx>> = None;
        for part in 0..distance {
            // No vector extends beyond the last element.
            let from = (part * count).min(last);
            let start = self.ops.element_ptr(element, first, self.ops.int(lowest + from));
            let vector = self.load_aligned(kind, start, place.dtype.bytes() as u32);
            // The lanes of later vectors keep arbitrary values for now.
            let picked = (0..count).map(|lane| {
                let at = if step > 0 { lane * distance } else { (count - 1 - lane) * distance };
                match (at / count).min(distance - 1) == part {
                    true => (count + at - from) as u64,
                    false => lane as u64,
                }
            });
            whole = Some(self.ops.shuffle(whole.unwrap_or(vector), vector, picked));
        }
        whole.expect("strided elements span at least one vector")
    }

    fn gather(
        &self,
        place: &Location<'ctx>,
        pointers: Value<'ctx>,
        mask: Option<Value<'ctx>>,
        lanes: u32,
    ) -> Value<'ctx> {
        let kind = self.ops.widen(self.ops.memory_type(place.dtype), Some(lanes)).into_vector_type();
        let mask = self.full_mask(mask, lanes);
        let arguments = [pointers, mask, kind.const_zero().into()];
        let types = [kind.into(), pointers.get_type()];
        let call = self.ops.intrinsic("llvm.masked.gather", &types, &arguments);
        call.add_attribute(AttributeLoc::Param(0), self.attribute("align", place.dtype.bytes() as u64));
        call.try_as_basic_value().expect_basic(RESULT)
    }

    pub(super) fn full_mask(&self, mask: Option<Value<'ctx>>, lanes: u32) -> Value<'ctx> {
        self.ops.splat(mask.unwrap_or_else(|| self.ops.bit(true)), lanes)
    }
}
