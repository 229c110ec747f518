//! A program with its data and its expected results. Kernels are built here and run on a [`Bench`].
//!
//! The expected results come from the interpreter if it is fast enough, with an error bound for
//! every element. Otherwise they come from the kernel of the default schedule. That kernel is
//! itself compared with the interpreter at smaller sizes (`smaller.rs`).
//!
//! A [`Site`] compiles and runs kernels: the CPU (`cpu.rs`) or a device (`gpu.rs`).

pub(crate) mod cpu;
pub(crate) mod gpu;
mod smaller;

use std::borrow::Cow;
use std::collections::BTreeMap;

use thiserror::Error;
use tilewright_interp::seed::{self, Elements};
use tilewright_interp::{Expected, Inputs, expect, points};
use tilewright_ir::tensor::{TensorError, byte_size};
use tilewright_ir::{DType, LoopNest, Number, Program, Tensor};
use tilewright_runtime::gpu::GpuError;
use tilewright_runtime::signature::Parameter;
use tilewright_runtime::{Buffer, BuildError, RunError, Signature};
use tilewright_schedule::{Schedule, apply, default_schedule};
use tilewright_target::Target;

use crate::bench::{Bench, Plan, Runner, Wanted, conditioning};
use crate::input_files;
use crate::note::Note;
use crate::task::{Task, TaskError};
use tilewright_cache::outcome::Outcome;

/// The largest number of points for the interpreter, which take about a second.
const MOST_INTERPRETED: u64 = 4_000_000;
/// The largest total size of the interpreter's inputs in bytes. The interpreter needs them beside
/// those of the kernels.
const MOST_HELD: usize = 256 << 20;
/// The largest number of points if the interpreter only checks the default schedule at smaller
/// sizes.
const ENOUGH_TO_COMPARE: u64 = 500_000;

/// The plan for a kernel that is only checked.
const ONCE: Plan =
    Plan { rival: None, best: 0.0, hopeless: 0.0, promising: 0.0, samples: 1, time: 0.0, within: None };

/// Why a rig could not be made.
#[derive(Debug, Error)]
pub(crate) enum RigError {
    /// The task is invalid here.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// A given input no longer exists, or has changed.
    #[error("the input {name} cannot be read: {why}")]
    Input {
        /// The name of the input.
        name: String,
        /// The reason.
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
    /// The data cannot be copied to the device.
    #[error("the data of the program cannot be brought to the device: {0}")]
    Device(RunError),
    /// The interpreter cannot run the program.
    #[error("the program does not run: {0}")]
    Interpreter(String),
    /// The results of the default schedule differ from the expected ones.
    #[error("the default schedule computes something else: {0}")]
    Wrong(String),
}

/// Compiles kernels, on several threads at once.
pub(crate) trait Builder: Clone + Sync {
    /// Compiled code.
    type Executable: Send;

    /// The machine that the builder compiles for.
    fn target(&self) -> Target<'_>;

    /// Compiles the loops that a schedule has made of a program.
    fn compile(
        &self,
        program: &Program,
        nest: &LoopNest,
        schedule: &Schedule,
    ) -> Result<Self::Executable, BuildError>;

    /// The resources that kernels use on a device, as the compiler reports them; empty if it
    /// reports nothing.
    fn resources(&self, _: &Self::Executable) -> String {
        String::new()
    }

    /// Whether kernels run elsewhere than they are compiled, so that compiling does not disturb
    /// measurements.
    fn is_apart(&self) -> bool {
        false
    }
}

/// The compiled code of a site.
pub(crate) type ExecutableOf<S> = <<S as Site>::Builder as Builder>::Executable;

/// A place where kernels are compiled and run, with the data that they run on.
pub(crate) trait Site: Sized {
    /// The compiler of the site.
    type Builder: Builder;
    /// The runner of kernels on the site.
    type Runner<'s>: Runner<Executable = ExecutableOf<Self>>
    where
        Self: 's;

    /// Copies the data to the site.
    fn new(builder: &Self::Builder, data: Data<'_>) -> Result<Self, RigError>;

    /// The builder and the runner, which can work at the same time.
    fn parts(&mut self) -> (&Self::Builder, Self::Runner<'_>);
}

/// The source of a tensor's elements.
pub(crate) enum Source<'g> {
    /// An existing tensor.
    There(Cow<'g, Tensor>),
    /// A generator of elements from a seed, and the shape. The elements are made directly where
    /// they are needed.
    Made(Elements, Vec<usize>),
}

/// The tensors and scalars of a program, each in the order of its signature. Tensors may be large,
/// so a site takes or generates them in place, without another copy in between.
pub(crate) struct Data<'g> {
    pub constants: Vec<Source<'g>>,
    pub inputs: Vec<Source<'g>>,
    /// The contents of results before a call: the caller's data, or values that no kernel computes.
    pub before: Vec<Source<'g>>,
    /// Buffers for results.
    pub results: Vec<Buffer>,
    pub scalars: Vec<Number>,
}

/// A program with its data and expected results.
pub(crate) struct Rig<S> {
    program: Program,
    site: S,
    wanted: Vec<Wanted>,
    /// The notes on how results are compared, for the user.
    pub notes: Vec<Note>,
}

/// Compiles kernels of a rig's program.
pub(crate) struct KernelBuilder<'r, B> {
    program: &'r Program,
    pub builder: &'r B,
}

impl<S: Site> Rig<S> {
    /// Makes or reads inputs, and computes the expected results.
    pub fn new(task: &Task, builder: &S::Builder) -> Result<Rig<S>, RigError> {
        task.check()?;
        let lesson = smaller::check_default::<S>(task, builder)?;
        let given = input_files::read(task)?;
        let mut rig = Rig::with(task.program.clone(), given, task.seed, builder, lesson.is_delicate)?;
        let doubts = rig.wanted.iter().filter_map(|wanted| wanted.expected.doubt(&wanted.name));
        rig.notes = lesson.notes.into_iter().chain(doubts.map(|doubt| Note::of(&doubt, None))).collect();
        Ok(rig)
    }

    /// Makes a rig from existing inputs. `is_delicate` says that rounding moves some elements more
    /// than others.
    fn with(
        program: Program,
        given: Inputs,
        seed: u64,
        builder: &S::Builder,
        is_delicate: bool,
    ) -> Result<Rig<S>, RigError> {
        let signature = Signature::new(&program)
            .map_err(|name| TaskError(format!("the shape of `{name}` is too large")))?;
        let (site, wanted) = site_and_oracle::<S>(builder, &program, &signature, given, seed)?;
        let mut rig = Rig { program, site, wanted: Vec::new(), notes: Vec::new() };
        let names: Vec<String> = signature.results.iter().map(|result| result.name.clone()).collect();
        let reference: Vec<(Expected, String)> = match wanted {
            Some(mut tensors) => {
                names.into_iter().filter_map(|name| Some((tensors.remove(&name)?, name))).collect()
            }
            None => rig.computed_by_default(is_delicate)?.into_iter().zip(names).collect(),
        };
        rig.wanted = reference.into_iter().map(|(expected, name)| Wanted { name, expected }).collect();
        Ok(rig)
    }

    fn computed_by_default(&mut self, is_delicate: bool) -> Result<Vec<Expected>, RigError> {
        let (kernel_builder, mut bench) = self.parts();
        let executable = kernel_builder.built_by_default()?;
        let kernel = bench.runner.bind(&executable)?;
        bench.runner.first_call(&kernel)?;
        let tensors = bench.runner.results()?.iter().map(Buffer::to_tensor).collect::<Result<Vec<_>, _>>()?;
        let mut expected: Vec<Expected> =
            tensors.into_iter().map(|tensor| Expected::by_scale(kernel_builder.program, tensor)).collect();
        if is_delicate {
            conditioning::widen(&mut bench.runner, &kernel, &mut expected)?;
        }
        Ok(expected)
    }

    /// The compiler of kernels, and the bench that they run on.
    pub fn parts(&mut self) -> (KernelBuilder<'_, S::Builder>, Bench<'_, S::Runner<'_>>) {
        let Rig { program, site, wanted, .. } = self;
        let (builder, runner) = site.parts();
        (KernelBuilder { program, builder }, Bench { runner, wanted })
    }
}

impl<B: Builder> KernelBuilder<'_, B> {
    /// Compiles a schedule. Several threads may call this at once.
    pub fn build(&self, schedule: &Schedule) -> Result<B::Executable, BuildFailure> {
        self.built(schedule).map_err(|refused| {
            BuildFailure::Failed(match refused {
                Refused::Build(BuildError::Gpu(error)) if error.is_sticky() => {
                    return BuildFailure::DeviceLost(error.to_string());
                }
                Refused::Illegal(why) => Outcome::Illegal(why),
                Refused::Build(BuildError::Gpu(limit @ GpuError::Limit { .. })) => {
                    Outcome::Illegal(limit.to_string())
                }
                Refused::Build(error) => Outcome::CompileError(error.to_string()),
            })
        })
    }

    fn built(&self, schedule: &Schedule) -> Result<B::Executable, Refused> {
        let nest = apply(self.program, schedule, self.builder.target())
            .map_err(|refusal| Refused::Illegal(refusal.to_string()))?;
        self.builder.compile(self.program, &nest, schedule).map_err(Refused::Build)
    }

    fn built_by_default(&self) -> Result<B::Executable, Refused> {
        self.built(&default_schedule(self.program, self.builder.target()))
    }
}

/// The site with its data, and the interpreter's results if the interpreter is fast enough. The
/// last user of a tensor takes it instead of copying it.
fn site_and_oracle<S: Site>(
    builder: &S::Builder,
    program: &Program,
    signature: &Signature,
    mut given: Inputs,
    seed: u64,
) -> Result<(S, Option<BTreeMap<String, Expected>>), RigError> {
    if !suits_interpreter(program, MOST_INTERPRETED) {
        let scalars = std::mem::take(&mut given.scalars);
        let made = |name: &str| {
            let id = program.find_tensor(name).filter(|id| program.tensor(*id).role.is_supplied())?;
            Some(Source::Made(seed::elements(program, id, seed), program.shape(id)?))
        };
        let take = |name: &str| {
            let there = given.tensors.remove(name).map(|tensor| Source::There(Cow::Owned(tensor)));
            there.or_else(|| made(name))
        };
        return Ok((S::new(builder, data(signature, &scalars, take)?)?, None));
    }
    let mut given = seed::completed(program, given, seed)?;
    let scalars = std::mem::take(&mut given.scalars);
    let lend = |name: &str| given.tensors.get(name).map(|tensor| Source::There(Cow::Borrowed(tensor)));
    let site = S::new(builder, data(signature, &scalars, lend)?)?;
    let wanted = expect(program, Inputs { scalars, ..given });
    Ok((site, Some(wanted.map_err(|error| RigError::Interpreter(error.to_string()))?)))
}

/// Returns true if the interpreter can run a program within this number of points and hold its
/// inputs.
fn suits_interpreter(program: &Program, most_points: u64) -> bool {
    let supplied = program.tensors_with(|role| role.is_supplied());
    let bytes = supplied.map(|(id, declared)| {
        program.shape(id).and_then(|shape| byte_size(declared.dtype, &shape)).unwrap_or(usize::MAX)
    });
    points(program) <= most_points && bytes.fold(0, usize::saturating_add) <= MOST_HELD
}

/// The given and the generated data in the order of the signature, with buffers for results.
fn data<'g>(
    signature: &Signature,
    scalars: &BTreeMap<String, Number>,
    mut given: impl FnMut(&str) -> Option<Source<'g>>,
) -> Result<Data<'g>, TensorError> {
    let scalars = signature.scalars.iter().filter_map(|scalar| scalars.get(&scalar.name).copied());
    let scalars = scalars.collect();
    let mut tensors = |parameters: &[Parameter]| {
        let tensor = |parameter: &Parameter| match given(&parameter.name) {
            Some(source) => Ok(source),
            None => poisoned(parameter.layout.dtype(), parameter.layout.shape())
                .map(|tensor| Source::There(Cow::Owned(tensor))),
        };
        parameters.iter().map(tensor).collect::<Result<Vec<_>, _>>()
    };
    Ok(Data {
        constants: tensors(&signature.constants)?,
        inputs: tensors(&signature.inputs)?,
        before: tensors(&signature.results)?,
        results: signature.zero_results()?,
        scalars,
    })
}

/// Why a candidate has no kernel.
pub(crate) enum BuildFailure {
    /// The candidate cannot be compiled.
    Failed(Outcome),
    /// The device is unusable for this process, whichever candidate caused that.
    DeviceLost(String),
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

/// A tensor of values that no kernel should compute: NaN for floats, -0x5a for integers. So an
/// element that is never written is detected.
fn poisoned(dtype: DType, shape: &[usize]) -> Result<Tensor, TensorError> {
    let mut element = Tensor::zeros(dtype, &[])?;
    element.set(0, if dtype.is_float() { Number::Float(f64::NAN) } else { Number::Int(-0x5a) });
    let bytes =
        byte_size(dtype, shape).ok_or_else(|| TensorError::TooLarge { dtype, shape: shape.to_vec() })?;
    let mut all = Vec::new();
    let refused = |_| TensorError::OutOfMemory { dtype, shape: shape.to_vec(), bytes };
    all.try_reserve_exact(bytes).map_err(refused)?;
    all.extend_from_slice(&element.bytes()[..bytes.min(dtype.bytes())]);
    while all.len() < bytes {
        all.extend_from_within(..all.len().min(bytes - all.len()));
    }
    Tensor::from_bytes(dtype, shape, all)
}
