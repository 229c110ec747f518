//! Holds a compiled program with its data in the host's memory or on a device, and calls or times
//! it.

use std::cell::RefCell;
use std::time::Duration;

use tilewright::driver::{BoundCode, Code};
use tilewright::interp::Inputs;
use tilewright::ir::tensor::TensorError;
use tilewright::ir::{Number, Tensor};
use tilewright::runtime::gpu::{Device, DeviceBuffer, GpuBound, GpuExecutable, Sampling};
use tilewright::runtime::signature::Parameter;
use tilewright::runtime::timing::{CacheFlush, Options, interleaved};
use tilewright::runtime::{Buffer, Executable, Pool, RunError, Signature, Timing, View, ViewMut, measure};
use tilewright::target::Cpu;

use crate::compiler::Compiled;
use crate::failure::Failure;
use crate::interpret::Results;
use crate::memory::refuse_more_than_free;
use crate::source::Source;

/// How to time calls.
pub struct TimingOptions {
    /// The minimum time of all samples together on a CPU. A fifth of it is the minimum time of
    /// warming up, on a CPU and on a device.
    pub time: Duration,
    /// The minimum number of samples on a CPU, and the number of samples on a device.
    pub samples: usize,
    /// The time after which no more samples are taken, even if there are too few.
    pub cap: Duration,
    /// Whether the caches of a CPU are emptied before each sample. The caches of a device always
    /// are.
    pub cold: bool,
}

/// A compiled program with its data.
pub enum Loaded<'k> {
    /// In the host's memory.
    Cpu(OnCpu<'k>),
    /// On a device.
    Gpu(OnGpu),
}

impl<'k> Loaded<'k> {
    /// Copies the user's data to where the program runs. Each tensor is removed from `inputs` after
    /// its copy, unless it is needed again, so that two copies of all tensors never coexist.
    pub fn new(
        compiled: &'k Compiled,
        source: &Source,
        inputs: &mut Inputs,
        needed_again: bool,
    ) -> Result<Loaded<'k>, Failure> {
        match &compiled.code {
            Code::Cpu(executable) => {
                OnCpu::new(executable, &compiled.pool, inputs, needed_again).map(Loaded::Cpu)
            }
            Code::Gpu(executable) => OnGpu::new(executable, source, inputs, needed_again).map(Loaded::Gpu),
        }
    }

    /// Calls the program once. The results are in the order of the signature.
    pub fn results(&mut self, source: &Source) -> Result<Results, Failure> {
        match self {
            Loaded::Cpu(loaded) => loaded.results(),
            Loaded::Gpu(loaded) => loaded.results(),
        }
        .map_err(|error| Failure::from_run(source, error))
    }

    /// Times calls of the program. On a device, the time excludes copies to and from the device.
    pub fn time(&mut self, source: &Source, clock: &TimingOptions) -> Result<Timing, Failure> {
        match self {
            Loaded::Cpu(loaded) => loaded.time(source, clock),
            Loaded::Gpu(loaded) => loaded.time(clock).map_err(|error| Failure::from_run(source, error)),
        }
    }

    /// Times codes with the signature of the program, each of which does more than the one before:
    /// the seconds that each takes longer than the one before, and the first one as a whole.
    pub fn time_steps(
        &mut self,
        codes: &[Code],
        source: &Source,
        clock: &TimingOptions,
    ) -> Result<Vec<f64>, Failure> {
        match self {
            Loaded::Cpu(loaded) => loaded.time_steps(codes, source, clock),
            Loaded::Gpu(loaded) => {
                loaded.time_steps(codes, clock).map_err(|error| Failure::from_run(source, error))
            }
        }
    }
}

/// The scalars of a call, in the order of the signature.
fn scalars(signature: &Signature, inputs: &Inputs) -> Vec<Number> {
    signature.scalars.iter().filter_map(|scalar| inputs.scalars.get(&scalar.name)).copied().collect()
}

/// Places the tensors of some parameters: `copy` places a tensor of the user, `zeros` makes one
/// where the user has given none.
fn place_tensors<T, E>(
    parameters: &[Parameter],
    inputs: &mut Inputs,
    needed_again: bool,
    copy: impl Fn(&Tensor) -> Result<T, E>,
    zeros: impl Fn(&Parameter) -> Result<T, E>,
) -> Result<Vec<T>, E> {
    let place = |parameter: &Parameter| {
        let placed = match inputs.tensors.get(&parameter.name) {
            Some(tensor) => copy(tensor),
            None => zeros(parameter),
        };
        if !needed_again {
            inputs.tensors.remove(&parameter.name);
        }
        placed
    };
    parameters.iter().map(place).collect()
}

/// Pairs the names of the results with their tensors.
fn name_results(signature: &Signature, tensors: Vec<Tensor>) -> Results {
    signature.results.iter().map(|result| result.name.clone()).zip(tensors).collect()
}

/// Machine code with tensors in the host's memory.
pub struct OnCpu<'k> {
    executable: &'k Executable,
    pool: &'k Pool,
    constants: Vec<Buffer>,
    inputs: Vec<Buffer>,
    results: Vec<Buffer>,
    scalars: Vec<Number>,
}

impl<'k> OnCpu<'k> {
    fn new(
        executable: &'k Executable,
        pool: &'k Pool,
        inputs: &mut Inputs,
        needed_again: bool,
    ) -> Result<OnCpu<'k>, Failure> {
        let (kernel, signature) = (executable.kernel(), executable.signature());
        let constants: usize = kernel.constants().iter().sum();
        refuse_more_than_free(
            "storing the kernel's temporaries and packed constants",
            kernel.scratch_bytes() + constants,
        )?;
        let scalars = scalars(signature, inputs);
        let zeros = |own: &Parameter| Buffer::zeros(own.layout.dtype(), own.layout.shape());
        let mut buffers = |parameters: &[Parameter]| -> Result<Vec<Buffer>, TensorError> {
            place_tensors(parameters, inputs, needed_again, Buffer::from_tensor, zeros)
        };
        let [constants, inputs, results] =
            [&signature.constants, &signature.inputs, &signature.results].map(|own| buffers(own));
        let no_memory = Failure::no_memory;
        Ok(OnCpu {
            executable,
            pool,
            constants: constants.map_err(no_memory)?,
            inputs: inputs.map_err(no_memory)?,
            results: results.map_err(no_memory)?,
            scalars,
        })
    }

    fn results(&mut self) -> Result<Results, RunError> {
        let bound = self.executable.bind(self.pool, &views(&self.constants))?;
        bound.run(self.pool, &views(&self.inputs), &mut views_mut(&mut self.results), &self.scalars)?;
        let tensors = self.results.iter().map(Buffer::to_tensor).collect::<Result<Vec<_>, _>>()?;
        Ok(name_results(self.executable.signature(), tensors))
    }

    fn options(&self, clock: &TimingOptions) -> Result<Options<'k>, Failure> {
        Ok(Options {
            warm_up_time: clock.time / 5,
            samples: clock.samples,
            time: clock.time,
            cap: clock.cap,
            flush_caches: if clock.cold { Some(cache_flush(self.pool)?) } else { None },
            ..Options::default()
        })
    }

    /// Samples of neighbours are taken in turn, so that a disturbance of the machine affects both.
    fn time_steps(
        &mut self,
        codes: &[Code],
        source: &Source,
        clock: &TimingOptions,
    ) -> Result<Vec<f64>, Failure> {
        let options = self.options(clock)?;
        let failed = |error| Failure::from_run(source, error);
        let (constants, inputs) = (views(&self.constants), views(&self.inputs));
        let (pool, scalars) = (self.pool, &self.scalars);
        let results = RefCell::new(views_mut(&mut self.results));
        let call = |bound: &BoundCode| bound.run(pool, &inputs, &mut results.borrow_mut(), scalars);
        let (mut before, mut steps): (Option<BoundCode>, Vec<f64>) = (None, Vec::new());
        for code in codes {
            let bound = code.bind(pool, &constants).map_err(failed)?;
            let step = match &before {
                None => measure(&options, || call(&bound)).map_err(failed)?.median,
                Some(before) => {
                    let contenders: &mut [&mut dyn FnMut() -> Result<(), RunError>] =
                        &mut [&mut || call(before), &mut || call(&bound)];
                    let timings = interleaved(&options, contenders).map_err(failed)?;
                    (timings[1].median - timings[0].median).max(0.0)
                }
            };
            steps.push(step);
            before = Some(bound);
        }
        Ok(steps)
    }

    fn time(&mut self, source: &Source, clock: &TimingOptions) -> Result<Timing, Failure> {
        let options = self.options(clock)?;
        let bound = self.executable.bind(self.pool, &views(&self.constants));
        let bound = bound.map_err(|error| Failure::from_run(source, error))?;
        let (inputs, mut results) = (views(&self.inputs), views_mut(&mut self.results));
        let timing = measure(&options, || bound.run(self.pool, &inputs, &mut results, &self.scalars));
        timing.map_err(|error| Failure::from_run(source, error))
    }
}

/// The memory that is read to empty the caches: twice the size of the largest cache.
fn cache_flush(pool: &Pool) -> Result<CacheFlush<'_>, Failure> {
    let last = Cpu::host().caches.last().copied().unwrap_or(32 << 20);
    CacheFlush::new(2 * last, pool)
        .map_err(|error| Failure::Machine(format!("there is no memory to empty the caches with: {error}")))
}

fn views(buffers: &[Buffer]) -> Vec<View<'_>> {
    buffers.iter().map(Buffer::view).collect()
}

fn views_mut(buffers: &mut [Buffer]) -> Vec<ViewMut<'_>> {
    buffers.iter_mut().map(Buffer::view_mut).collect()
}

/// Kernels with tensors on a device.
pub struct OnGpu {
    bound: GpuBound,
    constants: Vec<DeviceBuffer>,
    inputs: Vec<DeviceBuffer>,
    results: Vec<DeviceBuffer>,
    scalars: Vec<Number>,
}

impl OnGpu {
    fn new(
        executable: &GpuExecutable,
        source: &Source,
        inputs: &mut Inputs,
        needed_again: bool,
    ) -> Result<OnGpu, Failure> {
        let (device, signature): (&Device, _) = (executable.device(), executable.signature());
        let scalars = scalars(signature, inputs);
        let copy = |tensor: &Tensor| DeviceBuffer::from_tensor(device, tensor);
        let zeros = |own: &Parameter| DeviceBuffer::zeros(device, own.layout.dtype(), own.layout.shape());
        let mut buffers = |parameters: &[Parameter]| -> Result<Vec<DeviceBuffer>, RunError> {
            place_tensors(parameters, inputs, needed_again, copy, zeros)
        };
        let loaded = (|| {
            let constants = buffers(&signature.constants)?;
            let bound = executable.bind_on(&constants.iter().collect::<Vec<_>>())?;
            let (inputs, results) = (buffers(&signature.inputs)?, buffers(&signature.results)?);
            Ok(OnGpu { bound, constants, inputs, results, scalars })
        })();
        loaded.map_err(|error| Failure::from_run(source, error))
    }

    fn results(&mut self) -> Result<Results, RunError> {
        let inputs: Vec<&DeviceBuffer> = self.inputs.iter().collect();
        let mut results: Vec<&mut DeviceBuffer> = self.results.iter_mut().collect();
        self.bound.launch(&inputs, &mut results, &self.scalars)?;
        self.bound.wait()?;
        let tensors = self.results.iter().map(DeviceBuffer::to_tensor).collect::<Result<Vec<_>, _>>()?;
        Ok(name_results(self.bound.signature(), tensors))
    }

    fn time_steps(&mut self, codes: &[Code], clock: &TimingOptions) -> Result<Vec<f64>, RunError> {
        let (mut before, mut steps) = (0.0, Vec::new());
        let executables = codes.iter().filter_map(|code| match code {
            Code::Gpu(executable) => Some(executable),
            Code::Cpu(_) => None,
        });
        for executable in executables {
            let bound = executable.bind_on(&self.constants.iter().collect::<Vec<_>>())?;
            let whole = std::mem::replace(&mut self.bound, bound);
            let timing = self.time(clock);
            self.bound = whole;
            let seconds = timing?.median;
            steps.push((seconds - before).max(0.0));
            before = seconds;
        }
        Ok(steps)
    }

    fn time(&mut self, clock: &TimingOptions) -> Result<Timing, RunError> {
        let sampling = Sampling {
            warm_up_time: clock.time / 5,
            samples: clock.samples,
            cap: clock.cap,
            flush: true,
            ..Sampling::default()
        };
        let inputs: Vec<&DeviceBuffer> = self.inputs.iter().collect();
        let mut results: Vec<&mut DeviceBuffer> = self.results.iter_mut().collect();
        self.bound.time(&inputs, &mut results, &self.scalars, &sampling)
    }
}
