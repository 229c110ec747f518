//! Loads and stores.
//!
//! An access first becomes a [`Place`]: the address of one element, of neighbours at a fixed distance, or one
//! address a lane. A subscript that depends on data is checked on the way against its dimension; where it is
//! outside, the kernel's status is set, a load reads element 0 instead, and a store does nothing. So compiled code
//! stays inside its buffers whatever the data.

use inkwell::attributes::AttributeLoc;
use inkwell::types::VectorType;
use inkwell::values::{BasicValue, PointerValue};
use inkwell::{AtomicOrdering, IntPredicate};
use tilewright_ir::nest::{Buffer, Store};
use tilewright_ir::{Access, Atom, DType, IndexExpr, ReduceOp};

use super::arith::operator_of;
use super::function::{Emit, Emitter, Lanes};
use super::ops::{BUILT, RESULT, Value, lanes_of};
use crate::{Check, CodegenError};

/// Where an access goes.
struct Place<'ctx> {
    address: Address<'ctx>,
    dtype: DType,
    /// Where the checks of data-dependent subscripts hold; `None` if there are none.
    allowed: Option<Value<'ctx>>,
    /// Whether the access is inside of its buffer also in lanes that do not run.
    in_bounds: bool,
}

enum Address<'ctx> {
    /// The same element in all lanes.
    Element(PointerValue<'ctx>),
    /// Elements at a fixed distance, from the first lane's on.
    Strided(PointerValue<'ctx>, i64),
    /// One address a lane.
    Scattered(Value<'ctx>),
}

/// The subscripts of an access, joined to one number in row-major order.
struct Flat<'ctx> {
    /// What does not depend on data.
    plain: IndexExpr,
    /// What does, checked and scaled.
    checked: Vec<Value<'ctx>>,
    allowed: Option<Value<'ctx>>,
    in_bounds: bool,
}

impl<'ctx> Emitter<'ctx, '_> {
    pub(super) fn load(&mut self, access: &Access) -> Emit<Value<'ctx>> {
        if let Some(slot) = self.slot(access) {
            return Ok(self.load_slot(access, &slot));
        }
        let place = self.place(access)?;
        let mask = self.mask().filter(|_| !place.in_bounds);
        let raw = self.load_place(access, &place, mask)?;
        Ok(self.decode(place.dtype, raw))
    }

    pub(super) fn store(&mut self, store: &Store) -> Emit<()> {
        let dtype = self.nest.buffer(store.target.tensor).dtype;
        let value = self.expr(&store.value)?;
        if let Some(slot) = self.slot(&store.target) {
            return self.store_register(store, &slot, value, dtype);
        }
        let place = self.place(&store.target)?;
        match (self.frame.lanes, &place.address) {
            (None, Address::Element(pointer)) => {
                let pointer = *pointer;
                self.guarded(place.allowed, |this| this.update(store.reduce, pointer, value, dtype))
            }
            (Some(lanes), Address::Element(pointer)) => {
                self.store_uniform(store, lanes, &place, *pointer, value)
            }
            (Some(lanes), Address::Scattered(pointers)) if store.reduce.is_some() => {
                self.update_lane_by_lane(store, lanes, &place, *pointers, value)
            }
            (Some(lanes), _) => self.store_lanes(store, lanes, &place, value),
            (None, _) => unreachable!("addresses differ between lanes only inside a vector loop"),
        }
    }

    /// The lanes that run.
    fn mask(&self) -> Option<Value<'ctx>> {
        self.frame.lanes.and_then(|lanes| lanes.mask)
    }

    // Registers.

    fn store_register(
        &mut self,
        store: &Store,
        slot: &super::registers::Slot<'ctx>,
        value: Value<'ctx>,
        dtype: DType,
    ) -> Emit<()> {
        let target = &store.target;
        let whole = slot.has_lanes(self.rooms[&target.tensor]);
        let mask = self.mask();
        let value = match (self.frame.lanes, store.reduce) {
            (Some(lanes), Some(op)) if !whole => self.reduced_over_lanes(op, lanes, value, dtype),
            (Some(lanes), None) if !whole => self.last_lane(lanes, mask, value),
            _ => value,
        };
        let old = self.load_slot(target, slot);
        let new = match store.reduce {
            Some(op) => self.binary(operator_of(op), old, value, dtype),
            None => self.rounded(dtype, value),
        };
        let new = match mask {
            Some(mask) if whole => self.ops.select(mask, new, old),
            Some(mask) => {
                let any = self.ops.any(mask);
                self.ops.select(any.into(), new, old)
            }
            None => new,
        };
        self.store_slot(target, slot, new);
        Ok(())
    }

    /// The value of all running lanes reduced to one.
    fn reduced_over_lanes(
        &self,
        op: ReduceOp,
        lanes: Lanes<'ctx>,
        value: Value<'ctx>,
        dtype: DType,
    ) -> Value<'ctx> {
        let compute = dtype.compute_type();
        let mut value = self.ops.splat(value, lanes.count);
        if let Some(mask) = lanes.mask {
            value = self.ops.select(mask, value, self.neutral(op, compute));
        }
        self.reduce_lanes(op, value, compute)
    }

    /// The value of the last lane that runs.
    fn last_lane(&self, lanes: Lanes<'ctx>, mask: Option<Value<'ctx>>, value: Value<'ctx>) -> Value<'ctx> {
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
        // Without any lane the value does not count; lane 0 is as good as another.
        let last = self.ops.int_like(leading, lanes.count as i64 - 1);
        let lane =
            self.ops.elementwise("llvm.smax", &[self.ops.sub(last, leading), self.ops.int_like(leading, 0)]);
        let (vector, lane) = (value.into_vector_value(), lane.into_int_value());
        self.ops.builder.build_extract_element(vector, lane, "").expect(BUILT)
    }

    // Places.

    fn place(&mut self, access: &Access) -> Emit<Place<'ctx>> {
        let nest = self.nest;
        let buffer = nest.buffer(access.tensor);
        let base = *self.frame.buffers.get(&access.tensor).ok_or_else(|| {
            CodegenError::Unsupported(format!("buffer `{}` outside of its allocation", buffer.name))
        })?;
        let flat = self.flatten(access, buffer)?;
        let address = self.address(&flat, buffer, base)?;
        Ok(Place { address, dtype: buffer.dtype, allowed: flat.allowed, in_bounds: flat.in_bounds })
    }

    fn flatten(&mut self, access: &Access, buffer: &Buffer) -> Emit<Flat<'ctx>> {
        let mut flat =
            Flat { plain: IndexExpr::constant(0), checked: Vec::new(), allowed: None, in_bounds: true };
        let dimensions = access.indices.iter().zip(buffer.strides()).zip(&buffer.shape);
        for (dimension, ((index, stride), extent)) in dimensions.enumerate() {
            if index.has_data() {
                let (index, holds) = self.checked_index(access, dimension, index, *extent)?;
                let stride = self.ops.int_like(index, stride);
                flat.checked.push(self.ops.mul(index, stride));
                flat.allowed = Some(self.ops.and_maybe(flat.allowed, holds));
                continue;
            }
            let index = self.resolve(index);
            let inside = |(low, high): (i128, i128)| low >= 0 && high < *extent as i128;
            flat.in_bounds &= self.range(&index).is_some_and(inside);
            flat.plain = flat.plain.add(&index.scale(stride));
        }
        if flat.plain.is_overflow() {
            return Err(CodegenError::Unsupported(format!(
                "the subscripts of `{}` are too long",
                buffer.name
            )));
        }
        Ok(flat)
    }

    /// The index and whether it is inside, with 0 in the place of one that is not.
    fn checked_index(
        &mut self,
        access: &Access,
        dimension: usize,
        index: &IndexExpr,
        extent: i64,
    ) -> Emit<(Value<'ctx>, Value<'ctx>)> {
        let index = self.index(index)?;
        let limit = self.ops.int_like(index, extent);
        let holds = self.ops.icmp(IntPredicate::ULT, index, limit);
        let mut fails = self.ops.not(holds);
        if let Some(mask) = self.mask() {
            fails = self.ops.and(mask, fails);
        }
        let check = Check { buffer: access.tensor, dimension, origin: access.origin };
        let code = self.check_code(check);
        let any = self.ops.any(fails);
        self.when(any, |this| {
            let status = this.frame.status;
            let written = this.ops.builder.build_store(status, this.ops.int(code)).expect(BUILT);
            // Unordered is atomic and still lets LLVM move other accesses across.
            written.set_atomic_ordering(AtomicOrdering::Unordered).expect("a store can be atomic");
        });
        let zero = self.ops.int_like(index, 0);
        Ok((self.ops.select(holds, index, zero), holds))
    }

    /// The number that a failing check leaves in the status: the same for every copy of an access.
    fn check_code(&mut self, check: Check) -> i64 {
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
        flat: &Flat<'ctx>,
        buffer: &Buffer,
        base: PointerValue<'ctx>,
    ) -> Emit<Address<'ctx>> {
        let (uniform, differing): (Vec<_>, Vec<_>) =
            flat.checked.iter().copied().partition(|value| lanes_of(*value).is_none());
        let mut start = base;
        let element = self.ops.memory_type(buffer.dtype);
        for offset in uniform {
            start = self.ops.element_ptr(element, start, offset.into_int_value());
        }
        let lane = self.frame.lanes.map(|lanes| lanes.var);
        let (plain, lane_part) = split_lane(&flat.plain, lane.map(Atom::Var));
        let start = self.pointer(buffer, start, &plain)?;
        let start = self.harmless(start, base, flat);
        match lane_part {
            None if differing.is_empty() => Ok(Address::Element(start)),
            Some(LanePart::Step(step)) if differing.is_empty() => Ok(Address::Strided(start, step)),
            part => {
                let mut offsets = self.lane_offsets(part)?;
                for offset in differing {
                    offsets = Some(match offsets {
                        Some(sum) => self.add_offsets(sum, offset),
                        None => offset,
                    });
                }
                let offsets = offsets.expect("some part of the address differs between lanes");
                let offsets = offsets.into_vector_value();
                Ok(Address::Scattered(self.ops.element_ptrs(element, start, offsets)))
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

    /// A uniform address that may be outside of its buffer, replaced where no lane needs it.
    fn harmless(
        &self,
        pointer: PointerValue<'ctx>,
        base: PointerValue<'ctx>,
        flat: &Flat<'ctx>,
    ) -> PointerValue<'ctx> {
        match self.mask() {
            Some(mask) if !flat.in_bounds => {
                let any = self.ops.any(mask);
                self.ops.select(any.into(), pointer.into(), base.into()).into_pointer_value()
            }
            _ => pointer,
        }
    }

    /// The base moved by a uniform expression, outermost loop first and the constant last: so accesses that
    /// differ in the constant alone share all else, and loops keep what they do not change outside.
    fn pointer(
        &mut self,
        buffer: &Buffer,
        base: PointerValue<'ctx>,
        index: &IndexExpr,
    ) -> Emit<PointerValue<'ctx>> {
        let element = self.ops.memory_type(buffer.dtype);
        let mut terms: Vec<_> = index.terms().iter().map(|term| (self.term_depth(term), term)).collect();
        terms.sort_by_key(|(depth, _)| *depth);
        let mut pointer = base;
        for group in terms.chunk_by(|left, right| left.0 == right.0) {
            let mut sum: Option<Value<'ctx>> = None;
            for (_, term) in group {
                let term = self.term(term, self.ops.i64())?;
                sum = Some(sum.map_or(term, |sum| self.ops.add(sum, term)));
            }
            let sum = sum.expect("a group has a term").into_int_value();
            pointer = self.ops.element_ptr(element, pointer, sum);
        }
        if index.constant_part() != 0 {
            pointer = self.ops.element_ptr(element, pointer, self.ops.int(index.constant_part()));
        }
        Ok(pointer)
    }

    // Loads.

    fn load_place(
        &mut self,
        access: &Access,
        place: &Place<'ctx>,
        mask: Option<Value<'ctx>>,
    ) -> Emit<Value<'ctx>> {
        let element = self.ops.memory_type(place.dtype);
        let align = place.dtype.bytes() as u32;
        let lanes = self.frame.lanes.map(|lanes| lanes.count);
        Ok(match (&place.address, lanes) {
            (Address::Element(pointer), _) => self.load_aligned(element, *pointer, align),
            (Address::Strided(first, 1), Some(lanes)) => {
                let kind = self.ops.widen(element, Some(lanes));
                match mask {
                    None => self.load_aligned(kind, *first, align),
                    Some(mask) => self.masked_load(kind.into_vector_type(), *first, mask, align),
                }
            }
            (Address::Strided(first, step), Some(lanes)) => {
                let pointers = self.strided_pointers(place, *first, *step, lanes);
                self.gather(place, pointers, mask, lanes)
            }
            (Address::Scattered(pointers), Some(lanes)) => self.gather(place, *pointers, mask, lanes),
            (_, None) => {
                let name = &self.nest.buffer(access.tensor).name;
                return Err(CodegenError::Unsupported(format!("lanes of `{name}` outside of a vector loop")));
            }
        })
    }

    fn load_aligned(
        &self,
        kind: inkwell::types::BasicTypeEnum<'ctx>,
        pointer: PointerValue<'ctx>,
        align: u32,
    ) -> Value<'ctx> {
        let value = self.ops.builder.build_load(kind, pointer, "").expect(BUILT);
        let instruction = value.as_instruction_value().expect("a load is an instruction");
        instruction.set_alignment(align).expect("a load has an alignment");
        value
    }

    fn store_aligned(&self, pointer: PointerValue<'ctx>, value: Value<'ctx>, align: u32) {
        let instruction = self.ops.builder.build_store(pointer, value).expect(BUILT);
        instruction.set_alignment(align).expect("a store has an alignment");
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

    fn strided_pointers(
        &self,
        place: &Place<'ctx>,
        first: PointerValue<'ctx>,
        step: i64,
        lanes: u32,
    ) -> Value<'ctx> {
        let narrow = step.unsigned_abs() < 1 << 20;
        let width = if narrow { self.ops.int_type(32) } else { self.ops.i64() };
        let offsets = self.ops.iota(width, lanes, step).into_vector_value();
        self.ops.element_ptrs(self.ops.memory_type(place.dtype), first, offsets)
    }

    fn gather(
        &self,
        place: &Place<'ctx>,
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

    fn full_mask(&self, mask: Option<Value<'ctx>>, lanes: u32) -> Value<'ctx> {
        self.ops.splat(mask.unwrap_or_else(|| self.ops.bit(true)), lanes)
    }

    // Stores.

    /// Emits where a scalar condition holds.
    fn guarded(
        &mut self,
        condition: Option<Value<'ctx>>,
        emit: impl FnOnce(&mut Self) -> Emit<()>,
    ) -> Emit<()> {
        let Some(condition) = condition else { return emit(self) };
        let mut done = Ok(());
        self.when(condition.into_int_value(), |this| done = emit(this));
        done
    }

    /// Replaces one element, or reduces a value into it.
    fn update(
        &mut self,
        reduce: Option<ReduceOp>,
        pointer: PointerValue<'ctx>,
        value: Value<'ctx>,
        dtype: DType,
    ) -> Emit<()> {
        let align = dtype.bytes() as u32;
        let mut value = value;
        if let Some(op) = reduce {
            let raw = self.load_aligned(self.ops.memory_type(dtype), pointer, align);
            value = self.binary(operator_of(op), self.decode(dtype, raw), value, dtype.compute_type());
        }
        self.store_aligned(pointer, self.encode(dtype, value), align);
        Ok(())
    }

    /// All lanes go to one element.
    fn store_uniform(
        &mut self,
        store: &Store,
        lanes: Lanes<'ctx>,
        place: &Place<'ctx>,
        pointer: PointerValue<'ctx>,
        value: Value<'ctx>,
    ) -> Emit<()> {
        let value = match store.reduce {
            Some(op) => self.reduced_over_lanes(op, lanes, value, place.dtype),
            None => self.last_lane(lanes, lanes.mask, value),
        };
        let running = lanes.mask.map(|mask| Value::from(self.ops.any(mask)));
        let condition = match (place.allowed, running) {
            (Some(allowed), running) => Some(self.ops.and_maybe(running, allowed)),
            (None, running) => running,
        };
        let dtype = place.dtype;
        self.guarded(condition, |this| this.update(store.reduce, pointer, value, dtype))
    }

    /// Each lane goes to an element of its own, or, in a plain store, the last lane of an element wins.
    fn store_lanes(
        &mut self,
        store: &Store,
        lanes: Lanes<'ctx>,
        place: &Place<'ctx>,
        value: Value<'ctx>,
    ) -> Emit<()> {
        let mask = match place.allowed {
            Some(allowed) => {
                let allowed = self.ops.splat(allowed, lanes.count);
                Some(self.ops.and_maybe(lanes.mask, allowed))
            }
            None => lanes.mask,
        };
        let mut value = self.ops.splat(value, lanes.count);
        if let Some(op) = store.reduce {
            let raw = self.load_place(&store.target, place, mask)?;
            let old = self.decode(place.dtype, raw);
            value = self.binary(operator_of(op), old, value, place.dtype.compute_type());
        }
        let raw = self.encode(place.dtype, value);
        let align = place.dtype.bytes() as u32;
        match (&place.address, mask) {
            (Address::Strided(first, 1), None) => self.store_aligned(*first, raw, align),
            (Address::Strided(first, 1), Some(mask)) => {
                let types = [raw.get_type(), self.ops.ptr()];
                let call = self.ops.intrinsic("llvm.masked.store", &types, &[raw, (*first).into(), mask]);
                call.add_attribute(AttributeLoc::Param(1), self.attribute("align", align as u64));
            }
            (Address::Strided(first, step), mask) => {
                let pointers = self.strided_pointers(place, *first, *step, lanes.count);
                self.scatter(raw, pointers, mask, lanes.count, align);
            }
            (Address::Scattered(pointers), mask) => {
                self.scatter(raw, *pointers, mask, lanes.count, align);
            }
            (Address::Element(_), _) => unreachable!("uniform stores are made elsewhere"),
        }
        Ok(())
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

    /// One lane after the other, as several may go to one element.
    fn update_lane_by_lane(
        &mut self,
        store: &Store,
        lanes: Lanes<'ctx>,
        place: &Place<'ctx>,
        pointers: Value<'ctx>,
        value: Value<'ctx>,
    ) -> Emit<()> {
        let mask = match place.allowed {
            Some(allowed) => Some(self.ops.and_maybe(lanes.mask, self.ops.splat(allowed, lanes.count))),
            None => lanes.mask,
        };
        for lane in 0..lanes.count {
            let pointer = self.ops.extract(pointers, lane).into_pointer_value();
            let value = match lanes_of(value) {
                Some(_) => self.ops.extract(value, lane),
                None => value,
            };
            let running = mask.map(|mask| self.ops.extract(mask, lane));
            let dtype = place.dtype;
            self.guarded(running, |this| this.update(store.reduce, pointer, value, dtype))?;
        }
        Ok(())
    }
}

/// How an address differs between lanes.
enum LanePart {
    /// By this many elements from one to the next.
    Step(i64),
    /// By this expression.
    Any(IndexExpr),
}

/// Splits a subscript into what is the same in all lanes and what is not.
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
