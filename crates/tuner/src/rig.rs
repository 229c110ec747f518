//! A program with its data and what it should compute: kernels are built here, and run on its [`Bench`].
//!
//! What a kernel should compute is known from the interpreter where that takes no time; otherwise from the kernel of
//! the default schedule, which is itself compared with the interpreter at smaller sizes.

use thiserror::Error;
use tilewright_interp::compare::tolerance;
use tilewright_interp::{points, run};
use tilewright_ir::tensor::TensorError;
use tilewright_ir::{DType, Number, Program, Tensor};
use tilewright_runtime::signature::Parameter;
use tilewright_runtime::{Buffer, BuildError, Executable, Pool, RunError, Signature};
use tilewright_schedule::{Schedule, apply, default_schedule};
use tilewright_target::Cpu;

use crate::bench::{Bench, Plan};
use crate::given;
use crate::outcome::{Outcome, Trial};
use crate::task::{Task, TaskError};

/// The interpreter gets at most this many points: about a second.
const MOST_INTERPRETED: u64 = 4_000_000;
/// And so many where it only has to agree with the default schedule at smaller sizes.
const ENOUGH_TO_COMPARE: u64 = 500_000;

/// For a kernel that is only checked.
const ONCE: Plan =
    Plan { rival: None, best: 0.0, hopeless: 0.0, promising: 0.0, samples: 1, time: 0.0, within: None };

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
        let mut bench = self.bench();
        let bound = executable.bind(bench.pool, &bench.constants)?;
        bench.first_call(&bound)?;
        let named = signature.results.iter().zip(&self.results);
        named.map(|(parameter, buffer)| Ok((parameter.name.clone(), buffer.to_tensor()?))).collect()
    }

    /// Its data, for kernels to run on.
    pub fn bench(&mut self) -> Bench<'_> {
        Bench {
            program: &self.program,
            pool: &self.pool,
            constants: self.constants.iter().map(Buffer::view).collect(),
            inputs: &self.inputs,
            scalars: &self.scalars,
            before: &self.before,
            results: &mut self.results,
            wanted: &self.wanted,
        }
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

/// What no kernel computes: not a number, or all bits set. An element that is never written shows.
fn poisoned(dtype: DType, shape: &[usize]) -> Result<Buffer, TensorError> {
    let mut tensor = Tensor::zeros(dtype, shape)?;
    let poison = if dtype.is_float() { Number::Float(f64::NAN) } else { Number::Int(-0x5a) };
    for at in 0..tensor.len() {
        tensor.set(at, poison.convert(dtype));
    }
    Buffer::from_tensor(&tensor)
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
    let mut bench = rig.bench();
    let trial = bench.bind(&executable).map(|kernel| bench.measure(&kernel, &ONCE, None));
    match trial.unwrap_or_else(|failed| failed).outcome {
        Outcome::Measured => Ok(()),
        other => Err(RigError::Wrong(other.to_string())),
    }
}

/// The task at smaller sizes, if it is too large for the interpreter and there are such.
fn shrunk(task: &Task) -> Option<Task> {
    let fits = |task: &Task, most: u64| task.program().is_ok_and(|program| points(&program) <= most);
    if fits(task, MOST_INTERPRETED) {
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
        if fits(&small, ENOUGH_TO_COMPARE) {
            return Some(small);
        }
    }
    None
}
