//! Generates LLVM IR from loop nests, and machine code from LLVM IR.
//!
//! The stages, in order:
//! 1. [`private`] gives buffers that are allocated inside vector loops a lane dimension.
//! 2. [`layout`] places scratch buffers, [`registers`] chooses the storage of register buffers,
//!    [`masks`] finds the register buffers whose masked-out lanes may be overwritten, and [`nan`]
//!    finds the buffers that hold no NaN.
//! 3. [`function`], [`parallel`] and [`stmt`] emit functions and statements, [`expr`] emits values
//!    [`index`] emits subscripts and
//!    [`condition`] compares them. [`pointers`], [`location`], [`load`] and [`store`] emit
//!    accesses to memory. [`arith`], [`convert`], [`builtin`] and [`math`] emit single operations.
//! 4. [`passes`] runs a few passes over the IR.
//! 5. [`object`] generates object code with the target machine of [`machine`]. [`jit`] links the
//!    object code, and [`kernel`] calls it.
//!
//! All emitters build their instructions with [`ops`]. [`loops`] decides which loops are vectors or
//! unrolled, and [`load_barriers`] limits the reuse of loaded values between unrolled copies.

mod arith;
mod bounds;
mod builtin;
mod clamped;
mod condition;
mod convert;
mod expr;
mod float_to_int;
mod function;
mod gather;
mod index;
mod integer;
mod jit;
mod kernel;
mod lane_pattern;
mod layout;
mod load;
mod load_barriers;
mod location;
mod loops;
mod machine;
mod masks;
mod math;
mod nan;
mod neighbours;
mod object;
mod ops;
mod parallel;
mod passes;
mod pointers;
mod private;
mod registers;
mod stmt;
mod store;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::FileType;
use tilewright_ir::{LoopNest, VerifiedNest};
use tilewright_target::Cpu;

use self::function::Unit;
use self::layout::Layout;
use self::machine::Machine;
use self::ops::Ops;
use crate::{Check, CodegenError};

pub use self::kernel::Kernel;
pub use self::object::Object;

/// Compiles a nest for a CPU and links it into this process: [`Object::emit`], then
/// [`Object::link`].
pub fn compile(nest: VerifiedNest<'_>, target: &Cpu) -> Result<Kernel, CodegenError> {
    Object::emit(nest, target, &jit::unique_symbol())?.link()
}

/// Returns the LLVM IR of a nest as text, after the passes.
pub fn llvm_ir(nest: VerifiedNest<'_>, target: &Cpu) -> Result<String, CodegenError> {
    let context = Context::create();
    let machine = Machine::new(target)?;
    let emitted = emit(&context, nest.nest(), &machine, &nest.nest().name)?;
    passes::run(&emitted.module, &machine)?;
    Ok(emitted.module.print_to_string().to_string())
}

/// Returns the assembly of a nest as text.
pub fn assembly(nest: VerifiedNest<'_>, target: &Cpu) -> Result<String, CodegenError> {
    let context = Context::create();
    let machine = Machine::new(target)?;
    let emitted = emit(&context, nest.nest(), &machine, &nest.nest().name)?;
    passes::run(&emitted.module, &machine)?;
    let text = machine
        .target_machine
        .write_to_memory_buffer(&emitted.module, FileType::Assembly)
        .map_err(|message| CodegenError::Llvm(message.to_string()))?;
    Ok(String::from_utf8_lossy(text.as_slice()).trim_end_matches('\0').to_owned())
}

/// The LLVM IR of a nest before any pass.
struct Emitted<'ctx> {
    module: Module<'ctx>,
    scratch_bytes: usize,
    thread_scratch_bytes: usize,
    checks: Vec<Check>,
}

fn emit<'ctx>(
    context: &'ctx Context,
    nest: &LoopNest,
    machine: &Machine,
    symbol: &str,
) -> Result<Emitted<'ctx>, CodegenError> {
    let nest = private::with_private_lanes(nest)?;
    let ops = Ops::new(context, symbol);
    ops.module.set_triple(&machine.target_machine.get_triple());
    ops.module.set_data_layout(&machine.target_machine.get_target_data().get_data_layout());
    let unit = Unit {
        layout: Layout::new(&nest),
        register_storage: registers::choose_storage(&nest),
        overwritable_lanes: masks::buffers_with_overwritable_lanes(&nest),
        nan_free_buffers: nan::nan_free_buffers(&nest),
        nest: &nest,
        machine,
        ops,
    };
    let mut checks = Vec::new();
    unit.entry(symbol, &nest.body, &mut checks)?;
    if !nest.setup.is_empty() {
        unit.entry(&object::setup_symbol(symbol), &nest.setup, &mut checks)?;
    }
    Ok(Emitted {
        scratch_bytes: usize::try_from(unit.layout.bytes).unwrap_or(0),
        thread_scratch_bytes: usize::try_from(unit.layout.most_thread_bytes()).unwrap_or(0),
        module: unit.ops.module,
        checks,
    })
}
