//! Emits the statements of a loop nest as LLVM IR: loops, conditional statements, allocations and
//! prefetches. Statements that only a GPU supports, such as barriers, are errors.

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tilewright_ir::interval::Interval;
use tilewright_ir::nest::{Allocate, For, If, IndexExpr, LoopKind, LoopVarId, Prefetch, Scope, Stmt};

use super::bounds::Guard;
use super::function::{Binding, Emit, Emitter, VectorLoop};
use super::location::Address;
use super::loops::{is_unrolled, vector_lanes};
use super::ops::{BUILT, Value};
use super::pointers::OpenLoop;
use crate::CodegenError;

/// The error for a statement that only a GPU supports.
fn gpu_only(what: &str) -> CodegenError {
    CodegenError::Unsupported(format!("{what}, which only GPU targets support"))
}

/// The value of a condition, as far as it is known at compile time.
enum ConditionValue {
    Always,
    Never,
    Unknown,
}

impl<'ctx> Emitter<'ctx, '_> {
    pub(super) fn stmts(&mut self, stmts: &[Stmt]) -> Emit<()> {
        stmts.iter().try_for_each(|stmt| match stmt {
            Stmt::For(inner) => self.for_loop(inner),
            Stmt::If(conditional) => self.conditional(conditional),
            Stmt::Allocate(allocation) => self.allocate(allocation),
            Stmt::Store(store) => self.store(store),
            Stmt::Prefetch(prefetch) => self.prefetch(prefetch),
            Stmt::Sync(_) => Err(gpu_only("a barrier")),
            Stmt::Combine(_) => Err(gpu_only("a reduction across threads")),
        })
    }

    // Loops.

    fn for_loop(&mut self, inner: &For) -> Emit<()> {
        if let Some(count) = vector_lanes(inner) {
            return self.vector_loop(inner, count);
        }
        if is_unrolled(inner) {
            let extent = inner.extent.as_constant().unwrap_or(0);
            let needs_barrier = self.needs_load_barrier(inner);
            return (0..extent).try_for_each(|at| {
                if needs_barrier && at > 0 {
                    self.fence_loads();
                }
                self.bind(inner.var, Binding::Constant(at));
                self.stmts(&inner.body)
            });
        }
        match inner.kind {
            LoopKind::Block(_) | LoopKind::Thread(_) => Err(gpu_only("a loop over blocks or threads")),
            LoopKind::Parallel => self.parallel_loop(inner),
            _ => self.serial_loop(inner),
        }
    }

    fn bind(&mut self, var: LoopVarId, binding: Binding<'ctx>) {
        self.frame.vars.insert(var, binding);
    }

    /// Emits the body of a vector loop once, with a vector for every value that differs between the
    /// lanes.
    fn vector_loop(&mut self, inner: &For, count: u32) -> Emit<()> {
        if self.frame.lanes.is_some() {
            return Err(CodegenError::Unsupported("a vector loop in another vector loop".into()));
        }
        self.frame.lanes = Some(VectorLoop { var: inner.var, count, mask: None, statement_mask: None });
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
        self.emit_if(some.into_int_value(), |this| {
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
            self.advance_pointers(done);
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
    pub(super) fn emit_if(&mut self, condition: IntValue<'ctx>, then: impl FnOnce(&mut Self)) {
        let (yes, after) = (self.new_block(), self.new_block());
        let builder = &self.ops.builder;
        builder.build_conditional_branch(condition, yes, after).expect(BUILT);
        builder.position_at_end(yes);
        then(self);
        self.ops.builder.build_unconditional_branch(after).expect(BUILT);
        self.ops.builder.position_at_end(after);
    }

    fn conditional(&mut self, conditional: &If) -> Emit<()> {
        let mut open = Vec::new();
        for condition in &conditional.conditions {
            let condition = self.resolve(condition);
            match self.condition_value(&condition) {
                ConditionValue::Always => {}
                ConditionValue::Never => return self.stmts(&conditional.otherwise),
                ConditionValue::Unknown => open.push(condition),
            }
        }
        if open.is_empty() {
            return self.stmts(&conditional.then);
        }
        let lane = self.frame.lanes.map(|lanes| lanes.var);
        let differs = |condition: &IndexExpr| lane.is_some_and(|lane| condition.mentions(lane));
        let (masked, uniform): (Vec<_>, Vec<_>) = open.into_iter().partition(differs);
        match (uniform.is_empty(), masked.is_empty()) {
            (true, _) => self.masked_conditional(conditional, &masked),
            (false, true) => self.branching_conditional(conditional, &uniform),
            (false, false) if conditional.otherwise.is_empty() => {
                let condition = self.conjunction(&uniform)?;
                let mut done = Ok(());
                self.emit_if(condition.into_int_value(), |this| {
                    done = this.assuming(&uniform, Guard::Branch, |this| {
                        this.masked_conditional(conditional, &masked)
                    });
                });
                done
            }
            (false, false) => self.masked_conditional(conditional, &[uniform, masked].concat()),
        }
    }

    fn condition_value(&self, condition: &IndexExpr) -> ConditionValue {
        match self.narrowed_range(condition) {
            Some(range) if range.low >= 0 => ConditionValue::Always,
            Some(range) if range.high < 0 => ConditionValue::Never,
            _ => ConditionValue::Unknown,
        }
    }

    fn branching_conditional(&mut self, conditional: &If, conditions: &[IndexExpr]) -> Emit<()> {
        let condition = self.conjunction(conditions)?.into_int_value();
        let (yes, no, after) = (self.new_block(), self.new_block(), self.new_block());
        self.ops.builder.build_conditional_branch(condition, yes, no).expect(BUILT);
        self.ops.builder.position_at_end(yes);
        self.assuming(conditions, Guard::Branch, |this| this.stmts(&conditional.then))?;
        self.ops.builder.build_unconditional_branch(after).expect(BUILT);
        self.ops.builder.position_at_end(no);
        self.assuming_otherwise(conditions, Guard::Branch, |this| this.stmts(&conditional.otherwise))?;
        self.ops.builder.build_unconditional_branch(after).expect(BUILT);
        self.ops.builder.position_at_end(after);
        Ok(())
    }

    /// Emits both branches one after the other, each under the mask of its lanes.
    fn masked_conditional(&mut self, conditional: &If, conditions: &[IndexExpr]) -> Emit<()> {
        let condition = self.conjunction(conditions)?;
        self.with_statement_mask(condition, |this| {
            this.assuming(conditions, Guard::Mask, |this| this.stmts(&conditional.then))
        })?;
        if conditional.otherwise.is_empty() {
            return Ok(());
        }
        let complement = self.ops.not(condition);
        self.with_statement_mask(complement, |this| {
            this.assuming_otherwise(conditions, Guard::Mask, |this| this.stmts(&conditional.otherwise))
        })
    }

    /// Emits statements under an additional mask, so that the code has no effect in other lanes.
    fn with_statement_mask<T>(
        &mut self,
        condition: Value<'ctx>,
        emit: impl FnOnce(&mut Self) -> Emit<T>,
    ) -> Emit<T> {
        self.with_mask(condition, |this| {
            if let Some(lanes) = &mut this.frame.lanes {
                lanes.statement_mask = lanes.mask;
            }
            emit(this)
        })
    }

    /// Emits under an additional mask, so that the code has no effect in other lanes.
    pub(super) fn with_mask<T>(
        &mut self,
        condition: Value<'ctx>,
        emit: impl FnOnce(&mut Self) -> Emit<T>,
    ) -> Emit<T> {
        let outer = self.frame.lanes.expect("only the body of a vector loop is masked");
        let condition = self.ops.splat(condition, outer.count);
        let mask = self.ops.and_maybe(outer.mask, condition);
        self.frame.lanes = Some(VectorLoop { mask: Some(mask), ..outer });
        let done = emit(self);
        self.frame.lanes = Some(outer);
        done
    }

    fn conjunction(&mut self, conditions: &[IndexExpr]) -> Emit<Value<'ctx>> {
        let mut all = None;
        for condition in conditions {
            let holds = self.condition(condition)?;
            all = Some(self.ops.and_maybe(all, holds));
        }
        Ok(all.unwrap_or_else(|| self.ops.bit(true)))
    }

    // Prefetches.

    fn prefetch(&mut self, prefetch: &Prefetch) -> Emit<()> {
        let Address::Element(pointer) = self.locate(&prefetch.element)?.address else {
            return Err(CodegenError::Unsupported("a prefetch whose address differs between lanes".into()));
        };
        // The arguments of `llvm.prefetch`: into all cache levels, and data rather than
        // instructions.
        let (locality, data) = (3, 1);
        let number = |value: u64| self.ops.int_type(32).const_int(value, false).into();
        let arguments = [pointer.into(), number(prefetch.write as u64), number(locality), number(data)];
        self.ops.intrinsic("llvm.prefetch", &[self.ops.ptr()], &arguments);
        Ok(())
    }

    // Allocations.

    fn allocate(&mut self, allocation: &Allocate) -> Emit<()> {
        match self.nest.buffer(allocation.buffer).scope {
            Scope::Register => self.allocate_registers(allocation.buffer),
            _ => {
                let here = self.block();
                self.ops.builder.position_at_end(self.frame.entry);
                let offset = self.ops.int(self.layout.offset(allocation.buffer));
                let byte = self.ops.int_type(8).into();
                let start = self.ops.element_ptr(byte, self.frame.scratch, offset);
                self.ops.builder.position_at_end(here);
                self.frame.buffers.insert(allocation.buffer, start);
            }
        }
        let done = self.stmts(&allocation.body);
        self.frame.buffers.remove(&allocation.buffer);
        self.frame.slots.remove(&allocation.buffer);
        done
    }
}
