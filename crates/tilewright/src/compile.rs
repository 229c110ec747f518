//! Compiles programs to kernels.

use std::path::PathBuf;
use std::sync::Arc;

use tilewright_cache::{Cache, CacheError};
use tilewright_driver::{ChosenSchedule, Code, Compiled, OpenTarget, Origin, Stage, compile, lower};
use tilewright_ir::LoopNest;
use tilewright_runtime::{Pool, Signature, View};
use tilewright_schedule::Schedule;
use tilewright_search::space::Space;
use tilewright_target::Target;
use tilewright_tuner::peak::Peaks;
use tilewright_tuner::roofline::Roofline;
use tilewright_tuner::work::{Work, work};

use crate::call::{Arguments, BoundKernel};
use crate::error::Error;
use crate::module::Program;

/// How to compile a program: with which schedule, and for which target.
///
/// ```
/// # use tilewright::{Compile, Module};
/// # fn main() -> Result<(), tilewright::Error> {
/// # let module = Module::parse("def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }")?;
/// # let program = module.program("twice", [("N", 64)])?;
/// let by_default = program.compile_with(&Compile::default().threads(2))?;
/// let by_hand = Compile::with(tilewright::parse_schedule("split y.i -> io, iv:8\nvectorize y.iv")?);
/// let by_hand = program.compile_with(&by_hand)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Compile {
    /// Where the schedule comes from.
    pub schedule: ScheduleChoice,
    /// The CPU of this computer, or a device.
    pub target: OpenTarget,
}

/// Where the schedule of a program comes from.
#[derive(Clone, Debug, Default)]
pub enum ScheduleChoice {
    /// Static analysis of the program: [`Program::default_schedule`].
    #[default]
    Default,
    /// The caller.
    Given(Schedule),
    /// The tuning cache in this file: the fastest schedule that tuning has found. The default
    /// schedule where the file does not exist, or has none for this program, sizes and target.
    Cache(PathBuf),
}

impl Default for Compile {
    /// The default schedule, on all cores of this computer.
    fn default() -> Compile {
        Compile { schedule: ScheduleChoice::Default, target: OpenTarget::host() }
    }
}

impl Compile {
    /// A given schedule, on all cores of this computer.
    pub fn with(schedule: Schedule) -> Compile {
        Compile { schedule: ScheduleChoice::Given(schedule), ..Compile::default() }
    }

    /// The fastest schedule in the user's own tuning cache, on all cores of this computer.
    pub fn tuned() -> Result<Compile, CacheError> {
        Ok(Compile { schedule: ScheduleChoice::Cache(Cache::default_path()?), ..Compile::default() })
    }

    /// Sets the number of threads that run parallel loops on a CPU. A device has its own threads.
    pub fn threads(mut self, threads: usize) -> Compile {
        if let OpenTarget::Cpu(cpu) = &mut self.target {
            cpu.cores = threads.max(1);
        }
        self
    }

    /// Sets the target.
    pub fn on(self, target: OpenTarget) -> Compile {
        Compile { target, ..self }
    }

    fn choose(&self, program: &Program) -> Result<ChosenSchedule, Error> {
        match &self.schedule {
            ScheduleChoice::Default => Ok(ChosenSchedule::default(&program.ir, &self.target)),
            ScheduleChoice::Given(schedule) => Ok(ChosenSchedule::given(schedule.clone())),
            ScheduleChoice::Cache(path) => match ChosenSchedule::best(&program.ir, &self.target, path) {
                Err(CacheError::Missing(_)) => Ok(ChosenSchedule::default(&program.ir, &self.target)),
                chosen => Ok(chosen?),
            },
        }
    }
}

/// Compiled code of a program, with the threads that run it.
pub struct Kernel {
    code: Code,
    pool: Arc<Pool>,
    chosen: ChosenSchedule,
    nest: LoopNest,
    program: Program,
    target: OpenTarget,
}

impl Program {
    /// Compiles the program with its default schedule, for all cores of this computer.
    pub fn compile(&self) -> Result<Kernel, Error> {
        self.compile_with(&Compile::default())
    }

    /// Compiles the program as the options say.
    pub fn compile_with(&self, options: &Compile) -> Result<Kernel, Error> {
        let threads = match &options.target {
            OpenTarget::Cpu(cpu) => cpu.cores,
            OpenTarget::Gpu(_) => 1,
        };
        self.compile_on(options, Arc::new(Pool::new(threads)))
    }

    /// Compiles the program for threads that several kernels share. Their number replaces that of
    /// the options.
    pub fn compile_on(&self, options: &Compile, pool: Arc<Pool>) -> Result<Kernel, Error> {
        let options = options.clone().threads(pool.threads());
        let chosen = options.choose(self)?;
        let Compiled { code, nest, .. } = compile(&self.ir, &chosen.schedule, &options.target)?;
        Ok(Kernel { code, pool, chosen, nest, program: self.clone(), target: options.target })
    }

    /// The loops that the options make of this program.
    pub fn loops(&self, options: &Compile) -> Result<LoopNest, Error> {
        let chosen = options.choose(self)?;
        Ok(lower(&self.ir, &chosen.schedule, &options.target)?)
    }

    /// The schedules that a search chooses from, as knobs.
    pub fn space<'t>(&'t self, target: impl Into<Target<'t>>) -> Space<'t> {
        Space::new(&self.ir, target)
    }

    /// The arithmetic operations and the bytes of one call.
    pub fn work(&self) -> Work {
        work(&self.ir)
    }

    /// The limits of the program on a target: how long a call takes at least, given the peak rates
    /// of the hardware.
    pub fn roofline<'t>(&'t self, target: impl Into<Target<'t>>, peaks: Peaks) -> Roofline {
        Roofline::new(&self.ir, target.into(), Some(peaks))
    }

    /// The schedule of static analysis alone.
    pub fn default_schedule<'t>(&'t self, target: impl Into<Target<'t>>) -> Schedule {
        tilewright_schedule::default_schedule(&self.ir, target)
    }
}

impl Kernel {
    /// The schedule that the kernel was compiled with.
    pub fn schedule(&self) -> &Schedule {
        &self.chosen.schedule
    }

    /// Where the schedule comes from.
    pub fn origin(&self) -> Origin {
        self.chosen.origin
    }

    /// The loops that the kernel was compiled from.
    pub fn loops(&self) -> &LoopNest {
        &self.nest
    }

    /// A stage of compilation as text.
    pub fn stage(&self, stage: Stage) -> Result<String, Error> {
        let text = stage.text(&self.program.ir, &self.chosen.schedule, &self.nest, self.target.target());
        Ok(text?)
    }

    /// The parameters and results, in the order of [`BoundKernel::run`].
    pub fn signature(&self) -> &Signature {
        self.code.signature()
    }

    /// The compiled code.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// The threads that run the kernel on a CPU.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Gives the inputs that the program declares constant, in order. The work that the schedule
    /// does on constants, such as packing, is done now and not in calls.
    pub fn bind<'c>(&self, constants: &[View<'c>]) -> Result<BoundKernel<'c>, Error> {
        let bound = self.code.bind(&self.pool, constants)?;
        Ok(BoundKernel { bound, pool: Arc::clone(&self.pool) })
    }

    /// Begins a call, whose arguments are given by name. Constant inputs are bound for this call
    /// alone; [`Kernel::bind`] binds them once.
    pub fn call(&self) -> Arguments<'_, 'static> {
        Arguments::of_kernel(self)
    }
}
