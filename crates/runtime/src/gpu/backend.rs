//! What a driver must do: memory, compiling, launching, and a clock.
//!
//! The two drivers name what they hand out differently, but both names fit a word: an [`Address`] is a pointer of CUDA or
//! a `cl_mem` of OpenCL, and a kernel is the place of its name in a list. So all above this file is the same for both.
//!
//! Everything is queued on one stream of the device, in order, but for kernels on a [`Queue`] of somebody else. What [`Backend::upload`] takes may be changed as soon as it
//! returns, and what [`Backend::download`] gives is there when it returns; everything else may still be under way, and a
//! failure of it be told by a later call.

use std::fmt;

use tilewright_codegen::c_family::Launch;

use super::error::GpuError;

/// Where a block of a device's memory is, in the driver's own words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Address(pub(super) u64);

/// One argument of a kernel: the low bytes of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) bits: u64,
    pub(super) bytes: usize,
}

impl From<Address> for Word {
    fn from(address: Address) -> Word {
        Word { bits: address.0, bytes: size_of::<u64>() }
    }
}

/// A kernel as its launches use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelUse {
    /// Its name in the source text.
    pub(super) name: String,
    /// Bytes of shared memory that are given at a launch, at most.
    pub(super) shared_bytes: u32,
    /// Bytes of each argument.
    pub(super) arguments: Vec<usize>,
}

/// What a compiled kernel takes of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelResources {
    /// Its name in the source text.
    pub kernel: String,
    /// Registers of 32 bits of a thread; `None` where the driver does not say.
    pub registers: Option<usize>,
    /// Bytes of a thread that did not fit its registers, and lie in memory.
    pub local_bytes: usize,
    /// Bytes of shared memory of a block, whether the kernel declares them or a launch gives them.
    pub shared_bytes: usize,
    /// Threads of a block at most, which the registers decide.
    pub threads: usize,
}

/// A driver with one device opened.
pub(super) trait Backend: fmt::Debug + Send + Sync {
    /// Memory with undefined content, of at least one byte.
    fn allocate(&self, bytes: usize) -> Result<Address, GpuError>;

    /// Gives memory back, when all that is queued is done with it.
    ///
    /// # Safety
    ///
    /// It comes from `allocate` of this backend, and nobody uses it any more.
    unsafe fn free(&self, address: Address);

    /// Queues zeros to be written.
    ///
    /// # Safety
    ///
    /// The memory has at least this many bytes.
    unsafe fn clear(&self, address: Address, bytes: usize) -> Result<(), GpuError>;

    /// Copies bytes to the device, so many behind the begin of a block.
    ///
    /// # Safety
    ///
    /// The memory has at least as many bytes from there on.
    unsafe fn upload(&self, from: &[u8], to: Address, behind: usize) -> Result<(), GpuError>;

    /// Copies bytes from the device, once all that is queued before is done.
    ///
    /// # Safety
    ///
    /// The memory has at least as many bytes.
    unsafe fn download(&self, from: Address, to: &mut [u8]) -> Result<(), GpuError>;

    /// Queues a copy between two blocks of the device.
    ///
    /// # Safety
    ///
    /// Both have at least this many bytes, and they are not the same.
    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), GpuError>;

    /// Compiles a source text, and finds these kernels in it.
    fn compile(&self, text: &str, kernels: &[KernelUse]) -> Result<Box<dyn Module>, GpuError>;

    /// A clock of the device.
    fn stopwatch(&self) -> Result<Box<dyn Stopwatch>, GpuError>;

    /// Waits until all that is queued is done.
    fn wait(&self) -> Result<(), GpuError>;

    /// Waits until all is done, also what others have queued. There is nobody to tell of a failure.
    fn settle(&self);

    /// What the streams of others allow; `None` where there are no such streams.
    fn streams(&self) -> Option<&dyn Streams> {
        None
    }
}

/// Where kernels are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// The device's own stream.
    Own,
    /// One of another library; 0 is the one that all share.
    Foreign(u64),
}

/// The streams of other libraries. All that is unsafe here asks that a stream is one of this device.
pub(super) trait Streams {
    /// A mark for streams.
    fn mark(&self) -> Result<Box<dyn Mark>, GpuError>;

    /// Whether what is queued on it is not run but recorded, to be run later.
    unsafe fn is_captured(&self, stream: u64) -> Result<bool, GpuError>;

    /// Waits until all that is queued on it is done.
    unsafe fn wait_for(&self, stream: u64) -> Result<(), GpuError>;
}

/// A place in a stream, for which another stream may wait. Nobody waits here.
pub(super) trait Mark: Send {
    /// Is from now on behind all that is queued there.
    unsafe fn set(&mut self, on: Queue) -> Result<(), GpuError>;

    /// Lets what is queued there from now on wait for it.
    unsafe fn hold(&mut self, on: Queue) -> Result<(), GpuError>;
}

/// Compiled code on a device.
pub(super) trait Module: Send + Sync {
    /// What the kernels take, in the order in which they were asked for.
    fn resources(&self) -> &[KernelResources];

    /// Queues a kernel, by its place in the list that was asked for.
    ///
    /// # Safety
    ///
    /// The arguments have the number and sizes that the kernel was asked for with, and addresses are of memory that is as
    /// large as the kernel takes it to be. The queue is one of the device.
    unsafe fn launch(
        &self,
        kernel: usize,
        launch: &Launch,
        arguments: &[Word],
        on: Queue,
    ) -> Result<(), GpuError>;
}

/// Takes the time between two points of a device's queue.
pub(super) trait Stopwatch: Send {
    /// Starts when all that is queued is done.
    fn start(&mut self) -> Result<(), GpuError>;

    /// Stops when all that is queued is done.
    fn stop(&mut self) -> Result<(), GpuError>;

    /// Waits for the stop, and gives the time in seconds.
    fn seconds(&mut self) -> Result<f64, GpuError>;
}
