//! Compiles a function at given sizes for a CPU or a GPU, and calls it with tensors of any library.

use std::ffi::CString;
use std::sync::Arc;

use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use tilewright::cache::CacheError;
use tilewright::driver::stage::StageError;
use tilewright::driver::{
    ChosenSchedule, CompileError, Compiled as Built, OpenTarget, Origin, Stage, compile,
};
use tilewright::ir::{LoopNest, Number, Program, VarId};
use tilewright::runtime::{Signature, View, ViewMut};
use tilewright::schedule::Schedule;
use tilewright::target::{GpuApi, TargetName};

use crate::arguments::{Parameter, Value, Values};
use crate::code::Code;
use crate::error;
use crate::fast_path::{self, Addresses, FastPath, Pointers};
use crate::place::{Place, cache_path, refuse_forked};
use crate::pools;
use crate::results::{self, Results};
use crate::source::Source;
use crate::stack::with_stack;
use crate::tensor::{Library, Memory, Tensor};

/// A call with at most this many iterations takes about a microsecond, as long as releasing and
/// reacquiring the interpreter lock.
const MAX_TINY_ITERATIONS: u128 = 1000;

/// A function compiled at given sizes.
pub struct Compiled {
    /// The source text of the function.
    pub source: Arc<Source>,
    /// The program at these sizes.
    pub program: Program,
    /// The place where the code runs.
    pub place: Place,
    /// The parameters of a call.
    pub parameters: Arc<[Parameter]>,
    /// The schedule.
    pub schedule: Schedule,
    /// The origin of the schedule, as text.
    pub origin: String,
    target: OpenTarget,
    nest: LoopNest,
    /// Whether each parameter is a constant input.
    is_constant: Vec<bool>,
    /// The code.
    pub code: Code,
    /// The fast path for calls with NumPy arrays, where it is possible.
    fast_path: Option<FastPath>,
    /// Whether a call is so short that it keeps the interpreter lock.
    is_tiny: bool,
}

/// The schedule that a kernel is compiled with.
pub enum ScheduleChoice {
    /// The best known schedule.
    Best,
    /// The default schedule, even where a tuned one exists.
    Default,
    /// The result of a search by the cost model alone.
    Auto,
    /// This schedule.
    Given(Schedule),
}

impl Compiled {
    /// Compiles a program without holding the interpreter lock.
    pub fn new(
        py: Python<'_>,
        source: &Arc<Source>,
        parameters: &Arc<[Parameter]>,
        program: Program,
        place: Place,
        wanted: ScheduleChoice,
    ) -> PyResult<Compiled> {
        let make = || Compiled::compile(source, parameters, program, place, wanted);
        let (compiled, warning) = py.detach(|| with_stack(make))?;
        if let Some(warning) = warning {
            let warning = CString::new(warning).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &warning, 1)?;
        }
        Ok(compiled)
    }

    /// Compiles a program, and returns the warning to issue, if any. Needs a deep stack.
    pub fn compile(
        source: &Arc<Source>,
        parameters: &Arc<[Parameter]>,
        program: Program,
        place: Place,
        wanted: ScheduleChoice,
    ) -> PyResult<(Compiled, Option<String>)> {
        let target = place.open()?;
        let Chosen { schedule, origin, warning } = choose(&program, &target, wanted);
        let Built { code, nest, .. } =
            compile(&program, &schedule, &target).map_err(|failed| match failed {
                CompileError::Refused(refusal) => error::refused(&schedule, &refusal),
                CompileError::Build(failed) => error::build(failed),
            })?;
        let threads = target.target().hardware().capabilities().pool_threads;
        let code = Code::new(code, threads);
        let (source, parameters) = (Arc::clone(source), Arc::clone(parameters));
        let mut compiled = Compiled {
            source,
            program,
            place,
            parameters,
            schedule,
            origin,
            target,
            nest,
            is_constant: Vec::new(),
            code,
            fast_path: None,
            is_tiny: false,
        };
        let is_constant = |own: &Parameter| compiled.constants().any(|name| name == own.name);
        compiled.is_constant = compiled.parameters.iter().map(is_constant).collect();
        compiled.is_tiny = iterations(&compiled.program) <= MAX_TINY_ITERATIONS;
        if compiled.signature().constants.is_empty() {
            compiled.bind(&[])?;
        }
        Ok((compiled, warning))
    }

    /// The parameters and results of the program.
    pub fn signature(&self) -> &Signature {
        self.code.signature()
    }

    fn is_on_gpu(&self) -> bool {
        self.target.device().is_some()
    }

    /// The names of the constant inputs.
    pub fn constants(&self) -> impl Iterator<Item = &str> {
        self.signature().constants.iter().map(|own| own.name.as_str())
    }

    /// The sizes that the program was compiled for.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, i64)> {
        self.program.symbols.iter().filter_map(|symbol| Some((symbol.name.as_str(), symbol.value?)))
    }

    /// Binds the constants, and keeps copies of them.
    fn bind(&mut self, constants: &[View<'_>]) -> PyResult<()> {
        self.code.bind(constants).map_err(|error| error::run(&self.source, error))?;
        if self.code.threads().is_some() {
            self.fast_path = FastPath::new(&self.parameters, self.code.signature());
        }
        Ok(())
    }

    /// Returns the same code with its constants bound for all calls.
    pub fn with_constants(&self, py: Python<'_>, tensors: &[Tensor<'_>]) -> PyResult<Compiled> {
        let code = self.code.unbound();
        let left = self.parameters.iter().zip(&self.is_constant).filter(|(_, is_constant)| !**is_constant);
        let left: Arc<[Parameter]> = left.map(|(own, _)| own.clone()).collect();
        let mut compiled = Compiled {
            source: Arc::clone(&self.source),
            program: self.program.clone(),
            place: self.place,
            is_constant: vec![false; left.len()],
            parameters: left,
            schedule: self.schedule.clone(),
            origin: self.origin.clone(),
            target: self.target.clone(),
            nest: self.nest.clone(),
            code,
            fast_path: None,
            is_tiny: self.is_tiny,
        };
        // SAFETY: the caller has checked that the tensors are in the host's memory, and they are
        // copied before this function returns.
        let views: Vec<View<'_>> = tensors.iter().map(|tensor| unsafe { tensor.view() }).collect();
        py.detach(move || {
            compiled.bind(&views)?;
            Ok(compiled)
        })
    }

    /// Returns a stage of compilation as text.
    pub fn stage(&self, stage: &str) -> PyResult<String> {
        Ok(with_stack(|| self.text_of(stage))?.trim_end().to_owned())
    }

    fn text_of(&self, stage: &str) -> PyResult<String> {
        let target = self.target.target();
        let stages = Stage::all_for(target);
        let Some(found) = stages.iter().find(|own| own.name() == stage) else {
            let known = stages.iter().map(|own| format!("{:?}", own.name())).collect::<Vec<_>>().join(", ");
            return Err(PyValueError::new_err(format!(
                "this kernel has no stage {stage:?}; its stages are {known}"
            )));
        };
        let text = found.text(&self.program, &self.schedule, &self.nest, target);
        text.map_err(|failed| match failed {
            StageError::Codegen(failed) => error::build(failed.into()),
            StageError::InvalidNest(_) | StageError::NoSuchStage(_) => error::bug(&failed),
        })
    }

    /// Calls the code through the fast path. Returns `None` unless all tensors are NumPy arrays
    /// that the code accepts as they are.
    pub fn call_fast_path<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (Some(quick), Some((bound, threads))) = (&self.fast_path, self.code.on_cpu()) else {
            return Ok(None);
        };
        let Some(pointers) = quick.read(py, args, out)? else { return Ok(None) };
        let pool = pools::pool(py, threads);
        let Pointers { inputs, results, scalars, objects } = pointers;
        let addresses = Addresses { inputs: &inputs, results: &results };
        // SAFETY: `read` has checked all arrays. The caller ensures that no other Python thread
        // uses them meanwhile.
        let run = || unsafe { addresses.run(bound, &pool, &scalars) };
        let called = if self.is_tiny { run() } else { py.detach(run) };
        called.map_err(|error| error::run(&self.source, error))?;
        fast_path::return_value(py, objects).map(Some)
    }

    /// Calls the code with arguments of any library.
    pub fn call<'py>(
        &self,
        py: Python<'py>,
        values: &Values<'py>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if self.is_on_gpu() {
            refuse_forked()?;
        }
        let signature = self.signature();
        let given = out.map(|out| results::read_out_argument(&signature.results, out)).transpose()?;
        let (library, memory) = self.library_and_memory(values, given.as_deref().unwrap_or_default())?;
        let mut results = match given {
            None => results::make_results(
                py,
                &signature.results,
                library,
                memory,
                example_of_library(values, library),
            )?,
            Some(given) => {
                if let Some(other) = given.iter().find(|given| given.memory != memory) {
                    return Err(wrong_memory("out", other.memory, memory));
                }
                let name = |at: usize| self.parameters[at].name.clone();
                results::refuse_overlap(&signature.results, &given, name, values)?;
                given
            }
        };
        match memory {
            Memory::Host => self.call_on_host(py, values, &mut results)?,
            Memory::Cuda(ordinal) if self.is_on_gpu() => {
                self.call_on_gpu(py, values, &results, out.is_some(), ordinal)?;
            }
            Memory::Cuda(_) => return Err(wrong_memory("a tensor", memory, Memory::Host)),
        }
        results::return_value(py, results, library, out.is_some())
    }

    /// Returns the library of the tensors and the memory that holds all of them. If no input is a
    /// tensor, the tensors for the results decide.
    fn library_and_memory(&self, values: &Values<'_>, results: &[Tensor<'_>]) -> PyResult<(Library, Memory)> {
        let (mut library, mut memory) = (Library::NumPy, None);
        for (value, parameter) in values.iter().zip(self.parameters.iter()) {
            let Value::Tensor(tensor) = value else { continue };
            if library == Library::NumPy {
                library = tensor.library;
            }
            match memory {
                None => memory = Some(tensor.memory),
                Some(first) if first != tensor.memory => {
                    return Err(wrong_memory(&format!("`{}`", parameter.name), tensor.memory, first));
                }
                Some(_) => {}
            }
        }
        if let (None, [first, ..]) = (memory, results) {
            (library, memory) = (first.library, Some(first.memory));
        }
        let memory = memory.unwrap_or(Memory::Host);
        match (memory, self.place.target) {
            (Memory::Cuda(ordinal), TargetName::Gpu(GpuApi::Cuda, own)) if own == ordinal => {}
            (Memory::Host, _) => {}
            (memory, _) => {
                return Err(PyValueError::new_err(format!(
                    "this kernel is for {}, and the tensors are {}",
                    self.place,
                    describe_memory(memory)
                )));
            }
        }
        Ok((library, memory))
    }

    /// Calls the code with tensors in the host's memory.
    fn call_on_host<'py>(
        &self,
        py: Python<'py>,
        values: &Values<'py>,
        results: &mut Results<'py>,
    ) -> PyResult<()> {
        let (mut constants, mut inputs) =
            (SmallVec::<[View<'_>; 2]>::new(), SmallVec::<[View<'_>; 4]>::new());
        let mut scalars: SmallVec<[Number; 4]> = SmallVec::new();
        // The three lists follow the order of the function's parameters, and so does the signature.
        for (value, is_constant) in values.iter().zip(&self.is_constant) {
            match (value, is_constant) {
                // SAFETY: the tensor is in the host's memory. As with every array library, the
                // caller ensures that no other Python thread writes to it meanwhile.
                (Value::Tensor(tensor), true) => constants.push(unsafe { tensor.view() }),
                // SAFETY: as above.
                (Value::Tensor(tensor), false) => inputs.push(unsafe { tensor.view() }),
                (Value::Scalar(number), _) => scalars.push(*number),
            }
        }
        // SAFETY: as above. Results are new, or were checked not to overlap any other tensor.
        let mut written: SmallVec<[ViewMut<'_>; 2]> =
            results.iter_mut().map(|result| unsafe { result.view_mut() }).collect();
        let pool = self.code.threads().map(|threads| pools::pool(py, threads));
        let called =
            py.detach(|| self.code.run(pool.as_deref(), &constants, &inputs, &mut written, &scalars));
        called.map_err(|error| error::run(&self.source, error))
    }

    /// Whether the tensor parameter with this index is a constant.
    pub fn is_constant_tensor(&self, at: usize) -> bool {
        let mut tensors = self.parameters.iter().zip(&self.is_constant).filter(|(own, _)| own.is_tensor);
        tensors.nth(at).is_some_and(|(_, is_constant)| *is_constant)
    }
}

/// Returns an argument that is a tensor of this library.
fn example_of_library<'a, 'py>(values: &'a Values<'py>, library: Library) -> Option<&'a Bound<'py, PyAny>> {
    values.iter().find_map(|value| match value {
        Value::Tensor(tensor) if tensor.library == library => Some(&tensor.object),
        _ => None,
    })
}

/// The chosen schedule of a program, and its origin.
struct Chosen {
    schedule: Schedule,
    origin: String,
    /// Why no better schedule could be used.
    warning: Option<String>,
}

fn choose(program: &Program, target: &OpenTarget, wanted: ScheduleChoice) -> Chosen {
    let mut warning = None;
    let chosen = match wanted {
        ScheduleChoice::Given(schedule) => ChosenSchedule::given(schedule),
        ScheduleChoice::Default => ChosenSchedule::default(program, target),
        ScheduleChoice::Auto => ChosenSchedule::searched(program, target),
        ScheduleChoice::Best => {
            cache_path().and_then(|path| ChosenSchedule::from_cache(program, target, &path)).unwrap_or_else(
                |why| {
                    // An unreadable cache costs only speed.
                    if !matches!(why, CacheError::Missing(_)) {
                        let why = error::cache_text(&why);
                        warning = Some(format!("{why}; the default schedule is used"));
                    }
                    ChosenSchedule::default(program, target)
                },
            )
        }
    };
    let origin = match chosen.origin {
        Origin::Given => "given schedule",
        Origin::Searched { .. } => "searched schedule",
        Origin::Tuned { is_default: false, .. } => "tuned schedule",
        Origin::Adapted { .. } => "adapted schedule",
        Origin::Default | Origin::Tuned { .. } => "default schedule",
    };
    Chosen { schedule: chosen.schedule, origin: origin.to_owned(), warning }
}

/// The number of iterations of all statements, including those of reductions.
fn iterations(program: &Program) -> u128 {
    let extent = |var: &VarId| {
        let extent = program.var(*var).range.extent().as_constant();
        extent.map_or(u128::MAX, |extent| extent.max(0) as u128)
    };
    let statement = |vars: &mut dyn Iterator<Item = VarId>| {
        vars.map(|var| extent(&var)).fold(1u128, u128::saturating_mul)
    };
    let statements = program.statements().into_iter();
    let counts = statements.map(|(own, loops)| statement(&mut own.vars.iter().chain(&loops).copied()));
    counts.fold(0, u128::saturating_add)
}

fn describe_memory(memory: Memory) -> String {
    match memory {
        Memory::Host => "in the memory of the CPU".to_owned(),
        Memory::Cuda(ordinal) => format!("on cuda:{ordinal}"),
    }
}

fn wrong_memory(what: &str, found: Memory, wanted: Memory) -> PyErr {
    PyValueError::new_err(format!(
        "{what} is {}, and the other tensors are {}: move it there",
        describe_memory(found),
        describe_memory(wanted)
    ))
}
