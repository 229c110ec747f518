//! Emits the computation of the address of an access.
//!
//! The subscripts of an access become a [`Location`]: the address of one element, of elements at
//! constant distances, or one address for each lane. A subscript that depends on data is checked
//! against its dimension. If the check fails, the code sets the kernel's status and uses subscript
//! 0 instead. So compiled code stays inside its buffers for any data. [`super::load`] and
//! [`super::store`] emit the loads and stores.

use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::PointerValue;
use inkwell::{AtomicOrdering, IntPredicate};
use tilewright_ir::DType;
use tilewright_ir::nest::{Access, Atom, Buffer, BufferId, IndexExpr};

use super::bounds::Bounds;
use super::function::{Emit, Emitter};
use super::ops::{BUILT, Value, element_type, integer, lanes_of};
use crate::{Check, CodegenError};

/// The address of an access, and what is known about it.
pub(super) struct Location<'ctx> {
    pub(super) address: Address<'ctx>,
    /// The start of the buffer.
    pub(super) base: PointerValue<'ctx>,
    pub(super) dtype: DType,
    /// Whether the checks of data-dependent subscripts hold; `None` if there are no checks.
    pub(super) checks_hold: Option<Value<'ctx>>,
    /// Where the access is inside its buffer.
    pub(super) bounds: Bounds,
    /// The bytes of the buffer.
    pub(super) bytes: i64,
}

pub(super) enum Address<'ctx> {
    /// The same element in all lanes.
    Element(PointerValue<'ctx>),
    /// The first lane's element, and a constant stride between the elements of consecutive lanes.
    Strided(PointerValue<'ctx>, i64),
    /// A start, and the constant distances of the lanes' elements from it.
    Pattern(PointerValue<'ctx>, Vec<i64>),
    /// A start, and a vector of the distances of the lanes' elements from it.
    Scattered(PointerValue<'ctx>, Value<'ctx>),
}

/// The subscripts of an access, combined into one offset in row-major order.
struct FlatOffset<'ctx> {
    /// The sum of the subscripts that do not depend on data.
    plain: IndexExpr,
    /// The subscripts that depend on data, checked and multiplied by their strides.
    checked: Vec<Value<'ctx>>,
    checks_hold: Option<Value<'ctx>>,
    bounds: Bounds,
}

impl<'ctx> Emitter<'ctx, '_> {
    /// The mask of active lanes; `None` if all lanes are active.
    pub(super) fn mask(&self) -> Option<Value<'ctx>> {
        self.frame.lanes.and_then(|lanes| lanes.mask)
    }

    pub(super) fn locate(&mut self, access: &Access) -> Emit<Location<'ctx>> {
        let nest = self.nest;
        let buffer = nest.buffer(access.tensor);
        let base = *self.frame.buffers.get(&access.tensor).ok_or_else(|| {
            let name = &buffer.name;
            CodegenError::Unsupported(format!("an access to `{name}` outside its allocation"))
        })?;
        let flat = self.flatten(access, buffer)?;
        let address = self.address(&flat, (access.tensor, buffer), base)?;
        let FlatOffset { checks_hold, bounds, .. } = flat;
        Ok(Location { address, base, dtype: buffer.dtype, checks_hold, bounds, bytes: buffer.bytes() })
    }

    fn flatten(&mut self, access: &Access, buffer: &Buffer) -> Emit<FlatOffset<'ctx>> {
        let mut flat = FlatOffset {
            plain: IndexExpr::constant(0),
            checked: Vec::new(),
            checks_hold: None,
            bounds: Bounds::AllLanes,
        };
        let dimensions = access.indices.iter().zip(buffer.strides()).zip(&buffer.shape);
        for (dimension, ((index, stride), extent)) in dimensions.enumerate() {
            if index.has_data() {
                let index = self.data_index(access, dimension, index, *extent, &mut flat)?;
                flat.checked.push(self.data_offset(index, stride, *extent));
                continue;
            }
            let index = self.resolve(index);
            flat.bounds = flat.bounds.and(self.subscript_bounds(&index, *extent));
            flat.plain = flat.plain.add(&index.scale(stride));
        }
        flat.plain = flat.plain.merge_quotients();
        if flat.plain.is_overflow() {
            return Err(CodegenError::Unsupported(format!(
                "subscripts of `{}` that overflow 64 bits",
                buffer.name
            )));
        }
        Ok(flat)
    }

    /// Returns an index from data. It is checked, unless its operators and types keep it inside.
    fn data_index(
        &mut self,
        access: &Access,
        dimension: usize,
        index: &IndexExpr,
        extent: i64,
        flat: &mut FlatOffset<'ctx>,
    ) -> Emit<Value<'ctx>> {
        let bounds = self.subscript_bounds(&self.resolve(index), extent);
        let declared = index.declared_conditions(extent);
        let holds = |condition| {
            let range = self.narrowed_range(&self.resolve(condition));
            range.is_some_and(|range| range.low >= 0)
        };
        if bounds != Bounds::Unknown && declared.iter().all(holds) {
            flat.bounds = flat.bounds.and(bounds);
            return self.index(index);
        }
        let (index, holds) = self.checked_index(access, dimension, index, extent)?;
        flat.checks_hold = Some(self.ops.and_maybe(flat.checks_hold, holds));
        Ok(index)
    }

    /// Multiplies an index that is inside its dimension by its stride. Vectors keep 32 bits where
    /// the offset fits.
    fn data_offset(&self, index: Value<'ctx>, stride: i64, extent: i64) -> Value<'ctx> {
        let is_small = extent.saturating_mul(stride) <= i32::MAX.into();
        let width =
            if is_small && lanes_of(index).is_some() { self.ops.int_type(32) } else { self.ops.i64() };
        let index = self.ops.resize(index, width, true);
        self.ops.mul(index, self.ops.int_like(index, stride))
    }

    /// Returns the index, and whether it is inside its dimension and its declared range. The index
    /// is 0 where it is not.
    fn checked_index(
        &mut self,
        access: &Access,
        dimension: usize,
        index: &IndexExpr,
        extent: i64,
    ) -> Emit<(Value<'ctx>, Value<'ctx>)> {
        let declared = index.declared_conditions(extent);
        let index = self.index(index)?;
        // A negative index of 32 bits is at least 2^31 as an unsigned number.
        let is_narrow = element_type(index).into_int_type().get_bit_width() == 32;
        let limit = self.ops.int_like(index, if is_narrow { extent.min(1 << 31) } else { extent });
        let mut holds = self.ops.icmp(IntPredicate::ULT, index, limit);
        for condition in &declared {
            let condition = self.resolve(condition);
            let condition_holds = self.condition(&condition)?;
            let (left, right) = self.ops.matched(holds, condition_holds);
            holds = self.ops.and(left, right);
        }
        let mut fails = self.ops.not(holds);
        if let Some(mask) = self.mask() {
            fails = self.ops.and(mask, fails);
        }
        let is_declared = !declared.is_empty();
        let check = Check { buffer: access.tensor, dimension, is_declared, origin: access.origin };
        let code = self.check_number(check);
        let any = self.ops.any(fails);
        self.emit_if(any, |this| {
            let status = this.frame.status;
            let written = this.ops.builder.build_store(status, this.ops.int(code)).expect(BUILT);
            // An unordered store is atomic, and still lets LLVM move other accesses across it.
            written.set_atomic_ordering(AtomicOrdering::Unordered).expect("a store can be atomic");
        });
        let zero = self.ops.int_like(index, 0);
        Ok((self.ops.select(holds, index, zero), holds))
    }

    /// The number that a failed check writes to the status. All copies of an access have the same
    /// number.
    fn check_number(&mut self, check: Check) -> i64 {
        let known = self.checks.iter().position(|other| {
            (other.buffer, other.dimension) == (check.buffer, check.dimension)
                && (other.origin.start, other.origin.end) == (check.origin.start, check.origin.end)
        });
        let at = known.unwrap_or_else(|| {
            self.checks.push(check);
            self.checks.len() - 1
        });
        at as i64 + 1
    }

    fn address(
        &mut self,
        flat: &FlatOffset<'ctx>,
        (id, buffer): (BufferId, &Buffer),
        base: PointerValue<'ctx>,
    ) -> Emit<Address<'ctx>> {
        let (uniform, differing): (Vec<_>, Vec<_>) =
            flat.checked.iter().copied().partition(|value| lanes_of(*value).is_none());
        let element = self.ops.memory_type(buffer.dtype);
        let lane = self.frame.lanes.map(|lanes| lanes.var);
        let (plain, lane_part) = split_lane(&flat.plain, lane.map(Atom::Var));
        let start = self.offset_pointer((id, buffer), base, &uniform, &plain)?;
        match lane_part {
            None if differing.is_empty() => Ok(Address::Element(start)),
            Some(LanePart::Step(step)) if differing.is_empty() => Ok(Address::Strided(start, step)),
            part => {
                if differing.is_empty()
                    && let Some(LanePart::Any(index)) = &part
                    && let Some(offsets) = self.constant_offsets(index)
                {
                    return Ok(self.pattern(element, start, offsets));
                }
                let is_narrow = self.are_offsets_narrow(part.as_ref(), buffer);
                let (mut start, mut offsets) = (start, None);
                for offset in self.lane_offsets(part)?.into_iter().chain(differing) {
                    match (lanes_of(offset), offsets) {
                        // An offset that mentions the lane may still be the same in all lanes.
                        (None, _) => start = self.ops.element_ptr(element, start, offset.into_int_value()),
                        (Some(_), None) => offsets = Some(offset),
                        (Some(_), Some(sum)) => offsets = Some(self.add_offsets(sum, offset, is_narrow)),
                    }
                }
                Ok(offsets.map_or(Address::Element(start), |offsets| Address::Scattered(start, offsets)))
            }
        }
    }

    /// The value of an offset in each lane, if it depends on the lane alone.
    pub(super) fn constant_offsets(&self, index: &IndexExpr) -> Option<Vec<i64>> {
        let lanes = self.frame.lanes?;
        let value = |lane: u32| {
            let number = IndexExpr::constant(lane.into());
            let at_lane =
                index.substitute(&mut |atom| (*atom == Atom::Var(lanes.var)).then(|| number.clone()));
            at_lane.as_constant()
        };
        (0..lanes.count).map(value).collect()
    }

    /// The address of elements at constant distances from a start.
    fn pattern(
        &self,
        element: BasicTypeEnum<'ctx>,
        start: PointerValue<'ctx>,
        offsets: Vec<i64>,
    ) -> Address<'ctx> {
        let (first, step) = (offsets[0], offsets[1] - offsets[0]);
        let is_strided = offsets.windows(2).all(|pair| pair[1] - pair[0] == step);
        if !is_strided {
            return Address::Pattern(start, offsets);
        }
        let start = match first {
            0 => start,
            first => self.ops.element_ptr(element, start, self.ops.int(first)),
        };
        match step {
            0 => Address::Element(start),
            step => Address::Strided(start, step),
        }
    }

    fn lane_offsets(&mut self, part: Option<LanePart>) -> Emit<Option<Value<'ctx>>> {
        Ok(match part {
            None => None,
            Some(LanePart::Step(step)) => {
                let lanes = self.frame.lanes.expect("a step is between lanes").count;
                Some(self.lane_offsets_of(&strided(step, lanes)))
            }
            Some(LanePart::Any(index)) => Some(self.index(&index)?),
        })
    }

    /// Whether the sum of the lane's offset and of offsets from data fits 32 bits.
    fn are_offsets_narrow(&self, lane_part: Option<&LanePart>, buffer: &Buffer) -> bool {
        /// Half of the range is for the lane's offset, and half for those from data.
        const HALF: i64 = 1 << 30;
        let lanes = self.frame.lanes.map_or(1, |lanes| i64::from(lanes.count));
        let is_small = match lane_part {
            None => true,
            Some(LanePart::Step(step)) => step.saturating_abs().saturating_mul(lanes) <= HALF,
            Some(LanePart::Any(index)) => self.range(index).is_some_and(|range| range.is_within(HALF.into())),
        };
        is_small && buffer.elements() <= HALF
    }

    fn add_offsets(&self, left: Value<'ctx>, right: Value<'ctx>, is_narrow: bool) -> Value<'ctx> {
        let width = if is_narrow { self.ops.int_type(32) } else { self.ops.i64() };
        let resized = |value| self.ops.resize(value, width, true);
        self.ops.add(resized(left), resized(right))
    }

    /// The base address plus a uniform expression and the uniform data-dependent offsets.
    fn offset_pointer(
        &mut self,
        (id, buffer): (BufferId, &Buffer),
        base: PointerValue<'ctx>,
        data: &[Value<'ctx>],
        plain: &IndexExpr,
    ) -> Emit<PointerValue<'ctx>> {
        let element = self.ops.memory_type(buffer.dtype);
        let mut pointer = self.element_address(id, buffer, base, plain)?;
        for offset in data {
            pointer = self.ops.element_ptr(element, pointer, offset.into_int_value());
        }
        Ok(pointer)
    }

    /// Constant distances between elements, as a vector.
    pub(super) fn lane_offsets_of(&self, offsets: &[i64]) -> Value<'ctx> {
        let is_narrow = offsets.iter().all(|offset| offset.unsigned_abs() < 1 << 26);
        let width = if is_narrow { self.ops.int_type(32) } else { self.ops.i64() };
        let offsets: Vec<_> = offsets.iter().map(|offset| integer(width, *offset)).collect();
        VectorType::const_vector(&offsets).into()
    }

    /// One address for each lane.
    pub(super) fn lane_pointers(&self, place: &Location<'ctx>, lanes: u32) -> Value<'ctx> {
        let (start, offsets) = match &place.address {
            Address::Element(start) => (*start, self.lane_offsets_of(&strided(0, lanes))),
            Address::Strided(start, step) => (*start, self.lane_offsets_of(&strided(*step, lanes))),
            Address::Pattern(start, offsets) => (*start, self.lane_offsets_of(offsets)),
            Address::Scattered(start, offsets) => (*start, *offsets),
        };
        self.ops.element_ptrs(self.ops.memory_type(place.dtype), start, offsets.into_vector_value())
    }
}

/// The distances of elements at a constant stride from the first.
pub(super) fn strided(step: i64, lanes: u32) -> Vec<i64> {
    (0..i64::from(lanes)).map(|lane| lane * step).collect()
}

/// The part of an offset that differs between lanes.
enum LanePart {
    /// A constant number of elements from one lane to the next.
    Step(i64),
    /// An arbitrary expression in the lane.
    Any(IndexExpr),
}

/// Splits an offset into a part that is the same in all lanes and a part that is not.
fn split_lane(index: &IndexExpr, lane: Option<Atom>) -> (IndexExpr, Option<LanePart>) {
    let Some(lane @ Atom::Var(var)) = lane else { return (index.clone(), None) };
    if !index.mentions(var) {
        return (index.clone(), None);
    }
    if let Some((step, rest)) = index.split_on(&lane)
        && let Some(step) = step.as_constant()
        && !rest.mentions(var)
    {
        return (rest, Some(LanePart::Step(step)));
    }
    let mut uniform = IndexExpr::constant(index.constant_part());
    let mut differing = IndexExpr::constant(0);
    for term in index.terms() {
        let mut product = IndexExpr::constant(term.coefficient);
        for factor in &term.factors {
            product = product.mul(&IndexExpr::atom(factor.clone()));
        }
        match product.mentions(var) {
            true => differing = differing.add(&product),
            false => uniform = uniform.add(&product),
        }
    }
    (uniform, Some(LanePart::Any(differing)))
}
