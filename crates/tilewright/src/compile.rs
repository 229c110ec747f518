//! From programs to machine code.

use std::sync::Arc;

use tilewright_ir::LoopNest;
use tilewright_runtime::{Executable, Pool, View};
use tilewright_schedule::{Schedule, apply};
use tilewright_target::Cpu;

use crate::call::{Arguments, BoundKernel};
use crate::error::Error;
use crate::module::Program;

/// How to compile a program.
#[derive(Clone, Debug)]
pub struct Compile {
    /// The steps; those of static analysis if none.
    pub schedule: Option<Schedule>,
    /// The machine; its vectors must not be wider than those of the one this runs on.
    pub cpu: Cpu,
    /// How many threads run parallel loops.
    pub threads: usize,
}

impl Default for Compile {
    /// For this machine, with all its cores.
    fn default() -> Compile {
        let cpu = Cpu::host();
        Compile { schedule: None, threads: cpu.cores, cpu }
    }
}

/// Machine code for a program, with the threads to run it.
pub struct Kernel {
    executable: Executable,
    pool: Arc<Pool>,
    schedule: Schedule,
    nest: LoopNest,
}

impl Program {
    /// Machine code by the default schedule, for all cores of this machine.
    pub fn compile(&self) -> Result<Kernel, Error> {
        self.compile_with(&Compile::default())
    }

    /// Machine code as the options say.
    pub fn compile_with(&self, options: &Compile) -> Result<Kernel, Error> {
        self.compile_on(options, Arc::new(Pool::new(options.threads.max(1))))
    }

    /// Machine code that runs on threads that several kernels share.
    pub fn compile_on(&self, options: &Compile, pool: Arc<Pool>) -> Result<Kernel, Error> {
        let (schedule, nest, cpu) = self.scheduled(options, pool.threads())?;
        let executable = Executable::new(&self.ir, &nest, &cpu)?;
        Ok(Kernel { executable, pool, schedule, nest })
    }

    /// The steps that the options say, the loops that they make, and the part of the machine that these are for.
    pub(crate) fn scheduled(
        &self,
        options: &Compile,
        threads: usize,
    ) -> Result<(Schedule, LoopNest, Cpu), Error> {
        // A schedule for one thread need not leave anything for others.
        let cpu = Cpu { cores: threads, ..options.cpu.clone() };
        let schedule = options.schedule.clone().unwrap_or_else(|| self.default_schedule(&cpu));
        let nest = apply(&self.ir, &schedule, &cpu)?;
        Ok((schedule, nest, cpu))
    }
}

impl Kernel {
    /// The schedule that it was compiled by.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// The loops that it was compiled from.
    pub fn loops(&self) -> &LoopNest {
        &self.nest
    }

    /// The compiled code.
    pub fn executable(&self) -> &Executable {
        &self.executable
    }

    /// The threads that run it.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Gives the inputs that the program declares constant, in order; what the schedule makes of them is made now.
    pub fn bind<'c>(&self, constants: &[View<'c>]) -> Result<BoundKernel<'c>, Error> {
        let bound = self.executable.bind(&self.pool, constants)?;
        Ok(BoundKernel { bound, pool: Arc::clone(&self.pool) })
    }

    /// Begins a call, whose arguments are given by name. Constant inputs are bound for this call alone: see
    /// [`Kernel::bind`] for doing it once.
    pub fn call(&self) -> Arguments<'_, 'static> {
        Arguments::of_kernel(self)
    }
}
