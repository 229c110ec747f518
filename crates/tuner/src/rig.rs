//! A program with its data and what it should compute: kernels are built, checked and measured here.
//!
//! What a kernel should compute is known from the interpreter where that takes no time; otherwise from the kernel of
//! the default schedule, which is itself compared with the interpreter at smaller sizes.

use std::time::{Duration, Instant};

use thiserror::Error;
use tilewright_interp::compare::tolerance;
use tilewright_interp::{compare, points, run};
use tilewright_ir::tensor::TensorError;
use tilewright_ir::{DType, Number, Program, Tensor};
use tilewright_runtime::signature::Parameter;
use tilewright_runtime::timing::{Options, samples};
use tilewright_runtime::{Bound, Buffer, BuildError, Executable, Pool, RunError, Signature};
use tilewright_schedule::{Schedule, apply, default_schedule};
use tilewright_target::Cpu;

use crate::given;
use crate::outcome::{Outcome, Trial};
use crate::task::{Task, TaskError};

/// The interpreter gets at most this many points: about a second.
const MOST_INTERPRETED: u64 = 4_000_000;

/// More samples of a candidate say nothing new.
const MOST_SAMPLES: usize = 1000;
/// A single call that is shorter says nothing.
const SHORT: f64 = 50e-6;

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Plan {
    /// A first call, which warms up the caches too, that takes longer, in seconds, is not worth a second one.
    pub hopeless: f64,
    /// A second call that takes longer is not worth a third.
    pub promising: f64,
    /// Samples to take.
    pub samples: usize,
    /// Time for them together, in seconds.
    pub time: f64,
    /// Seconds for all of a batch, if there is a limit: what is not begun by then is not tried.
    pub within: Option<f64>,
}

/// Why there is nothing to tune against.
#[derive(Debug, Error)]
pub enum RigError {
    /// The task makes no sense here.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// An input that was given is not there any more, or has changed.
    #[error("the input {name} cannot be read: {why}")]
    Input {
        /// Which.
        name: String,
        /// Why.
        why: String,
    },
    /// Tensors do not fit into memory.
    #[error(transparent)]
    Memory(#[from] TensorError),
    /// The default schedule does not compile.
    #[error("the default schedule does not compile: {0}")]
    Build(#[from] BuildError),
    /// The default schedule's kernel does not run.
    #[error("the default schedule does not run: {0}")]
    Run(#[from] RunError),
    /// The interpreter cannot run the program.
    #[error("the program does not run: {0}")]
    Interpreter(String),
    /// The oracle disagrees.
    #[error("the default schedule computes something else: {0}")]
    Wrong(String),
}

/// A program with its data.
pub struct Rig {
    program: Program,
    target: Cpu,
    pool: Pool,
    constants: Vec<Buffer>,
    inputs: Vec<Buffer>,
    results: Vec<Buffer>,
    scalars: Vec<Number>,
    /// What results hold before a call: what the caller supplies, or something that no kernel computes.
    before: Vec<Buffer>,
    wanted: Vec<(String, Tensor, f64)>,
}

impl Rig {
    /// Makes or reads inputs, and what comes out of them.
    pub fn new(task: &Task) -> Result<Rig, RigError> {
        let (program, target) = (task.program()?, task.target()?);
        check_default_when_small(task, &target)?;
        let mut given = given::read(&program, task)?;
        let signature = Signature::new(&program)
            .map_err(|name| TaskError(format!("the shape of `{name}` is too large")))?;
        let wanted = (points(&program) <= MOST_INTERPRETED).then(|| run(&program, given.clone()));
        let wanted = wanted.transpose().map_err(|error| RigError::Interpreter(error.to_string()))?;
        let scalars =
            signature.scalars.iter().filter_map(|scalar| given.scalars.get(&scalar.name).copied()).collect();
        let mut buffers = |parameters: &[Parameter]| {
            let buffer = |parameter: &Parameter| match given.tensors.remove(&parameter.name) {
                Some(tensor) => Buffer::from_tensor(&tensor),
                None => poisoned(parameter.layout.dtype(), parameter.layout.shape()),
            };
            parameters.iter().map(buffer).collect::<Result<Vec<_>, _>>()
        };
        let mut rig = Rig {
            constants: buffers(&signature.constants)?,
            inputs: buffers(&signature.inputs)?,
            before: buffers(&signature.results)?,
            results: signature.zero_results()?,
            scalars,
            pool: Pool::new(target.cores),
            wanted: Vec::new(),
            program,
            target,
        };
        let reference = match wanted {
            Some(mut tensors) => {
                let in_order = signature.results.iter().map(|result| result.name.clone());
                in_order.filter_map(|name| tensors.remove(&name).map(|tensor| (name, tensor))).collect()
            }
            None => rig.computed_by_default(&signature)?,
        };
        let limit = |(name, tensor): (String, Tensor)| {
            let limit = tolerance(&rig.program, &tensor);
            (name, tensor, limit)
        };
        rig.wanted = reference.into_iter().map(limit).collect();
        Ok(rig)
    }

    fn computed_by_default(&mut self, signature: &Signature) -> Result<Vec<(String, Tensor)>, RigError> {
        let schedule = default_schedule(&self.program, &self.target);
        let executable = self.built(&schedule)?;
        let constants: Vec<_> = self.constants.iter().map(Buffer::view).collect();
        let bound = executable.bind(&self.pool, &constants)?;
        restore(&self.before, &mut self.results);
        call(&bound, &self.pool, &self.inputs, &mut self.results, &self.scalars)?;
        let named = signature.results.iter().zip(&self.results);
        named.map(|(parameter, buffer)| Ok((parameter.name.clone(), buffer.to_tensor()?))).collect()
    }

    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Compiles a schedule. Can be called from several threads at once.
    pub fn build(&self, schedule: &Schedule) -> Result<Executable, Trial> {
        self.built(schedule).map_err(|refused| {
            Trial::failed(match refused {
                Refused::Illegal(why) => Outcome::Illegal(why),
                Refused::Build(error) => Outcome::CompileError(error.to_string()),
            })
        })
    }

    fn built(&self, schedule: &Schedule) -> Result<Executable, Refused> {
        let nest = apply(&self.program, schedule, &self.target)
            .map_err(|refusal| Refused::Illegal(refusal.to_string()))?;
        Executable::new(&self.program, &nest, &self.target).map_err(Refused::Build)
    }

    /// Runs a kernel, compares what it computes, and measures it.
    pub fn measure(&mut self, executable: &Executable, plan: &Plan) -> Trial {
        match self.measured(executable, plan) {
            Ok(trial) => trial,
            Err(error) => Trial::failed(Outcome::Crashed(error.to_string())),
        }
    }

    fn measured(&mut self, executable: &Executable, plan: &Plan) -> Result<Trial, RunError> {
        let constants: Vec<_> = self.constants.iter().map(Buffer::view).collect();
        let bound = executable.bind(&self.pool, &constants)?;
        restore(&self.before, &mut self.results);
        let started = Instant::now();
        call(&bound, &self.pool, &self.inputs, &mut self.results, &self.scalars)?;
        let first = started.elapsed().as_secs_f64();
        if let Err(difference) = self.checked() {
            return Ok(Trial::failed(Outcome::WrongResult(difference)));
        }
        if first > plan.hopeless {
            return Ok(Trial::measured(vec![first]));
        }
        let started = Instant::now();
        call(&bound, &self.pool, &self.inputs, &mut self.results, &self.scalars)?;
        let second = started.elapsed().as_secs_f64();
        if second > plan.promising.max(SHORT) {
            return Ok(Trial::measured(vec![second]));
        }
        let options = Options {
            warm_up_calls: 0,
            warm_up_time: Duration::ZERO,
            samples: plan.samples,
            time: Duration::from_secs_f64(plan.time),
            cap: Duration::from_secs_f64(4.0 * plan.time + 2.0 * plan.promising.min(30.0)),
            flush_caches: None,
        };
        let (pool, inputs, scalars) = (&self.pool, &self.inputs, &self.scalars);
        let results = &mut self.results;
        let taken = samples(&options, &mut [&mut || call(&bound, pool, inputs, results, scalars)])?;
        Ok(Trial::measured(taken.into_iter().flatten().take(MOST_SAMPLES).collect()))
    }

    /// Measures several kernels in turn, for their times to be compared.
    pub fn race(
        &mut self,
        executables: &[Executable],
        options: &Options<'_>,
    ) -> Result<Vec<Vec<f64>>, RunError> {
        let constants: Vec<_> = self.constants.iter().map(Buffer::view).collect();
        let bound =
            executables.iter().map(|own| own.bind(&self.pool, &constants)).collect::<Result<Vec<_>, _>>()?;
        let (pool, inputs, scalars) = (&self.pool, &self.inputs, &self.scalars);
        let results = std::cell::RefCell::new(&mut self.results);
        let mut calls: Vec<_> =
            bound.iter().map(|own| || call(own, pool, inputs, &mut results.borrow_mut(), scalars)).collect();
        let mut contenders: Vec<&mut dyn FnMut() -> Result<(), RunError>> = Vec::new();
        for call in &mut calls {
            contenders.push(call);
        }
        let taken = samples(options, &mut contenders)?;
        Ok(taken.into_iter().map(|own| own.into_iter().take(MOST_SAMPLES).collect()).collect())
    }

    /// Compares the results with what they should be.
    fn checked(&self) -> Result<(), String> {
        for ((name, wanted, limit), found) in self.wanted.iter().zip(&self.results) {
            if same(found, wanted, *limit) {
                continue;
            }
            let found = found.to_tensor().map_err(|error| error.to_string())?;
            compare(&self.program, name, &found, wanted).map_err(|difference| difference.to_string())?;
        }
        Ok(())
    }
}

/// Why a schedule did not become a kernel.
enum Refused {
    Illegal(String),
    Build(BuildError),
}

impl From<Refused> for RigError {
    fn from(refused: Refused) -> RigError {
        match refused {
            Refused::Build(error) => RigError::Build(error),
            Refused::Illegal(why) => RigError::Wrong(why),
        }
    }
}

fn call(
    bound: &Bound<'_>,
    pool: &Pool,
    inputs: &[Buffer],
    results: &mut [Buffer],
    scalars: &[Number],
) -> Result<(), RunError> {
    let inputs: Vec<_> = inputs.iter().map(Buffer::view).collect();
    let mut results: Vec<_> = results.iter_mut().map(Buffer::view_mut).collect();
    bound.run(pool, &inputs, &mut results, scalars)
}

/// What no kernel computes: not a number, or all bits set. An element that is never written shows.
fn poisoned(dtype: DType, shape: &[usize]) -> Result<Buffer, TensorError> {
    let mut tensor = Tensor::zeros(dtype, shape)?;
    let poison = if dtype.is_float() { Number::Float(f64::NAN) } else { Number::Int(-0x5a) };
    for at in 0..tensor.len() {
        tensor.set(at, poison.convert(dtype));
    }
    Buffer::from_tensor(&tensor)
}

fn restore(before: &[Buffer], results: &mut [Buffer]) {
    for (from, to) in before.iter().zip(results) {
        from.unpack(&mut to.view_mut()).expect("results are of one type and shape");
    }
}

/// Whether elements are equal up to the limit. Fast for the usual types; otherwise the careful comparison decides.
fn same(found: &Buffer, wanted: &Tensor, limit: f64) -> bool {
    if found.bytes() == wanted.bytes() {
        return true;
    }
    let Some(found) = found.as_slice::<f32>() else { return false };
    let limit = limit as f32;
    let close = |(found, wanted): (&f32, &[u8])| {
        let wanted = f32::from_le_bytes([wanted[0], wanted[1], wanted[2], wanted[3]]);
        (found - wanted).abs() <= limit
    };
    // Parts of a size that the compiler turns into vectors; what is infinite or not a number is looked at again.
    let parts = found.chunks(1024).zip(wanted.bytes().chunks(4096));
    parts.into_iter().all(|(found, wanted)| {
        found.iter().zip(wanted.chunks_exact(4)).map(close).fold(true, |all, one| all & one)
    })
}

/// Compares the default schedule with the interpreter at sizes that it can manage.
fn check_default_when_small(task: &Task, target: &Cpu) -> Result<(), RigError> {
    let Some(small) = shrunk(task) else { return Ok(()) };
    let mut rig = match Rig::new(&small) {
        // Data that sizes have made meaningless says nothing about the schedule.
        Err(RigError::Interpreter(_)) => return Ok(()),
        made => made?,
    };
    let schedule = default_schedule(&rig.program, target);
    let executable = rig.built(&schedule)?;
    let once = Plan { hopeless: 0.0, promising: 0.0, samples: 1, time: 0.0, within: None };
    let trial = rig.measure(&executable, &once);
    match trial.outcome {
        Outcome::Measured => Ok(()),
        other => Err(RigError::Wrong(other.to_string())),
    }
}

/// The task at smaller sizes, if it is too large for the interpreter and there are such.
fn shrunk(task: &Task) -> Option<Task> {
    let fits = |task: &Task| task.program().is_ok_and(|program| points(&program) <= MOST_INTERPRETED);
    if fits(task) {
        return None;
    }
    // Data that was given is of the other sizes.
    let mut small = Task { inputs: Vec::new(), ..task.clone() };
    for _ in 0..64 {
        let largest = small.sizes.iter().enumerate().max_by_key(|(_, (_, value))| *value)?.0;
        let value = small.sizes[largest].1;
        if value < 2 {
            return None;
        }
        // Odd numbers leave remainders, which are where mistakes are.
        small.sizes[largest].1 = (value / 2) | 1;
        if small.program().is_err() {
            return None;
        }
        if fits(&small) {
            return Some(small);
        }
    }
    None
}
