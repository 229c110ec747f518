//! A program with its data and what it should compute: kernels are built here, and run on its [`Bench`].
//!
//! What a kernel should compute is known from the interpreter where that takes no time, with a bound for every element; otherwise
//! from the kernel of the default schedule, which is itself compared with the interpreter at smaller sizes (`smaller.rs`).
//!
//! Where kernels are compiled and run is a [`Site`]: the processor (`cpu.rs`) or a device (`gpu.rs`).

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
use crate::given;
use crate::note::Note;
use crate::task::{Task, TaskError};
use tilewright_cache::outcome::Outcome;

/// The interpreter gets at most this many points: about a second.
const MOST_INTERPRETED: u64 = 4_000_000;
/// And inputs of so many bytes at most together, since it needs them beside those of the kernels.
const MOST_HELD: usize = 256 << 20;
/// So many points where it only has to agree with the default schedule at smaller sizes.
const ENOUGH_TO_COMPARE: u64 = 500_000;

/// For a kernel that is only checked.
const ONCE: Plan =
    Plan { rival: None, best: 0.0, hopeless: 0.0, promising: 0.0, samples: 1, time: 0.0, within: None };

/// Why there is nothing to tune against.
#[derive(Debug, Error)]
pub(crate) enum RigError {
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
    /// Data cannot be brought to a device.
    #[error("the data of the program cannot be brought to the device: {0}")]
    Device(RunError),
    /// The interpreter cannot run the program.
    #[error("the program does not run: {0}")]
    Interpreter(String),
    /// The oracle disagrees.
    #[error("the default schedule computes something else: {0}")]
    Wrong(String),
}

/// Makes kernels. Several threads do so at once.
pub(crate) trait Builder: Clone + Sync {
    /// Compiled code.
    type Executable: Send;

    /// The machine that it compiles for.
    fn target(&self) -> Target<'_>;

    /// Compiles the loops that a schedule has made of a program.
    fn compile(
        &self,
        program: &Program,
        nest: &LoopNest,
        schedule: &Schedule,
    ) -> Result<Self::Executable, BuildError>;

    /// What the compiler says that kernels take of a device; empty where it says nothing.
    fn resources(&self, _: &Self::Executable) -> String {
        String::new()
    }

    /// Whether kernels run elsewhere than they are compiled, so that compiling does not disturb what is measured.
    fn is_apart(&self) -> bool {
        false
    }
}

/// What a site compiles.
pub(crate) type ExecutableOf<S> = <<S as Site>::Builder as Builder>::Executable;

/// Where kernels are compiled, and run on data that is there.
pub(crate) trait Site: Sized {
    /// Who compiles for it.
    type Builder: Builder;
    /// Who runs kernels on it.
    type Runner<'s>: Runner<Executable = ExecutableOf<Self>>
    where
        Self: 's;

    /// Brings data there.
    fn new(builder: &Self::Builder, data: Data<'_>) -> Result<Self, RigError>;

    /// The two, which can be at work at once.
    fn parts(&mut self) -> (&Self::Builder, Self::Runner<'_>);
}

/// Where the elements of a tensor come from.
pub(crate) enum Source<'g> {
    /// They are there.
    There(Cow<'g, Tensor>),
    /// A seed makes them, of this shape, wherever they are wanted.
    Made(Elements, Vec<usize>),
}

/// The tensors and scalars of a program, each in the order of its signature. They may be large, so a site takes or makes them
/// where it needs them without another copy in between.
pub(crate) struct Data<'g> {
    pub constants: Vec<Source<'g>>,
    pub inputs: Vec<Source<'g>>,
    /// What results hold before a call: what the caller supplies, or something that no kernel computes.
    pub before: Vec<Source<'g>>,
    /// Room for results.
    pub results: Vec<Buffer>,
    pub scalars: Vec<Number>,
}

/// A program with its data.
pub(crate) struct Rig<S> {
    program: Program,
    site: S,
    wanted: Vec<Wanted>,
    /// What the user should know of how results are compared.
    pub notes: Vec<Note>,
}

/// Who makes kernels of a rig's program.
pub(crate) struct Forge<'r, B> {
    program: &'r Program,
    pub builder: &'r B,
}

impl<S: Site> Rig<S> {
    /// Makes or reads inputs, and what comes out of them.
    pub fn new(task: &Task, builder: &S::Builder) -> Result<Rig<S>, RigError> {
        let lesson = smaller::check_default::<S>(task, builder)?;
        let program = task.program()?;
        let given = given::read(&program, task)?;
        let mut rig = Rig::with(program, given, task.seed, builder, lesson.is_delicate)?;
        let doubts = rig.wanted.iter().filter_map(|wanted| wanted.expected.doubt(&wanted.name));
        rig.notes = lesson.notes.into_iter().chain(doubts.map(|doubt| Note::of(&doubt, None))).collect();
        Ok(rig)
    }

    /// The same with data that is there. What `is_delicate` has elements which rounding moves more than others.
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
        let (forge, mut bench) = self.parts();
        let executable = forge.built_by_default()?;
        let kernel = bench.runner.bind(&executable)?;
        bench.runner.first_call(&kernel)?;
        let tensors = bench.runner.results()?.iter().map(Buffer::to_tensor).collect::<Result<Vec<_>, _>>()?;
        let mut expected: Vec<Expected> =
            tensors.into_iter().map(|tensor| Expected::by_scale(forge.program, tensor)).collect();
        if is_delicate {
            conditioning::widen(&mut bench.runner, &kernel, &mut expected)?;
        }
        Ok(expected)
    }

    /// Who makes kernels, and the data for them to run on.
    pub fn parts(&mut self) -> (Forge<'_, S::Builder>, Bench<'_, S::Runner<'_>>) {
        let Rig { program, site, wanted, .. } = self;
        let (builder, runner) = site.parts();
        (Forge { program, builder }, Bench { runner, wanted })
    }
}

impl<B: Builder> Forge<'_, B> {
    /// Compiles a schedule. Can be called from several threads at once.
    pub fn build(&self, schedule: &Schedule) -> Result<B::Executable, Unbuilt> {
        self.built(schedule).map_err(|refused| {
            Unbuilt::Failed(match refused {
                Refused::Build(BuildError::Gpu(error)) if error.is_sticky() => {
                    return Unbuilt::DeviceLost(error.to_string());
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

/// The site with its data, and what the interpreter computes of the same, where that takes no time. Whoever is the last to
/// need a tensor takes it.
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

/// Whether the interpreter can run a program of so many points, and have its inputs.
fn suits_interpreter(program: &Program, most_points: u64) -> bool {
    let supplied = program.tensors_with(|role| role.is_supplied());
    let bytes = supplied.map(|(id, declared)| {
        program.shape(id).and_then(|shape| byte_size(declared.dtype, &shape)).unwrap_or(usize::MAX)
    });
    points(program) <= most_points && bytes.fold(0, usize::saturating_add) <= MOST_HELD
}

/// What was given and what is made, as kernels take it, with room for results.
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

/// Why there is no kernel of a candidate.
pub(crate) enum Unbuilt {
    /// It cannot be compiled.
    Failed(Outcome),
    /// The device is lost to this process, whoever did that.
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

/// What no kernel computes: not a number, or all bits set. An element that is never written shows.
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
