//! Emits loads of one element for each lane, at arbitrary addresses.
//!
//! Processors gather elements of 32 and 64 bits. Narrower elements are loaded one by one. LLVM
//! would move each address out of a vector of 64-bit addresses first, which takes longer than the
//! loads. Here the positions of four lanes, or of two in a large buffer, leave the vector registers
//! together in one 64-bit integer, and shifts separate them.

use inkwell::attributes::AttributeLoc;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{InstructionOpcode, IntValue, PointerValue};

use super::function::Emitter;
use super::location::Location;
use super::ops::{BUILT, RESULT, Value, element_type, vector_of};

impl<'ctx> Emitter<'ctx, '_> {
    /// Loads the elements at a vector of distances from `first`, in the lanes of the mask.
    pub(super) fn gather(
        &self,
        place: &Location<'ctx>,
        first: PointerValue<'ctx>,
        offsets: Value<'ctx>,
        mask: Option<Value<'ctx>>,
        lanes: u32,
    ) -> Value<'ctx> {
        if let (true, Some(bits)) = (place.dtype.bytes() < 4, position_bits(place, offsets, lanes)) {
            let positions = self.positions(place, first, offsets, mask);
            return self.load_lane_by_lane(place, positions, bits);
        }
        let element = self.ops.memory_type(place.dtype);
        let pointers = self.ops.element_ptrs(element, first, offsets.into_vector_value());
        self.masked_gather(element, pointers, mask, lanes, place.dtype.bytes() as u64)
    }

    /// The positions of the elements in the buffer, which are 0 in inactive lanes.
    fn positions(
        &self,
        place: &Location<'ctx>,
        first: PointerValue<'ctx>,
        offsets: Value<'ctx>,
        mask: Option<Value<'ctx>>,
    ) -> Value<'ctx> {
        let ops = &self.ops;
        let mut positions = offsets;
        if first != place.base {
            let address =
                |pointer| ops.builder.build_ptr_to_int(pointer, ops.i64(), "").map(Value::from).expect(BUILT);
            let bytes = ops.sub(address(first), address(place.base));
            let shift = place.dtype.bytes().trailing_zeros();
            let start = ops.binary(InstructionOpcode::AShr, bytes, ops.int(shift.into()).into());
            positions = ops.add(offsets, ops.resize(start, ops.int_type(32), true));
        }
        match mask {
            Some(mask) => ops.select(mask, positions, ops.int_like(positions, 0)),
            None => positions,
        }
    }

    /// The address of each lane's element, which is the start of the buffer in inactive lanes.
    pub(super) fn lane_addresses(
        &self,
        place: &Location<'ctx>,
        first: PointerValue<'ctx>,
        offsets: Value<'ctx>,
        mask: Option<Value<'ctx>>,
        lanes: u32,
    ) -> Vec<PointerValue<'ctx>> {
        if let Some(bits) = position_bits(place, offsets, lanes) {
            return self.addresses(place, self.positions(place, first, offsets, mask), bits);
        }
        let element = self.ops.memory_type(place.dtype);
        let mut pointers = self.ops.element_ptrs(element, first, offsets.into_vector_value());
        if let Some(mask) = mask {
            pointers = self.ops.select(mask, pointers, place.base.into());
        }
        (0..lanes).map(|lane| self.ops.extract(pointers, lane).into_pointer_value()).collect()
    }

    /// The addresses at a vector of positions, which are below `2^bits`.
    fn addresses(
        &self,
        place: &Location<'ctx>,
        positions: Value<'ctx>,
        bits: u32,
    ) -> Vec<PointerValue<'ctx>> {
        let ops = &self.ops;
        let narrow = ops.resize(positions, ops.int_type(bits), false);
        let lanes = narrow.get_type().into_vector_type().get_size();
        let (element, together) = (ops.memory_type(place.dtype), 64 / bits);
        let words = vector_of(ops.i64().into(), lanes / together);
        let words = ops.builder.build_bit_cast(narrow, words, "").expect(BUILT);
        let address = |lane: u32| {
            let word = ops.extract(words, lane / together);
            ops.element_ptr(element, place.base, self.part_of_word(word, lane % together * bits, bits))
        };
        (0..lanes).map(address).collect()
    }

    /// Loads the element of each lane on its own. The positions are below `2^bits`.
    fn load_lane_by_lane(&self, place: &Location<'ctx>, positions: Value<'ctx>, bits: u32) -> Value<'ctx> {
        let element = self.ops.memory_type(place.dtype);
        let addresses = self.addresses(place, positions, bits);
        let mut result: Value<'ctx> = vector_of(element, addresses.len() as u32).get_poison().into();
        for (lane, address) in addresses.into_iter().enumerate() {
            let value = self.load_aligned(element, address, place.dtype.bytes() as u32);
            result = self.ops.insert(result, value, lane as u32);
        }
        result
    }

    /// The integer of `bits` bits that begins at bit `from` of a word.
    fn part_of_word(&self, word: Value<'ctx>, from: u32, bits: u32) -> IntValue<'ctx> {
        let ops = &self.ops;
        let shifted = ops.binary(InstructionOpcode::LShr, word, ops.int(from.into()).into());
        ops.and(shifted, ops.int((1 << bits) - 1).into()).into_int_value()
    }

    fn masked_gather(
        &self,
        element: BasicTypeEnum<'ctx>,
        pointers: Value<'ctx>,
        mask: Option<Value<'ctx>>,
        lanes: u32,
        align: u64,
    ) -> Value<'ctx> {
        let kind = self.ops.widen(element, Some(lanes)).into_vector_type();
        let mask = self.full_mask(mask, lanes);
        let arguments = [pointers, mask, kind.const_zero().into()];
        let types = [kind.into(), pointers.get_type()];
        let call = self.ops.intrinsic("llvm.masked.gather", &types, &arguments);
        call.add_attribute(AttributeLoc::Param(0), self.attribute("align", align));
        call.try_as_basic_value().expect_basic(RESULT)
    }
}

/// The number of bits that hold every position in the buffer, if positions can leave a vector
/// several at a time.
fn position_bits(place: &Location<'_>, offsets: Value<'_>, lanes: u32) -> Option<u32> {
    let width = element_type(offsets).into_int_type().get_bit_width();
    let elements = place.bytes / place.dtype.bytes() as i64;
    let bits = if elements <= 1 << 16 { 16 } else { 32 };
    let is_possible = width == 32 && elements <= i64::from(i32::MAX) && lanes.is_multiple_of(64 / bits);
    is_possible.then_some(bits)
}
