//! Programs as machine code: compiling them, and calling them with what the user has given.

use std::time::{Duration, Instant};

use tilewright_codegen::CodegenError;
use tilewright_interp::Inputs;
use tilewright_ir::tensor::TensorError;
use tilewright_ir::{LoopNest, Number, Program, Tensor};
use tilewright_runtime::signature::Parameter;
use tilewright_runtime::{
    Bound, Buffer, BuildError, Executable, OutOfMemory, Pool, RunError, Signature, View, ViewMut,
};
use tilewright_schedule::{Schedule, apply, default_schedule};
use tilewright_syntax::{Code, Diagnostic};
use tilewright_target::Cpu;
use tilewright_tuner::cache::{
    Cache, CacheError, Canonical, Choice, Skipped, TargetFingerprint, TuningRecord,
};

use crate::args::CompileArgs;
use crate::args::cache::CacheFile;
use crate::commands::cache::failure as cache_failure;
use crate::failure::Failure;
use crate::memory::refuse_more_than_free;
use crate::output::{complain, printable};
use crate::schedule::ScheduleSource;
use crate::source::Source;
use crate::time::seconds;

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
        let cpu = machine(args, Cpu::host())?;
        let schedule = ScheduleSource::read(args.schedule.as_deref())?;
        Ok(Compiler { schedule, cpu, skipped: Vec::new(), asked_for: args.schedule.is_some() })
    }

    /// Takes what tuning has found for a program, where no schedule was asked for. A cache that was not asked for and
    /// cannot be read is told of, and done without.
    pub fn look_up(&mut self, file: &CacheFile, program: &Program) -> Result<(), Failure> {
        if self.asked_for {
            return Ok(());
        }
        match self.take_tuned(file, program) {
            Err(failure) if file.cache.is_none() => {
                complain(&format!("warning: {failure}; the default schedule is used"));
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Takes the best schedule that is known of a program on this machine, if there is one that can be used.
    fn take_tuned(&mut self, file: &CacheFile, program: &Program) -> Result<(), Failure> {
        let path = file.path()?;
        let cache = match Cache::open_existing(&path) {
            Err(CacheError::Missing(_)) => {
                let why = file.cache.is_some().then(|| format!("there is no cache at {}", path.display()));
                self.schedule = ScheduleSource::Default { why };
                return Ok(());
            }
            cache => cache.map_err(cache_failure)?,
        };
        let canonical = Canonical::new(program);
        let key = canonical.key(&TargetFingerprint::host(&self.cpu), self.cpu.cores);
        let default = canonical.to_canonical(&default_schedule(program, &self.cpu), &self.cpu);
        let default = default.schedule.to_string();
        let found = cache.best_usable(&key, &|record| {
            let schedule = usable(&canonical, &record, program, &self.cpu)?;
            let seconds = record.median().unwrap_or_default();
            Ok(ScheduleSource::Tuned { schedule, seconds, is_default: record.schedule == default })
        });
        let Choice { best, skipped } = found.map_err(cache_failure)?;
        if let Some(tuned) = best {
            self.schedule = tuned;
        }
        self.skipped = skipped;
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

/// The steps of a record in the program's own names, or why they cannot be used here.
pub fn usable(
    canonical: &Canonical,
    record: &TuningRecord,
    program: &Program,
    cpu: &Cpu,
) -> Result<Schedule, String> {
    let renamed = canonical.schedule_of(record, cpu);
    if let Some(refusal) = renamed.refusal {
        return Err(refusal.to_string());
    }
    apply(program, &renamed.schedule, cpu).map_err(|refusal| refusal.to_string())?;
    Ok(renamed.schedule)
}

/// A record that was passed over, for people.
pub fn passed_over(skipped: &Skipped) -> String {
    let time = skipped.seconds.map_or("a record".to_owned(), |time| format!("one with {}", seconds(time)));
    printable(&format!("{time} cannot be used: {}", skipped.why))
}

/// The part of this machine that was asked for.
pub fn machine(args: &CompileArgs, host: Cpu) -> Result<Cpu, Failure> {
    let vectors = args.vectors.unwrap_or(host.vectors);
    if vectors > host.vectors {
        return Err(Failure::Machine(format!(
            "this machine has no {} vectors; its widest are {}",
            vectors.name(),
            host.vectors.name()
        )));
    }
    Ok(Cpu { cores: args.threads.unwrap_or(host.cores), vectors, ..host })
}

impl Compiled {
    /// What compiling took.
    pub fn compile_time(&self) -> Duration {
        self.apply_time + self.codegen_time
    }

    /// The user's data as the kernel takes it.
    pub fn arguments(&self, inputs: Inputs) -> Result<Arguments, Failure> {
        let kernel = self.executable.kernel();
        let constants: usize = kernel.constants().iter().sum();
        refuse_more_than_free("what the kernel keeps on the way", kernel.scratch_bytes() + constants)?;
        Arguments::new(self.executable.signature(), inputs)
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
    /// What the user has given, and room for results.
    pub fn new(signature: &Signature, mut inputs: Inputs) -> Result<Arguments, Failure> {
        let scalars = signature.scalars.iter().filter_map(|scalar| inputs.scalars.get(&scalar.name));
        let scalars = scalars.copied().collect();
        let mut buffers = |parameters: &[Parameter]| {
            let buffer = |parameter: &Parameter| match inputs.tensors.remove(&parameter.name) {
                Some(tensor) => Buffer::from_tensor(&tensor),
                None => Buffer::zeros(parameter.layout.dtype(), parameter.layout.shape()),
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
        CodegenError::Unsupported(_) | CodegenError::Llvm(_) => Failure::Bug(error.to_string()),
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

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_target::Vectors;

    #[test]
    fn vectors_may_be_narrower_but_not_wider_than_those_of_the_machine() {
        let host = Cpu { cores: 4, vectors: Vectors::Avx2, caches: vec![32 << 10] };
        let asked = |vectors| CompileArgs { schedule: None, threads: Some(7), vectors };
        let chosen = |vectors| machine(&asked(vectors), host.clone()).unwrap();
        assert_eq!(chosen(None), Cpu { cores: 7, ..host.clone() });
        assert_eq!(chosen(Some(Vectors::Baseline)).vectors, Vectors::Baseline);
        let failure = machine(&asked(Some(Vectors::Avx512)), host.clone()).unwrap_err();
        assert_eq!(failure.status(), crate::failure::MACHINE);
        assert_eq!(failure.to_string(), "this machine has no avx512 vectors; its widest are avx2");
    }
}
