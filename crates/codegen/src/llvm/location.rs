//! Emits the computation of the address of an access.
//!
//! The subscripts of an access become a [`Location`]: the address of one element, of elements at a
//! constant stride, or one address for each lane. A subscript that depends on data is checked
//! against its dimension. If the check fails, the code sets the kernel's status and uses subscript
//! 0 instead. So compiled code stays inside its buffers for any data. [`super::load`] and
//! [`super::store`] emit the loads and stores.

use inkwell::values::PointerValue;
use inkwell::{AtomicOrdering, IntPredicate};
use tilewright_ir::DType;
use tilewright_ir::interval::Interval;
use tilewright_ir::nest::{Access, Atom, Buffer, BufferId, IndexExpr};

use super::function::{Emit, Emitter};
use super::ops::{BUILT, Value, lanes_of};
use crate::{Check, CodegenError};

/// The address of an access, and what is known about it.
pub(super) struct Location<'ctx> {
    pub(super) address: Address<'ctx>,
    /// The start of the buffer.
    pub(super) base: PointerValue<'ctx>,
    pub(super) dtype: DType,
    /// Whether the checks of data-dependent subscripts hold; `None` if there are no checks.
    pub(super) checks_hold: Option<Value<'ctx>>,
    /// Whether the access is inside its buffer even in inactive lanes.
    pub(super) in_bounds: bool,
}

pub(super) enum Address<'ctx> {
    /// The same element in all lanes.
    Element(PointerValue<'ctx>),
    /// The first lane's element, and a constant stride between the elements of consecutive lanes.
    Strided(PointerValue<'ctx>, i64),
    /// One address for each lane.
    Scattered(Value<'ctx>),
}

/// The subscripts of an access, combined into one offset in row-major order.
struct FlatOffset<'ctx> {
    /// The sum of the subscripts that do not depend on data.
    plain: IndexExpr,
    /// The subscripts that depend on data, checked and multiplied by their strides.
    checked: Vec<Value<'ctx>>,
    checks_hold: Option<Value<'ctx>>,
    in_bounds: bool,
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
        let FlatOffset { checks_hold, in_bounds, .. } = flat;
        Ok(Location { address, base, dtype: buffer.dtype, checks_hold, in_bounds })
    }

    fn flatten(&mut self, access: &Access, buffer: &Buffer) -> Emit<FlatOffset<'ctx>> {
        let mut flat = FlatOffset {
            plain: IndexExpr::constant(0),
            checked: Vec::new(),
            checks_hold: None,
            in_bounds: true,
        };
        let dimensions = access.indices.iter().zip(buffer.strides()).zip(&buffer.shape);
        for (dimension, ((index, stride), extent)) in dimensions.enumerate() {
            if index.has_data() {
                let (index, holds) = self.checked_index(access, dimension, index, *extent)?;
                let stride = self.ops.int_like(index, stride);
                flat.checked.push(self.ops.mul(index, stride));
                flat.checks_hold = Some(self.ops.and_maybe(flat.checks_hold, holds));
                continue;
            }
            let index = self.resolve(index);
            let inside = |range: Interval| range.low >= 0 && range.high < *extent as i128;
            flat.in_bounds &= self.range(&index).is_some_and(inside);
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
        let limit = self.ops.int_like(index, extent);
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
                let (mut start, mut offsets) = (start, None);
                for offset in self.lane_offsets(part)?.into_iter().chain(differing) {
                    match (lanes_of(offset), offsets) {
                        // An offset that mentions the lane may still be the same in all lanes.
                        (None, _) => start = self.ops.element_ptr(element, start, offset.into_int_value()),
                        (Some(_), None) => offsets = Some(offset),
                        (Some(_), Some(sum)) => offsets = Some(self.add_offsets(sum, offset)),
                    }
                }
                Ok(match offsets {
                    Some(offsets) => {
                        Address::Scattered(self.ops.element_ptrs(element, start, offsets.into_vector_value()))
                    }
                    None => Address::Element(start),
                })
            }
        }
    }

    fn lane_offsets(&mut self, part: Option<LanePart>) -> Emit<Option<Value<'ctx>>> {
        Ok(match part {
            None => None,
            Some(LanePart::Step(step)) => {
                let lanes = self.frame.lanes.expect("a step is between lanes").count;
                Some(self.ops.iota(self.ops.i64(), lanes, step))
            }
            Some(LanePart::Any(index)) => Some(self.index(&index)?),
        })
    }

    fn add_offsets(&self, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        let wide = |value| self.ops.resize(value, self.ops.i64(), true);
        self.ops.add(wide(left), wide(right))
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

    /// One address for each lane, `step` elements apart.
    pub(super) fn strided_pointers(
        &self,
        place: &Location<'ctx>,
        first: PointerValue<'ctx>,
        step: i64,
        lanes: u32,
    ) -> Value<'ctx> {
        let narrow = step.unsigned_abs() < 1 << 20;
        let width = if narrow { self.ops.int_type(32) } else { self.ops.i64() };
        let offsets = self.ops.iota(width, lanes, step).into_vector_value();
        self.ops.element_ptrs(self.ops.memory_type(place.dtype), first, offsets)
    }
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
