//! Running compiled kernels: memory, threads, devices, launching, timing.
//!
//! | module | is |
//! |---|---|
//! | [`memory`] | aligned blocks, on huge pages where they are large |
//! | [`element`] | which Rust types are elements |
//! | [`buffer`] | an owned, contiguous tensor |
//! | [`view`] | somebody else's memory as a tensor, with strides |
//! | [`mod@copy`] | between layouts: packing and unpacking |
//! | [`pool`] | the threads, and the parallel loop that generated code calls |
//! | [`signature`] | what a program takes and gives |
//! | `source` | which of them an argument of a loop nest is |
//! | [`kernel`] | from loop nest to a function of tensors |
//! | [`timing`] | how long a call takes |
//! | [`gpu`] | all of this on other devices |
//!
//! What holds everywhere: running out of memory is an error, never an abort; and an [`Executable`], a [`Bound`] and a
//! [`Pool`] can be used by several threads at once.

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
