//! Generates code from loop nests: machine code for CPUs, and source text for GPUs.
//!
//! For CPUs, [`compile`] takes a verified loop nest, whose meaning [`tilewright_ir::nest`] defines,
//! and returns a [`Kernel`]. A [`Call`] holds all inputs of one call of a kernel. [`compile`]
//! combines two steps: [`Object::emit`] generates object code, and [`Object::link`] loads the
//! object code into the process. [`llvm_ir`] and [`assembly`] return the generated code as text.
//! For GPUs, [`c_family`] writes CUDA C++ or OpenCL C.
//!
//! This crate optimises nothing beyond what a schedule asks for: the nest says which loops are
//! vector loops, which loops run on threads and which buffers stay in registers.

use std::ffi::c_void;
use std::time::Duration;

use thiserror::Error;
use tilewright_ir::Origin;
use tilewright_ir::nest::BufferId;

pub mod c_family;
mod contract;
mod division;
mod idiom;
mod llvm;
mod memory_plan;

pub use llvm::{Kernel, Object, assembly, compile, llvm_ir};

/// Why a nest could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodegenError {
    /// The nest uses a feature that the code generator does not support.
    #[error("cannot generate code for {0}")]
    Unsupported(String),
    /// There is no code generator for this machine.
    #[error("cannot generate code for this machine: {0}")]
    Target(String),
    /// LLVM rejected the generated code, which is a bug in this crate.
    #[error("LLVM failed: {0}")]
    Llvm(String),
}

/// The body of a parallel loop. Runs the iterations from `from` up to, but excluding, `to` with
/// scratch memory of the thread's own.
pub type ParallelBody = extern "C" fn(env: *const c_void, from: i64, to: i64, scratch: *mut u8);

/// Runs `body` over all iterations from 0 to `extent`, split into parts on any threads, and returns
/// when all parts are done. Each call of `body` gets `scratch_bytes` bytes, aligned to 64, that no
/// other running call uses.
pub type Parallel = extern "C" fn(
    pool: *const c_void,
    body: ParallelBody,
    env: *const c_void,
    extent: i64,
    scratch_bytes: i64,
);

/// All inputs of one call of a kernel.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Call {
    /// One pointer for each buffer of scope `Argument`, in the order of the nest's buffers.
    pub arguments: *const *mut u8,
    /// One pointer for each buffer of scope `Constant`, in the order of the nest's buffers.
    pub constants: *const *mut u8,
    /// One slot for each scalar parameter: integers are extended, floats are their bits in the low
    /// bytes, and a `bool` is 0 or 1.
    pub scalars: *const u64,
    /// Scratch memory of [`Kernel::scratch_bytes`] bytes, aligned to 64.
    pub scratch: *mut u8,
    /// The address of the status, which is 0 before the call. A failed check writes 1 plus its
    /// position in [`Kernel::checks`].
    pub status: *mut i64,
    /// The function that runs parallel loops.
    pub parallel: Parallel,
    /// The first argument of each call of `parallel`.
    pub pool: *const c_void,
}

/// A subscript that depends on data. The kernel checks it against its dimension whenever it
/// computes the subscript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The accessed buffer.
    pub buffer: BufferId,
    /// The dimension of the subscript.
    pub dimension: usize,
    /// Whether the check also covers a range that the program declares for the subscript.
    pub is_declared: bool,
    /// The position of the access in the source text.
    pub origin: Origin,
}

/// The duration of each stage of compilation.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileTime {
    /// The time for writing LLVM IR.
    pub emit: Duration,
    /// The time for LLVM's passes over the IR.
    pub passes: Duration,
    /// The time for generating object code from the IR.
    pub codegen: Duration,
    /// The time for linking the object code into the process.
    pub link: Duration,
}
