//! Emits the functions of a kernel, and tracks the state of the function being emitted.
//!
//! Statements are emitted into functions that take every buffer as a parameter. Attributes of a
//! parameter tell LLVM facts that it cannot derive: that no two buffers overlap, and the size and
//! alignment of each. Two kinds of small function call them. The entry function takes the pointers
//! out of a [`Call`](crate::Call). The worker of a parallel loop is called by threads
//! ([`super::parallel`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::module::Linkage;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, FunctionValue, IntValue, PointerValue};
use tilewright_ir::nest::{Access, BufferId, LoopVarId, Scope, Stmt};
use tilewright_ir::{LoopNest, walk};

use super::bounds::Facts;
use super::layout::{ALIGNMENT, Layout};
use super::machine::Machine;
use super::ops::{BUILT, Ops, Value};
use super::pointers::{KnownPointers, OpenLoop};
use super::registers::Storage;
use crate::{Check, CodegenError};

pub(super) type Emit<T> = Result<T, CodegenError>;

/// The properties of a nest that stay constant while it is emitted.
pub(super) struct Unit<'ctx, 'n> {
    pub(super) ops: Ops<'ctx>,
    pub(super) nest: &'n LoopNest,
    pub(super) machine: &'n Machine,
    pub(super) layout: Layout,
    /// The storage of each buffer of scope `Register`.
    pub(super) register_storage: BTreeMap<BufferId, Storage>,
    /// Register buffers whose masked-out lanes may hold any value.
    pub(super) overwritable_lanes: BTreeSet<BufferId>,
    /// Buffers that never hold a NaN.
    pub(super) nan_free_buffers: BTreeSet<BufferId>,
}

/// Emits the statements of a nest, one function at a time.
pub(super) struct Emitter<'ctx, 'n> {
    pub(super) unit: &'n Unit<'ctx, 'n>,
    pub(super) frame: Frame<'ctx>,
    pub(super) checks: Vec<Check>,
}

/// Shortens `self.unit.ops` to `self.ops`, because emitters build many instructions.
impl<'ctx, 'n> Deref for Emitter<'ctx, 'n> {
    type Target = Unit<'ctx, 'n>;

    fn deref(&self) -> &Unit<'ctx, 'n> {
        self.unit
    }
}

/// The state of the function being emitted.
pub(super) struct Frame<'ctx> {
    pub(super) function: FunctionValue<'ctx>,
    /// The first block, which holds stack slots and addresses that no loop changes.
    pub(super) entry: BasicBlock<'ctx>,
    pub(super) call: PointerValue<'ctx>,
    pub(super) status: PointerValue<'ctx>,
    pub(super) scratch: PointerValue<'ctx>,
    pub(super) scalars: Vec<Value<'ctx>>,
    pub(super) buffers: BTreeMap<BufferId, PointerValue<'ctx>>,
    /// The stack slots of register buffers.
    pub(super) slots: BTreeMap<BufferId, Vec<PointerValue<'ctx>>>,
    pub(super) vars: BTreeMap<LoopVarId, Binding<'ctx>>,
    /// The vector loop around the statement being emitted.
    pub(super) lanes: Option<VectorLoop<'ctx>>,
    /// The loops of this function around the statement being emitted, outermost first.
    pub(super) loops: Vec<OpenLoop<'ctx>>,
    /// Pointers that no loop changes.
    pub(super) known_pointers: KnownPointers<'ctx>,
    /// What is known where the next instruction is emitted.
    pub(super) facts: Facts,
    /// The elements that the statement being emitted has loaded already.
    pub(super) loaded: Vec<(Access, Value<'ctx>)>,
}

/// The vector loop being emitted.
#[derive(Clone, Copy)]
pub(super) struct VectorLoop<'ctx> {
    pub(super) var: LoopVarId,
    pub(super) count: u32,
    /// The mask of active lanes; `None` if all lanes are active.
    pub(super) mask: Option<Value<'ctx>>,
    /// The mask of the lanes in which the statement being emitted runs. Inside a lazy operator,
    /// fewer lanes are active.
    pub(super) statement_mask: Option<Value<'ctx>>,
}

/// The value of a loop variable.
#[derive(Clone, Copy)]
pub(super) enum Binding<'ctx> {
    /// A constant, because the loop is unrolled.
    Constant(i64),
    /// The induction variable of a loop at nesting depth `depth`, with values from 0 to `last`.
    Loop { value: IntValue<'ctx>, last: i128, depth: usize },
    /// The lane of the vector loop.
    Lane,
}

/// The fields of [`Call`](crate::Call), each of which has the size of a pointer.
#[derive(Clone, Copy)]
pub(super) enum CallField {
    Arguments,
    Constants,
    Scalars,
    Scratch,
    Status,
    Parallel,
    Pool,
}

/// The parameters of a function of statements. The call, the status and the scratch memory come
/// first, then the nest's scalars, then these.
pub(super) struct Parameters {
    pub(super) buffers: Vec<BufferId>,
    pub(super) vars: Vec<(LoopVarId, i128)>,
    /// Whether the function runs a part of a loop. If so, its last two parameters are the bounds of
    /// the part.
    pub(super) ranged: bool,
}

const FIXED_PARAMETERS: u32 = 3;

impl<'ctx> Unit<'ctx, '_> {
    /// Emits a function `name(call)` that runs the statements, and appends their checks to
    /// `checks`.
    pub(super) fn entry(&self, name: &str, stmts: &[Stmt], checks: &mut Vec<Check>) -> Emit<()> {
        let outside =
            |id: &BufferId| matches!(self.nest.buffer(*id).scope, Scope::Argument(_) | Scope::Constant);
        let buffers = walk::buffers(stmts).into_iter().filter(outside).collect();
        let parameters = Parameters { buffers, vars: Vec::new(), ranged: false };
        let inner = self.declare_function(&format!("{name}.body"), &parameters);
        self.entry_wrapper(name, inner, &parameters);
        let frame = self.new_frame(inner, &parameters);
        let mut emitter = Emitter { unit: self, frame, checks: std::mem::take(checks) };
        emitter.stmts(stmts)?;
        emitter.finish();
        *checks = emitter.checks;
        Ok(())
    }

    /// Emits the function that callers outside the kernel call. It loads the fields of the call and
    /// passes them to `inner`.
    fn entry_wrapper(&self, name: &str, inner: FunctionValue<'ctx>, parameters: &Parameters) {
        let ops = &self.ops;
        let kind = ops.context.void_type().fn_type(&[ops.ptr().into()], false);
        let function = ops.module.add_function(name, kind, None);
        self.set_attributes(function);
        let ops = &self.ops;
        ops.builder.position_at_end(ops.context.append_basic_block(function, ""));
        let call = function.get_first_param().expect("the call is a parameter").into_pointer_value();
        let mut arguments: Vec<Value<'ctx>> = vec![
            call.into(),
            self.call_field(call, CallField::Status).into(),
            self.call_field(call, CallField::Scratch).into(),
        ];
        let scalars = self.call_field(call, CallField::Scalars);
        for (at, scalar) in self.nest.scalars.iter().enumerate() {
            let slot = self.ops.element_ptr(self.ops.i64().into(), scalars, self.ops.int(at as i64));
            let raw = self.load_scalar(self.ops.memory_type(scalar.dtype), slot);
            arguments.push(self.decode(scalar.dtype, raw));
        }
        for buffer in &parameters.buffers {
            arguments.push(self.load_buffer_pointer(call, *buffer).into());
        }
        self.call_function(inner, &arguments);
        self.ops.builder.build_return(None).expect(BUILT);
    }

    fn load_scalar(&self, kind: BasicTypeEnum<'ctx>, from: PointerValue<'ctx>) -> Value<'ctx> {
        self.ops.builder.build_load(kind, from, "").expect(BUILT)
    }

    pub(super) fn call_function(&self, function: FunctionValue<'ctx>, arguments: &[Value<'ctx>]) {
        let arguments: Vec<_> = arguments.iter().map(|argument| (*argument).into()).collect();
        self.ops.builder.build_call(function, &arguments, "").expect(BUILT);
    }

    /// Loads one field of a call.
    pub(super) fn call_field(&self, call: PointerValue<'ctx>, field: CallField) -> PointerValue<'ctx> {
        let place = self.ops.element_ptr(self.ops.ptr(), call, self.ops.int(field as i64));
        self.load_scalar(self.ops.ptr(), place).into_pointer_value()
    }

    /// Loads the pointer of a buffer from a call.
    fn load_buffer_pointer(&self, call: PointerValue<'ctx>, buffer: BufferId) -> PointerValue<'ctx> {
        let is_constant = |scope: Scope| scope == Scope::Constant;
        let constant = is_constant(self.nest.buffer(buffer).scope);
        let field = if constant { CallField::Constants } else { CallField::Arguments };
        let same_kind = |scope: Scope| match scope {
            Scope::Constant => constant,
            Scope::Argument(_) => !constant,
            Scope::Scratch | Scope::Register | Scope::Shared => false,
        };
        let before = &self.nest.buffers[..buffer.index()];
        let at = before.iter().filter(|other| same_kind(other.scope)).count();
        let table = self.call_field(call, field);
        let place = self.ops.element_ptr(self.ops.ptr(), table, self.ops.int(at as i64));
        self.load_scalar(self.ops.ptr(), place).into_pointer_value()
    }

    /// Declares a function of statements.
    pub(super) fn declare_function(&self, name: &str, parameters: &Parameters) -> FunctionValue<'ctx> {
        let ops = &self.ops;
        let mut types = vec![ops.ptr(); FIXED_PARAMETERS as usize];
        types.extend(self.nest.scalars.iter().map(|scalar| ops.compute_type(scalar.dtype)));
        types.extend(parameters.buffers.iter().map(|_| ops.ptr()));
        let integers = parameters.vars.len() + if parameters.ranged { 2 } else { 0 };
        types.extend(std::iter::repeat_n(BasicTypeEnum::from(ops.i64()), integers));
        let types: Vec<_> = types.into_iter().map(Into::into).collect();
        let kind = ops.context.void_type().fn_type(&types, false);
        let function = ops.module.add_function(name, kind, Some(Linkage::Internal));
        self.set_attributes(function);
        self.add_pointer_attributes(function, 1, 8, 8);
        self.add_pointer_attributes(function, 2, 0, ALIGNMENT as u64);
        let first = FIXED_PARAMETERS + self.nest.scalars.len() as u32;
        for (at, id) in parameters.buffers.iter().enumerate() {
            let buffer = self.nest.buffer(*id);
            let align = match buffer.scope {
                Scope::Scratch => ALIGNMENT as u64,
                _ => buffer.dtype.bytes() as u64,
            };
            self.add_pointer_attributes(function, first + at as u32, buffer.bytes().max(0) as u64, align);
        }
        function
    }

    /// Adds the attributes of a pointer parameter: no alias, alignment and size.
    fn add_pointer_attributes(&self, function: FunctionValue<'ctx>, parameter: u32, bytes: u64, align: u64) {
        let mut attributes = vec![("noalias", 0), ("align", align), ("noundef", 0)];
        if bytes > 0 {
            attributes.push(("dereferenceable", bytes));
        }
        for (name, value) in attributes {
            function.add_attribute(AttributeLoc::Param(parameter), self.attribute(name, value));
        }
    }

    pub(super) fn attribute(&self, name: &str, value: u64) -> Attribute {
        let kind = Attribute::get_named_enum_kind_id(name);
        self.ops.context.create_enum_attribute(kind, value)
    }

    pub(super) fn set_attributes(&self, function: FunctionValue<'ctx>) {
        let text = |key: &str, value: &str| {
            let attribute = self.ops.context.create_string_attribute(key, value);
            function.add_attribute(AttributeLoc::Function, attribute);
        };
        text("target-cpu", &self.machine.cpu);
        if !self.machine.features.is_empty() {
            text("target-features", &self.machine.features);
        }
        if let Some(bits) = self.machine.vector_bits {
            text("prefer-vector-width", &bits.to_string());
        }
        function.add_attribute(AttributeLoc::Function, self.attribute("nounwind", 0));
    }

    /// Creates the state at the start of a function of statements, and moves the builder there.
    pub(super) fn new_frame(&self, function: FunctionValue<'ctx>, parameters: &Parameters) -> Frame<'ctx> {
        let entry = self.ops.context.append_basic_block(function, "entry");
        self.ops.builder.position_at_end(self.ops.context.append_basic_block(function, "start"));
        let mut params = function.get_param_iter();
        let mut next = || params.next().expect("a function has the parameters it was declared with");
        let (call, status, scratch) = (next(), next(), next());
        Frame {
            function,
            entry,
            call: call.into_pointer_value(),
            status: status.into_pointer_value(),
            scratch: scratch.into_pointer_value(),
            scalars: self.nest.scalars.iter().map(|_| next()).collect(),
            buffers: parameters.buffers.iter().map(|id| (*id, next().into_pointer_value())).collect(),
            slots: BTreeMap::new(),
            vars: parameters
                .vars
                .iter()
                .map(|(var, last)| {
                    let value = next().into_int_value();
                    (*var, Binding::Loop { value, last: *last, depth: 0 })
                })
                .collect(),
            lanes: None,
            loops: Vec::new(),
            known_pointers: KnownPointers::default(),
            facts: Facts::default(),
            loaded: Vec::new(),
        }
    }
}

impl<'ctx> Emitter<'ctx, '_> {
    /// Ends the function being emitted.
    pub(super) fn finish(&mut self) {
        let builder = &self.ops.builder;
        builder.build_return(None).expect(BUILT);
        let entry = self.frame.entry;
        builder.position_at_end(entry);
        let start = entry.get_next_basic_block().expect("the start block follows the entry");
        builder.build_unconditional_branch(start).expect(BUILT);
    }

    /// Allocates a stack slot for one value.
    pub(super) fn stack_slot(&self, kind: BasicTypeEnum<'ctx>) -> PointerValue<'ctx> {
        let at = self.block();
        self.ops.builder.position_at_end(self.frame.entry);
        let slot = self.ops.builder.build_alloca(kind, "").expect(BUILT);
        self.ops.builder.position_at_end(at);
        slot
    }

    /// Allocates an array on the stack, with the alignment of scratch buffers.
    pub(super) fn stack_array(&self, kind: BasicTypeEnum<'ctx>, elements: u32) -> PointerValue<'ctx> {
        use inkwell::types::BasicType;
        let slot = self.stack_slot(kind.array_type(elements).into());
        let instruction = slot.as_instruction_value().expect("an alloca is an instruction");
        instruction.set_alignment(ALIGNMENT as u32).expect("an alloca has an alignment");
        slot
    }

    /// The block that receives instructions.
    pub(super) fn block(&self) -> BasicBlock<'ctx> {
        self.ops.builder.get_insert_block().expect("statements are emitted into a block")
    }

    pub(super) fn new_block(&self) -> BasicBlock<'ctx> {
        self.ops.context.append_basic_block(self.frame.function, "")
    }
}
