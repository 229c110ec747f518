//! Compiles a loop nest, or code that was generated from it, to machine code of a device
//! ([`GpuExecutable`]), and checks that the device can launch its kernels.

use std::collections::HashMap;
use std::sync::Arc;

use tilewright_codegen::c_family::{Argument, Dialect, GpuCode, Launch, gpu_code};
use tilewright_ir::nest::{Buffer, Scope};
use tilewright_ir::tensor::byte_size;
use tilewright_ir::{LoopNest, Program, verify_nest};

use super::backend::{KernelRequirements, KernelResources, Module};
use super::commands::launches;
use super::device::Device;
use super::error::GpuError;
use super::limits::{check_launch, check_threads};
use crate::kernel::{BuildError, OutOfBounds, describe_checks};
use crate::signature::Signature;
use crate::source::{Source, sources};

/// Machine code of a device for one program. Clones share the code. [`GpuExecutable::bind`] makes a
/// function from it.
#[derive(Clone)]
pub struct GpuExecutable {
    pub(super) code: Arc<Code>,
}

/// The data that all calls of a program share.
pub(super) struct Code {
    pub(super) device: Device,
    pub(super) commands: GpuCode,
    pub(super) module: Box<dyn Module>,
    /// The index of each kernel in the module.
    pub(super) kernels: HashMap<String, usize>,
    pub(super) signature: Signature,
    /// Where each buffer of the nest is.
    pub(super) storage: Vec<BufferStorage>,
    /// The error that each check of the kernels reports if it fails.
    pub(super) checks: Vec<OutOfBounds>,
}

/// Where a buffer of a nest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BufferStorage {
    /// A tensor that the caller supplies.
    FromCaller(Source),
    /// Memory of this many bytes, which the program owns for as long as it is bound.
    Owned(usize),
    /// A block of scratch memory, by its number in the generated code. Several buffers share it.
    Scratch(usize),
    /// Inside of a kernel, such as registers and shared memory.
    KernelLocal,
}

impl GpuExecutable {
    /// Generates code for the loops of a program and compiles it. `header` becomes the comment at
    /// the top of the generated text.
    pub fn compile(
        program: &Program,
        nest: &LoopNest,
        header: &str,
        device: &Device,
    ) -> Result<GpuExecutable, BuildError> {
        let code = gpu_code(verify_nest(nest)?, device.gpu(), header)?;
        GpuExecutable::new(program, nest, code, device)
    }

    /// Compiles code that was generated from a loop nest of a program.
    pub fn new(
        program: &Program,
        nest: &LoopNest,
        code: GpuCode,
        device: &Device,
    ) -> Result<GpuExecutable, BuildError> {
        if code.dialect != Dialect::from(device.gpu().api) {
            let (dialect, device) = (code.dialect, device.name());
            return Err(GpuError::WrongDialect { dialect, device }.into());
        }
        let signature = Signature::new(program).map_err(BuildError::UnknownShape)?;
        let places = buffer_storage(&signature, nest, &code)?;
        let checks = checks(&code, nest)?;
        let uses = kernel_requirements(&code, nest, &places)?;
        for launch in all_launches(&code) {
            check_launch(launch, device.gpu())?;
        }
        let module = device.backend().compile(&code.text, &uses)?;
        let kernels: HashMap<String, usize> =
            uses.into_iter().enumerate().map(|(at, kernel)| (kernel.name, at)).collect();
        for launch in all_launches(&code) {
            check_threads(launch, &module.resources()[kernels[&launch.kernel]])?;
        }
        let device = device.clone();
        let code = Code { device, commands: code, module, kernels, signature, storage: places, checks };
        Ok(GpuExecutable { code: Arc::new(code) })
    }

    /// The parameters and results of the program.
    pub fn signature(&self) -> &Signature {
        &self.code.signature
    }

    /// The device that the code was compiled for.
    pub fn device(&self) -> &Device {
        &self.code.device
    }

    /// The generated code, before compiling.
    pub fn source(&self) -> &GpuCode {
        &self.code.commands
    }

    /// The resources that each kernel uses, in the order in which the kernels are first launched.
    pub fn resources(&self) -> &[KernelResources] {
        self.code.module.resources()
    }
}

fn all_launches(code: &GpuCode) -> impl Iterator<Item = &Launch> {
    launches(&code.setup).into_iter().chain(launches(&code.body))
}

/// Where each buffer of the nest is.
fn buffer_storage(
    signature: &Signature,
    nest: &LoopNest,
    code: &GpuCode,
) -> Result<Vec<BufferStorage>, BuildError> {
    let mut sources = sources(signature, nest)?.into_iter();
    let storage = |buffer: &Buffer| match buffer.scope {
        Scope::Argument(_) => {
            Some(BufferStorage::FromCaller(sources.next().expect("every argument has a source")))
        }
        Scope::Constant => bytes(buffer).map(BufferStorage::Owned),
        Scope::Scratch | Scope::Register | Scope::Shared => Some(BufferStorage::KernelLocal),
    };
    let places: Option<Vec<BufferStorage>> = nest.buffers.iter().map(storage).collect();
    let mut places = places.ok_or(GpuError::OutOfMemory { bytes: usize::MAX })?;
    for (at, block) in code.scratch.iter().enumerate() {
        for tensor in &block.buffers {
            let storage =
                places.get_mut(tensor.index()).filter(|place| **place == BufferStorage::KernelLocal);
            *storage.ok_or_else(|| missing_on_host("a scratch buffer"))? = BufferStorage::Scratch(at);
        }
    }
    Ok(places)
}

fn bytes(buffer: &Buffer) -> Option<usize> {
    let shape: Option<Vec<usize>> = buffer.shape.iter().map(|extent| usize::try_from(*extent).ok()).collect();
    byte_size(buffer.dtype, &shape?)
}

fn checks(code: &GpuCode, nest: &LoopNest) -> Result<Vec<OutOfBounds>, BuildError> {
    if code.checks.iter().any(|check| check.buffer.index() >= nest.buffers.len()) {
        return Err(missing_on_host("the buffer of a check"));
    }
    Ok(describe_checks(&code.checks, nest))
}

/// All launched kernels, each once, with the requirements of all its launches.
fn kernel_requirements(
    code: &GpuCode,
    nest: &LoopNest,
    places: &[BufferStorage],
) -> Result<Vec<KernelRequirements>, BuildError> {
    let mut uses: Vec<KernelRequirements> = Vec::new();
    let mut found: HashMap<&str, usize> = HashMap::new();
    for launch in all_launches(code) {
        let arguments = launch.arguments.iter().map(|argument| argument_bytes(argument, nest, places));
        let arguments = arguments.collect::<Result<Vec<_>, _>>()?;
        let at = *found.entry(&launch.kernel).or_insert_with(|| {
            uses.push(KernelRequirements {
                name: launch.kernel.clone(),
                shared_bytes: 0,
                arguments: arguments.clone(),
            });
            uses.len() - 1
        });
        if uses[at].arguments != arguments {
            return Err(GpuError::ParameterMismatch(launch.kernel.clone()).into());
        }
        uses[at].shared_bytes = uses[at].shared_bytes.max(launch.shared_bytes);
    }
    Ok(uses)
}

/// The size of an argument in bytes. Returns an error if the scalar or buffer behind the argument
/// does not exist.
fn argument_bytes(
    argument: &Argument,
    nest: &LoopNest,
    places: &[BufferStorage],
) -> Result<usize, BuildError> {
    match argument {
        Argument::Scalar(scalar) => {
            let scalar = nest.scalars.get(scalar.index()).ok_or_else(|| missing_on_host("a scalar"))?;
            Ok(scalar.dtype.bytes())
        }
        Argument::Buffer(tensor) => match places.get(tensor.index()) {
            None | Some(BufferStorage::KernelLocal) => Err(missing_on_host("a buffer")),
            Some(_) => Ok(size_of::<u64>()),
        },
        Argument::Variable(_) | Argument::Status => Ok(size_of::<u64>()),
    }
}

fn missing_on_host(what: &str) -> BuildError {
    GpuError::MissingOnHost(what.to_owned()).into()
}
