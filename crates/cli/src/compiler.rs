//! Compiles a program for the target of the command line, with the schedule of `--schedule`, of the
//! cache, or the default one.

use std::time::Duration;

use tilewright::driver::{Code, CompileError, OpenTarget, TargetName, compile};
use tilewright::ir::Program;
use tilewright::runtime::Pool;

use crate::args::CompileArgs;
use crate::args::cache::CacheOption;
use crate::failure::Failure;
use crate::machine::open;
use crate::schedule::{ScheduleOption, ScheduleSource};

/// The options of a compilation.
pub struct Compiler {
    schedule: ScheduleOption,
    /// The target.
    pub target: OpenTarget,
}

/// A compiled program.
pub struct Compiled {
    /// The code.
    pub code: Code,
    /// The schedule that the program was compiled with.
    pub schedule: ScheduleSource,
    /// The threads that run code on the CPU.
    pub pool: Pool,
    /// The time to apply the schedule.
    pub apply_time: Duration,
    /// The time to generate code.
    pub codegen_time: Duration,
}

impl Compiler {
    /// Reads the options, and opens the target.
    pub fn new(args: &CompileArgs, name: TargetName) -> Result<Compiler, Failure> {
        let schedule = ScheduleOption::read(args)?;
        Ok(Compiler { schedule, target: open(name, &args.cpu)? })
    }

    /// Compiles a program with the schedule of `--schedule`, else with the best usable schedule of
    /// the cache, else with the default schedule.
    pub fn compile(self, file: &CacheOption, program: &Program) -> Result<(Compiled, OpenTarget), Failure> {
        let Compiler { schedule, target } = self;
        let schedule = schedule.choose(program, &target, file)?;
        let compiled = compile(program, &schedule.chosen.schedule, &target);
        let compiled = compiled.map_err(|error| match error {
            CompileError::Refused(refusal) => schedule.refused(program, &refusal),
            CompileError::Build(error) => Failure::from_build(error),
        })?;
        let compiled = Compiled {
            code: compiled.code,
            schedule,
            pool: Pool::new(target.threads()),
            apply_time: compiled.apply_time,
            codegen_time: compiled.codegen_time,
        };
        Ok((compiled, target))
    }
}

impl Compiled {
    /// The time of the whole compilation.
    pub fn compile_time(&self) -> Duration {
        self.apply_time + self.codegen_time
    }
}
