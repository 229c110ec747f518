//! Compiles OpenCL C with the compiler of a device's driver, and launches the kernels.

use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use opencl3::command_queue::{CommandQueue, enqueue_nd_range_kernel};
use opencl3::context::Context;
use opencl3::device::{CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT, CL_FP_FMA, Device};
use opencl3::error_codes::{CL_INVALID_KERNEL_NAME, ClError};
use opencl3::kernel::{Kernel, set_kernel_arg};
use opencl3::program::Program;
use tilewright_codegen::c_family::Launch;

use super::failure::driver_error;
use super::release_command_event;
use crate::gpu::backend::{ArgumentWord, KernelRequirements, KernelResources, Module, Queue};
use crate::gpu::error::GpuError;

/// Compiled kernels, and the queue on which they are launched.
pub(super) struct OpenClModule {
    queue: Arc<CommandQueue>,
    /// The kernels. A kernel holds its arguments between setting them and launching it, so only one
    /// thread may do so at a time.
    kernels: Mutex<Vec<Kernel>>,
    resources: Vec<KernelResources>,
}

impl OpenClModule {
    pub(super) fn build(
        device: &Device,
        context: &Context,
        queue: &Arc<CommandQueue>,
        text: &str,
        kernels: &[KernelRequirements],
    ) -> Result<OpenClModule, GpuError> {
        let program = Program::create_and_build_from_source(context, text, &options(device))
            .map_err(|log| GpuError::Compile { log })?;
        let found = kernels.iter().map(|kernel| find(&program, kernel)).collect::<Result<Vec<_>, _>>()?;
        let resources = found.iter().zip(kernels).map(|(found, kernel)| resources(device, found, kernel));
        let resources = resources.collect::<Result<Vec<_>, _>>();
        let resources = resources.map_err(|error| driver_error("describing a kernel")(error.0))?;
        Ok(OpenClModule { queue: Arc::clone(queue), kernels: Mutex::new(found), resources })
    }
}

/// The compiler options. They select the newest language version of the device. They request
/// correctly rounded division and square roots, as on CPUs, if the device supports them. They
/// define `TW_HAS_FMA` if the device has an instruction for fused multiply-adds. They disable an
/// optimiser that breaks kernels.
fn options(device: &Device) -> String {
    let mut options = format!("-cl-std={}", standard(device));
    let single = device.single_fp_config().unwrap_or(0);
    if single & CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT != 0 {
        options.push_str(" -cl-fp32-correctly-rounded-divide-sqrt");
    }
    if single & CL_FP_FMA != 0 {
        options.push_str(" -DTW_HAS_FMA");
    }
    if has_broken_optimiser(device) {
        options.push_str(" -cl-opt-disable");
    }
    options
}

/// Checks whether a device is PoCL up to version 5. Its optimiser crashes on some kernels and
/// breaks others: 2 of 5,500 random kernels with version 3.1, 2 of 3,800 with version 5.0.
fn has_broken_optimiser(device: &Device) -> bool {
    let is_pocl = device.version().is_ok_and(|version| version.contains("PoCL"));
    let driver = device.driver_version().unwrap_or_default();
    let major = driver.split('.').next().and_then(|major| major.parse::<u32>().ok());
    is_pocl && major.is_some_and(|major| major <= 5)
}

/// The newest language version of a device. A device of OpenCL 3.0 supports the language of that
/// version, but may report only an older one.
fn standard(device: &Device) -> &'static str {
    let platform = device.version().unwrap_or_default();
    let language = device.opencl_c_version().unwrap_or_default();
    if platform.starts_with("OpenCL 3") || language.starts_with("OpenCL C 3") {
        "CL3.0"
    } else if language.starts_with("OpenCL C 2") {
        "CL2.0"
    } else {
        "CL1.2"
    }
}

fn find(program: &Program, kernel: &KernelRequirements) -> Result<Kernel, GpuError> {
    let missing = || GpuError::NoKernel(kernel.name.clone());
    // `create` panics on a name with a zero byte.
    if kernel.name.contains('\0') {
        return Err(missing());
    }
    let describe = |error: ClError| driver_error("finding a kernel")(error.0);
    let found = Kernel::create(program, &kernel.name).map_err(|error| match error {
        ClError(CL_INVALID_KERNEL_NAME) => missing(),
        other => describe(other),
    })?;
    if found.num_args().map_err(describe)? as usize != kernel.arguments.len() {
        return Err(GpuError::ParameterMismatch(kernel.name.clone()));
    }
    Ok(found)
}

fn resources(
    device: &Device,
    found: &Kernel,
    kernel: &KernelRequirements,
) -> Result<KernelResources, ClError> {
    Ok(KernelResources {
        kernel: kernel.name.clone(),
        registers: None,
        local_bytes: found.get_private_mem_size(device.id())? as usize,
        shared_bytes: (found.get_local_mem_size(device.id())? as usize).max(kernel.shared_bytes as usize),
        threads: found.get_work_group_size(device.id())?,
    })
}

impl Module for OpenClModule {
    fn resources(&self) -> &[KernelResources] {
        &self.resources
    }

    unsafe fn launch(
        &self,
        kernel: usize,
        launch: &Launch,
        arguments: &[ArgumentWord],
        // There is only one queue.
        _queue: Queue,
    ) -> Result<(), GpuError> {
        const OPERATION: &str = "launching a kernel";
        let kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        let kernel = kernels[kernel].get();
        for (at, word) in arguments.iter().enumerate() {
            // SAFETY: a word has at least `bytes` bytes, the low ones first; a buffer belongs to
            // this device.
            let set = unsafe { set_kernel_arg(kernel, at as u32, word.bytes, (&raw const word.bits).cast()) };
            set.map_err(driver_error(OPERATION))?;
        }
        let threads = [0, 1, 2].map(|axis| launch.grid[axis] as usize * launch.block[axis] as usize);
        let block = launch.block.map(|extent| extent as usize);
        // SAFETY: the arguments are set, and the two lists have three numbers each.
        let queued = unsafe {
            enqueue_nd_range_kernel(
                self.queue.get(),
                kernel,
                3,
                ptr::null(),
                threads.as_ptr(),
                block.as_ptr(),
                0,
                ptr::null(),
            )
        };
        release_command_event(queued).map_err(driver_error(OPERATION))
    }
}
