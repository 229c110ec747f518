//! Programs on GPUs: compiling them, and calling them with what the user has given.

use std::time::{Duration, Instant};

use tilewright_cache::Skipped;
use tilewright_codegen::c_family::gpu_code;
use tilewright_interp::Inputs;
use tilewright_ir::{Number, Program, Tensor};
use tilewright_runtime::Timing;
use tilewright_runtime::gpu::{Device, DeviceBuffer, GpuBound, GpuError, GpuExecutable, Sampling};
use tilewright_runtime::signature::Parameter;
use tilewright_target::GpuApi;

use crate::args::CompileArgs;
use crate::args::cache::CacheFile;
use crate::failure::Failure;
use crate::kernel::{build_failure, codegen_failure, run_failure};
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

/// A compiled program with its data on the device.
pub struct GpuCall {
    bound: GpuBound,
    inputs: Vec<DeviceBuffer>,
    results: Vec<DeviceBuffer>,
    scalars: Vec<Number>,
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
    /// Brings the user's data to the device, and makes of the constants what calls need. A tensor is taken away as soon as it
    /// is there, unless it is needed again.
    pub fn call(&self, source: &Source, inputs: &mut Inputs, needed_again: bool) -> Result<GpuCall, Failure> {
        let (device, signature) = (self.executable.device(), self.executable.signature());
        let scalars = signature.scalars.iter().filter_map(|scalar| inputs.scalars.get(&scalar.name));
        let scalars = scalars.copied().collect();
        let mut uploaded = |parameters: &[Parameter]| {
            let upload = |parameter: &Parameter| {
                let uploaded = match inputs.tensors.get(&parameter.name) {
                    Some(tensor) => DeviceBuffer::from_tensor(device, tensor),
                    None => DeviceBuffer::zeros(device, parameter.layout.dtype(), parameter.layout.shape()),
                };
                if !needed_again {
                    inputs.tensors.remove(&parameter.name);
                }
                uploaded
            };
            let uploaded = parameters.iter().map(upload).collect::<Result<Vec<_>, _>>();
            uploaded.map_err(|error| run_failure(source, error))
        };
        let constants = uploaded(&signature.constants)?;
        let bound = self.executable.bind_on(&constants.iter().collect::<Vec<_>>());
        let bound = bound.map_err(|error| run_failure(source, error))?;
        Ok(GpuCall {
            bound,
            inputs: uploaded(&signature.inputs)?,
            results: uploaded(&signature.results)?,
            scalars,
        })
    }
}

impl GpuCall {
    /// Calls the program once; results by name, in the order of the signature.
    pub fn results(&mut self, source: &Source) -> Result<Vec<(String, Tensor)>, Failure> {
        let inputs: Vec<&DeviceBuffer> = self.inputs.iter().collect();
        let mut results: Vec<&mut DeviceBuffer> = self.results.iter_mut().collect();
        let called = self.bound.launch(&inputs, &mut results, &self.scalars).and_then(|()| self.bound.wait());
        let tensors = called.and_then(|()| self.results.iter().map(DeviceBuffer::to_tensor).collect());
        let tensors: Vec<Tensor> = tensors.map_err(|error| run_failure(source, error))?;
        let names = self.bound.signature().results.iter().map(|result| result.name.clone());
        Ok(names.zip(tensors).collect())
    }

    /// How long a call takes on the device, without the way of the data there and back.
    pub fn time(&mut self, source: &Source, sampling: &Sampling) -> Result<Timing, Failure> {
        let inputs: Vec<&DeviceBuffer> = self.inputs.iter().collect();
        let mut results: Vec<&mut DeviceBuffer> = self.results.iter_mut().collect();
        let timing = self.bound.time(&inputs, &mut results, &self.scalars, sampling);
        timing.map_err(|error| run_failure(source, error))
    }
}

/// A device that is not there, or does not do what it should.
pub fn gpu_failure(error: GpuError) -> Failure {
    Failure::Machine(error.to_string())
}
