//! Makes the stream of this backend and the streams of other libraries wait for each other. All
//! streams share the device's one context, which this module makes current on the calling thread.

use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, result, sys};

use super::Cuda;
use super::failure::driver_error;
use crate::gpu::backend::{ForeignStreams, Queue, StreamEvent};
use crate::gpu::error::GpuError;

/// A guard that keeps a device's context current on the calling thread. Dropping the guard restores
/// the context that was current before: other libraries take it for the device on which the caller
/// wants to work.
#[must_use]
pub(super) struct ContextGuard {
    previous: Option<sys::CUcontext>,
}

impl ContextGuard {
    /// Remembers the context that is current on the calling thread.
    pub(super) fn save() -> ContextGuard {
        ContextGuard { previous: result::ctx::get_current().ok().flatten() }
    }
}

/// Makes a device's context current on the calling thread, until the guard is dropped.
pub(super) fn make_current(context: &CudaContext, operation: &'static str) -> Result<ContextGuard, GpuError> {
    let guard = ContextGuard::save();
    context.bind_to_thread().map_err(driver_error(operation))?;
    Ok(guard)
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        if let Some(previous) = self.previous
            && result::ctx::get_current().ok().flatten() != Some(previous)
        {
            // SAFETY: the context was current on this thread a moment ago. If it cannot be
            // restored, the code that needs it gets an error.
            let _ = unsafe { result::ctx::set_current(previous) };
        }
    }
}

/// The driver's handle of a queue.
pub(super) fn raw_stream(queue: Queue, device_stream: &CudaStream) -> sys::CUstream {
    match queue {
        Queue::Device => device_stream.cu_stream(),
        Queue::Foreign(stream) => stream as usize as sys::CUstream,
    }
}

impl ForeignStreams for Cuda {
    fn new_event(&self) -> Result<Box<dyn StreamEvent>, GpuError> {
        let _inside = self.make_current(ORDERING)?;
        let event = self.context.new_event(None).map_err(driver_error(ORDERING))?;
        Ok(Box::new(CudaStreamEvent { stream: Arc::clone(&self.stream), event }))
    }

    unsafe fn is_captured(&self, stream: u64) -> Result<bool, GpuError> {
        const OPERATION: &str = "querying whether a stream is captured";
        // The default stream, which all libraries share, cannot be captured. Asking the driver
        // about it would disturb streams that are being captured.
        if stream == 0 {
            return Ok(false);
        }
        let _inside = self.make_current(OPERATION)?;
        // SAFETY: guaranteed by the caller.
        let status =
            unsafe { result::stream::is_capturing(raw_stream(Queue::Foreign(stream), &self.stream)) };
        Ok(status.map_err(driver_error(OPERATION))?
            != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    unsafe fn wait_for_stream(&self, stream: u64) -> Result<(), GpuError> {
        const OPERATION: &str = "waiting for a stream";
        let _inside = self.make_current(OPERATION)?;
        // SAFETY: guaranteed by the caller.
        unsafe { result::stream::synchronize(raw_stream(Queue::Foreign(stream), &self.stream)) }
            .map_err(driver_error(OPERATION))
    }
}

const ORDERING: &str = "ordering two streams";

struct CudaStreamEvent {
    stream: Arc<CudaStream>,
    event: CudaEvent,
}

impl StreamEvent for CudaStreamEvent {
    unsafe fn record_on(&mut self, queue: Queue) -> Result<(), GpuError> {
        let _inside = make_current(self.stream.context(), ORDERING)?;
        // SAFETY: guaranteed by the caller.
        unsafe { result::event::record(self.event.cu_event(), raw_stream(queue, &self.stream)) }
            .map_err(driver_error(ORDERING))
    }

    unsafe fn make_queue_wait(&mut self, queue: Queue) -> Result<(), GpuError> {
        let _inside = make_current(self.stream.context(), ORDERING)?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: guaranteed by the caller.
        unsafe { result::stream::wait_event(raw_stream(queue, &self.stream), self.event.cu_event(), flags) }
            .map_err(driver_error(ORDERING))
    }
}
