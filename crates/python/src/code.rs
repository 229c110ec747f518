//! Code for a CPU or a GPU, and how it runs on memory that somebody has looked at.

use pyo3::prelude::*;
use smallvec::SmallVec;
use tilewright_codegen::c_family::gpu_code;
use tilewright_ir::{LoopNest, Number, Program};
use tilewright_runtime::gpu::{Device, DeviceBuffer, GpuBound, GpuExecutable};
use tilewright_runtime::{Bound as Callable, Executable, Pool, RunError, Signature, View, ViewMut};
use tilewright_target::Machine;

use crate::error;
use crate::place::{Place, open};

/// Code, with its constants where there are none or they are bound.
pub enum Code {
    /// For the CPU, with so many threads.
    Cpu {
        /// How many.
        threads: usize,
        /// Before its constants are known.
        executable: Executable,
        /// When they are.
        bound: Option<Callable<'static>>,
    },
    /// For a GPU.
    Gpu {
        /// Before its constants are known.
        executable: GpuExecutable,
        /// When they are.
        bound: Option<GpuBound>,
    },
}

impl Code {
    /// Compiles a nest. `about` is what a GPU's source begins with.
    pub fn new(
        program: &Program,
        nest: &LoopNest,
        machine: &Machine,
        place: Place,
        about: &str,
    ) -> PyResult<Code> {
        match (machine, place) {
            (Machine::Cpu(cpu), _) => {
                let executable = Executable::new(program, nest, cpu).map_err(error::build)?;
                Ok(Code::Cpu { threads: cpu.cores, executable, bound: None })
            }
            (Machine::Gpu(gpu), Place::Gpu(api, number)) => {
                let text = gpu_code(nest, gpu, about).map_err(|error| error::build(error.into()))?;
                let device = open(api, number)?;
                let executable = GpuExecutable::new(program, nest, text, &device).map_err(error::build)?;
                Ok(Code::Gpu { executable, bound: None })
            }
            (Machine::Gpu(_), Place::Cpu { .. }) => Err(error::bug(&"a GPU that is a CPU")),
        }
    }

    /// What the program takes and gives.
    pub fn signature(&self) -> &Signature {
        match self {
            Code::Cpu { executable, .. } => executable.signature(),
            Code::Gpu { executable, .. } => executable.signature(),
        }
    }

    /// The same without its constants.
    pub fn unbound(&self) -> Code {
        match self {
            Code::Cpu { threads, executable, .. } => {
                Code::Cpu { threads: *threads, executable: executable.clone(), bound: None }
            }
            Code::Gpu { executable, .. } => Code::Gpu { executable: executable.clone(), bound: None },
        }
    }

    /// Gives the constants, of which it keeps copies.
    pub fn bind(&mut self, constants: &[View<'_>]) -> Result<(), RunError> {
        match self {
            Code::Cpu { threads, executable, bound } => {
                // Once, and not much: a pool for it would have threads that nobody uses.
                let pool = Pool::new(if constants.is_empty() { 1 } else { *threads });
                *bound = Some(executable.bind(&pool, constants)?.into_owned()?);
            }
            Code::Gpu { executable, bound } => *bound = Some(executable.bind(constants)?),
        }
        Ok(())
    }

    /// Runs it on tensors in the host's memory. Code for the CPU has the threads of the pool.
    pub fn run(
        &self,
        pool: Option<&Pool>,
        constants: &[View<'_>],
        inputs: &[View<'_>],
        results: &mut [ViewMut<'_>],
        scalars: &[Number],
    ) -> Result<(), RunError> {
        match self {
            Code::Cpu { executable, bound, .. } => {
                let alone;
                let pool = match pool {
                    Some(pool) => pool,
                    None => {
                        alone = Pool::new(1);
                        &alone
                    }
                };
                match bound {
                    Some(bound) => bound.run(pool, inputs, results, scalars),
                    None => executable.bind(pool, constants)?.run(pool, inputs, results, scalars),
                }
            }
            Code::Gpu { executable, bound } => match bound {
                Some(bound) => bound.run(inputs, results, scalars),
                None => executable.bind(constants)?.run(inputs, results, scalars),
            },
        }
    }

    /// How many threads it has on the CPU.
    pub fn threads(&self) -> Option<usize> {
        match self {
            Code::Cpu { threads, .. } => Some(*threads),
            Code::Gpu { .. } => None,
        }
    }

    /// The code for a GPU, if it is such, and its constants are bound.
    pub fn on_gpu(&self) -> Option<OnGpu<'_>> {
        match self {
            Code::Gpu { bound: Some(bound), .. } => Some(OnGpu { bound }),
            _ => None,
        }
    }
}

/// Code for a GPU, ready to be queued.
#[derive(Clone, Copy)]
pub struct OnGpu<'c> {
    bound: &'c GpuBound,
}

impl<'c> OnGpu<'c> {
    /// The GPU.
    pub fn device(self) -> &'c Device {
        self.bound.device()
    }

    /// Queues it on a stream. Waits only for code that may fail.
    ///
    /// # Safety
    ///
    /// It is a stream of the GPU, on which the tensors may be used.
    pub unsafe fn queue(
        self,
        stream: u64,
        inputs: &[DeviceBuffer],
        results: &mut [DeviceBuffer],
        scalars: &[Number],
    ) -> Result<(), RunError> {
        let inputs: SmallVec<[&DeviceBuffer; 6]> = inputs.iter().collect();
        let mut results: SmallVec<[&mut DeviceBuffer; 2]> = results.iter_mut().collect();
        // SAFETY: the caller's promise.
        unsafe { self.bound.launch_on(stream, &inputs, &mut results, scalars) }
    }
}
