//! What can go wrong with a device.

use thiserror::Error;
use tilewright_target::GpuApi;

/// Why a device could not be used, or did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GpuError {
    /// Nothing on this machine speaks to such devices.
    #[error("there is no {} on this machine", driver(*.0))]
    NoDriver(GpuApi),
    /// The driver lacks what is needed; versions are 1000 times the major plus 10 times the minor one.
    #[error("the CUDA driver is one of CUDA {}, and CUDA {} or newer is needed", version(*.found), version(*.wanted))]
    OldDriver {
        /// The version of the driver.
        found: i32,
        /// The oldest that will do.
        wanted: i32,
    },
    /// There is a driver, but not so many devices.
    #[error("there is no {}:{ordinal}: {}", api.name(), last(*api, *devices))]
    NoDevice {
        /// How it is programmed.
        api: GpuApi,
        /// Its number.
        ordinal: usize,
        /// How many there are.
        devices: usize,
    },
    /// The compiler for CUDA is not there.
    #[error(
        "there is no NVRTC on this machine, which compiles for CUDA: it comes with the CUDA toolkit, and with the \
         Python package nvidia-cuda-nvrtc; LD_LIBRARY_PATH says where to look"
    )]
    NoCompiler,
    /// The device's compiler refused the text.
    #[error("the device's compiler says:\n{log}")]
    Compile {
        /// All it said.
        log: String,
    },
    /// The code is for devices of another kind.
    #[error("{} code cannot run on {device}", .api.name())]
    OtherApi {
        /// What the code is written for.
        api: GpuApi,
        /// The device.
        device: String,
    },
    /// The text has no such kernel. A bug of who wrote it.
    #[error("the generated code has no kernel `{0}`")]
    NoKernel(String),
    /// A kernel takes other parameters than it is given. A bug of who wrote it.
    #[error("kernel `{0}` has other parameters than it is launched with")]
    OtherParameters(String),
    /// A command of the host needs a buffer or a number that it does not have. A bug of who wrote it.
    #[error("{0} is not known to the host when it launches a kernel")]
    Unknown(String),
    /// A launch asks for more than the device has.
    #[error("kernel `{kernel}` asks for {wanted} {what}, and the device has {limit}")]
    Limit {
        /// The kernel.
        kernel: String,
        /// Of what.
        what: &'static str,
        /// How much it asks for.
        wanted: usize,
        /// How much there is.
        limit: usize,
    },
    /// A tensor lies on another device, or belongs to another opening of the same one.
    #[error("`{0}` lies on another device")]
    OtherDevice(String),
    /// Streams and memory of other libraries are those of CUDA.
    #[error(
        "{0} has no streams and no memory that could be shared with other libraries: only CUDA devices have"
    )]
    Foreign(String),
    /// A call that must be waited for cannot be recorded to be run later.
    #[error(
        "a subscript that depends on data is checked after the call, so the call cannot be part of a CUDA graph"
    )]
    Captured,
    /// Kernels read several elements at a time.
    #[error("a tensor on the device begins at an address that is no multiple of {0}")]
    Misaligned(u64),
    /// The device has no such block of memory.
    #[error("no memory on the device: {bytes} bytes were asked for")]
    OutOfMemory {
        /// How much was asked for.
        bytes: usize,
    },
    /// The driver refused, or the device failed.
    #[error("{doing}: {name}{}", explained(.text))]
    Driver {
        /// What was being done. The failure may be of something that was asked for earlier.
        doing: &'static str,
        /// The driver's name for the failure.
        name: String,
        /// What the driver says about it; empty where it says nothing.
        text: String,
        /// The device cannot be used by this process any more.
        sticky: bool,
    },
}

impl GpuError {
    /// Whether the device is lost to this process: every call after this one fails too, and only a new process helps.
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
        Some(last) => format!("the last is {}:{last}", api.name()),
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
        assert_eq!(says(old), "the CUDA driver is one of CUDA 12.4, and CUDA 12.8 or newer is needed");
    }

    #[test]
    fn errors_of_the_driver_have_its_name_and_text() {
        let error = |text: &str, sticky| GpuError::Driver {
            doing: "waiting for the device",
            name: "CUDA_ERROR_ILLEGAL_ADDRESS".to_owned(),
            text: text.to_owned(),
            sticky,
        };
        let told = error("an illegal memory access was encountered", true);
        let wanted =
            "waiting for the device: CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)";
        assert_eq!(told.to_string(), wanted);
        assert_eq!(error("", false).to_string(), "waiting for the device: CUDA_ERROR_ILLEGAL_ADDRESS");
        assert!(told.is_sticky() && !error("", false).is_sticky());
        assert!(!GpuError::OutOfMemory { bytes: 1 }.is_sticky());
    }
}
