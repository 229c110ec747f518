//! Emits the address of an element as a pointer that advances with each loop, instead of computing
//! the address anew in every iteration.
//!
//! An address is a sum: a part that no loop changes, then for each loop, from the outside in, a
//! step times the loop variable, and finally a constant. Every loop gets a pointer. It starts at
//! the address that the enclosing loops have computed, and advances by the step in every iteration.
//! The innermost code adds only constants, which instructions encode for free. LLVM's loop strength
//! reduction gives much the same result. But on a body that is unrolled many times it takes longer
//! than all other passes together, so it is turned off ([`super::machine`]).

use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, InstructionOpcode, IntValue, PhiValue, PointerValue};
use tilewright_ir::nest::{Atom, Buffer, BufferId, IndexExpr, LoopVarId, Term};

use super::function::{Emit, Emitter};
use super::ops::{BUILT, Value};

/// The maximum number of advancing pointers of a loop, given the available registers. With more
/// pointers, all of them are computed from the loop variable.
const MAX_ADVANCING: usize = 8;

/// Pointers that are computed at some loop depth, by buffer and offset.
#[derive(Default)]
pub(super) struct KnownPointers<'ctx>(Vec<(BufferId, IndexExpr, PointerValue<'ctx>)>);

impl<'ctx> KnownPointers<'ctx> {
    fn find(&self, buffer: BufferId, offset: &IndexExpr) -> Option<PointerValue<'ctx>> {
        let same = |(other, by, _): &&(BufferId, IndexExpr, _)| *other == buffer && by == offset;
        self.0.iter().find(same).map(|(_, _, pointer)| *pointer)
    }
}

/// A loop being emitted.
pub(super) struct OpenLoop<'ctx> {
    pub(super) var: LoopVarId,
    pub(super) value: IntValue<'ctx>,
    pub(super) from: IntValue<'ctx>,
    /// The block that branches to the body.
    pub(super) before: BasicBlock<'ctx>,
    /// The first block of the body.
    pub(super) body: BasicBlock<'ctx>,
    known_pointers: KnownPointers<'ctx>,
    advancing: Vec<AdvancingPointer<'ctx>>,
}

/// A pointer that advances with a loop.
struct AdvancingPointer<'ctx> {
    phi: PhiValue<'ctx>,
    element: BasicTypeEnum<'ctx>,
    start: PointerValue<'ctx>,
    step: i64,
}

impl<'ctx> OpenLoop<'ctx> {
    pub(super) fn new(
        var: LoopVarId,
        (value, from): (IntValue<'ctx>, IntValue<'ctx>),
        before: BasicBlock<'ctx>,
        body: BasicBlock<'ctx>,
    ) -> OpenLoop<'ctx> {
        OpenLoop {
            var,
            value,
            from,
            before,
            body,
            known_pointers: KnownPointers::default(),
            advancing: Vec::new(),
        }
    }
}

impl<'ctx> Emitter<'ctx, '_> {
    /// The address of an element of a buffer. Accesses that differ only in the constant share the
    /// rest of the computation.
    pub(super) fn element_address(
        &mut self,
        id: BufferId,
        buffer: &Buffer,
        base: PointerValue<'ctx>,
        index: &IndexExpr,
    ) -> Emit<PointerValue<'ctx>> {
        let element = self.ops.memory_type(buffer.dtype);
        let mut terms: Vec<_> = index.terms().iter().map(|term| (self.term_depth(term), term)).collect();
        terms.sort_by_key(|(depth, _)| *depth);
        let mut pointer = base;
        let mut offset = IndexExpr::constant(0);
        for group in terms.chunk_by(|left, right| left.0 == right.0) {
            let depth = group[0].0;
            let terms: Vec<&Term> = group.iter().map(|(_, term)| *term).collect();
            for term in &terms {
                offset = offset.add(&IndexExpr::from(*term));
            }
            pointer = match self.known_pointers_at(depth).find(id, &offset) {
                Some(known) => known,
                None => {
                    let made = self.pointer_at_depth(depth, element, pointer, &terms)?;
                    self.known_pointers_at(depth).0.push((id, offset.clone(), made));
                    made
                }
            };
        }
        Ok(match index.constant_part() {
            0 => pointer,
            constant => self.ops.element_ptr(element, pointer, self.ops.int(constant)),
        })
    }

    fn known_pointers_at(&mut self, depth: usize) -> &mut KnownPointers<'ctx> {
        match depth {
            0 => &mut self.frame.known_pointers,
            depth => &mut self.frame.loops[depth - 1].known_pointers,
        }
    }

    /// Emits a pointer plus the terms that the loop at this depth changes. The code is placed where
    /// it dominates the whole loop body.
    fn pointer_at_depth(
        &mut self,
        depth: usize,
        element: BasicTypeEnum<'ctx>,
        pointer: PointerValue<'ctx>,
        terms: &[&Term],
    ) -> Emit<PointerValue<'ctx>> {
        let here = self.block();
        let step = depth.checked_sub(1).and_then(|at| step_along(self.frame.loops[at].var, terms));
        if let Some(step) = step {
            let phi = self.advancing_pointer(depth - 1, element, pointer, step);
            self.ops.builder.position_at_end(here);
            return Ok(phi);
        }
        match depth {
            0 => self.ops.builder.position_at_end(self.frame.entry),
            depth => self.position_after_phis(self.frame.loops[depth - 1].body),
        }
        let mut sum: Option<Value<'ctx>> = None;
        for term in terms {
            let term = self.term(term, self.ops.i64())?;
            sum = Some(sum.map_or(term, |sum| self.ops.add(sum, term)));
        }
        let sum = sum.expect("a group has a term").into_int_value();
        let moved = self.ops.element_ptr(element, pointer, sum);
        self.ops.builder.position_at_end(here);
        Ok(moved)
    }

    fn advancing_pointer(
        &mut self,
        at: usize,
        element: BasicTypeEnum<'ctx>,
        pointer: PointerValue<'ctx>,
        step: i64,
    ) -> PointerValue<'ctx> {
        let OpenLoop { from, before, body, .. } = self.frame.loops[at];
        let builder = &self.ops.builder;
        let mut start = pointer;
        if !from.is_const() || from.get_sign_extended_constant() != Some(0) {
            let branch = before.get_terminator().expect("the block before a loop has a branch");
            builder.position_before(&branch);
            let offset = builder.build_int_mul(from, self.ops.int(step), "").expect(BUILT);
            start = self.ops.element_ptr(element, pointer, offset);
        }
        builder
            .position_before(&body.get_first_instruction().expect("a loop's body begins with its variable"));
        let phi = builder.build_phi(self.ops.ptr(), "").expect(BUILT);
        self.frame.loops[at].advancing.push(AdvancingPointer { phi, element, start, step });
        phi.as_basic_value().into_pointer_value()
    }

    fn position_after_phis(&self, block: BasicBlock<'ctx>) {
        let mut instructions = block.get_instructions();
        match instructions.find(|own| own.get_opcode() != InstructionOpcode::Phi) {
            Some(first) => self.ops.builder.position_before(&first),
            None => self.ops.builder.position_at_end(block),
        }
    }

    /// Emits the pointer increments at the end of a loop. The current block must be the latch,
    /// which branches back to the body.
    pub(super) fn advance_pointers(&mut self, done: OpenLoop<'ctx>) {
        let latch = self.block();
        if done.advancing.len() > MAX_ADVANCING {
            self.position_after_phis(done.body);
            for AdvancingPointer { phi, element, start, step } in done.advancing {
                let from = self.ops.builder.build_int_sub(done.value, done.from, "").expect(BUILT);
                let offset = self.ops.builder.build_int_mul(from, self.ops.int(step), "").expect(BUILT);
                let pointer = self.ops.element_ptr(element, start, offset);
                let computed = pointer.as_instruction().expect("address arithmetic on a variable");
                phi.as_instruction().replace_all_uses_with(&computed);
                phi.as_instruction().erase_from_basic_block();
            }
            self.ops.builder.position_at_end(latch);
            return;
        }
        for AdvancingPointer { phi, element, start, step } in done.advancing {
            let pointer = phi.as_basic_value().into_pointer_value();
            let next = self.ops.element_ptr(element, pointer, self.ops.int(step));
            phi.add_incoming(&[(&start as &dyn BasicValue<'ctx>, done.before), (&next, latch)]);
        }
    }
}

/// The number of elements by which one iteration of a loop advances, if the terms are a constant
/// times the loop variable.
fn step_along(var: LoopVarId, terms: &[&Term]) -> Option<i64> {
    match terms {
        [Term { factors, coefficient }] if factors.as_slice() == [Atom::Var(var)] => Some(*coefficient),
        _ => None,
    }
}
