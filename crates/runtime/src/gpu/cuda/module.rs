//! Loads compiled code ([`Cubin`]) on an NVIDIA GPU, checks the parameters of its kernels, and
//! launches them.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{CUfunction_attribute as Attribute, CUresult, cuFuncGetParamInfo};
use cudarc::driver::{CudaFunction, CudaStream, DriverError, result};
use cudarc::nvrtc::Ptx;
use smallvec::SmallVec;
use tilewright_codegen::c_family::Launch;

use super::failure::driver_error;
use super::graph::CudaGraph;
use super::nvrtc::Cubin;
use super::streams::{make_current, raw_stream};
use crate::gpu::backend::{
    ArgumentWord, KernelRequirements, KernelResources, Module, PreparedLaunch, Queue, Recording,
};
use crate::gpu::error::GpuError;

/// Loaded kernels, and the device's own stream.
pub(super) struct CudaModule {
    stream: Arc<CudaStream>,
    functions: Vec<CudaFunction>,
    resources: Vec<KernelResources>,
}

impl CudaModule {
    pub(super) fn load(
        stream: &Arc<CudaStream>,
        cubin: Cubin,
        text: &str,
        kernels: &[KernelRequirements],
    ) -> Result<CudaModule, GpuError> {
        let context = stream.context();
        let loaded = context
            .load_module(Ptx::from_binary(cubin.bytes))
            .map_err(driver_error("loading compiled code"))?;
        let mut module =
            CudaModule { stream: Arc::clone(stream), functions: Vec::new(), resources: Vec::new() };
        for kernel in kernels {
            let function = find(&loaded, &kernel.name)?;
            check_parameters(&function, kernel, text)?;
            allow_shared(&function, kernel.shared_bytes).map_err(driver_error("requesting shared memory"))?;
            module.resources.push(resources(&function, kernel).map_err(driver_error("describing a kernel"))?);
            module.functions.push(function);
        }
        Ok(module)
    }
}

fn find(module: &Arc<cudarc::driver::CudaModule>, name: &str) -> Result<CudaFunction, GpuError> {
    let missing = || GpuError::NoKernel(name.to_owned());
    // `load_function` panics on a name with a zero byte.
    if name.contains('\0') {
        return Err(missing());
    }
    module.load_function(name).map_err(|error| match error {
        DriverError(CUresult::CUDA_ERROR_NOT_FOUND) => missing(),
        other => driver_error("finding a kernel")(other),
    })
}

/// Checks the number and sizes of a kernel's parameters. A launch reads as many arguments as the
/// kernel has parameters, without knowing how many arguments there are. The parameters are counted
/// in the text: asking the driver for a parameter that does not exist would be an error that tools
/// report.
fn check_parameters(
    function: &CudaFunction,
    kernel: &KernelRequirements,
    text: &str,
) -> Result<(), GpuError> {
    let mismatch = || GpuError::ParameterMismatch(kernel.name.clone());
    if count_parameters(text, &kernel.name) != Some(kernel.arguments.len()) {
        return Err(mismatch());
    }
    for (at, wanted) in kernel.arguments.iter().enumerate() {
        let (mut offset, mut bytes) = (0, 0);
        // SAFETY: the function is of a loaded module, and the pointers are to local integers.
        let status =
            unsafe { cuFuncGetParamInfo(function.cu_function(), at, &raw mut offset, &raw mut bytes) };
        match status {
            CUresult::CUDA_SUCCESS if bytes == *wanted => {}
            CUresult::CUDA_SUCCESS | CUresult::CUDA_ERROR_INVALID_VALUE => return Err(mismatch()),
            error => return Err(driver_error("describing a kernel")(DriverError(error))),
        }
    }
    Ok(())
}

/// The number of parameters of a kernel, from its head in the text: `void name(a, b) {`.
fn count_parameters(text: &str, name: &str) -> Option<usize> {
    let heads = text.match_indices(name).map(|(at, _)| &text[at + name.len()..]);
    let head = heads.filter_map(|rest| rest.strip_prefix('(')).find_map(|rest| {
        let (inside, after) = rest.split_once(')')?;
        after.trim_start().starts_with('{').then_some(inside)
    })?;
    Some(if head.trim().is_empty() { 0 } else { head.split(',').count() })
}

/// Requests more than 48 KB of shared memory, which only kernels that request it beforehand get.
fn allow_shared(function: &CudaFunction, bytes: u32) -> Result<(), DriverError> {
    const DEFAULT_SHARED_BYTES: u32 = 48 << 10;
    if bytes <= DEFAULT_SHARED_BYTES {
        return Ok(());
    }
    function.set_attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, bytes as i32)
}

fn resources(function: &CudaFunction, kernel: &KernelRequirements) -> Result<KernelResources, DriverError> {
    Ok(KernelResources {
        kernel: kernel.name.clone(),
        registers: Some(function.num_regs()? as usize),
        local_bytes: function.local_size_bytes()? as usize,
        shared_bytes: (function.shared_size_bytes()? as usize).max(kernel.shared_bytes as usize),
        threads: function.max_threads_per_block()? as usize,
    })
}

impl Module for CudaModule {
    fn resources(&self) -> &[KernelResources] {
        &self.resources
    }

    unsafe fn launch(
        &self,
        kernel: usize,
        launch: &Launch,
        arguments: &[ArgumentWord],
        queue: Queue,
    ) -> Result<(), GpuError> {
        const OPERATION: &str = "launching a kernel";
        let _inside = make_current(self.stream.context(), OPERATION)?;
        let mut bits: SmallVec<[u64; 16]> = arguments.iter().map(|word| word.bits).collect();
        // A parameter takes the low bytes of its word, since both the host and the GPU are
        // little-endian.
        let mut pointers: SmallVec<[*mut c_void; 16]> =
            bits.iter_mut().map(|bits| (&raw mut *bits).cast()).collect();
        // SAFETY: guaranteed by the caller; `load` has checked that the kernel has as many
        // parameters as there are arguments.
        unsafe {
            result::launch_kernel(
                self.functions[kernel].cu_function(),
                launch.grid.into(),
                launch.block.into(),
                launch.shared_bytes,
                raw_stream(queue, &self.stream),
                &mut pointers,
            )
        }
        .map_err(driver_error(OPERATION))
    }

    fn record(&self, launches: &[PreparedLaunch<'_>]) -> Result<Option<Box<dyn Recording>>, GpuError> {
        Ok(Some(Box::new(CudaGraph::record(&self.stream, &self.functions, launches)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::count_parameters;

    #[test]
    fn parameters_are_counted_in_the_text() {
        let text =
            "// add(x)\nvoid add_1(float* a, int n) {\n}\nvoid add(int n) { add_1(0, n); }\nvoid none( ) {}";
        assert_eq!(count_parameters(text, "add_1"), Some(2));
        assert_eq!(count_parameters(text, "add"), Some(1));
        assert_eq!(count_parameters(text, "none"), Some(0));
        assert_eq!(count_parameters(text, "other"), None);
    }
}
