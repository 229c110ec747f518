//! Running generated code on GPUs, and on what is programmed like one.
//!
//! | module | is |
//! |---|---|
//! | [`device`] | which devices there are, and opening one |
//! | [`buffer`] | a tensor in a device's memory |
//! | [`executable`] | generated code, compiled for a device |
//! | [`bound`] | the same with its constant inputs: a function of tensors, here or on the device |
//! | [`timing`] | how long a call takes, by the device's own clock |
//! | [`error`] | what can go wrong |
//! | `commands` | the loops and choices of the host around the kernels |
//! | `limits` | what a device has room for |
//! | `memory` | bytes of a device |
//! | `backend` | what a driver must do for all of these |
//! | `cuda`, `opencl` | the two drivers |
//!
//! What holds everywhere: drivers are looked for when they are first needed, so that the same binary starts on a machine
//! without any; all that is asked of one [`Device`] is done in order, one thing after the other; no size, and no failure
//! of a device, is a panic; and a [`GpuExecutable`], a [`GpuBound`] and a [`Device`] can be used by several threads at
//! once.
//!
//! Read next: `executable.rs` and `bound.rs`, which mirror `kernel.rs` of the CPU.

mod backend;
pub mod bound;
pub mod buffer;
mod commands;
mod cuda;
pub mod device;
pub mod error;
pub mod executable;
mod limits;
mod memory;
mod opencl;
pub mod timing;

pub use backend::KernelResources;
pub use bound::GpuBound;
pub use buffer::DeviceBuffer;
pub use cuda::{Cubin, compile_cuda, look_for_nvrtc_in};
pub use device::{Device, DeviceInfo, devices};
pub use error::GpuError;
pub use executable::GpuExecutable;
pub use timing::{Sampling, Stopwatch};
