//! Runs compiled kernels: tensor memory, threads, devices, launching and timing.
//!
//! | module | contents |
//! |---|---|
//! | [`memory`] | aligned blocks of memory, on huge pages if they are large |
//! | [`element`] | the Rust types that can be elements of tensors |
//! | [`buffer`] | a contiguous tensor that owns its memory |
//! | [`view`] | a strided tensor in borrowed memory |
//! | [`mod@copy`] | copies between layouts: packing and unpacking |
//! | `packed` | contiguous copies of strided tensors for one call |
//! | [`pool`] | the threads, and the parallel loop that generated code calls |
//! | [`signature`] | the parameters and results of a program |
//! | `source` | which parameter or result each argument of a loop nest is |
//! | [`kernel`] | compiles a loop nest to a function of tensors |
//! | [`timing`] | measures how long a call takes |
//! | [`gpu`] | the same on GPUs and OpenCL devices |
//!
//! Invariants: running out of memory is an error, never an abort. Several threads can use an
//! [`Executable`], a [`Bound`] and a [`Pool`] at once.

#[cfg(target_endian = "big")]
compile_error!("tensors are little-endian, and this crate hands their bytes to the machine as they are");

pub mod buffer;
pub mod copy;
pub mod element;
pub mod gpu;
pub mod kernel;
pub mod memory;
mod packed;
pub mod pool;
pub mod signature;
mod source;
pub mod timing;
pub mod view;

pub use buffer::Buffer;
pub use copy::copy;
pub use element::Element;
pub use kernel::{Bound, BuildError, Executable, RunError};
pub use memory::{Block, OutOfMemory};
pub use pool::Pool;
pub use signature::Signature;
pub use timing::{Timing, interleaved, measure};
pub use view::{View, ViewMut};
