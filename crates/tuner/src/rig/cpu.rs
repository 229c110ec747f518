//! Compiles and runs kernels on the CPU.

use tilewright_driver::code::cpu_code;
use tilewright_ir::tensor::TensorError;
use tilewright_ir::{LoopNest, Number, Program};
use tilewright_runtime::{Buffer, BuildError, Executable, Pool};
use tilewright_schedule::Schedule;
use tilewright_target::{Cpu, Target};

use super::{Builder, Data, RigError, Site, Source};
use crate::bench::cpu::CpuRunner;

/// Compiles for a part of this machine's CPU.
#[derive(Clone)]
pub(crate) struct CpuBuilder(pub Cpu);

impl Builder for CpuBuilder {
    type Executable = Executable;

    fn target(&self) -> Target<'_> {
        Target::from(&self.0)
    }

    fn compile(&self, program: &Program, nest: &LoopNest, _: &Schedule) -> Result<Executable, BuildError> {
        cpu_code(program, nest, &self.0)
    }
}

/// A pool of threads, with the data of a rig in host memory.
pub(crate) struct CpuSite {
    builder: CpuBuilder,
    pool: Pool,
    constants: Vec<Buffer>,
    inputs: Vec<Buffer>,
    before: Vec<Buffer>,
    results: Vec<Buffer>,
    scalars: Vec<Number>,
}

impl Site for CpuSite {
    type Builder = CpuBuilder;
    type Runner<'s> = CpuRunner<'s>;

    fn new(builder: &CpuBuilder, data: Data<'_>) -> Result<CpuSite, RigError> {
        let buffer = |source: Source<'_>| match source {
            Source::There(tensor) => Buffer::from_tensor(&tensor),
            Source::Made(elements, shape) => {
                Buffer::filled(elements.dtype(), &shape, |bytes| elements.fill(bytes))
            }
        };
        let buffers = |sources: Vec<Source<'_>>| {
            sources.into_iter().map(buffer).collect::<Result<Vec<_>, TensorError>>()
        };
        Ok(CpuSite {
            builder: builder.clone(),
            pool: Pool::new(builder.0.cores),
            constants: buffers(data.constants)?,
            inputs: buffers(data.inputs)?,
            before: buffers(data.before)?,
            results: data.results,
            scalars: data.scalars,
        })
    }

    fn parts(&mut self) -> (&CpuBuilder, CpuRunner<'_>) {
        let CpuSite { builder, pool, constants, inputs, before, results, scalars } = self;
        let constants = constants.iter().map(Buffer::view).collect();
        (builder, CpuRunner { pool, constants, inputs, scalars, before, results })
    }
}
