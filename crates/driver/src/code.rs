//! Holds compiled code for a CPU or a device ([`Code`]), and calls it with tensors in the
//! host's memory.

use tilewright_ir::{LoopNest, Number, Program};
use tilewright_runtime::gpu::{Device, GpuBound, GpuExecutable};
use tilewright_runtime::{Bound, BuildError, Executable, Pool, RunError, Signature, View, ViewMut};
use tilewright_schedule::Schedule;
use tilewright_target::Cpu;

use crate::target::OpenTarget;

/// Compiled code. Clones share the same code. There is a variant for each memory that kernels work
/// in: the host's, and a device's.
#[derive(Clone)]
pub enum Code {
    /// Machine code for the CPU.
    Cpu(Executable),
    /// Kernels for a device.
    Gpu(GpuExecutable),
}

/// Code with its constant inputs: a function from tensors to tensors.
pub enum BoundCode<'c> {
    /// Machine code for the CPU.
    Cpu(Bound<'c>),
    /// Kernels for a device.
    Gpu(GpuBound),
}

impl Code {
    /// Compiles the loops that a schedule has made of a program.
    pub fn new(
        program: &Program,
        nest: &LoopNest,
        schedule: &Schedule,
        target: &OpenTarget,
    ) -> Result<Code, BuildError> {
        match target {
            OpenTarget::Cpu(cpu) => cpu_code(program, nest, cpu).map(Code::Cpu),
            OpenTarget::Gpu(device) => gpu_code(program, nest, schedule, device).map(Code::Gpu),
        }
    }

    /// The parameters and results of the program.
    pub fn signature(&self) -> &Signature {
        match self {
            Code::Cpu(executable) => executable.signature(),
            Code::Gpu(executable) => executable.signature(),
        }
    }

    /// The number of bytes that all temporaries of a call need when `threads` threads run it on the
    /// CPU. A device has one copy of them, whatever the number of threads.
    pub fn temporary_bytes(&self, threads: usize) -> usize {
        match self {
            Code::Cpu(executable) => {
                let kernel = executable.kernel();
                kernel.scratch_bytes() + threads * kernel.thread_scratch_bytes()
            }
            Code::Gpu(executable) => executable.source().scratch.iter().map(|one| one.bytes).sum(),
        }
    }

    /// Binds the constant inputs, in the order of the signature. Work that a schedule does on
    /// constants, such as packing, happens now. On the CPU the threads of `pool` do it; devices do
    /// not use `pool`.
    pub fn bind<'c>(&self, pool: &Pool, constants: &[View<'c>]) -> Result<BoundCode<'c>, RunError> {
        match self {
            Code::Cpu(executable) => executable.bind(pool, constants).map(BoundCode::Cpu),
            Code::Gpu(executable) => executable.bind(constants).map(BoundCode::Gpu),
        }
    }
}

impl BoundCode<'_> {
    /// The parameters and results of the program.
    pub fn signature(&self) -> &Signature {
        match self {
            BoundCode::Cpu(bound) => bound.signature(),
            BoundCode::Gpu(bound) => bound.signature(),
        }
    }

    /// Copies the constants that the code borrows.
    pub fn into_owned(self) -> Result<BoundCode<'static>, RunError> {
        match self {
            BoundCode::Cpu(bound) => Ok(BoundCode::Cpu(bound.into_owned()?)),
            BoundCode::Gpu(bound) => Ok(BoundCode::Gpu(bound)),
        }
    }

    /// Runs the program on tensors in the host's memory, in the order of the signature. For a
    /// device, the tensors are copied there and back.
    pub fn run(
        &self,
        pool: &Pool,
        inputs: &[View<'_>],
        results: &mut [ViewMut<'_>],
        scalars: &[Number],
    ) -> Result<(), RunError> {
        match self {
            BoundCode::Cpu(bound) => bound.run(pool, inputs, results, scalars),
            BoundCode::Gpu(bound) => bound.run(inputs, results, scalars),
        }
    }
}

/// Compiles machine code for a CPU.
pub fn cpu_code(program: &Program, nest: &LoopNest, cpu: &Cpu) -> Result<Executable, BuildError> {
    Executable::new(program, nest, cpu)
}

/// Compiles kernels for a device. Their text begins with the name of the program and its schedule.
pub fn gpu_code(
    program: &Program,
    nest: &LoopNest,
    schedule: &Schedule,
    device: &Device,
) -> Result<GpuExecutable, BuildError> {
    GpuExecutable::compile(program, nest, &header_comment(program, schedule), device)
}

/// The comment at the top of generated text.
pub fn header_comment(program: &Program, schedule: &Schedule) -> String {
    format!("{}\n\n{schedule}", program.name)
}
