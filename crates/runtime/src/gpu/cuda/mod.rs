//! The backend for NVIDIA's GPUs, which uses the CUDA driver.
//!
//! | module | contents |
//! |---|---|
//! | `properties` | the properties of a GPU |
//! | `nvrtc` | the compiler |
//! | `module` | compiled code on a GPU |
//! | `streams` | the stream of this backend, and those of other libraries |
//! | `staging` | copies through pinned memory, which the GPU reads and writes itself |
//! | `failure` | converts the driver's errors |
//!
//! `libcuda` is loaded when it is first needed. The crate `cudarc` panics if a library or one of
//! its functions is missing, so [`load`] must come before any other use of the crate.

mod failure;
mod module;
mod nvrtc;
mod properties;
mod staging;
mod streams;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, result, sys};
use tilewright_target::GpuApi;

use self::failure::failed;
use self::module::CudaModule;
use self::staging::Staging;
use self::streams::{Entered, enter};
use super::backend::{Address, Backend, KernelUse, Module, Stopwatch, Streams};
use super::error::GpuError;

pub use nvrtc::{Cubin, compile_cuda, look_for_nvrtc_in};
pub(super) use properties::gpus;

/// The oldest driver that has all functions called here, in the driver's encoding of versions.
const OLDEST_DRIVER: i32 = 12_080;

/// Loads and initialises the driver, once.
fn load() -> Result<(), GpuError> {
    static LOADED: OnceLock<Result<(), GpuError>> = OnceLock::new();
    LOADED.get_or_init(load_now).clone()
}

fn load_now() -> Result<(), GpuError> {
    // SAFETY: this only looks for the library; loading the driver's library has no side effects.
    if !unsafe { sys::is_culib_present() } {
        return Err(GpuError::NoDriver(GpuApi::Cuda));
    }
    let mut found = 0;
    // SAFETY: the pointer is to a local integer.
    unsafe { sys::cuDriverGetVersion(&raw mut found) }.result().map_err(failed("asking for the version"))?;
    if found < OLDEST_DRIVER {
        return Err(GpuError::OldDriver { found, wanted: OLDEST_DRIVER });
    }
    match result::init() {
        // A driver that finds no device is no error: the list of devices is empty then.
        Err(DriverError(sys::CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(()),
        other => other.map_err(failed("starting the driver")),
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
        let _outside = Entered::before();
        let context = CudaContext::new(ordinal).map_err(failed("opening the device"))?;
        let stream = context.new_stream().map_err(failed("opening the device"))?;
        let staging = Mutex::new(Staging::new(&context)?);
        Ok(Cuda { architecture, context, stream, staging })
    }

    /// Makes this device current on the calling thread, until the guard is dropped.
    fn enter(&self, doing: &'static str) -> Result<Entered, GpuError> {
        enter(&self.context, doing)
    }
}

impl Backend for Cuda {
    fn allocate(&self, bytes: usize) -> Result<Address, GpuError> {
        const DOING: &str = "allocating memory";
        let _inside = self.enter(DOING)?;
        // SAFETY: the caller of `allocate` must not read the memory before writing it.
        match unsafe { result::malloc_sync(bytes) } {
            Ok(pointer) => Ok(Address(pointer)),
            Err(DriverError(sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY)) => Err(GpuError::OutOfMemory { bytes }),
            Err(error) => Err(failed(DOING)(error)),
        }
    }

    unsafe fn free(&self, address: Address) {
        // There is no caller to report a failure to; if the failure matters, the next call fails
        // too.
        let _inside = self.enter("freeing memory");
        let _ = self.stream.synchronize();
        // SAFETY: guaranteed by the caller, and no queued operation uses the memory any more.
        let _ = unsafe { result::free_sync(address.0) };
    }

    unsafe fn clear(&self, address: Address, bytes: usize) -> Result<(), GpuError> {
        const DOING: &str = "clearing memory";
        let _inside = self.enter(DOING)?;
        // SAFETY: guaranteed by the caller.
        unsafe { result::memset_d8_async(address.0, 0, bytes, self.stream.cu_stream()) }
            .map_err(failed(DOING))
    }

    unsafe fn upload(&self, from: &[u8], to: Address, behind: usize) -> Result<(), GpuError> {
        const DOING: &str = "copying to the device";
        let _inside = self.enter(DOING)?;
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: guaranteed by the caller.
        unsafe { staging.upload(&self.stream, from, to.0 + behind as u64) }.map_err(failed(DOING))
    }

    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), GpuError> {
        const DOING: &str = "copying from the device";
        let _inside = self.enter(DOING)?;
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: guaranteed by the caller.
        unsafe { staging.download(&self.stream, from.0, to) }.map_err(failed(DOING))
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), GpuError> {
        const DOING: &str = "copying on the device";
        let _inside = self.enter(DOING)?;
        // SAFETY: guaranteed by the caller.
        unsafe { result::memcpy_dtod_async(to.0, from.0, bytes, self.stream.cu_stream()) }
            .map_err(failed(DOING))
    }

    fn compile(&self, text: &str, kernels: &[KernelUse]) -> Result<Box<dyn Module>, GpuError> {
        let cubin = compile_cuda(text, self.architecture)?;
        let _inside = self.enter("loading compiled code")?;
        Ok(Box::new(CudaModule::load(&self.stream, cubin, text, kernels)?))
    }

    fn stopwatch(&self) -> Result<Box<dyn Stopwatch>, GpuError> {
        let event = || {
            let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
            self.context.new_event(Some(flags)).map_err(failed("making an event"))
        };
        let stream = Arc::clone(&self.stream);
        Ok(Box::new(CudaStopwatch { stream, started: event()?, stopped: event()? }))
    }

    fn wait(&self) -> Result<(), GpuError> {
        const DOING: &str = "waiting for the device";
        let _inside = self.enter(DOING)?;
        self.stream.synchronize().map_err(failed(DOING))
    }

    fn settle(&self) {
        if let Ok(_inside) = self.enter("waiting for the device") {
            let _ = result::ctx::synchronize();
        }
    }

    fn streams(&self) -> Option<&dyn Streams> {
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
        self.started.record(&self.stream).map_err(failed("recording an event"))
    }

    fn stop(&mut self) -> Result<(), GpuError> {
        self.stopped.record(&self.stream).map_err(failed("recording an event"))
    }

    fn seconds(&mut self) -> Result<f64, GpuError> {
        let milliseconds = self.started.elapsed_ms(&self.stopped);
        Ok(f64::from(milliseconds.map_err(failed("waiting for the device"))?) / 1e3)
    }
}
