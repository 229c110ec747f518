//! Defines the interface of a backend, which wraps a driver: memory, compiling, launching, and a
//! clock.
//!
//! There are two backends, for CUDA and for OpenCL. Their handles differ, but every handle fits
//! into 64 bits: an [`Address`] is a pointer of CUDA or a `cl_mem` of OpenCL. A kernel is an index
//! into the list of kernels that [`Backend::compile`] got. The callers of this interface are
//! therefore the same for both backends.
//!
//! All operations are queued in order on one stream of the device, except kernels that are launched
//! on the stream of another library ([`Queue::Foreign`]). When [`Backend::upload`] returns, the
//! caller may change the bytes that it passed. When [`Backend::download`] returns, the bytes have
//! arrived. A function that only queues an operation may return before the operation is done, and a
//! later call may report the failure of the operation.

use std::fmt;

use smallvec::SmallVec;
use tilewright_codegen::c_family::Launch;

use super::error::GpuError;

/// The handle of a block of device memory, as the driver defines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address(pub(super) u64);

/// One argument of a kernel: the low `bytes` bytes of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArgumentWord {
    pub(super) bits: u64,
    pub(super) bytes: usize,
}

impl From<Address> for ArgumentWord {
    fn from(address: Address) -> ArgumentWord {
        ArgumentWord { bits: address.0, bytes: size_of::<u64>() }
    }
}

/// A kernel, with the requirements of all its launches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelRequirements {
    /// Its name in the source text.
    pub(super) name: String,
    /// The largest number of bytes of shared memory that a launch gives.
    pub(super) shared_bytes: u32,
    /// The size of each argument in bytes.
    pub(super) arguments: Vec<usize>,
}

/// The resources that a compiled kernel uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelResources {
    /// Its name in the source text.
    pub kernel: String,
    /// Registers of 32 bits per thread; `None` if the driver does not report them.
    pub registers: Option<usize>,
    /// Bytes per thread that did not fit into registers, and lie in memory.
    pub local_bytes: usize,
    /// Bytes of shared memory per block, whether the kernel declares them or a launch gives them.
    pub shared_bytes: usize,
    /// The maximum number of threads per block, which depends on the registers.
    pub threads: usize,
}

/// A backend with one open device.
pub(super) trait Backend: fmt::Debug + Send + Sync {
    /// Allocates memory with undefined content, of at least one byte.
    fn allocate(&self, bytes: usize) -> Result<Address, GpuError>;

    /// Frees memory, when no queued operation uses it any more.
    ///
    /// # Safety
    ///
    /// The address comes from `allocate` of this backend, and the caller does not use it any more.
    unsafe fn free(&self, address: Address);

    /// Queues a write of zeros.
    ///
    /// # Safety
    ///
    /// The memory has at least this many bytes.
    unsafe fn clear(&self, address: Address, bytes: usize) -> Result<(), GpuError>;

    /// Copies bytes to the device, at byte `offset` from the start of a block.
    ///
    /// # Safety
    ///
    /// The block has at least `from.len()` bytes from that offset on.
    unsafe fn upload(&self, from: &[u8], to: Address, offset: usize) -> Result<(), GpuError>;

    /// Copies bytes from the device, once all operations that were queued before are done.
    ///
    /// # Safety
    ///
    /// The block has at least `to.len()` bytes.
    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), GpuError>;

    /// Queues a copy between two blocks of the device.
    ///
    /// # Safety
    ///
    /// Both blocks have at least this many bytes, and they are not the same block.
    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), GpuError>;

    /// Compiles a source text, and finds these kernels in it.
    fn compile(&self, text: &str, kernels: &[KernelRequirements]) -> Result<Box<dyn Module>, GpuError>;

    /// A stopwatch with the clock of the device.
    fn stopwatch(&self) -> Result<Box<dyn Stopwatch>, GpuError>;

    /// Waits until all queued operations are done.
    fn wait(&self) -> Result<(), GpuError>;

    /// Waits until all operations are done, also those that other libraries have queued. Ignores
    /// failures, because there is no caller to report them to.
    fn wait_for_all_streams(&self);

    /// Access to the streams of other libraries; `None` if this backend has none.
    fn streams(&self) -> Option<&dyn ForeignStreams> {
        None
    }
}

/// Where kernels are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// The device's own stream.
    Device,
    /// A stream of another library; 0 is the default stream, which all libraries share.
    Foreign(u64),
}

/// The streams of other libraries. Every unsafe function requires that a stream belongs to this
/// device.
pub(super) trait ForeignStreams {
    /// A new mark for streams.
    fn new_event(&self) -> Result<Box<dyn StreamEvent>, GpuError>;

    /// Checks whether the stream is being captured: its operations do not run, but are recorded to
    /// run later.
    unsafe fn is_captured(&self, stream: u64) -> Result<bool, GpuError>;

    /// Waits until all operations that are queued on the stream are done.
    unsafe fn wait_for_stream(&self, stream: u64) -> Result<(), GpuError>;
}

/// A position in a stream, for which another stream can wait. The host does not wait.
pub(super) trait StreamEvent: Send {
    /// Moves the mark behind all operations that are queued on `queue` so far.
    unsafe fn record_on(&mut self, queue: Queue) -> Result<(), GpuError>;

    /// Makes all operations that are queued on `queue` from now on wait for the mark.
    unsafe fn make_queue_wait(&mut self, queue: Queue) -> Result<(), GpuError>;
}

/// A launch with the values of its arguments.
pub(super) struct PreparedLaunch<'a> {
    /// The index of the kernel in the list that `compile` got.
    pub(super) kernel: usize,
    pub(super) launch: &'a Launch,
    pub(super) arguments: SmallVec<[ArgumentWord; 16]>,
}

/// Launches that the driver queues as one operation, with the arguments that they were recorded
/// with.
pub(super) trait Recording: Send {
    /// Queues all launches, in their order.
    ///
    /// # Safety
    ///
    /// As for [`Module::launch`].
    unsafe fn replay(&self, queue: Queue) -> Result<(), GpuError>;
}

/// Compiled code on a device.
pub(super) trait Module: Send + Sync {
    /// The resources of the kernels, in the order of the list that `compile` got.
    fn resources(&self) -> &[KernelResources];

    /// Queues a kernel, by its index in the list that `compile` got.
    ///
    /// # Safety
    ///
    /// The arguments have the number and sizes that `compile` got for the kernel. Addresses are of
    /// memory that is as large as the kernel takes it to be. The queue belongs to the device.
    unsafe fn launch(
        &self,
        kernel: usize,
        launch: &Launch,
        arguments: &[ArgumentWord],
        queue: Queue,
    ) -> Result<(), GpuError>;

    /// Records launches, without queueing any. `None` if this backend cannot.
    fn record(&self, launches: &[PreparedLaunch<'_>]) -> Result<Option<Box<dyn Recording>>, GpuError> {
        let _ = launches;
        Ok(None)
    }
}

/// Measures the time between two points of a device's queue.
pub(super) trait Stopwatch: Send {
    /// Starts when all operations that are queued so far are done.
    fn start(&mut self) -> Result<(), GpuError>;

    /// Stops when all operations that are queued so far are done.
    fn stop(&mut self) -> Result<(), GpuError>;

    /// Waits for the stop, and returns the time in seconds.
    fn seconds(&mut self) -> Result<f64, GpuError>;
}
