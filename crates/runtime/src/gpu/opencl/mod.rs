//! Implements [`Backend`] for OpenCL devices.
//!
//! | module | contents |
//! |---|---|
//! | `properties` | the properties of a device |
//! | `module` | compiled code on a device |
//! | `failure` | converts error codes |
//!
//! `libOpenCL` is loaded when it is first needed. Copies pass the caller's memory to the driver
//! directly. The driver decides whether to copy through pinned memory; for a CPU it copies just
//! once.

mod failure;
mod module;
mod properties;

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use opencl3::command_queue::{
    CL_QUEUE_PROFILING_ENABLE, CommandQueue, enqueue_copy_buffer, enqueue_fill_buffer,
    enqueue_marker_with_wait_list, enqueue_read_buffer, enqueue_write_buffer,
};
use opencl3::context::Context;
use opencl3::device::Device;
use opencl3::event::{Event, release_event};
use opencl3::memory::{CL_MEM_READ_WRITE, create_buffer, release_mem_object};
use opencl3::types::{CL_TRUE, cl_event, cl_int, cl_mem};

use self::failure::{driver_error, is_out_of_memory};
use self::module::OpenClModule;
use super::backend::{Address, Backend, KernelRequirements, Module, Stopwatch};
use super::error::GpuError;

pub(super) use properties::gpus;

/// An open device, with one queue.
#[derive(Debug)]
pub(super) struct OpenCl {
    device: Device,
    context: Context,
    queue: Arc<CommandQueue>,
}

impl OpenCl {
    pub(super) fn open(ordinal: usize) -> Result<OpenCl, GpuError> {
        const OPERATION: &str = "opening the device";
        let device = properties::device(ordinal)?;
        let context = Context::from_device(&device).map_err(|error| driver_error(OPERATION)(error.0))?;
        // OpenCL 2 has another function for this, which not all devices support.
        let queue = CommandQueue::create_default(&context, CL_QUEUE_PROFILING_ENABLE)
            .map_err(|error| driver_error(OPERATION)(error.0))?;
        Ok(OpenCl { device, context, queue: Arc::new(queue) })
    }
}

impl Address {
    fn buffer(self) -> cl_mem {
        self.0 as cl_mem
    }
}

impl Backend for OpenCl {
    fn allocate(&self, bytes: usize) -> Result<Address, GpuError> {
        // SAFETY: without a host pointer, any size may be requested.
        let made = unsafe { create_buffer(self.context.get(), CL_MEM_READ_WRITE, bytes, ptr::null_mut()) };
        match made {
            Ok(buffer) => Ok(Address(buffer as u64)),
            Err(code) if is_out_of_memory(code) => Err(GpuError::OutOfMemory { bytes }),
            Err(code) => Err(driver_error("allocating memory")(code)),
        }
    }

    unsafe fn free(&self, address: Address) {
        // SAFETY: guaranteed by the caller; OpenCL itself waits for queued operations. There is no
        // caller to report a failure to.
        let _ = unsafe { release_mem_object(address.buffer()) };
    }

    unsafe fn clear(&self, address: Address, bytes: usize) -> Result<(), GpuError> {
        let zero = [0u8];
        // SAFETY: guaranteed by the caller; OpenCL has copied the pattern when the call returns.
        let queued = unsafe {
            enqueue_fill_buffer(
                self.queue.get(),
                address.buffer(),
                zero.as_ptr().cast(),
                zero.len(),
                0,
                bytes,
                0,
                ptr::null(),
            )
        };
        release_command_event(queued).map_err(driver_error("clearing memory"))
    }

    unsafe fn upload(&self, from: &[u8], to: Address, offset: usize) -> Result<(), GpuError> {
        let start = from.as_ptr().cast::<c_void>().cast_mut();
        // SAFETY: guaranteed by the caller; the call returns when the bytes have been read.
        let queued = unsafe {
            enqueue_write_buffer(
                self.queue.get(),
                to.buffer(),
                CL_TRUE,
                offset,
                from.len(),
                start,
                0,
                ptr::null(),
            )
        };
        release_command_event(queued).map_err(driver_error("copying to the device"))
    }

    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), GpuError> {
        let start = to.as_mut_ptr().cast();
        // SAFETY: guaranteed by the caller; the call returns when the bytes have been written.
        let queued = unsafe {
            enqueue_read_buffer(self.queue.get(), from.buffer(), CL_TRUE, 0, to.len(), start, 0, ptr::null())
        };
        release_command_event(queued).map_err(driver_error("copying from the device"))
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), GpuError> {
        // SAFETY: guaranteed by the caller.
        let queued = unsafe {
            enqueue_copy_buffer(self.queue.get(), from.buffer(), to.buffer(), 0, 0, bytes, 0, ptr::null())
        };
        release_command_event(queued).map_err(driver_error("copying on the device"))
    }

    fn compile(&self, text: &str, kernels: &[KernelRequirements]) -> Result<Box<dyn Module>, GpuError> {
        let module = OpenClModule::build(&self.device, &self.context, &self.queue, text, kernels)?;
        Ok(Box::new(module))
    }

    fn stopwatch(&self) -> Result<Box<dyn Stopwatch>, GpuError> {
        let queue = Arc::clone(&self.queue);
        Ok(Box::new(OpenClStopwatch { queue, started: None, stopped: None }))
    }

    fn wait_for_all_streams(&self) {
        let _ = self.wait();
    }

    fn wait(&self) -> Result<(), GpuError> {
        self.queue.finish().map_err(|error| driver_error("waiting for the device")(error.0))
    }
}

/// Releases the event of a queued command. Every command makes an event, and nobody waits for this
/// one.
fn release_command_event(queued: Result<cl_event, cl_int>) -> Result<(), cl_int> {
    // SAFETY: the event is new, and nobody else holds it.
    unsafe { release_event(queued?) }
}

struct OpenClStopwatch {
    queue: Arc<CommandQueue>,
    started: Option<Event>,
    stopped: Option<Event>,
}

impl OpenClStopwatch {
    /// An event that completes when all operations that are queued so far are done.
    fn record_event(&self) -> Result<Option<Event>, GpuError> {
        // SAFETY: the list of events is empty.
        let event = unsafe { enqueue_marker_with_wait_list(self.queue.get(), 0, ptr::null()) };
        Ok(Some(Event::new(event.map_err(driver_error("recording an event"))?)))
    }
}

impl Stopwatch for OpenClStopwatch {
    fn start(&mut self) -> Result<(), GpuError> {
        self.started = self.record_event()?;
        Ok(())
    }

    fn stop(&mut self) -> Result<(), GpuError> {
        self.stopped = self.record_event()?;
        Ok(())
    }

    fn seconds(&mut self) -> Result<f64, GpuError> {
        let reached = |event: &Option<Event>| {
            let event = event.as_ref().expect("`start` and `stop` were called before `seconds`");
            event.wait().and_then(|()| event.profiling_command_end())
        };
        let stopped = reached(&self.stopped);
        let times = reached(&self.started).and_then(|started| Ok((started, stopped?)));
        let (started, stopped) = times.map_err(|error| driver_error("waiting for the device")(error.0))?;
        Ok(stopped.saturating_sub(started) as f64 / 1e9)
    }
}
