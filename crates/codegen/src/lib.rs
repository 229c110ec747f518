//! Loop nests to machine code.
//!
//! [`compile`] takes a [`LoopNest`](tilewright_ir::LoopNest), whose meaning is in [`tilewright_ir::nest`], and
//! gives back a [`Kernel`] that is called with a [`Call`]. [`llvm_ir`] and [`assembly`] show what became of it.
//!
//! Nothing is optimised here beyond what a schedule asks for: the nest says which loops are vectors, which run on
//! threads and what stays in registers.

use std::ffi::c_void;
use std::time::Duration;

use thiserror::Error;
use tilewright_ir::verify_nest::InvalidNest;
use tilewright_ir::{Origin, TensorId};

pub mod c_family;
mod contract;
mod llvm;

pub use llvm::{Kernel, assembly, compile, llvm_ir};

/// Why a nest could not be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CodegenError {
    /// The nest asks for something that the code generator does not do.
    #[error("cannot generate code for {0}")]
    Unsupported(String),
    /// The nest is not one: a bug in whoever built it.
    #[error(transparent)]
    InvalidNest(#[from] InvalidNest),
    /// There is no code generator for this machine.
    #[error("no code generation for this machine: {0}")]
    Target(String),
    /// LLVM refused what it was given, which is a bug here.
    #[error("LLVM: {0}")]
    Llvm(String),
}

/// The body of a parallel loop: runs it from `from` up to `to` with a thread's own scratch memory.
pub type ParallelBody = extern "C" fn(env: *const c_void, from: i64, to: i64, scratch: *mut u8);

/// Runs `body` over all of 0 to `extent`, in parts and on any threads, and returns when all are done. Each call
/// of `body` gets `scratch_bytes` bytes, aligned to 64, that no other running call has.
pub type Parallel = extern "C" fn(
    pool: *const c_void,
    body: ParallelBody,
    env: *const c_void,
    extent: i64,
    scratch_bytes: i64,
);

/// Everything that a call of a kernel needs.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Call {
    /// One pointer for each buffer of scope `Argument`, in the order of the nest's buffers.
    pub arguments: *const *mut u8,
    /// One pointer for each buffer of scope `Constant`, in the order of the nest's buffers.
    pub constants: *const *mut u8,
    /// A slot for each scalar parameter: integers extended, floats as their bits in the low bytes, `bool` 0 or 1.
    pub scalars: *const u64,
    /// Room of [`Kernel::scratch_bytes`], aligned to 64.
    pub scratch: *mut u8,
    /// 0 before the call; a failed check leaves 1 + its place in [`Kernel::checks`].
    pub status: *mut i64,
    /// Runs parallel loops.
    pub parallel: Parallel,
    /// Handed to `parallel`.
    pub pool: *const c_void,
}

/// A subscript that depends on data, and is checked against its dimension whenever it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// The buffer that is accessed.
    pub buffer: TensorId,
    /// The dimension of the subscript.
    pub dimension: usize,
    /// Whether a range that the program declares for it is checked too.
    pub is_declared: bool,
    /// Where the access was written.
    pub origin: Origin,
}

/// How long the parts of compiling took.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileTime {
    /// Writing LLVM IR.
    pub emit: Duration,
    /// Passes over the IR.
    pub passes: Duration,
    /// Turning it into object code.
    pub codegen: Duration,
    /// Linking that into the process.
    pub link: Duration,
}
