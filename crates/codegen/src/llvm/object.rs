//! Generates object code from a loop nest.
//!
//! [`Object::emit`] turns a loop nest into the contents of an object file. [`Object::link`] loads
//! the code into this process as a [`Kernel`]. [`Object::bytes`] returns the contents for a linker
//! of the system.

use std::time::Instant;

use inkwell::context::Context;
use inkwell::targets::FileType;
use tilewright_ir::nest::Scope;
use tilewright_ir::{LoopNest, VerifiedNest};
use tilewright_target::Cpu;

use super::jit::Code;
use super::kernel::Kernel;
use super::machine::Machine;
use super::{emit, passes};
use crate::{Check, CodegenError, CompileTime};

/// The object code of one loop nest, and the facts that callers of the code need.
#[derive(Clone, Debug)]
pub struct Object {
    bytes: Vec<u8>,
    pub(super) symbol: String,
    pub(super) has_setup: bool,
    pub(super) scratch_bytes: usize,
    pub(super) thread_scratch_bytes: usize,
    pub(super) constants: Vec<usize>,
    pub(super) checks: Vec<Check>,
    time: CompileTime,
}

impl Object {
    /// Generates object code for a CPU. The function `symbol` takes a pointer to a
    /// [`Call`](crate::Call) and runs the body of the nest. A nest with a setup gets a second
    /// function of the same type, `symbol` with the suffix `.setup`.
    pub fn emit(nest: VerifiedNest<'_>, target: &Cpu, symbol: &str) -> Result<Object, CodegenError> {
        let nest = nest.nest();
        let start = Instant::now();
        let context = Context::create();
        let machine = Machine::new(target)?;
        let emitted = emit(&context, nest, &machine, symbol)?;
        let emit_time = start.elapsed();

        let start = Instant::now();
        passes::run(&emitted.module, &machine)?;
        let passes = start.elapsed();

        let start = Instant::now();
        let object = machine
            .target_machine
            .write_to_memory_buffer(&emitted.module, FileType::Object)
            .map_err(|message| CodegenError::Llvm(message.to_string()))?;
        let codegen = start.elapsed();
        Ok(Object {
            bytes: object.as_slice().to_vec(),
            symbol: symbol.to_owned(),
            has_setup: !nest.setup.is_empty(),
            scratch_bytes: emitted.scratch_bytes,
            thread_scratch_bytes: emitted.thread_scratch_bytes,
            constants: constant_sizes(nest),
            checks: emitted.checks,
            time: CompileTime { emit: emit_time, passes, codegen, ..CompileTime::default() },
        })
    }

    /// The contents of the object file, in the format of the target's operating system.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The name of the function that runs the body of the nest.
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// Loads the code into this process. No two kernels that exist at the same time may have the
    /// same symbol.
    ///
    /// This machine must support the vector instructions of the CPU that the object was emitted
    /// for. Otherwise calling the kernel ends the process.
    pub fn link(self) -> Result<Kernel, CodegenError> {
        let start = Instant::now();
        let code = Code::link(&self.bytes)?;
        let time = CompileTime { link: start.elapsed(), ..self.time };
        Kernel::new(self, code, time)
    }
}

/// The name of the function that fills the constant buffers.
pub(super) fn setup_symbol(symbol: &str) -> String {
    format!("{symbol}.setup")
}

fn constant_sizes(nest: &LoopNest) -> Vec<usize> {
    let constants = nest.buffers.iter().filter(|buffer| buffer.scope == Scope::Constant);
    constants.map(|buffer| usize::try_from(buffer.bytes()).unwrap_or(0)).collect()
}
