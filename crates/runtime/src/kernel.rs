//! Compiles a loop nest to a function of tensors.
//!
//! An [`Executable`] is the compiled code. [`Executable::bind`] takes the constant inputs, and
//! computes once what the schedule keeps in another layout, such as packed weights. The resulting
//! [`Bound`] is the function: it can be called any number of times, from several threads at once.
//! Other constants need another `bind`, which is cheap if the schedule repacks nothing.
//!
//! The caller passes tensors as views with any strides. Contiguous, aligned tensors are used in
//! place. Other inputs are packed into temporary memory before the call, and other results are
//! unpacked from temporary memory afterwards.

use std::sync::Arc;

use smallvec::SmallVec;
use thiserror::Error;
use tilewright_codegen::{Call, Check, CodegenError, Kernel, compile};
use tilewright_ir::derived::DerivedMismatch;
use tilewright_ir::tensor::TensorError;
use tilewright_ir::verify_nest::InvalidNest;
use tilewright_ir::{LoopNest, Number, Origin, Program, verify_nest};
use tilewright_target::{Cpu, VectorInstructions};

use crate::buffer::Buffer;
use crate::gpu::GpuError;
use crate::memory::{Block, OutOfMemory};
use crate::packed::Packed;
use crate::pool::{ParallelCall, Pool, parallel};
use crate::signature::{Parameter, Signature, check_count, check_parameter};
use crate::source::{Source, sources};
use crate::view::{View, ViewMut};

/// Why a loop nest could not become an executable.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BuildError {
    /// A size of the program is not known, or is too large.
    #[error("the shape of tensor `{0}` is unknown or too large")]
    UnknownShape(String),
    /// The nest is not one of this program. This is a bug in the code that built the nest.
    #[error("the loop nest and the program disagree about {0}")]
    NestMismatch(String),
    /// The nest breaks an invariant. This is a bug in the code that built the nest.
    #[error(transparent)]
    InvalidNest(#[from] InvalidNest),
    /// This machine lacks the vectors that the code would use.
    #[error("the code needs {} vectors, which this machine does not support", .0.name())]
    UnsupportedVectors(VectorInstructions),
    /// The code generator refused the nest.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
    /// The device, or its compiler, refused the code.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// Why a call did not run to its end. The results are undefined then.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum RunError {
    /// Too few or too many tensors or scalars.
    #[error("expected {wanted} {what}, but the call passes {found}")]
    Count {
        /// The kind of argument that is counted, such as `inputs` or `scalars`.
        what: &'static str,
        /// The number that the program has.
        wanted: usize,
        /// The number that was given.
        found: usize,
    },
    /// A tensor does not have the type or shape that the program declares.
    #[error("`{name}` must be {wanted}, and is {found}")]
    Mismatch {
        /// The name of the tensor.
        name: String,
        /// The type and shape that the program declares.
        wanted: String,
        /// The type and shape that were given.
        found: String,
    },
    /// A scalar does not have the value that the program was specialised for.
    #[error(
        "the kernel is specialised for `{name}` = {wanted}, but the call passes {}",
        found.as_f64()
    )]
    Specialised {
        /// The name of the scalar.
        name: String,
        /// The value it was specialised for.
        wanted: i64,
        /// The value that was given.
        found: Number,
    },
    /// The scalars do not belong to the sizes that the program was specialised for.
    #[error(transparent)]
    Derived(#[from] Box<DerivedMismatch>),
    /// A subscript that depends on data was out of bounds.
    #[error(transparent)]
    OutOfBounds(#[from] OutOfBounds),
    /// There is no memory for the constants or the scratch buffers of the kernel.
    #[error(transparent)]
    Memory(#[from] OutOfMemory),
    /// There is no memory for a contiguous copy of a tensor.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// The device failed, or has no memory for a tensor.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// A subscript that depends on data was outside of its dimension, or outside of the range that the
/// program declares for it.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "a subscript of `{buffer}` is outside dimension {dimension} of extent {extent}{}",
    if *.is_declared { ", or outside the range of its `where` clause" } else { "" }
)]
pub struct OutOfBounds {
    /// The name of the tensor, or of the buffer that the schedule put in its place.
    pub buffer: String,
    /// The dimension.
    pub dimension: usize,
    /// Its extent.
    pub extent: i64,
    /// Whether the check includes a range that the program declares.
    pub is_declared: bool,
    /// The place of the access in the source.
    pub origin: Origin,
}

/// Machine code for one program on this machine. Clones share the code.
#[derive(Clone)]
pub struct Executable {
    code: Arc<Code>,
}

/// An executable with its constant inputs: a function from tensors to tensors, which any thread can
/// call.
///
/// It borrows the constants that it was bound to, for `'c`; [`Bound::into_owned`] copies them.
pub struct Bound<'c> {
    code: Arc<Code>,
    /// The constant inputs, in the order of the signature.
    inputs: Vec<ConstantInput<'c>>,
    /// The constants that `setup` computed from the constant inputs.
    constants: Vec<Block>,
}

enum ConstantInput<'c> {
    Borrowed(View<'c>),
    Owned(Buffer),
}

struct Code {
    kernel: Kernel,
    signature: Signature,
    /// Where each argument of the kernel comes from.
    sources: Vec<Source>,
    /// The error that each check of the kernel reports if it fails.
    checks: Vec<OutOfBounds>,
}

/// Pointers to the arguments of a call; null where the call has no such argument.
type Pointers = SmallVec<[*mut u8; 8]>;

impl Executable {
    /// Compiles the loops of a program for this machine.
    pub fn new(program: &Program, nest: &LoopNest, cpu: &Cpu) -> Result<Executable, BuildError> {
        // Vectors that are wider than the machine's would end the process with an illegal
        // instruction.
        if cpu.vectors > Cpu::host().vectors {
            return Err(BuildError::UnsupportedVectors(cpu.vectors));
        }
        let verified = verify_nest(nest)?;
        let signature = Signature::new(program).map_err(BuildError::UnknownShape)?;
        let sources = sources(&signature, nest)?;
        let kernel = compile(verified, cpu)?;
        let checks = describe_checks(kernel.checks(), nest);
        Ok(Executable { code: Arc::new(Code { kernel, signature, sources, checks }) })
    }

    /// The parameters and results of the program.
    pub fn signature(&self) -> &Signature {
        &self.code.signature
    }

    /// The compiled code.
    pub fn kernel(&self) -> &Kernel {
        &self.code.kernel
    }

    /// Takes the constant inputs, in the order of the signature, and computes once the constants
    /// that every call needs.
    pub fn bind<'c>(&self, pool: &Pool, constants: &[View<'c>]) -> Result<Bound<'c>, RunError> {
        let code = Arc::clone(&self.code);
        let parameters = &code.signature.constants;
        check_count("constant inputs", parameters.len(), constants.len())?;
        let inputs = parameters.iter().zip(constants);
        let inputs = inputs.map(constant_input).collect::<Result<Vec<_>, _>>()?;
        let sizes = code.kernel.constants().iter();
        let constants = sizes.map(|bytes| Block::zeroed(*bytes)).collect::<Result<Vec<_>, _>>()?;
        let mut bound = Bound { code, inputs, constants };
        bound.set_up(pool)?;
        Ok(bound)
    }
}

impl<'c> Bound<'c> {
    /// The parameters and results of the program.
    pub fn signature(&self) -> &Signature {
        &self.code.signature
    }

    /// The same function with its own copies of the constants that it borrows.
    pub fn into_owned(self) -> Result<Bound<'static>, TensorError> {
        let into_buffer = |input: ConstantInput<'c>| match input {
            ConstantInput::Borrowed(view) => Buffer::pack(&view).map(ConstantInput::Owned),
            ConstantInput::Owned(buffer) => Ok(ConstantInput::Owned(buffer)),
        };
        let inputs = self.inputs.into_iter().map(into_buffer).collect::<Result<_, _>>()?;
        Ok(Bound { code: self.code, inputs, constants: self.constants })
    }

    /// Calls the program. Inputs, results and scalars are in the order of the signature, and
    /// scalars are converted to their types. Results that the program updates must hold their old
    /// values before the call. After an error, the results are undefined.
    pub fn run(
        &self,
        pool: &Pool,
        inputs: &[View<'_>],
        results: &mut [ViewMut<'_>],
        scalars: &[Number],
    ) -> Result<(), RunError> {
        let signature = &self.code.signature;
        let scalars = signature.scalar_bits(scalars)?;
        let packed_inputs = Packed::inputs(&signature.inputs, inputs)?;
        let mut packed_results = Packed::results(&signature.results, results)?;
        let arguments: Pointers = self
            .code
            .sources
            .iter()
            .map(|source| match *source {
                Source::Constant(at) => self.inputs[at].as_ptr(),
                Source::Input(at) => packed_inputs.input_pointer(at, &inputs[at]),
                Source::Result(at) => packed_results.result_pointer(at, &mut results[at]),
            })
            .collect();
        let constants: Pointers = self.constants.iter().map(|block| block.as_ptr().cast_mut()).collect();
        // SAFETY: every argument was checked to have the type and shape that the kernel was
        // compiled for. Every argument is contiguous and aligned, or a copy that is. Results are
        // borrowed exclusively, so they overlap nothing. The body only reads constants.
        unsafe { self.code.launch(Part::Body, pool, &arguments, &constants, &scalars)? };
        packed_results.unpack(results);
        Ok(())
    }

    /// Like `run`, for a caller that has checked its tensors itself and has only their addresses.
    ///
    /// # Panics
    ///
    /// If there are fewer pointers than the signature has inputs or results.
    ///
    /// # Safety
    ///
    /// At each pointer, in the order of the signature, there are all elements of that parameter's
    /// type and shape, aligned and row-major without gaps; a `bool` is 0 or 1. During the call,
    /// nobody writes to the inputs, and nobody else uses the results.
    pub unsafe fn run_at(
        &self,
        pool: &Pool,
        inputs: &[*const u8],
        results: &[*mut u8],
        scalars: &[Number],
    ) -> Result<(), RunError> {
        let scalars = self.code.signature.scalar_bits(scalars)?;
        let pointer = |source: &Source| match *source {
            Source::Constant(at) => self.inputs[at].as_ptr(),
            Source::Input(at) => inputs[at].cast_mut(),
            Source::Result(at) => results[at],
        };
        let arguments: Pointers = self.code.sources.iter().map(pointer).collect();
        let constants: Pointers = self.constants.iter().map(|block| block.as_ptr().cast_mut()).collect();
        // SAFETY: guaranteed by the caller; the body only reads constants.
        unsafe { self.code.launch(Part::Body, pool, &arguments, &constants, &scalars) }
    }

    /// Computes the constants by running `setup`.
    fn set_up(&mut self, pool: &Pool) -> Result<(), RunError> {
        if self.constants.is_empty() {
            return Ok(());
        }
        let argument = |source: &Source| match *source {
            Source::Constant(at) => self.inputs[at].as_ptr(),
            // There are no inputs or results yet, and `setup` does not use them.
            Source::Input(_) | Source::Result(_) => std::ptr::null_mut(),
        };
        let arguments: Pointers = self.code.sources.iter().map(argument).collect();
        let constants: Pointers = self.constants.iter_mut().map(Block::as_mut_ptr).collect();
        // Setup depends on constant inputs alone, so the scalars may be anything.
        let scalars = vec![0; self.code.signature.scalars.len()];
        // SAFETY: as in `run`; the constants have the sizes that the kernel asks for, and are not
        // yet shared.
        unsafe { self.code.launch(Part::Setup, pool, &arguments, &constants, &scalars) }
    }
}

/// Makes a constant input contiguous and aligned, by a copy if necessary.
fn constant_input<'c>((parameter, view): (&Parameter, &View<'c>)) -> Result<ConstantInput<'c>, RunError> {
    check_parameter(parameter, view.layout())?;
    if view.is_contiguous() && view.is_aligned() {
        return Ok(ConstantInput::Borrowed(view.clone()));
    }
    Ok(ConstantInput::Owned(Buffer::pack(view)?))
}

impl ConstantInput<'_> {
    /// The address of the first element. Kernels take every pointer as `*mut`, but do not write to
    /// inputs.
    fn as_ptr(&self) -> *mut u8 {
        match self {
            ConstantInput::Borrowed(view) => view.as_ptr().cast_mut(),
            ConstantInput::Owned(buffer) => buffer.view().as_ptr().cast_mut(),
        }
    }
}

/// The two functions of a kernel.
#[derive(Clone, Copy)]
enum Part {
    Setup,
    Body,
}

impl Code {
    /// Runs one part of the kernel.
    ///
    /// # Safety
    ///
    /// The pointers fulfil the contract of [`Call`], for everything that this part uses.
    unsafe fn launch(
        &self,
        part: Part,
        pool: &Pool,
        arguments: &[*mut u8],
        constants: &[*mut u8],
        scalars: &[u64],
    ) -> Result<(), RunError> {
        let mut scratch = pool.take_scratch(self.kernel.scratch_bytes())?;
        let launch = ParallelCall::new(pool);
        let mut status = 0;
        let call = Call {
            arguments: arguments.as_ptr(),
            constants: constants.as_ptr(),
            scalars: scalars.as_ptr(),
            scratch: scratch.as_mut_ptr(),
            status: &raw mut status,
            parallel,
            pool: launch.as_ptr(),
        };
        // SAFETY: the caller guarantees the validity of the tensors. The other fields are as `Call`
        // requires, and outlive the call.
        match part {
            Part::Setup => unsafe { self.kernel.setup(&call) },
            Part::Body => unsafe { self.kernel.call(&call) },
        }
        pool.return_scratch(scratch);
        if let Some(failure) = launch.into_failure() {
            return Err(failure.into());
        }
        check_status(status, &self.checks)
    }
}

/// Converts a kernel's status to a result: 0 is success, and `n + 1` means that check `n` failed.
pub(crate) fn check_status(status: i64, checks: &[OutOfBounds]) -> Result<(), RunError> {
    match usize::try_from(status - 1) {
        Err(_) => Ok(()),
        Ok(check) => Err(checks[check].clone().into()),
    }
}

/// The errors that the checks of a nest report if they fail.
pub(crate) fn describe_checks(checks: &[Check], nest: &LoopNest) -> Vec<OutOfBounds> {
    let describe = |check: &Check| {
        let buffer = nest.buffer(check.buffer);
        OutOfBounds {
            buffer: buffer.name.clone(),
            dimension: check.dimension,
            // A buffer for the lanes of a vector has one dimension more than the nest declares.
            extent: buffer.shape.get(check.dimension).copied().unwrap_or(0),
            is_declared: check.is_declared,
            origin: check.origin,
        }
    };
    checks.iter().map(describe).collect()
}
