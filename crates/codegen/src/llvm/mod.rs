//! Generates LLVM IR from loop nests, and machine code from LLVM IR.
//!
//! The stages, in order:
//! 1. [`private`] gives buffers that are allocated inside vector loops a lane dimension.
//! 2. [`layout`] places scratch buffers, [`registers`] chooses the storage of register buffers, and
//!    [`nan`] finds the buffers that hold no NaN.
//! 3. [`function`], [`parallel`] and [`stmt`] emit functions and statements, [`expr`] emits values
//!    and [`index`] emits subscripts. [`pointers`], [`place`], [`load`] and [`store`] emit accesses
//!    to memory. [`arith`], [`convert`], [`builtin`] and [`math`] emit single operations.
//! 4. [`passes`] runs a few passes over the IR.
//! 5. [`machine`] generates object code, and [`jit`] links it.
//!
//! All emitters build their instructions with [`ops`].

mod apart;
mod arith;
mod builtin;
mod convert;
mod expr;
mod function;
mod index;
mod jit;
mod layout;
mod load;
mod machine;
mod masks;
mod math;
mod nan;
mod ops;
mod parallel;
mod passes;
mod place;
mod pointers;
mod private;
mod registers;
mod stmt;
mod store;
mod walk;

use std::time::Instant;

use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::targets::FileType;
use tilewright_ir::LoopNest;
use tilewright_ir::nest::Scope;
use tilewright_target::Cpu;

use self::function::Unit;
use self::jit::Code;
use self::layout::Layout;
use self::machine::Machine;
use self::ops::Ops;
use crate::{Call, Check, CodegenError, CompileTime};

type Entry = unsafe extern "C" fn(*const Call);

/// Machine code for one loop nest, callable from any thread.
pub struct Kernel {
    body: Entry,
    setup: Option<Entry>,
    scratch_bytes: usize,
    constants: Vec<usize>,
    checks: Vec<Check>,
    time: CompileTime,
    /// Owns the memory of the functions above.
    _code: Code,
}

impl Kernel {
    /// Runs the body of the nest.
    ///
    /// # Safety
    /// The memory that `call` points to must be as [`Call`] describes, with buffers of the sizes
    /// that the nest declares. Buffers must not overlap.
    pub unsafe fn call(&self, call: &Call) {
        // SAFETY: the caller guarantees that the call is valid; the code lives as long as the
        // kernel.
        unsafe { (self.body)(call) }
    }

    /// Runs the setup of the nest, which fills the constant buffers.
    ///
    /// # Safety
    /// As for [`Kernel::call`].
    pub unsafe fn setup(&self, call: &Call) {
        if let Some(setup) = self.setup {
            // SAFETY: as in `call`.
            unsafe { setup(call) }
        }
    }

    /// The number of bytes of scratch memory that [`Call::scratch`] must provide.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch_bytes
    }

    /// The size of each constant buffer in bytes, in the order of the nest's buffers.
    pub fn constants(&self) -> &[usize] {
        &self.constants
    }

    /// The checks that can fail while the kernel runs. A status of `1 + i` means that `checks()[i]`
    /// failed.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The duration of each stage of compilation.
    pub fn compile_time(&self) -> CompileTime {
        self.time
    }
}

/// Compiles a nest for a CPU and links it into this process.
///
/// This machine must support the CPU's vector instructions. Otherwise calling the kernel ends the
/// process.
pub fn compile(nest: &LoopNest, target: &Cpu) -> Result<Kernel, CodegenError> {
    let start = Instant::now();
    let context = Context::create();
    let machine = Machine::new(target)?;
    let symbol = format!("tilewright_{}", jit::unique_number());
    let emitted = emit(&context, nest, &machine, &symbol)?;
    let emit_time = start.elapsed();

    let start = Instant::now();
    passes::run(&emitted.module, &machine)?;
    let passes = start.elapsed();

    let start = Instant::now();
    let object = machine
        .machine
        .write_to_memory_buffer(&emitted.module, FileType::Object)
        .map_err(|message| CodegenError::Llvm(message.to_string()))?;
    let codegen = start.elapsed();

    let start = Instant::now();
    let code = Code::link(object.as_slice())?;
    let body = entry(&code, &symbol)?;
    let setup = match nest.setup.is_empty() {
        true => None,
        false => Some(entry(&code, &setup_symbol(&symbol))?),
    };
    let time = CompileTime { emit: emit_time, passes, codegen, link: start.elapsed() };
    Ok(Kernel {
        body,
        setup,
        scratch_bytes: emitted.scratch_bytes,
        constants: constant_sizes(nest),
        checks: emitted.checks,
        time,
        _code: code,
    })
}

fn entry(code: &Code, symbol: &str) -> Result<Entry, CodegenError> {
    let address = code.address(symbol)?;
    // SAFETY: the symbol names a function that was emitted with this signature.
    Ok(unsafe { std::mem::transmute::<*const (), Entry>(address) })
}

fn constant_sizes(nest: &LoopNest) -> Vec<usize> {
    let constants = nest.buffers.iter().filter(|buffer| buffer.scope == Scope::Constant);
    constants.map(|buffer| usize::try_from(buffer.bytes()).unwrap_or(0)).collect()
}

/// Returns the LLVM IR of a nest as text, after the passes.
pub fn llvm_ir(nest: &LoopNest, target: &Cpu) -> Result<String, CodegenError> {
    let context = Context::create();
    let machine = Machine::new(target)?;
    let emitted = emit(&context, nest, &machine, &nest.name)?;
    passes::run(&emitted.module, &machine)?;
    Ok(emitted.module.print_to_string().to_string())
}

/// Returns the assembly of a nest as text.
pub fn assembly(nest: &LoopNest, target: &Cpu) -> Result<String, CodegenError> {
    let context = Context::create();
    let machine = Machine::new(target)?;
    let emitted = emit(&context, nest, &machine, &nest.name)?;
    passes::run(&emitted.module, &machine)?;
    let text = machine
        .machine
        .write_to_memory_buffer(&emitted.module, FileType::Assembly)
        .map_err(|message| CodegenError::Llvm(message.to_string()))?;
    Ok(String::from_utf8_lossy(text.as_slice()).trim_end_matches('\0').to_owned())
}

/// The LLVM IR of a nest before any pass.
struct Emitted<'ctx> {
    module: Module<'ctx>,
    scratch_bytes: usize,
    checks: Vec<Check>,
}

fn setup_symbol(symbol: &str) -> String {
    format!("{symbol}.setup")
}

fn emit<'ctx>(
    context: &'ctx Context,
    nest: &LoopNest,
    machine: &Machine,
    symbol: &str,
) -> Result<Emitted<'ctx>, CodegenError> {
    let nest = private::with_private_lanes(nest)?;
    let ops = Ops::new(context, symbol);
    ops.module.set_triple(&machine.machine.get_triple());
    ops.module.set_data_layout(&machine.machine.get_target_data().get_data_layout());
    let unit = Unit {
        layout: Layout::new(&nest),
        rooms: registers::classify(&nest),
        equal_lanes: masks::stored_in_equal_lanes(&nest),
        numbers: nan::buffers_of_numbers(&nest),
        nest: &nest,
        machine,
        ops,
    };
    let mut checks = Vec::new();
    unit.entry(symbol, &nest.body, &mut checks)?;
    if !nest.setup.is_empty() {
        unit.entry(&setup_symbol(symbol), &nest.setup, &mut checks)?;
    }
    Ok(Emitted {
        scratch_bytes: usize::try_from(unit.layout.bytes).unwrap_or(0),
        module: unit.ops.module,
        checks,
    })
}
