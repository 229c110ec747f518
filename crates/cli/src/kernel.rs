//! Programs as machine code: compiling them, and calling them with what the user has given.

use std::time::{Duration, Instant};

use tilewright_cache::Skipped;
use tilewright_codegen::CodegenError;
use tilewright_interp::Inputs;
use tilewright_ir::tensor::TensorError;
use tilewright_ir::{LoopNest, Number, Program, Tensor};
use tilewright_runtime::signature::Parameter;
use tilewright_runtime::{
    Bound, Buffer, BuildError, Executable, OutOfMemory, Pool, RunError, Signature, View, ViewMut,
};
use tilewright_syntax::{Code, Diagnostic};
use tilewright_target::Cpu;

use crate::args::CompileArgs;
use crate::args::cache::CacheFile;
use crate::failure::Failure;
use crate::lookup::{Found, look_up};
use crate::machine::part_of_host;
use crate::memory::refuse_more_than_free;
use crate::schedule::ScheduleSource;
use crate::source::Source;

/// How to compile: a schedule, and the machine that it is for.
pub struct Compiler {
    /// Where the schedule comes from.
    pub schedule: ScheduleSource,
    /// The machine: this one, with as many cores as threads were asked for.
    pub cpu: Cpu,
    /// Records that are better than the schedule, and cannot be used.
    pub skipped: Vec<Skipped>,
    /// Whether the schedule was asked for, so that the cache has no say.
    asked_for: bool,
}

/// A program as machine code, with the threads to run it.
pub struct Compiled {
    executable: Executable,
    /// The threads.
    pub pool: Pool,
    /// What applying the schedule took.
    pub apply_time: Duration,
    /// What generating code took.
    pub codegen_time: Duration,
}

/// The tensors and scalars of a call, in the order of the signature.
pub struct Arguments {
    /// Inputs that stay the same between calls.
    pub constants: Vec<Buffer>,
    /// The other inputs.
    pub inputs: Vec<Buffer>,
    /// What a call writes or updates.
    pub results: Vec<Buffer>,
    /// Scalars.
    pub scalars: Vec<Number>,
}

impl Compiler {
    /// Reads what the command line says.
    pub fn new(args: &CompileArgs) -> Result<Compiler, Failure> {
        let cpu = part_of_host(args, Cpu::host())?;
        let schedule = ScheduleSource::read(args.schedule.as_deref())?;
        Ok(Compiler { schedule, cpu, skipped: Vec::new(), asked_for: args.schedule.is_some() })
    }

    /// Takes what tuning has found for a program, where no schedule was asked for.
    pub fn look_up(&mut self, file: &CacheFile, program: &Program) -> Result<(), Failure> {
        if !self.asked_for {
            Found { schedule: self.schedule, skipped: self.skipped } = look_up(file, program, &self.cpu)?;
        }
        Ok(())
    }

    /// The loops of a program.
    pub fn loops(&self, program: &Program) -> Result<LoopNest, Failure> {
        self.schedule.apply(program, &self.cpu)
    }

    /// The machine code of a program.
    pub fn compile(&self, program: &Program) -> Result<Compiled, Failure> {
        let begun = Instant::now();
        let nest = self.loops(program)?;
        let apply_time = begun.elapsed();
        let begun = Instant::now();
        let executable = Executable::new(program, &nest, &self.cpu).map_err(build_failure)?;
        let codegen_time = begun.elapsed();
        Ok(Compiled { executable, pool: Pool::new(self.cpu.cores), apply_time, codegen_time })
    }
}

impl Compiled {
    /// What compiling took.
    pub fn compile_time(&self) -> Duration {
        self.apply_time + self.codegen_time
    }

    /// The user's data as the kernel takes it; all of it is left as it was if somebody needs it afterwards.
    pub fn arguments(&self, inputs: &mut Inputs, needed_again: bool) -> Result<Arguments, Failure> {
        let kernel = self.executable.kernel();
        let constants: usize = kernel.constants().iter().sum();
        refuse_more_than_free("what the kernel keeps on the way", kernel.scratch_bytes() + constants)?;
        Arguments::new(self.executable.signature(), inputs, needed_again)
    }

    /// Gives the kernel its constants.
    pub fn bind<'c>(&self, source: &Source, constants: &'c [Buffer]) -> Result<Bound<'c>, Failure> {
        let bound = self.executable.bind(&self.pool, &views(constants));
        bound.map_err(|error| run_failure(source, error))
    }

    /// Calls the program once; results by name, in the order of the signature.
    pub fn call(&self, source: &Source, arguments: &mut Arguments) -> Result<Vec<(String, Tensor)>, Failure> {
        let Arguments { constants, inputs, results, scalars } = arguments;
        let bound = self.bind(source, constants)?;
        bound
            .run(&self.pool, &views(inputs), &mut views_mut(results), scalars)
            .map_err(|error| run_failure(source, error))?;
        let names = self.executable.signature().results.iter().map(|result| result.name.clone());
        let tensors = results.iter().map(Buffer::to_tensor).collect::<Result<Vec<_>, _>>();
        Ok(names.zip(tensors.map_err(no_memory)?).collect())
    }
}

impl Arguments {
    /// What the user has given, and room for results. A tensor is taken away as soon as it is copied, unless it is needed
    /// again: there are never two copies of all.
    fn new(signature: &Signature, inputs: &mut Inputs, needed_again: bool) -> Result<Arguments, Failure> {
        let scalars = signature.scalars.iter().filter_map(|scalar| inputs.scalars.get(&scalar.name));
        let scalars = scalars.copied().collect();
        let mut buffers = |parameters: &[Parameter]| {
            let buffer = |parameter: &Parameter| {
                let buffer = match inputs.tensors.get(&parameter.name) {
                    Some(tensor) => Buffer::from_tensor(tensor),
                    None => Buffer::zeros(parameter.layout.dtype(), parameter.layout.shape()),
                };
                if !needed_again {
                    inputs.tensors.remove(&parameter.name);
                }
                buffer
            };
            parameters.iter().map(buffer).collect::<Result<Vec<_>, _>>().map_err(no_memory)
        };
        Ok(Arguments {
            constants: buffers(&signature.constants)?,
            inputs: buffers(&signature.inputs)?,
            results: buffers(&signature.results)?,
            scalars,
        })
    }
}

/// Buffers for reading.
pub fn views(buffers: &[Buffer]) -> Vec<View<'_>> {
    buffers.iter().map(Buffer::view).collect()
}

/// Buffers for writing.
pub fn views_mut(buffers: &mut [Buffer]) -> Vec<ViewMut<'_>> {
    buffers.iter_mut().map(Buffer::view_mut).collect()
}

/// A tensor that memory has no room for.
pub fn no_memory(error: TensorError) -> Failure {
    Failure::Input(format!("{error}; give smaller sizes"))
}

/// Code that could not be generated, or cannot run here.
pub fn codegen_failure(error: CodegenError) -> Failure {
    match error {
        CodegenError::Target(_) => Failure::Machine(error.to_string()),
        CodegenError::Unsupported(_) | CodegenError::Llvm(_) | CodegenError::InvalidNest(_) => {
            Failure::Bug(error.to_string())
        }
    }
}

/// A nest that did not become an executable.
pub fn build_failure(error: BuildError) -> Failure {
    match error {
        BuildError::Codegen(error) => codegen_failure(error),
        BuildError::NoSuchVectors(_) => Failure::Machine(error.to_string()),
        BuildError::Gpu(_) => Failure::Machine(error.to_string()),
        BuildError::OpenShape(_) => Failure::Input(error.to_string()),
        BuildError::OtherProgram(_) | BuildError::InvalidNest(_) => Failure::Bug(error.to_string()),
    }
}

/// A call that did not come to its end. An index that left its tensor is shown where it was written.
pub fn run_failure(source: &Source, error: RunError) -> Failure {
    match error {
        RunError::OutOfBounds(out) => {
            let diagnostic = Diagnostic::error(Code::OutOfBounds, out.origin.into(), out.to_string());
            source.print(&[diagnostic
                .help("check the data that the index or its condition depends on, or clamp the index")
                .help("`tilewright run --target interp` says which element it was, and where")]);
            Failure::Reported
        }
        RunError::Memory(OutOfMemory { .. }) => Failure::Input(format!("{error}; give smaller sizes")),
        RunError::Tensor(error) => no_memory(error),
        RunError::Gpu(error) => Failure::Machine(error.to_string()),
        RunError::Count { .. } | RunError::Mismatch { .. } | RunError::Specialised { .. } => {
            Failure::Bug(error.to_string())
        }
    }
}
