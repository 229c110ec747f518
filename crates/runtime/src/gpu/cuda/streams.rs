//! The stream of this backend and those of other libraries, which share the device's one context.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, result, sys};

use super::Cuda;
use super::failure::failed;
use crate::gpu::backend::{Mark, Queue, Streams};
use crate::gpu::error::GpuError;

/// A guard that keeps a device's context current on the calling thread. Dropping the guard restores
/// the context that was current before: other libraries take it for the device on which the caller
/// wants to work.
#[must_use]
pub(super) struct Entered {
    before: Option<sys::CUcontext>,
}

impl Entered {
    /// Remembers the context that is current on the calling thread.
    pub(super) fn before() -> Entered {
        Entered { before: result::ctx::get_current().ok().flatten() }
    }
}

/// Makes a device's context current on the calling thread, until the guard is dropped.
pub(super) fn enter(context: &CudaContext, doing: &'static str) -> Result<Entered, GpuError> {
    let entered = Entered::before();
    context.bind_to_thread().map_err(failed(doing))?;
    Ok(entered)
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before
            && result::ctx::get_current().ok().flatten() != Some(before)
        {
            // SAFETY: the context was current on this thread a moment ago. If it cannot be
            // restored, the code that needs it gets an error.
            let _ = unsafe { result::ctx::set_current(before) };
        }
    }
}

/// The driver's handle of a queue.
pub(super) fn raw(queue: Queue, own: &CudaStream) -> sys::CUstream {
    match queue {
        Queue::Own => own.cu_stream(),
        Queue::Foreign(stream) => stream as usize as sys::CUstream,
    }
}

impl Streams for Cuda {
    fn mark(&self) -> Result<Box<dyn Mark>, GpuError> {
        let _inside = self.enter(MARKING)?;
        let event = self.context.new_event(None).map_err(failed(MARKING))?;
        Ok(Box::new(CudaMark { stream: Arc::clone(&self.stream), event }))
    }

    unsafe fn is_captured(&self, stream: u64) -> Result<bool, GpuError> {
        const DOING: &str = "looking at a stream";
        // The default stream, which all libraries share, cannot be captured. Asking the driver
        // about it would disturb streams that are being captured.
        if stream == 0 {
            return Ok(false);
        }
        let _inside = self.enter(DOING)?;
        // SAFETY: guaranteed by the caller.
        let status = unsafe { result::stream::is_capturing(raw(Queue::Foreign(stream), &self.stream)) };
        Ok(status.map_err(failed(DOING))? != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    unsafe fn wait_for(&self, stream: u64) -> Result<(), GpuError> {
        const DOING: &str = "waiting for a stream";
        let _inside = self.enter(DOING)?;
        // SAFETY: guaranteed by the caller.
        unsafe { result::stream::synchronize(raw(Queue::Foreign(stream), &self.stream)) }
            .map_err(failed(DOING))
    }
}

const MARKING: &str = "ordering two streams";

struct CudaMark {
    stream: Arc<CudaStream>,
    event: CudaEvent,
}

impl Mark for CudaMark {
    unsafe fn set(&mut self, on: Queue) -> Result<(), GpuError> {
        let _inside = enter(self.stream.context(), MARKING)?;
        // SAFETY: guaranteed by the caller.
        unsafe { result::event::record(self.event.cu_event(), raw(on, &self.stream)) }
            .map_err(failed(MARKING))
    }

    unsafe fn hold(&mut self, on: Queue) -> Result<(), GpuError> {
        let _inside = enter(self.stream.context(), MARKING)?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: guaranteed by the caller.
        unsafe { result::stream::wait_event(raw(on, &self.stream), self.event.cu_event(), flags) }
            .map_err(failed(MARKING))
    }
}
