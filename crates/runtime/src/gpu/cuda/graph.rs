//! Records the launches of a call as one CUDA graph.
//!
//! The host queues a graph as one operation, and the GPU starts its kernels one after the other
//! without the host. A chain of short kernels is then limited by the kernels, and no longer by the
//! time that the host takes for each launch. The nodes form a chain, because kernels of one call
//! run in order.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaStream, DriverError, result, sys};
use smallvec::SmallVec;

use super::failure::driver_error;
use super::streams::{make_current, raw_stream};
use crate::gpu::backend::{PreparedLaunch, Queue, Recording};
use crate::gpu::error::GpuError;

const RECORDING: &str = "recording launches";

/// A graph that is ready to be launched. It is destroyed on drop; the driver waits until launches
/// that are still running are done.
pub(super) struct CudaGraph {
    stream: Arc<CudaStream>,
    executable: sys::CUgraphExec,
}

// SAFETY: the driver's handles may be used from any thread, one at a time. The driver runs the
// launches of one graph one after the other.
unsafe impl Send for CudaGraph {}

impl CudaGraph {
    /// Records launches of these functions.
    pub(super) fn record(
        stream: &Arc<CudaStream>,
        functions: &[CudaFunction],
        launches: &[PreparedLaunch<'_>],
    ) -> Result<CudaGraph, GpuError> {
        let _inside = make_current(stream.context(), RECORDING)?;
        let executable = instantiate(functions, launches).map_err(driver_error(RECORDING))?;
        Ok(CudaGraph { stream: Arc::clone(stream), executable })
    }
}

fn instantiate(
    functions: &[CudaFunction],
    launches: &[PreparedLaunch<'_>],
) -> Result<sys::CUgraphExec, DriverError> {
    let mut graph: sys::CUgraph = ptr::null_mut();
    // SAFETY: the pointer is to a local variable.
    unsafe { sys::cuGraphCreate(&raw mut graph, 0) }.result()?;
    let executable = add_nodes(graph, functions, launches)
        // SAFETY: the graph was just created, and all its nodes were added.
        .and_then(|()| unsafe { result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)) });
    // SAFETY: as above. An executable does not need the graph that it comes from.
    let destroyed = unsafe { result::graph::destroy(graph) };
    let executable = executable?;
    destroyed.map(|()| executable)
}

fn add_nodes(
    graph: sys::CUgraph,
    functions: &[CudaFunction],
    launches: &[PreparedLaunch<'_>],
) -> Result<(), DriverError> {
    let mut last: Option<sys::CUgraphNode> = None;
    for prepared in launches {
        let mut bits: SmallVec<[u64; 16]> = prepared.arguments.iter().map(|word| word.bits).collect();
        let mut pointers: SmallVec<[*mut c_void; 16]> =
            bits.iter_mut().map(|bits| (&raw mut *bits).cast()).collect();
        let [grid, block] = [prepared.launch.grid, prepared.launch.block];
        let parameters = sys::CUDA_KERNEL_NODE_PARAMS {
            // The module keeps the function loaded as long as it lives, and a bound program
            // holds its module longer than its graphs.
            func: functions[prepared.kernel].cu_function(),
            gridDimX: grid[0],
            gridDimY: grid[1],
            gridDimZ: grid[2],
            blockDimX: block[0],
            blockDimY: block[1],
            blockDimZ: block[2],
            sharedMemBytes: prepared.launch.shared_bytes,
            kernelParams: pointers.as_mut_ptr(),
            extra: ptr::null_mut(),
            kern: ptr::null_mut(),
            ctx: ptr::null_mut(),
        };
        let before = last.as_slice();
        let mut node: sys::CUgraphNode = ptr::null_mut();
        // SAFETY: the graph and the nodes before are valid. The driver copies the arguments, whose
        // number and sizes were checked when the module was loaded.
        unsafe {
            sys::cuGraphAddKernelNode_v2(
                &raw mut node,
                graph,
                before.as_ptr(),
                before.len(),
                &raw const parameters,
            )
        }
        .result()?;
        last = Some(node);
    }
    Ok(())
}

impl Recording for CudaGraph {
    unsafe fn replay(&self, queue: Queue) -> Result<(), GpuError> {
        const OPERATION: &str = "launching recorded kernels";
        let _inside = make_current(self.stream.context(), OPERATION)?;
        // SAFETY: guaranteed by the caller.
        unsafe { result::graph::launch(self.executable, raw_stream(queue, &self.stream)) }
            .map_err(driver_error(OPERATION))
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        if let Ok(_inside) = make_current(self.stream.context(), RECORDING) {
            // SAFETY: the executable is valid, and nobody else has it. There is no caller to report
            // a failure to.
            let _ = unsafe { result::graph::exec_destroy(self.executable) };
        }
    }
}
