//! Runs generated code on GPUs, and on other devices with the same programming model.
//!
//! | module | contents |
//! |---|---|
//! | [`device`] | lists the devices, and opens one |
//! | [`buffer`] | a tensor in a device's memory |
//! | [`executable`] | compiles generated code for a device |
//! | [`bound`] | an executable with its constant inputs: a function of tensors |
//! | [`timing`] | measures how long a call takes, by the device's own clock |
//! | [`error`] | the errors |
//! | `commands` | executes the loops and branches of the host around the kernels |
//! | `replay` | decides when launches are recorded, to be queued as one operation |
//! | `limits` | checks launches against the limits of a device |
//! | `memory` | a block of device memory |
//! | `backend` | the interface of the two backends |
//! | `cuda`, `opencl` | the two backends, one for each driver |
//!
//! Invariants:
//!
//! - A driver is loaded when it is first needed, so the same binary starts on a machine without any
//!   driver.
//! - A [`Device`] does everything that is queued on it in order, one operation after the other.
//! - No size, and no failure of a device, causes a panic.
//! - Several threads can use a [`GpuExecutable`], a [`GpuBound`] and a [`Device`] at once.
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
mod replay;
pub mod timing;

pub use backend::KernelResources;
pub use bound::GpuBound;
pub use buffer::DeviceBuffer;
pub use cuda::{Cubin, add_nvrtc_folders, compile_cuda};
pub use device::{Device, DeviceInfo, devices};
pub use error::{GpuError, LaunchResource};
pub use executable::GpuExecutable;
pub use timing::{Sampling, Stopwatch};
