//! Defines [`GpuError`], the errors of devices and their drivers, with the messages for users.

use std::fmt;

use thiserror::Error;
use tilewright_codegen::c_family::Dialect;
use tilewright_target::{GpuApi, TargetName};

/// Why a device could not be used, or did not complete an operation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GpuError {
    /// This machine has no driver for such devices.
    #[error("there is no {} on this machine", driver(*.0))]
    NoDriver(GpuApi),
    /// The driver is too old. Versions are 1000 times the major plus 10 times the minor version.
    #[error(
        "the CUDA driver supports CUDA {}, but CUDA {} or newer is needed",
        version(*.found),
        version(*.wanted)
    )]
    OldDriver {
        /// The version of the driver.
        found: i32,
        /// The oldest version with all functions that are needed.
        wanted: i32,
    },
    /// There is a driver, but no device of this number.
    #[error("there is no {}: {}", TargetName::Gpu(*api, *ordinal), last(*api, *devices))]
    NoDevice {
        /// The API of the device.
        api: GpuApi,
        /// The requested number.
        ordinal: usize,
        /// The number of devices.
        devices: usize,
    },
    /// NVRTC, the compiler for CUDA, is missing.
    #[error(
        "NVRTC, the compiler for CUDA, was not found: install the CUDA toolkit or the Python package \
         nvidia-cuda-nvrtc, or add the folder of libnvrtc to LD_LIBRARY_PATH"
    )]
    NoCompiler,
    /// The device's compiler refused the source text.
    #[error("the device's compiler rejected the generated code:\n{log}")]
    Compile {
        /// The complete log of the compiler.
        log: String,
    },
    /// The code is in another language than that of the device.
    #[error("{} code cannot run on {device}", .dialect.name())]
    WrongDialect {
        /// The language of the code.
        dialect: Dialect,
        /// The name of the device.
        device: TargetName,
    },
    /// The source text has no such kernel. This is a bug in the code that wrote the text.
    #[error("the generated code has no kernel `{0}`")]
    NoKernel(String),
    /// A kernel has other parameters than a launch passes. This is a bug in the code that wrote the
    /// text.
    #[error("the parameters of kernel `{0}` do not match the arguments of its launch")]
    ParameterMismatch(String),
    /// A command of the host needs a buffer or a number that the host does not have. This is a bug
    /// in the code that wrote the command.
    #[error("the host cannot determine {0} that a kernel launch needs")]
    MissingOnHost(String),
    /// A launch asks for more than the device, or the compiled kernel, allows.
    #[error("kernel `{kernel}` needs {wanted} {what}, but the device allows {limit}")]
    LimitExceeded {
        /// The name of the kernel.
        kernel: String,
        /// The limited resource.
        what: LaunchResource,
        /// The amount that the launch asks for.
        wanted: usize,
        /// The limit.
        limit: usize,
    },
    /// A tensor is on another device, or belongs to another opening of the same device.
    #[error("tensor `{0}` is on another device")]
    WrongDevice(String),
    /// The device cannot use streams and memory of other libraries: only CUDA devices can.
    #[error("{0} cannot share streams and memory with other libraries: only CUDA devices can")]
    ForeignUnsupported(TargetName),
    /// The call must be waited for, so it cannot be captured to run later.
    #[error(
        "the call cannot be part of a CUDA graph: the host must wait for the check of a subscript that \
         depends on data"
    )]
    CannotCapture,
    /// A tensor is misaligned: kernels read several elements at a time.
    #[error("the address of a tensor on the device is not a multiple of {0} bytes")]
    Misaligned(u64),
    /// The device could not allocate a block of this size.
    #[error("out of memory on the device: could not allocate {bytes} bytes")]
    OutOfMemory {
        /// The requested size.
        bytes: usize,
    },
    /// The driver refused, or the device failed.
    #[error("{operation}: {name}{}", explained(.text))]
    Driver {
        /// The operation that failed. The cause may be an operation that was queued earlier.
        operation: &'static str,
        /// The driver's name for the failure.
        name: String,
        /// The driver's description; empty if there is none.
        text: String,
        /// Whether this process cannot use the device any more.
        sticky: bool,
    },
}

/// A resource of which a launch may use a limited amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchResource {
    /// The threads of a block.
    BlockThreads,
    /// The threads of a block, given the registers that the compiled kernel takes.
    ThreadsByRegisters,
    /// The threads along one axis of a block.
    AxisThreads,
    /// The blocks along one axis of the grid.
    AxisBlocks,
    /// The bytes of shared memory of a block.
    SharedBytes,
}

impl fmt::Display for LaunchResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LaunchResource::BlockThreads => "threads per block",
            LaunchResource::ThreadsByRegisters => "threads per block with its registers",
            LaunchResource::AxisThreads => "threads along one axis of a block",
            LaunchResource::AxisBlocks => "blocks along one axis of the grid",
            LaunchResource::SharedBytes => "bytes of shared memory",
        })
    }
}

impl GpuError {
    /// Checks whether this process has lost the device: every later call fails too, and only a new
    /// process helps.
    pub fn is_sticky(&self) -> bool {
        matches!(self, GpuError::Driver { sticky: true, .. })
    }
}

fn driver(api: GpuApi) -> &'static str {
    match api {
        GpuApi::Cuda => "CUDA driver",
        GpuApi::OpenCl => "OpenCL library",
    }
}

fn version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

fn last(api: GpuApi, devices: usize) -> String {
    match devices.checked_sub(1) {
        None => "the driver finds no device".to_owned(),
        Some(last) => format!("the last is {}", TargetName::Gpu(api, last)),
    }
}

fn explained(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(" ({text})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_is_missing() {
        let says = |error: GpuError| error.to_string();
        assert_eq!(says(GpuError::NoDriver(GpuApi::Cuda)), "there is no CUDA driver on this machine");
        assert_eq!(says(GpuError::NoDriver(GpuApi::OpenCl)), "there is no OpenCL library on this machine");
        let missing = |devices| GpuError::NoDevice { api: GpuApi::Cuda, ordinal: 3, devices };
        assert_eq!(says(missing(1)), "there is no cuda:3: the last is cuda:0");
        assert_eq!(says(missing(0)), "there is no cuda:3: the driver finds no device");
        let old = GpuError::OldDriver { found: 12040, wanted: 12080 };
        assert_eq!(says(old), "the CUDA driver supports CUDA 12.4, but CUDA 12.8 or newer is needed");
    }

    #[test]
    fn errors_of_the_driver_have_its_name_and_text() {
        let error = |text: &str, sticky| GpuError::Driver {
            operation: "waiting for the device",
            name: "CUDA_ERROR_ILLEGAL_ADDRESS".to_owned(),
            text: text.to_owned(),
            sticky,
        };
        let sticky_error = error("an illegal memory access was encountered", true);
        let wanted =
            "waiting for the device: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)";
        assert_eq!(sticky_error.to_string(), wanted);
        assert_eq!(error("", false).to_string(), "waiting for the device: CUDA_ERROR_ILLEGAL_ADDRESS");
        assert!(sticky_error.is_sticky() && !error("", false).is_sticky());
        assert!(!GpuError::OutOfMemory { bytes: 1 }.is_sticky());
    }
}
