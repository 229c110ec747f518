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
use tilewright_tuner::work::{Work, count_work};

use crate::call::{Arguments, BoundKernel};
use crate::error::Error;
use crate::module::Program;

/// Options of compilation: the schedule and the target.
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
    /// The source of the schedule.
    pub schedule: ScheduleChoice,
    /// The CPU of this computer, or a device.
    pub target: OpenTarget,
}

/// The source of a program's schedule.
#[derive(Clone, Debug, Default)]
pub enum ScheduleChoice {
    /// The schedule that every program gets: [`Program::default_schedule`].
    #[default]
    Default,
    /// A search by the cost model alone, which takes seconds for a program of many stages.
    Auto,
    /// A schedule that the caller gives.
    Given(Schedule),
    /// The fastest schedule in the tuning cache at this path. If the file does not exist, or has no
    /// schedule for this program, sizes and target, the default schedule is used.
    Cache(PathBuf),
}

impl Default for Compile {
    /// Selects the default schedule, on all cores of this computer.
    fn default() -> Compile {
        Compile { schedule: ScheduleChoice::Default, target: OpenTarget::host() }
    }
}

impl Compile {
    /// Selects a given schedule, on all cores of this computer.
    pub fn with(schedule: Schedule) -> Compile {
        Compile { schedule: ScheduleChoice::Given(schedule), ..Compile::default() }
    }

    /// Selects the fastest schedule in the user's default tuning cache, on all cores of this
    /// computer.
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
            ScheduleChoice::Auto => Ok(ChosenSchedule::searched(&program.ir, &self.target)),
            ScheduleChoice::Given(schedule) => Ok(ChosenSchedule::given(schedule.clone())),
            ScheduleChoice::Cache(path) => {
                match ChosenSchedule::from_cache(&program.ir, &self.target, path) {
                    Err(CacheError::Missing(_)) => Ok(ChosenSchedule::default(&program.ir, &self.target)),
                    chosen => Ok(chosen?),
                }
            }
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

    /// Compiles the program with these options.
    pub fn compile_with(&self, options: &Compile) -> Result<Kernel, Error> {
        self.compile_on(options, Arc::new(Pool::new(options.target.threads())))
    }

    /// Compiles the program for a thread pool that several kernels share. The pool's number of
    /// threads replaces that of the options.
    pub fn compile_on(&self, options: &Compile, pool: Arc<Pool>) -> Result<Kernel, Error> {
        let options = options.clone().threads(pool.threads());
        let chosen = options.choose(self)?;
        let Compiled { code, nest, .. } = compile(&self.ir, &chosen.schedule, &options.target)?;
        Ok(Kernel { code, pool, chosen, nest, program: self.clone(), target: options.target })
    }

    /// Returns the loop nest of this program for these options.
    pub fn loops(&self, options: &Compile) -> Result<LoopNest, Error> {
        let chosen = options.choose(self)?;
        Ok(lower(&self.ir, &chosen.schedule, &options.target)?)
    }

    /// Returns the search space of schedules for a target, as knobs.
    pub fn space<'t>(&'t self, target: impl Into<Target<'t>>) -> Space<'t> {
        Space::new(&self.ir, target)
    }

    /// The arithmetic operations and the bytes of one call.
    pub fn work(&self) -> Work {
        count_work(&self.ir)
    }

    /// The roofline of the program on a target: the minimum time of a call, given the peak rates of
    /// the hardware.
    pub fn roofline<'t>(&'t self, target: impl Into<Target<'t>>, peaks: Peaks) -> Roofline {
        Roofline::new(&self.ir, target.into(), Some(peaks))
    }

    /// Returns the default schedule: by rules, and on a CPU by a short search with the cost model.
    pub fn default_schedule<'t>(&'t self, target: impl Into<Target<'t>>) -> Schedule {
        tilewright_search::default_schedule(&self.ir, target)
    }
}

impl Kernel {
    /// The schedule that the kernel was compiled with.
    pub fn schedule(&self) -> &Schedule {
        &self.chosen.schedule
    }

    /// The origin of the schedule.
    pub fn origin(&self) -> &Origin {
        &self.chosen.origin
    }

    /// The loop nest that the kernel was compiled from.
    pub fn loops(&self) -> &LoopNest {
        &self.nest
    }

    /// Returns a stage of compilation as text.
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

    /// Binds the inputs that the program declares constant, in order. Work that the schedule does
    /// on constants, such as packing, is done now and not in calls.
    pub fn bind<'c>(&self, constants: &[View<'c>]) -> Result<BoundKernel<'c>, Error> {
        let bound = self.code.bind(&self.pool, constants)?;
        Ok(BoundKernel { bound, pool: Arc::clone(&self.pool) })
    }

    /// Begins a call whose arguments are given by name. Constant inputs are bound for this call
    /// alone; [`Kernel::bind`] binds them once.
    pub fn call(&self) -> Arguments<'_, 'static> {
        Arguments::of_kernel(self)
    }
}
