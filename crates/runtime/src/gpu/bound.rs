//! Binds an executable to its constant inputs, and calls it. A [`GpuBound`] is a function of
//! tensors.
//!
//! [`GpuBound::run`] takes tensors of the host, and copies them to the device and back.
//! [`GpuBound::launch`] takes tensors that are already on the device, copies nothing and does not
//! wait. [`GpuBound::launch_on`] does the same on a stream of another library, which owns the
//! tensors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tilewright_codegen::c_family::{Argument, Command, Launch};
use tilewright_ir::nest::BufferId;
use tilewright_ir::{Number, Role};

use super::backend::{Address, ArgumentWord, PreparedLaunch, Queue, StreamEvent};
use super::buffer::DeviceBuffer;
use super::commands::{self, Variables, launches};
use super::device::Device;
use super::error::GpuError;
use super::executable::{BufferStorage, Code, GpuExecutable};
use super::memory::Memory;
use super::replay::{Plan, Replay};
use crate::kernel::{RunError, check_status};
use crate::signature::{Parameter, Signature, check_all};
use crate::source::Source;
use crate::view::{View, ViewMut};

/// An executable with its constant inputs, which any thread can call. Calls run one after the
/// other.
pub struct GpuBound {
    pub(super) code: Arc<Code>,
    /// The memory of constant inputs, of the constants that `setup` computed, and of scratch
    /// buffers, each at the index of its buffer in the nest. Only the memory of constant inputs can
    /// have other holders.
    buffer_memory: Vec<Option<Arc<Memory>>>,
    /// The status word, in which a failed check stores its number. The word is 0, or comes from a
    /// call that nobody has waited for yet.
    status: Memory,
    /// The thread that queues a call holds the lock: the launches of two calls must not mix, since
    /// they share the scratch memory.
    calls: Mutex<Box<CallState>>,
    /// Whether any call was queued on a stream of another library.
    used_foreign_stream: AtomicBool,
}

/// The state that calls share.
#[derive(Default)]
struct CallState {
    /// The copies on the device that [`GpuBound::run`] uses, kept from its first call on.
    copies: Option<Copies>,
    /// The end of the last call, for which the next call waits: the two may be on different
    /// streams, and they share memory.
    last_call: Option<Box<dyn StreamEvent>>,
    /// The launches of earlier calls.
    replay: Replay,
}

/// The copies of the caller's tensors on the device.
struct Copies {
    inputs: Vec<DeviceBuffer>,
    results: Vec<DeviceBuffer>,
}

/// The arguments of one call: the addresses of its tensors, and the bits of its scalars.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallArguments {
    pub(super) inputs: SmallVec<[Address; 8]>,
    pub(super) results: SmallVec<[Address; 8]>,
    pub(super) scalars: Vec<u64>,
}

impl GpuExecutable {
    /// Takes the constant inputs, in the order of the signature, and computes once the constants
    /// that every call needs.
    pub fn bind(&self, constants: &[View<'_>]) -> Result<GpuBound, RunError> {
        let parameters = &self.code.signature.constants;
        check_all("constant inputs", parameters, constants.iter().map(View::layout))?;
        let copies = constants.iter().map(|view| DeviceBuffer::from_view(self.device(), view));
        let copies = copies.collect::<Result<Vec<_>, _>>()?;
        self.bind_on(&copies.iter().collect::<Vec<_>>())
    }

    /// Like `bind`, with constant inputs that are already on the device. Nothing is copied: all
    /// functions that a tensor is bound to share its memory, which is freed when nobody holds it
    /// any more.
    pub fn bind_on(&self, constants: &[&DeviceBuffer]) -> Result<GpuBound, RunError> {
        let code = Arc::clone(&self.code);
        let parameters = &code.signature.constants;
        check_all("constant inputs", parameters, constants.iter().map(|buffer| buffer.layout()))?;
        check_device(&code.device, parameters, constants.iter().copied())?;
        let blocks = code.commands.scratch.iter().map(|block| Memory::zeroed(&code.device, block.bytes));
        let scratch = blocks.map(|block| block.map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        let of_buffer = |place: &BufferStorage| memory_for(&code.device, *place, constants, &scratch);
        let buffer_memory = code.storage.iter().map(of_buffer);
        let held = buffer_memory.collect::<Result<Vec<_>, _>>()?;
        let status = Memory::zeroed(&code.device, size_of::<i64>())?;
        let (calls, used_foreign_stream) = (Mutex::default(), AtomicBool::new(false));
        let mut bound = GpuBound { code, buffer_memory: held, status, calls, used_foreign_stream };
        bound.set_up()?;
        bound.release_setup_only_memory();
        Ok(bound)
    }
}

/// The memory of a buffer; `None` if each call gives the buffer, or if it is inside a kernel.
fn memory_for(
    device: &Device,
    place: BufferStorage,
    constants: &[&DeviceBuffer],
    scratch: &[Arc<Memory>],
) -> Result<Option<Arc<Memory>>, GpuError> {
    Ok(match place {
        BufferStorage::FromCaller(Source::Constant(at)) => Some(Arc::clone(constants[at].memory())),
        BufferStorage::Owned(bytes) => Some(Arc::new(Memory::zeroed(device, bytes)?)),
        BufferStorage::Scratch(block) => Some(Arc::clone(&scratch[block])),
        BufferStorage::FromCaller(Source::Input(_) | Source::Result(_)) | BufferStorage::KernelLocal => None,
    })
}

fn check_device<'a>(
    device: &Device,
    parameters: &[Parameter],
    buffers: impl Iterator<Item = &'a DeviceBuffer>,
) -> Result<(), GpuError> {
    match parameters.iter().zip(buffers).find(|(_, buffer)| buffer.device() != device) {
        Some((parameter, _)) => Err(GpuError::WrongDevice(parameter.name.clone())),
        None => Ok(()),
    }
}

impl GpuBound {
    /// The parameters and results of the program.
    pub fn signature(&self) -> &Signature {
        &self.code.signature
    }

    /// The device that the calls run on.
    pub fn device(&self) -> &Device {
        &self.code.device
    }

    /// Calls the program with tensors of the host, and waits until the call is done. Inputs,
    /// results and scalars are in the order of the signature, and scalars are converted to their
    /// types. Results that the program updates must hold their old values before the call.
    ///
    /// Also reports the failure of earlier calls, if nobody has waited for them.
    pub fn run(
        &self,
        inputs: &[View<'_>],
        results: &mut [ViewMut<'_>],
        scalars: &[Number],
    ) -> Result<(), RunError> {
        let signature = &self.code.signature;
        let scalars = signature.scalar_bits(scalars)?;
        check_all("inputs", &signature.inputs, inputs.iter().map(View::layout))?;
        check_all("results", &signature.results, results.iter().map(|view| view.layout()))?;
        let mut calls = self.lock();
        let CallState { copies, last_call: last, replay } = &mut **calls;
        let copies = match copies {
            Some(copies) => copies,
            none => none.insert(Copies::new(&self.code)?),
        };
        copies.upload(&signature.results, inputs, results)?;
        let arguments = CallArguments::new(copies.inputs.iter(), copies.results.iter(), scalars);
        self.queue_call(&arguments, Queue::Device, last, Some(replay))?;
        self.wait_for(last)?;
        copies.download(results)
    }

    /// Queues a call with tensors that are on the device, and returns at once. The call starts when
    /// all operations that were queued on the device before are done. Copies out of its results
    /// wait for the call. [`GpuBound::wait`] reports whether a check failed.
    pub fn launch(
        &self,
        inputs: &[&DeviceBuffer],
        results: &mut [&mut DeviceBuffer],
        scalars: &[Number],
    ) -> Result<(), RunError> {
        let arguments = self.check_arguments(inputs, results, scalars)?;
        let CallState { last_call, replay, .. } = &mut **self.lock();
        Ok(self.queue_call(&arguments, Queue::Device, last_call, Some(replay))?)
    }

    /// Queues a call on a CUDA stream of another library, like one of that library's kernels; 0 is
    /// the default stream, which all libraries share. Returns at once, unless a check of the call
    /// may fail. Then this function waits for the call.
    ///
    /// # Safety
    ///
    /// `stream` is a stream of the device, on which the tensors may be used.
    pub unsafe fn launch_on(
        &self,
        stream: u64,
        inputs: &[&DeviceBuffer],
        results: &mut [&mut DeviceBuffer],
        scalars: &[Number],
    ) -> Result<(), RunError> {
        let arguments = self.check_arguments(inputs, results, scalars)?;
        let streams = self.device().streams()?;
        // SAFETY: guaranteed by the caller.
        let is_captured = unsafe { streams.is_captured(stream)? };
        if is_captured && self.may_fail() {
            return Err(GpuError::CannotCapture.into());
        }
        self.used_foreign_stream.store(true, Ordering::Relaxed);
        let CallState { last_call: last, replay, .. } = &mut **self.lock();
        // A captured call runs later, and there is nothing to wait for. Its kernels become part of
        // the graph that the other library captures.
        let mut nothing = None;
        let (last, replay) = if is_captured { (&mut nothing, None) } else { (last, Some(replay)) };
        if self.shares_memory() && !is_captured && last.is_none() {
            *last = Some(streams.new_event()?);
        }
        self.queue_call(&arguments, Queue::Foreign(stream), last, replay)?;
        // The lock is still held, so the failure that is reported is that of this call.
        if self.may_fail() { self.wait_for(last) } else { Ok(()) }
    }

    /// Checks the arguments of a call with tensors that are on the device.
    fn check_arguments(
        &self,
        inputs: &[&DeviceBuffer],
        results: &mut [&mut DeviceBuffer],
        scalars: &[Number],
    ) -> Result<CallArguments, RunError> {
        let signature = &self.code.signature;
        let scalars = signature.scalar_bits(scalars)?;
        check_all("inputs", &signature.inputs, inputs.iter().map(|buffer| buffer.layout()))?;
        check_all("results", &signature.results, results.iter().map(|buffer| buffer.layout()))?;
        check_device(self.device(), &signature.inputs, inputs.iter().copied())?;
        check_device(self.device(), &signature.results, results.iter().map(|buffer| &**buffer))?;
        results.iter_mut().try_for_each(|buffer| buffer.copy_if_shared())?;
        Ok(CallArguments::new(inputs.iter().copied(), results.iter().map(|buffer| &**buffer), scalars))
    }

    /// Checks whether calls write to memory that is not the caller's.
    fn shares_memory(&self) -> bool {
        let owns =
            |place: &BufferStorage| matches!(place, BufferStorage::Owned(_) | BufferStorage::Scratch(_));
        self.may_fail() || self.code.storage.iter().any(owns)
    }

    /// Checks whether a call may find a subscript outside of its tensor. Only a wait reports that,
    /// such as [`GpuBound::wait`].
    pub fn may_fail(&self) -> bool {
        !self.code.checks.is_empty()
    }

    /// Waits until all calls that were queued here are done, and reports the failure of any call
    /// since the last wait.
    pub fn wait(&self) -> Result<(), RunError> {
        self.wait_for(&mut self.lock().last_call)
    }

    fn wait_for(&self, last: &mut Option<Box<dyn StreamEvent>>) -> Result<(), RunError> {
        if let Some(last) = last {
            // SAFETY: the queue is the device's own stream.
            unsafe { last.make_queue_wait(Queue::Device)? };
        }
        if self.code.checks.is_empty() {
            return Ok(self.device().wait()?);
        }
        let mut status = [0; size_of::<i64>()];
        self.status.download(&mut status)?;
        let status = i64::from_le_bytes(status);
        if status != 0 {
            self.status.clear()?;
        }
        check_status(status, &self.code.checks)
    }

    /// Computes the constants by running `setup`.
    fn set_up(&mut self) -> Result<(), RunError> {
        // Setup depends on constant inputs alone, so the scalars may be anything.
        let scalars = vec![0; self.code.signature.scalars.len()];
        let arguments = CallArguments { inputs: SmallVec::new(), results: SmallVec::new(), scalars };
        self.queue(&self.code.commands.setup, &arguments, Queue::Device)?;
        self.wait()
    }

    /// Releases memory that no call reads, such as weights of which there is a packed copy. The
    /// memory is freed if nobody else holds it.
    fn release_setup_only_memory(&mut self) {
        let body = launches(&self.code.commands.body);
        let arguments = body.iter().flat_map(|launch| &launch.arguments);
        let mut read = vec![false; self.buffer_memory.len()];
        for argument in arguments {
            if let Argument::Buffer(tensor) = argument {
                read[tensor.index()] = true;
            }
        }
        for (memory, read) in self.buffer_memory.iter_mut().zip(read) {
            memory.take_if(|_| !read);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Box<CallState>> {
        // A thread that panicked leaves nothing incomplete but a call that nobody waits for.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues the kernels of a call, behind the last call. With `replay`, launches that are
    /// repeated with the same arguments are recorded and queued as one operation.
    fn queue_call(
        &self,
        arguments: &CallArguments,
        queue: Queue,
        last: &mut Option<Box<dyn StreamEvent>>,
        replay: Option<&mut Replay>,
    ) -> Result<(), GpuError> {
        if let Some(last) = last {
            // SAFETY: the caller that named a stream of another library guarantees that it belongs
            // to the device.
            unsafe { last.make_queue_wait(queue)? };
        }
        let is_replayed = match replay {
            Some(replay) => self.replay(arguments, queue, replay)?,
            None => false,
        };
        if !is_replayed {
            self.queue(&self.code.commands.body, arguments, queue)?;
        }
        match last {
            // SAFETY: as above.
            Some(last) => unsafe { last.record_on(queue) },
            None => Ok(()),
        }
    }

    /// Queues a call as one operation. Returns false if its launches must be queued one by one.
    fn replay(&self, arguments: &CallArguments, queue: Queue, replay: &mut Replay) -> Result<bool, GpuError> {
        let recording = match replay.plan(arguments) {
            Plan::Launch => return Ok(false),
            Plan::Replay(recording) => Some(recording),
            Plan::Record => {
                let launches = self.prepared_launches(arguments)?;
                if !replay.is_worthwhile(launches.len()) {
                    return Ok(false);
                }
                // A device that cannot record now can still launch. If it can do neither, the
                // launches report the failure.
                replay.keep(self.code.module.record(&launches).unwrap_or(None))
            }
        };
        match recording {
            // SAFETY: as in `queue`; the arguments are those of the recording.
            Some(recording) => unsafe { recording.replay(queue) }.map(|()| true),
            None => Ok(false),
        }
    }

    /// The launches of a call, in order.
    fn prepared_launches(&self, arguments: &CallArguments) -> Result<Vec<PreparedLaunch<'_>>, GpuError> {
        let mut prepared = Vec::new();
        commands::run(&self.code.commands.body, &mut |launch, variables| {
            prepared.extend(self.prepare(launch, variables, arguments)?);
            Ok(())
        })?;
        Ok(prepared)
    }

    /// Queues all kernels of a list of commands.
    fn queue(&self, commands: &[Command], arguments: &CallArguments, queue: Queue) -> Result<(), GpuError> {
        commands::run(commands, &mut |launch, variables| {
            let Some(PreparedLaunch { kernel, arguments, .. }) =
                self.prepare(launch, variables, arguments)?
            else {
                return Ok(());
            };
            // SAFETY: when the code was compiled, the kernels were checked to take these arguments.
            // Every buffer was checked to have the type and shape that the code was generated for.
            // The caller that named a stream of another library guarantees that it belongs to the
            // device.
            unsafe { self.code.module.launch(kernel, launch, &arguments, queue) }
        })
    }

    /// The kernel and the arguments of a launch; none if its grid is empty.
    fn prepare<'a>(
        &self,
        launch: &'a Launch,
        variables: &Variables,
        call_arguments: &CallArguments,
    ) -> Result<Option<PreparedLaunch<'a>>, GpuError> {
        if launch.grid.contains(&0) {
            return Ok(None);
        }
        let kernel = self.code.kernels.get(&launch.kernel);
        let kernel = *kernel.ok_or_else(|| GpuError::NoKernel(launch.kernel.clone()))?;
        let words =
            launch.arguments.iter().map(|argument| self.argument_word(argument, variables, call_arguments));
        let arguments = words.collect::<Result<SmallVec<[ArgumentWord; 16]>, _>>()?;
        Ok(Some(PreparedLaunch { kernel, launch, arguments }))
    }

    /// The value that a kernel gets for an argument.
    fn argument_word(
        &self,
        argument: &Argument,
        variables: &Variables,
        call_arguments: &CallArguments,
    ) -> Result<ArgumentWord, GpuError> {
        let unknown = |what: &str| GpuError::MissingOnHost(what.to_owned());
        Ok(match argument {
            Argument::Buffer(buffer) => {
                self.address(*buffer, call_arguments).ok_or_else(|| unknown("a buffer"))?.into()
            }
            Argument::Scalar(scalar) => ArgumentWord {
                bits: call_arguments.scalars[scalar.index()],
                bytes: self.code.signature.scalars[scalar.index()].dtype.bytes(),
            },
            Argument::Variable(var) => ArgumentWord {
                bits: variables.get(*var).ok_or_else(|| unknown("a variable"))? as u64,
                bytes: size_of::<i64>(),
            },
            Argument::Status => self.status.address().into(),
        })
    }

    /// The address of a buffer; `None` for a tensor of the caller while there is no call.
    fn address(&self, buffer: BufferId, call_arguments: &CallArguments) -> Option<Address> {
        match self.code.storage[buffer.index()] {
            BufferStorage::FromCaller(Source::Input(at)) => call_arguments.inputs.get(at).copied(),
            BufferStorage::FromCaller(Source::Result(at)) => call_arguments.results.get(at).copied(),
            BufferStorage::FromCaller(Source::Constant(_))
            | BufferStorage::Owned(_)
            | BufferStorage::Scratch(_)
            | BufferStorage::KernelLocal => {
                self.buffer_memory[buffer.index()].as_ref().map(|memory| memory.address())
            }
        }
    }
}

/// Waits for the streams of other libraries, which may still use the code and the memory.
impl Drop for GpuBound {
    fn drop(&mut self) {
        if *self.used_foreign_stream.get_mut() {
            self.device().backend().wait_for_all_streams();
        }
    }
}

impl CallArguments {
    fn new<'a>(
        inputs: impl Iterator<Item = &'a DeviceBuffer>,
        results: impl Iterator<Item = &'a DeviceBuffer>,
        scalars: Vec<u64>,
    ) -> CallArguments {
        let address = |buffer: &DeviceBuffer| buffer.memory().address();
        CallArguments {
            inputs: inputs.map(address).collect(),
            results: results.map(address).collect(),
            scalars,
        }
    }
}

impl Copies {
    fn new(code: &Code) -> Result<Copies, RunError> {
        let zeros = |parameter: &Parameter| {
            DeviceBuffer::zeros(&code.device, parameter.layout.dtype(), parameter.layout.shape())
        };
        Ok(Copies {
            inputs: code.signature.inputs.iter().map(zeros).collect::<Result<_, _>>()?,
            results: code.signature.results.iter().map(zeros).collect::<Result<_, _>>()?,
        })
    }

    /// Copies the inputs, and the old values of the results that the program updates.
    fn upload(
        &mut self,
        parameters: &[Parameter],
        inputs: &[View<'_>],
        results: &[ViewMut<'_>],
    ) -> Result<(), RunError> {
        for (copy, view) in self.inputs.iter_mut().zip(inputs) {
            copy.upload(view)?;
        }
        for ((copy, view), parameter) in self.results.iter_mut().zip(results).zip(parameters) {
            if parameter.role == Role::InOut {
                copy.upload(&view.view())?;
            }
        }
        Ok(())
    }

    fn download(&self, results: &mut [ViewMut<'_>]) -> Result<(), RunError> {
        self.results.iter().zip(results).try_for_each(|(copy, view)| copy.download(view))
    }
}
