//! Implements [`Backend`] for NVIDIA's GPUs with the CUDA driver.
//!
//! | module | contents |
//! |---|---|
//! | `properties` | the properties of a GPU |
//! | `nvrtc` | the compiler |
//! | `module` | compiled code on a GPU |
//! | `graph` | the launches of a call as one operation |
//! | `streams` | the stream of this backend, and those of other libraries |
//! | `staging` | copies through pinned memory, which the GPU reads and writes itself |
//! | `failure` | converts the driver's errors |
//!
//! `libcuda` is loaded when it is first needed. The crate `cudarc` panics if a library or one of
//! its functions is missing, so [`load`] must come before any other use of the crate.

mod failure;
mod graph;
mod module;
mod nvrtc;
mod properties;
mod staging;
mod streams;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result, sys};
use tilewright_target::GpuApi;

use self::failure::driver_error;
use self::module::CudaModule;
use self::staging::Staging;
use self::streams::{ContextGuard, make_current};
use super::backend::{Address, Backend, ForeignStreams, KernelRequirements, Module, Stopwatch};
use super::error::GpuError;

pub use nvrtc::{Cubin, add_nvrtc_folders, compile_cuda};
pub(super) use properties::gpus;

/// The oldest driver that has all functions called here, in the driver's encoding of versions.
const OLDEST_DRIVER: i32 = 12_080;

/// Loads and initialises the driver, once.
fn load() -> Result<(), GpuError> {
    static LOADED: OnceLock<Result<(), GpuError>> = OnceLock::new();
    LOADED.get_or_init(load_driver).clone()
}

fn load_driver() -> Result<(), GpuError> {
    // SAFETY: this only looks for the library; loading the driver's library has no side effects.
    if !unsafe { sys::is_culib_present() } {
        return Err(GpuError::NoDriver(GpuApi::Cuda));
    }
    let mut found = 0;
    // SAFETY: the pointer is to a local integer.
    let version = unsafe { sys::cuDriverGetVersion(&raw mut found) };
    version.result().map_err(driver_error("reading the driver version"))?;
    if found < OLDEST_DRIVER {
        return Err(GpuError::OldDriver { found, wanted: OLDEST_DRIVER });
    }
    match result::init() {
        // A driver that finds no device is no error: the list of devices is empty then.
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(()),
        other => other.map_err(driver_error("initialising the driver")),
    }
}

/// An open GPU, with one stream of its own.
#[derive(Debug)]
pub(super) struct Cuda {
    architecture: u32,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    staging: Mutex<Staging>,
}

impl Cuda {
    pub(super) fn open(ordinal: usize, architecture: u32) -> Result<Cuda, GpuError> {
        load()?;
        let _outside = ContextGuard::save();
        let context = CudaContext::new(ordinal).map_err(driver_error("opening the device"))?;
        let stream = context.new_stream().map_err(driver_error("opening the device"))?;
        let staging = Mutex::new(Staging::new(&context)?);
        Ok(Cuda { architecture, context, stream, staging })
    }

    /// Makes this device current on the calling thread, until the guard is dropped.
    fn make_current(&self, operation: &'static str) -> Result<ContextGuard, GpuError> {
        make_current(&self.context, operation)
    }
}

impl Backend for Cuda {
    fn allocate(&self, bytes: usize) -> Result<Address, GpuError> {
        const OPERATION: &str = "allocating memory";
        let _inside = self.make_current(OPERATION)?;
        // SAFETY: the caller of `allocate` must not read the memory before writing it.
        match unsafe { result::malloc_sync(bytes) } {
            Ok(pointer) => Ok(Address(pointer)),
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Err(GpuError::OutOfMemory { bytes }),
            Err(error) => Err(driver_error(OPERATION)(error)),
        }
    }

    unsafe fn free(&self, address: Address) {
        // There is no caller to report a failure to; if the failure matters, the next call fails
        // too.
        let _inside = self.make_current("freeing memory");
        let _ = self.stream.synchronize();
        // SAFETY: guaranteed by the caller, and no queued operation uses the memory any more.
        let _ = unsafe { result::free_sync(address.0) };
    }

    unsafe fn clear(&self, address: Address, bytes: usize) -> Result<(), GpuError> {
        const OPERATION: &str = "clearing memory";
        let _inside = self.make_current(OPERATION)?;
        // SAFETY: guaranteed by the caller.
        unsafe { result::memset_d8_async(address.0, 0, bytes, self.stream.cu_stream()) }
            .map_err(driver_error(OPERATION))
    }

    unsafe fn upload(&self, from: &[u8], to: Address, offset: usize) -> Result<(), GpuError> {
        const OPERATION: &str = "copying to the device";
        let _inside = self.make_current(OPERATION)?;
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: guaranteed by the caller.
        unsafe { staging.upload(&self.stream, from, to.0 + offset as u64) }.map_err(driver_error(OPERATION))
    }

    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), GpuError> {
        const OPERATION: &str = "copying from the device";
        let _inside = self.make_current(OPERATION)?;
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: guaranteed by the caller.
        unsafe { staging.download(&self.stream, from.0, to) }.map_err(driver_error(OPERATION))
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), GpuError> {
        const OPERATION: &str = "copying on the device";
        let _inside = self.make_current(OPERATION)?;
        // SAFETY: guaranteed by the caller.
        unsafe { result::memcpy_dtod_async(to.0, from.0, bytes, self.stream.cu_stream()) }
            .map_err(driver_error(OPERATION))
    }

    fn compile(&self, text: &str, kernels: &[KernelRequirements]) -> Result<Box<dyn Module>, GpuError> {
        let cubin = compile_cuda(text, self.architecture)?;
        let _inside = self.make_current("loading compiled code")?;
        Ok(Box::new(CudaModule::load(&self.stream, cubin, text, kernels)?))
    }

    fn stopwatch(&self) -> Result<Box<dyn Stopwatch>, GpuError> {
        let event = || {
            let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
            self.context.new_event(Some(flags)).map_err(driver_error("creating an event"))
        };
        let stream = Arc::clone(&self.stream);
        Ok(Box::new(CudaStopwatch { stream, started: event()?, stopped: event()? }))
    }

    fn wait(&self) -> Result<(), GpuError> {
        const OPERATION: &str = "waiting for the device";
        let _inside = self.make_current(OPERATION)?;
        self.stream.synchronize().map_err(driver_error(OPERATION))
    }

    fn wait_for_all_streams(&self) {
        if let Ok(_inside) = self.make_current("waiting for the device") {
            let _ = result::ctx::synchronize();
        }
    }

    fn streams(&self) -> Option<&dyn ForeignStreams> {
        Some(self)
    }
}

struct CudaStopwatch {
    stream: Arc<CudaStream>,
    started: CudaEvent,
    stopped: CudaEvent,
}

impl Stopwatch for CudaStopwatch {
    fn start(&mut self) -> Result<(), GpuError> {
        self.started.record(&self.stream).map_err(driver_error("recording an event"))
    }

    fn stop(&mut self) -> Result<(), GpuError> {
        self.stopped.record(&self.stream).map_err(driver_error("recording an event"))
    }

    fn seconds(&mut self) -> Result<f64, GpuError> {
        let milliseconds = self.started.elapsed_ms(&self.stopped);
        Ok(f64::from(milliseconds.map_err(driver_error("waiting for the device"))?) / 1e3)
    }
}
