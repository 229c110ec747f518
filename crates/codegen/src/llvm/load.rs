//! Emits the load of an element, or of one element for each lane of a vector loop.
//!
//! Neighbouring elements are loaded as one vector, and elements that lie close together as several
//! vectors that are shuffled ([`super::lane_pattern`]). All other elements are gathered
//! ([`super::gather`]), several neighbours together where a statement reads them
//! ([`super::neighbours`]). A load is masked if some lanes may be inactive, unless the access is
//! within its buffer there too.

use inkwell::attributes::AttributeLoc;
use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::{BasicValue, PointerValue};
use tilewright_ir::nest::Access;

use super::bounds::Bounds;
use super::function::{Emit, Emitter};
use super::location::{Address, Location, strided};
use super::ops::{BUILT, RESULT, Value};

impl<'ctx> Emitter<'ctx, '_> {
    /// Emits the value of an element.
    pub(super) fn load(&mut self, access: &Access) -> Emit<Value<'ctx>> {
        if let Some(slot) = self.slot(access) {
            return Ok(self.load_slot(access, &slot));
        }
        if let Some(value) = self.loaded(access) {
            return Ok(value);
        }
        if let Some(value) = self.load_clamped(access)? {
            return Ok(value);
        }
        let place = self.locate(access)?;
        let raw = self.load_location(&place, self.load_mask(&place));
        Ok(self.decode(place.dtype, raw))
    }

    /// The lanes in which a load must not be replaced by another element; `None` for no lanes.
    pub(super) fn load_mask(&self, place: &Location<'ctx>) -> Option<Value<'ctx>> {
        let lanes = self.frame.lanes?;
        match place.bounds {
            Bounds::AllLanes => None,
            Bounds::StatementLanes => lanes.statement_mask,
            Bounds::Unknown => lanes.mask,
        }
    }

    /// Loads the element or elements at a place, in the lanes of the mask.
    pub(super) fn load_location(&self, place: &Location<'ctx>, mask: Option<Value<'ctx>>) -> Value<'ctx> {
        let element = self.ops.memory_type(place.dtype);
        let align = place.dtype.bytes() as u32;
        let lanes = || self.frame.lanes.expect("addresses differ between lanes only in a vector loop").count;
        match &place.address {
            Address::Element(pointer) => {
                self.load_aligned(element, self.safe_address(*pointer, place.base, mask), align)
            }
            Address::Strided(first, 1) => {
                let kind = self.ops.widen(element, Some(lanes())).into_vector_type();
                self.load_vector(kind, *first, mask, align)
            }
            Address::Strided(first, step) => self.load_pattern(place, *first, &strided(*step, lanes()), mask),
            Address::Pattern(first, offsets) => self.load_pattern(place, *first, offsets, mask),
            Address::Scattered(first, offsets) => self.gather(place, *first, *offsets, mask, lanes()),
        }
    }

    /// Loads neighbouring elements, in the lanes of the mask.
    pub(super) fn load_vector(
        &self,
        kind: VectorType<'ctx>,
        first: PointerValue<'ctx>,
        mask: Option<Value<'ctx>>,
        align: u32,
    ) -> Value<'ctx> {
        match mask {
            None => self.load_aligned(kind.into(), first, align),
            Some(mask) => self.masked_load(kind, first, mask, align),
        }
    }

    /// Replaces an address that may be outside its buffer with the buffer's start where no lane is
    /// active.
    pub(super) fn safe_address(
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

    pub(super) fn full_mask(&self, mask: Option<Value<'ctx>>, lanes: u32) -> Value<'ctx> {
        self.ops.splat(mask.unwrap_or_else(|| self.ops.bit(true)), lanes)
    }
}
