//! Runs one program under one schedule, and checks that every way to run it agrees with the
//! interpreter.

use std::collections::BTreeMap;
use std::env;
use std::fmt::{self, Display, Formatter};
use std::sync::LazyLock;

use tilewright_codegen::c_family::gpu_code;
use tilewright_interp::{Inputs, Order, run, run_nest};
use tilewright_ir::{DType, LoopNest, Number, Program, Tensor, print, verify_nest};
use tilewright_runtime::gpu::{Device, GpuError, GpuExecutable, LaunchResource};
use tilewright_runtime::{Buffer, BuildError, Executable, Signature};
use tilewright_schedule::{Schedule, apply};
use tilewright_search::default_schedule;
use tilewright_syntax::{Bindings, Severity, check, parse};
use tilewright_target::{Cpu, Gpu, GpuApi, Target};

use super::cpu_call;
use super::source::{MAIN, Source};
use crate::harness::{self, Results, difference};
use crate::random::guarded;
use crate::support;

/// The target of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A CPU: machine code on one thread and on two.
    Cpu,
    /// A CPU, where only the interpreter of loops runs.
    Loops,
    /// A GPU, where only the interpreter of loops runs, with every thread.
    Gpu,
    /// An OpenCL device, such as PoCL, or a CUDA device.
    Device,
}

/// A program under a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    pub source: Source,
    pub place: Place,
    /// The schedule; `None` for the default schedule.
    pub schedule: Option<Schedule>,
    /// The seed of the inputs.
    pub data: u64,
}

/// How a case fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The checker panics.
    CheckPanics,
    /// The interpreter of programs panics.
    InterpreterPanics,
    /// The default schedule is refused.
    DefaultRefused,
    /// Making a schedule panics.
    SchedulePanics,
    /// `apply` panics.
    ApplyPanics,
    /// The loops are not well-formed.
    Invalid,
    /// The loops cannot be run: they access memory outside of a buffer, read undefined elements, or
    /// race.
    Stuck,
    /// The loops compute something else.
    LoopsDiffer,
    /// Code generation refuses the loops.
    Build,
    /// Code generation panics.
    BuildPanics,
    /// A call fails.
    Run,
    /// The code computes something else.
    CodeDiffers,
}

/// A failure with its message and loops.
#[derive(Clone, Debug)]
pub struct Failure {
    pub kind: Kind,
    pub message: String,
    pub loops: String,
}

/// The outcome of a case.
#[derive(Debug)]
pub enum Outcome {
    Agrees,
    /// The program or the schedule is refused, with the reason.
    Refused(String),
    Failed(Box<Failure>),
}

fn failed(kind: Kind, message: String, nest: Option<&LoopNest>) -> Outcome {
    let loops = nest.map(print::nest).unwrap_or_default();
    Outcome::Failed(Box::new(Failure { kind, message, loops }))
}

impl Display for Case {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let schedule = match &self.schedule {
            None => "the default schedule".to_string(),
            Some(schedule) => format!("schedule:\n{schedule}"),
        };
        write!(f, "{}sizes {}, {:?}, {schedule}", self.source, self.source.size_list(), self.place)
    }
}

/// Checks the program at its sizes. The error has the code of the first diagnostic.
pub fn checked(source: &Source) -> Result<Program, String> {
    let parsed = parse(&source.to_string());
    let bindings: Bindings = source.sizes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    if let Some(first) = parsed.diagnostics.first() {
        return Err(format!("{:?}: {}", first.code, first.message));
    }
    let checked = check(&parsed.ast, MAIN, &bindings);
    let first = checked.diagnostics.iter().find(|found| found.severity == Severity::Error);
    let why = first.map_or_else(String::new, |found| format!("{:?}: {}", found.code, found.message));
    checked.program.filter(Program::is_concrete).ok_or(why)
}

/// Generates small integers for every input, so that sums are exact in any order. Some int64
/// elements need more than 32 bits. The elements of `q` are 0, 1 or 2.
pub fn inputs(program: &Program, seed: u64) -> Inputs {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64
    };
    let mut inputs = Inputs::default();
    for (id, tensor) in program.tensors_with(|role| role.is_supplied()) {
        let mut filled = Tensor::zeros(tensor.dtype, &program.shape(id).unwrap()).unwrap();
        for at in 0..filled.len() {
            let value = match tensor.dtype {
                _ if tensor.name == "q" => next() % 3,
                dtype if dtype.is_float() => next() % 7 - 3,
                DType::Int64 if next() % 4 == 0 => (1 << 32) + next() % 3 - 1,
                DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 => next() % 7,
                _ => next() % 9 - 2,
            };
            filled.set(at, Number::Int(value as i128).convert(tensor.dtype));
        }
        inputs.tensors.insert(tensor.name.clone(), filled);
    }
    for scalar in &program.scalars {
        inputs.scalars.insert(scalar.name.clone(), Number::Int(2).convert(scalar.dtype));
    }
    inputs
}

/// The CPU that schedules are made for. It is the same everywhere, except for vectors that this
/// machine lacks.
pub fn cpu() -> Cpu {
    Cpu { vectors: support::cpu().vectors.min(Cpu::host().vectors), ..support::cpu() }
}

/// A GPU with so few multiprocessors and so narrow warps that small programs use all of it.
pub fn gpu() -> Gpu {
    Gpu { processors: 4, warp: 4, ..Gpu::h200() }
}

/// The first OpenCL device, or the first CUDA device if `FUZZ_API` is `cuda`; `None` without a
/// device.
pub static DEVICE: LazyLock<Option<Device>> = LazyLock::new(|| {
    let api = match env::var("FUZZ_API").as_deref() {
        Ok("cuda") => GpuApi::Cuda,
        Ok("opencl") | Err(_) => GpuApi::OpenCl,
        Ok(other) => panic!("FUZZ_API is cuda or opencl, not {other}"),
    };
    Device::open(api, 0).ok()
});

static CPU: LazyLock<Cpu> = LazyLock::new(cpu);
static GPU: LazyLock<Gpu> = LazyLock::new(gpu);

impl Place {
    /// The machine that schedules are made for.
    pub fn target(self) -> Target<'static> {
        match (self, &*DEVICE) {
            (Place::Cpu | Place::Loops, _) => Target::Cpu(&CPU),
            (Place::Device, Some(device)) => Target::Gpu(device.gpu()),
            _ => Target::Gpu(&GPU),
        }
    }
}

/// A program with its inputs and the expected results.
pub struct Oracle {
    pub program: Program,
    pub inputs: Inputs,
    pub wanted: Results,
}

impl Oracle {
    /// Interprets a program. Returns the outcome if there is nothing to compare with.
    pub fn of(source: &Source, data: u64) -> Result<Oracle, Outcome> {
        let program = match guarded(|| checked(source)) {
            Ok(Ok(program)) => program,
            Ok(Err(code)) => return Err(Outcome::Refused(format!("check: {code}"))),
            Err(message) => return Err(failed(Kind::CheckPanics, message, None)),
        };
        let inputs = inputs(&program, data);
        match guarded(|| run(&program, inputs.clone())) {
            Ok(Ok(wanted)) => Ok(Oracle { program, inputs, wanted }),
            Ok(Err(error)) => {
                let text = error.to_string();
                let words: Vec<&str> = text.split(' ').filter(|word| !word.contains('`')).collect();
                Err(Outcome::Refused(format!("interpreter: {}", words.join(" "))))
            }
            Err(message) => Err(failed(Kind::InterpreterPanics, message, None)),
        }
    }

    /// Runs the program under a schedule in every way that the target permits.
    pub fn try_schedule(&self, place: Place, schedule: Option<&Schedule>) -> Outcome {
        let target = place.target();
        let made = guarded(|| match schedule {
            Some(schedule) => schedule.clone(),
            None => default_schedule(&self.program, target),
        });
        let steps = match made {
            Ok(steps) => steps,
            Err(message) => return failed(Kind::SchedulePanics, message, None),
        };
        let nest = match guarded(|| apply(&self.program, &steps, target)) {
            Ok(Ok(nest)) => nest,
            Ok(Err(refusal)) if schedule.is_none() => {
                return failed(Kind::DefaultRefused, format!("{refusal}\n{steps}"), None);
            }
            Ok(Err(refusal)) => return Outcome::Refused(format!("schedule: {refusal}")),
            Err(message) => return failed(Kind::ApplyPanics, message, None),
        };
        let compiled = |nest: &LoopNest| match place {
            Place::Cpu => self.try_code(nest),
            Place::Loops | Place::Gpu => None,
            Place::Device => self.try_device(nest, schedule.is_none()),
        };
        self.try_loops(&nest).or_else(|| compiled(&nest)).unwrap_or(Outcome::Agrees)
    }

    fn differs(&self, kind: Kind, what: &str, found: &Results, nest: &LoopNest) -> Option<Outcome> {
        let message = difference(&self.wanted, found, true)?;
        Some(failed(kind, format!("{what}: {message}"), Some(nest)))
    }

    /// Interprets the loops, in ascending and in descending order of iterations.
    fn try_loops(&self, nest: &LoopNest) -> Option<Outcome> {
        match guarded(|| verify_nest(nest)) {
            Ok(Ok(_)) => {}
            Ok(Err(invalid)) => return Some(failed(Kind::Invalid, invalid.to_string(), Some(nest))),
            Err(message) => return Some(failed(Kind::Invalid, message, Some(nest))),
        }
        for order in [Order::Ascending, Order::Descending] {
            let what = format!("{order:?}");
            let found = match guarded(|| run_nest(nest, &self.program, self.inputs.clone(), order)) {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => return Some(failed(Kind::Stuck, format!("{what}: {error}"), Some(nest))),
                Err(message) => return Some(failed(Kind::Stuck, message, Some(nest))),
            };
            if let Some(outcome) = self.differs(Kind::LoopsDiffer, &what, &found, nest) {
                return Some(outcome);
            }
        }
        None
    }

    /// Runs machine code, on one thread and on two.
    fn try_code(&self, nest: &LoopNest) -> Option<Outcome> {
        let executable = match guarded(|| Executable::new(&self.program, nest, &CPU)) {
            Ok(Ok(executable)) => executable,
            Ok(Err(error)) => return Some(failed(Kind::Build, error.to_string(), Some(nest))),
            Err(message) => return Some(failed(Kind::BuildPanics, message, Some(nest))),
        };
        for threads in [1, 2] {
            let what = format!("{threads} threads");
            match cpu_call::on_threads(&executable, &self.inputs, &harness::pool(threads)) {
                Err(message) => return Some(failed(Kind::Run, format!("{what}: {message}"), Some(nest))),
                Ok(found) => {
                    if let Some(outcome) = self.differs(Kind::CodeDiffers, &what, &found, nest) {
                        return Some(outcome);
                    }
                }
            }
        }
        None
    }

    /// Runs kernels on the device. Only the compiled kernel tells how many registers it takes, so a
    /// schedule may ask for too many threads; a default schedule must not.
    fn try_device(&self, nest: &LoopNest, is_default: bool) -> Option<Outcome> {
        let device = DEVICE.as_ref()?;
        let code = match guarded(|| gpu_code(verify_nest(nest).unwrap(), device.gpu(), "a generated program"))
        {
            Ok(Ok(code)) => code,
            Ok(Err(error)) => return Some(failed(Kind::Build, error.to_string(), Some(nest))),
            Err(message) => return Some(failed(Kind::BuildPanics, message, Some(nest))),
        };
        let text = code.text.clone();
        let executable = match GpuExecutable::new(&self.program, nest, code, device) {
            Ok(executable) => executable,
            Err(BuildError::Gpu(GpuError::LimitExceeded {
                what: what @ LaunchResource::ThreadsByRegisters,
                ..
            })) if !is_default => {
                return Some(Outcome::Refused(format!("device: {what:?}")));
            }
            Err(error) => return Some(failed(Kind::Build, format!("{error}\n{text}"), Some(nest))),
        };
        match on_device(&executable, &self.inputs) {
            Err(message) => Some(failed(Kind::Run, format!("{message}\n{text}"), Some(nest))),
            Ok(found) => {
                let message = difference(&self.wanted, &found, true)?;
                Some(failed(Kind::CodeDiffers, format!("{message}\n{text}"), Some(nest)))
            }
        }
    }
}

/// Makes one call on a device.
fn on_device(executable: &GpuExecutable, inputs: &Inputs) -> Result<Results, String> {
    let signature: &Signature = executable.signature();
    let buffer = |name: &String| Buffer::from_tensor(&inputs.tensors[name]).unwrap();
    let constants: Vec<Buffer> = signature.constants.iter().map(|own| buffer(&own.name)).collect();
    let given: Vec<Buffer> = signature.inputs.iter().map(|own| buffer(&own.name)).collect();
    let mut results = signature.zero_results().map_err(|error| error.to_string())?;
    for (own, result) in signature.results.iter().zip(&mut results) {
        if inputs.tensors.contains_key(&own.name) {
            *result = buffer(&own.name);
        }
    }
    let scalars: Vec<Number> = signature.scalars.iter().map(|scalar| inputs.scalars[&scalar.name]).collect();
    let constants: Vec<_> = constants.iter().map(Buffer::view).collect();
    let bound = executable.bind(&constants).map_err(|error| error.to_string())?;
    let given: Vec<_> = given.iter().map(Buffer::view).collect();
    let mut views: Vec<_> = results.iter_mut().map(Buffer::view_mut).collect();
    bound.run(&given, &mut views, &scalars).map_err(|error| error.to_string())?;
    drop(views);
    let names = signature.results.iter().map(|own| own.name.clone());
    Ok(names.zip(results).map(|(name, data)| (name, data.to_tensor().unwrap())).collect::<BTreeMap<_, _>>())
}

impl Case {
    /// Runs the case.
    pub fn outcome(&self) -> Outcome {
        match Oracle::of(&self.source, self.data) {
            Err(outcome) => outcome,
            Ok(oracle) => oracle.try_schedule(self.place, self.schedule.as_ref()),
        }
    }
}
