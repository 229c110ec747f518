//! Kernels on the processor.

use tilewright_ir::{LoopNest, Program};
use tilewright_runtime::{Buffer, BuildError, Executable, Pool};
use tilewright_schedule::Schedule;
use tilewright_target::{Cpu, Target};

use super::{Builder, Data, RigError, Site};
use crate::bench::cpu::CpuRunner;

/// Compiles for a part of this machine.
#[derive(Clone)]
pub(crate) struct CpuBuilder(pub Cpu);

impl Builder for CpuBuilder {
    type Executable = Executable;

    fn target(&self) -> Target<'_> {
        Target::Cpu(&self.0)
    }

    fn compile(&self, program: &Program, nest: &LoopNest, _: &Schedule) -> Result<Executable, BuildError> {
        Executable::new(program, nest, &self.0)
    }
}

/// Threads, and data in memory.
pub(crate) struct CpuSite {
    builder: CpuBuilder,
    pool: Pool,
    data: Data,
}

impl Site for CpuSite {
    type Builder = CpuBuilder;
    type Runner<'s> = CpuRunner<'s>;

    fn new(builder: &CpuBuilder, data: Data) -> Result<CpuSite, RigError> {
        Ok(CpuSite { builder: builder.clone(), pool: Pool::new(builder.0.cores), data })
    }

    fn parts(&mut self) -> (&CpuBuilder, CpuRunner<'_>) {
        let Data { constants, inputs, before, results, scalars } = &mut self.data;
        let constants = constants.iter().map(Buffer::view).collect();
        (&self.builder, CpuRunner { pool: &self.pool, constants, inputs, scalars, before, results })
    }
}
