//! Emits parallel loops: the body becomes a function, which threads call with parts of the loop.
//!
//! ```text
//! worker(env, from, to, scratch)      loads what the body needs from env, and calls
//! body(…, from, to)                   which runs the loop from `from` to `to`
//! ```
//!
//! The environment is on the caller's stack, with an 8-byte slot for each pointer, scalar and outer
//! loop variable.

use inkwell::module::Linkage;
use inkwell::values::{FunctionValue, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tilewright_ir::nest::For;
use tilewright_ir::walk;

use super::function::{Binding, CallField, Emit, Emitter, Parameters};
use super::ops::{BUILT, Value};
use crate::CodegenError;

impl<'ctx> Emitter<'ctx, '_> {
    pub(super) fn parallel_loop(&mut self, inner: &For) -> Emit<()> {
        let parameters = self.captures(inner)?;
        let values = self.captured_values(&parameters);
        let name = format!("{}.parallel", self.frame.function.get_name().to_string_lossy());
        let body = self.declare_function(&name, &parameters);
        let worker = self.worker(&name, body, &values);

        let extent = self.index(&inner.extent)?;
        let last = self.range(&inner.extent).map_or(i64::MAX as i128, |range| range.high - 1);
        let env = self.environment(&values);
        self.call_pool(inner, worker, env, extent);

        let outside = self.block();
        let frame = self.new_frame(body, &parameters);
        let outer = std::mem::replace(&mut self.frame, frame);
        self.frame.facts = outer.facts.clone();
        for (var, binding) in &outer.vars {
            if let Binding::Constant(_) = binding {
                self.frame.vars.insert(*var, *binding);
            }
        }
        let ends = body.count_params();
        let end = |at: u32| {
            body.get_nth_param(at)
                .expect("a ranged function ends with the two bounds of its part")
                .into_int_value()
        };
        let (from, to) = (end(ends - 2), end(ends - 1));
        let some = self.ops.icmp(IntPredicate::SLT, from.into(), to.into());
        let mut done = Ok(());
        self.emit_if(some.into_int_value(), |this| done = this.counted_loop(inner, from, to, last));
        done?;
        self.finish();
        self.frame = outer;
        self.ops.builder.position_at_end(outside);
        Ok(())
    }

    /// The buffers and variables that the body of a parallel loop needs from outside.
    fn captures(&self, inner: &For) -> Emit<Parameters> {
        let used = walk::buffers(&inner.body);
        if used.iter().any(|id| self.frame.slots.contains_key(id)) {
            let what = "a register buffer that a parallel loop uses and that is allocated outside it";
            return Err(CodegenError::Unsupported(what.into()));
        }
        let buffers = used.into_iter().filter(|id| self.frame.buffers.contains_key(id)).collect();
        let vars = self.frame.vars.iter().filter_map(|(var, binding)| match binding {
            Binding::Loop { last, .. } => Some((*var, *last)),
            _ => None,
        });
        Ok(Parameters { buffers, vars: vars.collect(), ranged: true })
    }

    /// The values of the body's parameters in order, except for its scratch memory and the bounds
    /// of its part.
    fn captured_values(&self, parameters: &Parameters) -> Vec<Value<'ctx>> {
        let frame = &self.frame;
        let mut values: Vec<Value<'ctx>> = vec![frame.call.into(), frame.status.into()];
        values.extend(&frame.scalars);
        values.extend(parameters.buffers.iter().map(|id| Value::from(frame.buffers[id])));
        values.extend(parameters.vars.iter().map(|(var, _)| match frame.vars[var] {
            Binding::Loop { value, .. } => Value::from(value),
            _ => unreachable!("only induction variables are captured"),
        }));
        values
    }

    /// Stores the captured values on the stack.
    fn environment(&self, values: &[Value<'ctx>]) -> PointerValue<'ctx> {
        let env = self.stack_array(self.ops.i64().into(), values.len() as u32);
        for (at, value) in values.iter().enumerate() {
            let slot = self.ops.element_ptr(self.ops.i64().into(), env, self.ops.int(at as i64));
            self.ops.builder.build_store(slot, *value).expect(BUILT);
        }
        env
    }

    /// Emits the function that threads call.
    fn worker(&self, name: &str, body: FunctionValue<'ctx>, values: &[Value<'ctx>]) -> FunctionValue<'ctx> {
        let ops = &self.ops;
        let outside = self.block();
        let (ptr, int) = (ops.ptr().into(), ops.i64().into());
        let kind = ops.context.void_type().fn_type(&[ptr, int, int, ptr], false);
        let worker = ops.module.add_function(&format!("{name}.worker"), kind, Some(Linkage::Internal));
        self.set_attributes(worker);
        ops.builder.position_at_end(ops.context.append_basic_block(worker, ""));
        let params = worker.get_params();
        let env = params[0].into_pointer_value();
        let mut arguments: Vec<Value<'ctx>> = values
            .iter()
            .enumerate()
            .map(|(at, value)| {
                let slot = ops.element_ptr(ops.i64().into(), env, ops.int(at as i64));
                ops.builder.build_load(value.get_type(), slot, "").expect(BUILT)
            })
            .collect();
        arguments.insert(2, params[3]);
        arguments.extend([params[1], params[2]]);
        self.call_function(body, &arguments);
        ops.builder.build_return(None).expect(BUILT);
        ops.builder.position_at_end(outside);
        worker
    }

    /// Emits the call of the thread pool, which is skipped if the loop has no iterations.
    fn call_pool(
        &mut self,
        inner: &For,
        worker: FunctionValue<'ctx>,
        env: PointerValue<'ctx>,
        extent: Value<'ctx>,
    ) {
        let some = self.ops.icmp(IntPredicate::SGT, extent, self.ops.int(0).into());
        let scratch = self.layout.thread_bytes(inner.var);
        self.emit_if(some.into_int_value(), |this| {
            let ops = &this.ops;
            let call = this.frame.call;
            let pool = this.call_field(call, CallField::Pool);
            let parallel = this.call_field(call, CallField::Parallel);
            let (ptr, int) = (ops.context.ptr_type(AddressSpace::default()).into(), ops.i64().into());
            let kind = ops.context.void_type().fn_type(&[ptr, ptr, ptr, int, int], false);
            let worker = worker.as_global_value().as_pointer_value();
            let arguments = [
                pool.into(),
                worker.into(),
                env.into(),
                extent.into_int_value().into(),
                ops.int(scratch).into(),
            ];
            ops.builder.build_indirect_call(kind, parallel, &arguments, "").expect(BUILT);
        });
    }
}
