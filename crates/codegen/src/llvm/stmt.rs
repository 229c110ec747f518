//! Emits statements: loops, conditional statements, allocations, prefetches.

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tilewright_ir::interval::Interval;
use tilewright_ir::nest::{Allocate, For, If, LoopKind, Prefetch, Scope, Stmt};
use tilewright_ir::{IndexExpr, VarId};

use super::function::{Binding, Emit, Emitter, Lanes};
use super::loops::{is_written_out, vector_lanes};
use super::ops::{BUILT, Value};
use super::place::Address;
use super::pointers::OpenLoop;
use crate::CodegenError;

/// The error for a statement that only a GPU supports.
fn for_a_gpu(what: &str) -> CodegenError {
    CodegenError::Unsupported(format!("{what}, which only a GPU has"))
}

/// The value of a condition, as far as it is known at compile time.
enum Verdict {
    Always,
    Never,
    Open,
}

impl<'ctx> Emitter<'ctx, '_> {
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) -> Emit<()> {
        stmts.iter().try_for_each(|stmt| match stmt {
            Stmt::For(inner) => self.for_loop(inner),
            Stmt::If(choice) => self.choice(choice),
            Stmt::Allocate(room) => self.allocate(room),
            Stmt::Store(store) => self.store(store),
            Stmt::Prefetch(ahead) => self.prefetch(ahead),
            Stmt::Sync(_) => Err(for_a_gpu("a barrier")),
            Stmt::Combine(_) => Err(for_a_gpu("a combination of threads")),
        })
    }

    // Loops.

    fn for_loop(&mut self, inner: &For) -> Emit<()> {
        if let Some(count) = vector_lanes(inner) {
            return self.vector_loop(inner, count);
        }
        if is_written_out(inner) {
            let extent = inner.extent.as_constant().unwrap_or(0);
            let apart = self.needs_load_barrier(inner);
            return (0..extent).try_for_each(|at| {
                if apart && at > 0 {
                    self.fence_loads();
                }
                self.bind(inner.var, Binding::Number(at));
                self.stmts(&inner.body)
            });
        }
        match inner.kind {
            LoopKind::Block(_) | LoopKind::Thread(_) => Err(for_a_gpu("a loop over blocks or threads")),
            LoopKind::Parallel => self.parallel_loop(inner),
            _ => self.serial_loop(inner),
        }
    }

    fn bind(&mut self, var: VarId, binding: Binding<'ctx>) {
        self.frame.vars.insert(var, binding);
    }

    /// Emits the body of a vector loop once, with a vector for every value that differs between the
    /// lanes.
    fn vector_loop(&mut self, inner: &For, count: u32) -> Emit<()> {
        if self.frame.lanes.is_some() {
            return Err(CodegenError::Unsupported("a vector loop inside another".into()));
        }
        self.frame.lanes = Some(Lanes { var: inner.var, count, mask: None });
        self.bind(inner.var, Binding::Lane);
        let done = self.stmts(&inner.body);
        self.frame.lanes = None;
        self.frame.vars.remove(&inner.var);
        done
    }

    fn serial_loop(&mut self, inner: &For) -> Emit<()> {
        let extent = self.index(&inner.extent)?;
        if extent.is_vector_value() {
            return Err(CodegenError::Unsupported("a loop whose extent differs between lanes".into()));
        }
        let Interval { low, high } = self.range(&inner.extent).unwrap_or(Interval::ALL);
        let extent = extent.into_int_value();
        let zero = self.ops.int(0);
        if low >= 1 {
            return self.counted_loop(inner, zero, extent, high - 1);
        }
        let some = self.ops.icmp(IntPredicate::SGT, extent.into(), zero.into());
        let mut done = Ok(());
        self.when(some.into_int_value(), |this| {
            done = this.counted_loop(inner, zero, extent, high - 1);
        });
        done
    }

    /// Emits a loop from `from` up to, but excluding, `to`, which runs at least once. The variable
    /// never exceeds `last`.
    pub(super) fn counted_loop(
        &mut self,
        inner: &For,
        from: IntValue<'ctx>,
        to: IntValue<'ctx>,
        last: i128,
    ) -> Emit<()> {
        let before = self.block();
        let body = self.new_block();
        let builder = &self.ops.builder;
        builder.build_unconditional_branch(body).expect(BUILT);
        builder.position_at_end(body);
        let name = self.nest.var_name(inner.var);
        let phi = builder.build_phi(self.ops.i64(), name).expect(BUILT);
        let value = phi.as_basic_value().into_int_value();
        self.frame.loops.push(OpenLoop::new(inner.var, (value, from), before, body));
        self.bind(inner.var, Binding::Loop { value, last: last.max(0), depth: self.frame.loops.len() });
        self.stmts(&inner.body)?;
        self.frame.vars.remove(&inner.var);
        if let Some(done) = self.frame.loops.pop() {
            self.move_pointers(done);
        }

        let latch = self.block();
        let after = self.new_block();
        let builder = &self.ops.builder;
        let next = builder.build_int_nsw_add(value, self.ops.int(1), "").expect(BUILT);
        let more = builder.build_int_compare(IntPredicate::SLT, next, to, "").expect(BUILT);
        builder.build_conditional_branch(more, body, after).expect(BUILT);
        phi.add_incoming(&[(&from, before), (&next, latch)]);
        builder.position_at_end(after);
        Ok(())
    }

    // Choices.

    /// Emits `then` under a condition.
    pub(super) fn when(&mut self, condition: IntValue<'ctx>, then: impl FnOnce(&mut Self)) {
        let (yes, after) = (self.new_block(), self.new_block());
        let builder = &self.ops.builder;
        builder.build_conditional_branch(condition, yes, after).expect(BUILT);
        builder.position_at_end(yes);
        then(self);
        self.ops.builder.build_unconditional_branch(after).expect(BUILT);
        self.ops.builder.position_at_end(after);
    }

    fn choice(&mut self, choice: &If) -> Emit<()> {
        let mut open = Vec::new();
        for condition in &choice.conditions {
            let condition = self.resolve(condition);
            match self.verdict(&condition) {
                Verdict::Always => {}
                Verdict::Never => return self.stmts(&choice.otherwise),
                Verdict::Open => open.push(condition),
            }
        }
        if open.is_empty() {
            return self.stmts(&choice.then);
        }
        let lane = self.frame.lanes.map(|lanes| lanes.var);
        let differs = |condition: &IndexExpr| lane.is_some_and(|lane| condition.mentions(lane));
        let (masked, uniform): (Vec<_>, Vec<_>) = open.into_iter().partition(differs);
        match (uniform.is_empty(), masked.is_empty()) {
            (true, _) => self.masked_choice(choice, &masked),
            (false, true) => self.branching_choice(choice, &uniform),
            (false, false) if choice.otherwise.is_empty() => {
                let condition = self.all_hold(&uniform)?;
                let mut done = Ok(());
                self.when(condition.into_int_value(), |this| done = this.masked_choice(choice, &masked));
                done
            }
            (false, false) => self.masked_choice(choice, &[uniform, masked].concat()),
        }
    }

    fn verdict(&self, condition: &IndexExpr) -> Verdict {
        match self.range(condition) {
            Some(range) if range.low >= 0 => Verdict::Always,
            Some(range) if range.high < 0 => Verdict::Never,
            _ => Verdict::Open,
        }
    }

    fn branching_choice(&mut self, choice: &If, conditions: &[IndexExpr]) -> Emit<()> {
        let condition = self.all_hold(conditions)?.into_int_value();
        let (yes, no, after) = (self.new_block(), self.new_block(), self.new_block());
        self.ops.builder.build_conditional_branch(condition, yes, no).expect(BUILT);
        for (block, stmts) in [(yes, &choice.then), (no, &choice.otherwise)] {
            self.ops.builder.position_at_end(block);
            self.stmts(stmts)?;
            self.ops.builder.build_unconditional_branch(after).expect(BUILT);
        }
        self.ops.builder.position_at_end(after);
        Ok(())
    }

    /// Emits both branches one after the other, each under the mask of its lanes.
    fn masked_choice(&mut self, choice: &If, conditions: &[IndexExpr]) -> Emit<()> {
        let condition = self.all_hold(conditions)?;
        self.in_lanes(condition, |this| this.stmts(&choice.then))?;
        if choice.otherwise.is_empty() {
            return Ok(());
        }
        let complement = self.ops.not(condition);
        self.in_lanes(complement, |this| this.stmts(&choice.otherwise))
    }

    /// Emits under an additional mask, so that the code has no effect in other lanes.
    pub(super) fn in_lanes<T>(
        &mut self,
        condition: Value<'ctx>,
        emit: impl FnOnce(&mut Self) -> Emit<T>,
    ) -> Emit<T> {
        let outer = self.frame.lanes.expect("only the body of a vector loop is masked");
        let condition = self.ops.splat(condition, outer.count);
        let mask = self.ops.and_maybe(outer.mask, condition);
        self.frame.lanes = Some(Lanes { mask: Some(mask), ..outer });
        let done = emit(self);
        self.frame.lanes = Some(outer);
        done
    }

    fn all_hold(&mut self, conditions: &[IndexExpr]) -> Emit<Value<'ctx>> {
        let mut all = None;
        for condition in conditions {
            let holds = self.holds(condition)?;
            all = Some(self.ops.and_maybe(all, holds));
        }
        Ok(all.unwrap_or_else(|| self.ops.bit(true)))
    }

    // Prefetches.

    fn prefetch(&mut self, ahead: &Prefetch) -> Emit<()> {
        let Address::Element(pointer) = self.place(&ahead.element)?.address else {
            return Err(CodegenError::Unsupported("a prefetch whose address differs between lanes".into()));
        };
        // The arguments of `llvm.prefetch`: into all cache levels, and data rather than
        // instructions.
        let (locality, data) = (3, 1);
        let number = |value: u64| self.ops.int_type(32).const_int(value, false).into();
        let arguments = [pointer.into(), number(ahead.write as u64), number(locality), number(data)];
        self.ops.intrinsic("llvm.prefetch", &[self.ops.ptr()], &arguments);
        Ok(())
    }

    // Allocations.

    fn allocate(&mut self, room: &Allocate) -> Emit<()> {
        match self.nest.buffer(room.buffer).scope {
            Scope::Register => self.allocate_registers(room.buffer),
            _ => {
                let here = self.block();
                self.ops.builder.position_at_end(self.frame.entry);
                let offset = self.ops.int(self.layout.offset(room.buffer));
                let byte = self.ops.int_type(8).into();
                let start = self.ops.element_ptr(byte, self.frame.scratch, offset);
                self.ops.builder.position_at_end(here);
                self.frame.buffers.insert(room.buffer, start);
            }
        }
        let done = self.stmts(&room.body);
        self.frame.buffers.remove(&room.buffer);
        self.frame.slots.remove(&room.buffer);
        done
    }
}
