//! Programs on GPUs: compiling them, and calling them with what the user has given.

use std::time::{Duration, Instant};

use tilewright_codegen::c_family::gpu_code;
use tilewright_interp::Inputs;
use tilewright_ir::{Program, Tensor};
use tilewright_runtime::gpu::{Device, DeviceBuffer, GpuBound, GpuError, GpuExecutable, Sampling};
use tilewright_runtime::{Buffer, Timing};
use tilewright_target::GpuApi;
use tilewright_tuner::cache::Skipped;

use crate::args::CompileArgs;
use crate::args::cache::CacheFile;
use crate::failure::Failure;
use crate::kernel::{Arguments, build_failure, codegen_failure, no_memory, run_failure, views, views_mut};
use crate::lookup::{Found, look_up};
use crate::machine::refuse_options_of_cpu;
use crate::schedule::ScheduleSource;
use crate::source::Source;

/// How to compile for a device.
pub struct GpuCompiler {
    /// Where the schedule comes from.
    pub schedule: ScheduleSource,
    /// The device.
    pub device: Device,
    /// Records that are better than the schedule, and cannot be used.
    pub skipped: Vec<Skipped>,
    /// Whether the schedule was asked for, so that the cache has no say.
    asked_for: bool,
}

/// A program, compiled for a device.
pub struct GpuCompiled {
    executable: GpuExecutable,
    /// What applying the schedule and compiling took.
    pub compile_time: Duration,
}

impl GpuCompiler {
    /// Opens the device, and reads what the command line says.
    pub fn new(args: &CompileArgs, api: GpuApi, number: usize) -> Result<GpuCompiler, Failure> {
        refuse_options_of_cpu(args)?;
        let schedule = ScheduleSource::read(args.schedule.as_deref())?;
        let device = Device::open(api, number).map_err(gpu_failure)?;
        Ok(GpuCompiler { schedule, device, skipped: Vec::new(), asked_for: args.schedule.is_some() })
    }

    /// Takes what tuning has found for a program, where no schedule was asked for.
    pub fn look_up(&mut self, file: &CacheFile, program: &Program) -> Result<(), Failure> {
        if !self.asked_for {
            let gpu = self.device.gpu();
            Found { schedule: self.schedule, skipped: self.skipped } = look_up(file, program, gpu)?;
        }
        Ok(())
    }

    /// The kernels of a program.
    pub fn compile(&self, program: &Program) -> Result<GpuCompiled, Failure> {
        let begun = Instant::now();
        let gpu = self.device.gpu();
        let nest = self.schedule.apply(program, gpu)?;
        let about = format!("{}\n\n{}", program.name, self.schedule.schedule(program, gpu));
        let code = gpu_code(&nest, gpu, &about).map_err(codegen_failure)?;
        let executable = GpuExecutable::new(program, &nest, code, &self.device).map_err(build_failure)?;
        Ok(GpuCompiled { executable, compile_time: begun.elapsed() })
    }
}

impl GpuCompiled {
    /// The user's data as the kernels take it.
    pub fn arguments(&self, inputs: Inputs) -> Result<Arguments, Failure> {
        Arguments::new(self.executable.signature(), inputs)
    }

    fn bind(&self, source: &Source, constants: &[Buffer]) -> Result<GpuBound, Failure> {
        self.executable.bind(&views(constants)).map_err(|error| run_failure(source, error))
    }

    /// Calls the program once; results by name, in the order of the signature.
    pub fn call(&self, source: &Source, arguments: &mut Arguments) -> Result<Vec<(String, Tensor)>, Failure> {
        let Arguments { constants, inputs, results, scalars } = arguments;
        let bound = self.bind(source, constants)?;
        bound
            .run(&views(inputs), &mut views_mut(results), scalars)
            .map_err(|error| run_failure(source, error))?;
        let names = self.executable.signature().results.iter().map(|result| result.name.clone());
        let tensors = results.iter().map(Buffer::to_tensor).collect::<Result<Vec<_>, _>>();
        Ok(names.zip(tensors.map_err(no_memory)?).collect())
    }

    /// How long a call takes on the device, without the way of the data there and back.
    pub fn time(
        &self,
        source: &Source,
        arguments: &mut Arguments,
        sampling: &Sampling,
    ) -> Result<Timing, Failure> {
        let Arguments { constants, inputs, results, scalars } = arguments;
        let bound = self.bind(source, constants)?;
        let device = self.executable.device();
        let upload = |buffers: &[Buffer]| {
            let each = buffers.iter().map(|buffer| DeviceBuffer::from_view(device, &buffer.view()));
            each.collect::<Result<Vec<_>, _>>()
        };
        let timed = || {
            let (inputs, mut results) = (upload(inputs)?, upload(results)?);
            let inputs: Vec<&DeviceBuffer> = inputs.iter().collect();
            let mut results: Vec<&mut DeviceBuffer> = results.iter_mut().collect();
            bound.time(&inputs, &mut results, scalars, sampling)
        };
        timed().map_err(|error| run_failure(source, error))
    }
}

/// A device that is not there, or does not do what it should.
pub fn gpu_failure(error: GpuError) -> Failure {
    Failure::Machine(error.to_string())
}
