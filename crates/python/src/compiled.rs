//! A function at given sizes, compiled for a place, and its calls.

use std::ffi::CString;
use std::sync::Arc;

use pyo3::exceptions::{PyTypeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use tilewright_codegen::c_family::gpu_code;
use tilewright_codegen::{assembly, llvm_ir};
use tilewright_ir::{LoopNest, Number, Program, VarId, print as text};
use tilewright_runtime::gpu::{DeviceBuffer, GpuBound, GpuExecutable};
use tilewright_runtime::{Bound as Callable, Executable, Pool, Signature, View, ViewMut};
use tilewright_schedule::{Schedule, apply, blame, default_schedule};
use tilewright_target::{GpuApi, Machine};
use tilewright_tuner::cache::{BestKnown, Cache, CacheError};

use crate::arguments::{Parameter, Value, Values};
use crate::error;
use crate::place::{Place, cache_path, open, refuse_forked};
use crate::pools;
use crate::quick::{self, Addresses, Pointers, Quick};
use crate::results::{self, Results};
use crate::source::Source;
use crate::stack::with_stack;
use crate::streams;
use crate::tensor::{Library, Memory, Tensor};

/// A call that computes so many elements takes about a microsecond, like letting the interpreter go and taking it again.
const TINY: u128 = 1000;

/// A function at given sizes, compiled.
pub struct Compiled {
    /// Where it was written.
    pub source: Arc<Source>,
    /// What it computes.
    pub program: Program,
    /// Where it runs.
    pub place: Place,
    /// The parameters that a call is given.
    pub parameters: Arc<[Parameter]>,
    /// The schedule.
    pub schedule: Schedule,
    /// Where that is from, for people.
    pub origin: String,
    machine: Machine,
    nest: LoopNest,
    /// Which parameters are constant inputs.
    is_constant: Vec<bool>,
    code: Code,
    /// How arrays of NumPy are called with the least effort, where that is possible.
    quick: Option<Quick>,
    /// Whether a call is over before another thread could make use of the interpreter.
    is_tiny: bool,
}

/// Code, with its constants where there are none or they are bound.
enum Code {
    Cpu { threads: usize, executable: Executable, bound: Option<Callable<'static>> },
    Gpu { executable: GpuExecutable, bound: Option<GpuBound> },
}

/// Which schedule a kernel is compiled by.
pub enum Wanted {
    /// The best that is known.
    Best,
    /// The default one, whatever is known.
    Default,
    /// This one.
    Given(Schedule),
}

impl Compiled {
    /// Compiles a program, without the interpreter.
    pub fn new(
        py: Python<'_>,
        source: &Arc<Source>,
        parameters: &Arc<[Parameter]>,
        program: Program,
        place: Place,
        wanted: Wanted,
    ) -> PyResult<Compiled> {
        let make = || Compiled::make(source, parameters, program, place, wanted);
        let (compiled, warning) = py.detach(|| with_stack(make))?;
        if let Some(warning) = warning {
            let warning = CString::new(warning).unwrap_or_default();
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &warning, 1)?;
        }
        Ok(compiled)
    }

    /// The same, with what there is to warn of.
    fn make(
        source: &Arc<Source>,
        parameters: &Arc<[Parameter]>,
        program: Program,
        place: Place,
        wanted: Wanted,
    ) -> PyResult<(Compiled, Option<String>)> {
        let machine = place.machine()?;
        let Chosen { schedule, origin, warning } = choose(&program, &machine, wanted);
        let nest = apply(&program, &schedule, machine.target()).map_err(|refusal| {
            error::refused(&schedule, &blame(&program, &schedule, machine.target(), refusal))
        })?;
        let code = match (&machine, place) {
            (Machine::Cpu(cpu), _) => {
                let executable = Executable::new(&program, &nest, cpu).map_err(error::build)?;
                Code::Cpu { threads: cpu.cores, executable, bound: None }
            }
            (Machine::Gpu(gpu), Place::Gpu(api, number)) => {
                let about = format!("{}\n\n{schedule}", program.name);
                let text = gpu_code(&nest, gpu, &about).map_err(|error| error::build(error.into()))?;
                let device = open(api, number)?;
                let executable = GpuExecutable::new(&program, &nest, text, &device).map_err(error::build)?;
                Code::Gpu { executable, bound: None }
            }
            (Machine::Gpu(_), Place::Cpu { .. }) => return Err(error::bug(&"a GPU that is a CPU")),
        };
        let (source, parameters) = (Arc::clone(source), Arc::clone(parameters));
        let mut compiled = Compiled {
            source,
            program,
            place,
            parameters,
            schedule,
            origin,
            machine,
            nest,
            is_constant: Vec::new(),
            code,
            quick: None,
            is_tiny: false,
        };
        let is_constant = |own: &Parameter| compiled.constants().any(|name| name == own.name);
        compiled.is_constant = compiled.parameters.iter().map(is_constant).collect();
        compiled.is_tiny = iterations(&compiled.program) <= TINY;
        if compiled.signature().constants.is_empty() {
            compiled.bind(&[])?;
        }
        Ok((compiled, warning))
    }

    /// What the program takes and gives.
    pub fn signature(&self) -> &Signature {
        match &self.code {
            Code::Cpu { executable, .. } => executable.signature(),
            Code::Gpu { executable, .. } => executable.signature(),
        }
    }

    /// The names of the constant inputs.
    pub fn constants(&self) -> impl Iterator<Item = &str> {
        self.signature().constants.iter().map(|own| own.name.as_str())
    }

    /// The sizes that it was compiled for.
    pub fn sizes(&self) -> impl Iterator<Item = (&str, i64)> {
        self.program.symbols.iter().filter_map(|symbol| Some((symbol.name.as_str(), symbol.value?)))
    }

    /// Gives the constants, of which it keeps copies.
    fn bind(&mut self, constants: &[View<'_>]) -> PyResult<()> {
        let source = Arc::clone(&self.source);
        let failed = |error| error::run(&source, error);
        match &mut self.code {
            Code::Cpu { threads, executable, bound } => {
                // Once, and not much: a pool for it would have threads that nobody uses.
                let pool = Pool::new(if constants.is_empty() { 1 } else { *threads });
                let made = executable.bind(&pool, constants).map_err(failed)?;
                *bound = Some(made.into_owned().map_err(|error| failed(error.into()))?);
                self.quick = Quick::new(&self.parameters, executable.signature());
            }
            Code::Gpu { executable, bound } => *bound = Some(executable.bind(constants).map_err(failed)?),
        }
        Ok(())
    }

    /// The same with its constants given once for all calls.
    pub fn with_constants(&self, py: Python<'_>, tensors: &[Tensor<'_>]) -> PyResult<Compiled> {
        let code = match &self.code {
            Code::Cpu { threads, executable, .. } => {
                Code::Cpu { threads: *threads, executable: executable.clone(), bound: None }
            }
            Code::Gpu { executable, .. } => Code::Gpu { executable: executable.clone(), bound: None },
        };
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
            machine: self.machine.clone(),
            nest: self.nest.clone(),
            code,
            quick: None,
            is_tiny: self.is_tiny,
        };
        // SAFETY: they lie in the host's memory, as the caller has made sure, and are copied before this returns.
        let views: Vec<View<'_>> = tensors.iter().map(|tensor| unsafe { tensor.view() }).collect();
        py.detach(move || {
            compiled.bind(&views)?;
            Ok(compiled)
        })
    }

    /// A stage of it, as text.
    pub fn stage(&self, stage: &str) -> PyResult<String> {
        Ok(with_stack(|| self.text_of(stage))?.trim_end().to_owned())
    }

    fn text_of(&self, stage: &str) -> PyResult<String> {
        let failed = |error: tilewright_codegen::CodegenError| error::build(error.into());
        match (stage, &self.machine) {
            ("program", _) => Ok(text::program(&self.program)),
            ("schedule", _) => Ok(self.schedule.to_string()),
            ("loops", _) => Ok(text::nest(&self.nest)),
            ("llvm", Machine::Cpu(cpu)) => llvm_ir(&self.nest, cpu).map_err(failed),
            ("asm", Machine::Cpu(cpu)) => assembly(&self.nest, cpu).map_err(failed),
            (_, Machine::Gpu(gpu)) if stage == gpu.api.name() => {
                gpu_code(&self.nest, gpu, &self.program.name).map(|code| code.text).map_err(failed)
            }
            _ => {
                let own = match &self.machine {
                    Machine::Cpu(_) => "\"llvm\", \"asm\"".to_owned(),
                    Machine::Gpu(gpu) => format!("{:?}", gpu.api.name()),
                };
                Err(PyValueError::new_err(format!(
                    "there is no stage {stage:?} here; there are \"program\", \"schedule\", \"loops\", {own}"
                )))
            }
        }
    }

    /// Calls it with arrays of NumPy, if that is all that is given, and they are as the code takes them.
    pub fn call_quickly<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (Some(quick), Code::Cpu { threads, bound: Some(bound), .. }) = (&self.quick, &self.code) else {
            return Ok(None);
        };
        let Some(pointers) = quick.read(py, args, out)? else { return Ok(None) };
        let pool = pools::pool(py, *threads);
        let Pointers { inputs, results, scalars, objects } = pointers;
        let addresses = Addresses { inputs: &inputs, results: &results };
        // SAFETY: `read` has looked at all of them; that no other thread of Python uses them meanwhile is up to the caller.
        let run = || unsafe { addresses.run(bound, &pool, &scalars) };
        let called = if self.is_tiny { run() } else { py.detach(run) };
        called.map_err(|error| error::run(&self.source, error))?;
        quick::returned(py, objects).map(Some)
    }

    /// Calls it.
    pub fn call<'py>(
        &self,
        py: Python<'py>,
        values: &Values<'py>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Code::Gpu { .. } = &self.code {
            refuse_forked()?;
        }
        let signature = self.signature();
        let (library, memory) = self.whose(values)?;
        let mut results = match out {
            None => results::make(py, &signature.results, library, memory, like(values, library))?,
            Some(out) => {
                let given = results::given(&signature.results, out)?;
                if let Some(other) = given.iter().find(|given| given.memory != memory && !values.is_empty()) {
                    return Err(elsewhere("out", other.memory, memory));
                }
                let name = |at: usize| self.parameters[at].name.clone();
                results::refuse_overlap(&signature.results, &given, name, values)?;
                given
            }
        };
        match (&self.code, memory) {
            (Code::Cpu { .. }, Memory::Host) | (Code::Gpu { .. }, Memory::Host) => {
                self.call_here(py, values, &mut results)?;
            }
            (Code::Gpu { bound, .. }, Memory::Cuda(ordinal)) => {
                self.call_there(py, bound.as_ref(), values, &results, library, ordinal)?;
            }
            (Code::Cpu { .. }, Memory::Cuda(_)) => return Err(elsewhere("a tensor", memory, Memory::Host)),
        }
        results::returned(py, results, library, out.is_some())
    }

    /// Whose the tensors are, and where all of them lie.
    fn whose(&self, values: &Values<'_>) -> PyResult<(Library, Memory)> {
        let (mut library, mut memory) = (Library::NumPy, None);
        for (value, parameter) in values.iter().zip(self.parameters.iter()) {
            let Value::Tensor(tensor) = value else { continue };
            if library == Library::NumPy {
                library = tensor.library;
            }
            match memory {
                None => memory = Some(tensor.memory),
                Some(first) if first != tensor.memory => {
                    return Err(elsewhere(&format!("`{}`", parameter.name), tensor.memory, first));
                }
                Some(_) => {}
            }
        }
        let memory = memory.unwrap_or(Memory::Host);
        match (memory, self.place) {
            (Memory::Cuda(ordinal), Place::Gpu(GpuApi::Cuda, own)) if own == ordinal => {}
            (Memory::Host, _) => {}
            (memory, place) => {
                return Err(PyValueError::new_err(format!(
                    "this kernel is for {place}, and the tensors are {}",
                    named(memory)
                )));
            }
        }
        Ok((library, memory))
    }

    /// A call with tensors in the host's memory.
    fn call_here<'py>(
        &self,
        py: Python<'py>,
        values: &Values<'py>,
        results: &mut Results<'py>,
    ) -> PyResult<()> {
        let (mut constants, mut inputs) =
            (SmallVec::<[View<'_>; 2]>::new(), SmallVec::<[View<'_>; 4]>::new());
        let mut scalars: SmallVec<[Number; 4]> = SmallVec::new();
        // All three are in the order of the function's parameters, as those of the signature are.
        for (value, is_constant) in values.iter().zip(&self.is_constant) {
            match (value, is_constant) {
                // SAFETY: it is in the host's memory; that no other thread of Python writes to it meanwhile is up to the
                // caller, as with every library of arrays.
                (Value::Tensor(tensor), true) => constants.push(unsafe { tensor.view() }),
                // SAFETY: as above.
                (Value::Tensor(tensor), false) => inputs.push(unsafe { tensor.view() }),
                (Value::Scalar(number), _) => scalars.push(*number),
            }
        }
        // SAFETY: as above; results are new, or were found not to overlap anything.
        let mut written: SmallVec<[ViewMut<'_>; 2]> =
            results.iter_mut().map(|result| unsafe { result.view_mut() }).collect();
        let called = match &self.code {
            Code::Cpu { threads, executable, bound } => {
                let pool = pools::pool(py, *threads);
                py.detach(|| match bound {
                    Some(bound) => bound.run(&pool, &inputs, &mut written, &scalars),
                    None => executable.bind(&pool, &constants)?.run(&pool, &inputs, &mut written, &scalars),
                })
            }
            Code::Gpu { executable, bound } => py.detach(|| match bound {
                Some(bound) => bound.run(&inputs, &mut written, &scalars),
                None => executable.bind(&constants)?.run(&inputs, &mut written, &scalars),
            }),
        };
        called.map_err(|error| error::run(&self.source, error))
    }

    /// A call with tensors that lie on the device.
    fn call_there(
        &self,
        py: Python<'_>,
        bound: Option<&GpuBound>,
        values: &Values<'_>,
        results: &Results<'_>,
        library: Library,
        ordinal: usize,
    ) -> PyResult<()> {
        let bound = bound.ok_or_else(|| {
            let names = self.constants().collect::<Vec<_>>().join(", ");
            PyTypeError::new_err(format!(
                "on a GPU, constants are given once: call compile(...).bind({names})"
            ))
        })?;
        let device = bound.device();
        let stream = streams::current(py, like(values, library), library, ordinal)?;
        let buffer = |tensor: &Tensor<'_>, name: &str| {
            if !tensor.is_contiguous() {
                return Err(PyValueError::new_err(format!(
                    "`{name}` is on a GPU and has gaps between its elements: give {name}.contiguous()"
                )));
            }
            // SAFETY: its library says that the elements are there; the call is ordered behind all that its stream does before
            // and ahead of all that it does afterwards, so nobody else uses them meanwhile.
            let made = unsafe {
                DeviceBuffer::foreign(device, tensor.dtype, &tensor.shape, tensor.start.addr() as u64)
            };
            made.map_err(|error| error::run(&self.source, error))
        };
        let (mut inputs, mut scalars) = (Vec::new(), SmallVec::<[Number; 4]>::new());
        for (value, parameter) in values.iter().zip(self.parameters.iter()) {
            match value {
                Value::Tensor(tensor) => inputs.push(buffer(tensor, &parameter.name)?),
                Value::Scalar(number) => scalars.push(*number),
            }
        }
        let names = self.signature().results.iter().map(|own| own.name.as_str());
        let mut written =
            results.iter().zip(names).map(|(own, name)| buffer(own, name)).collect::<PyResult<Vec<_>>>()?;
        let called = py.detach(|| {
            // SAFETY: its library says that this is its stream.
            unsafe { device.start_behind(stream)? };
            let inputs: Vec<&DeviceBuffer> = inputs.iter().collect();
            let mut results: Vec<&mut DeviceBuffer> = written.iter_mut().collect();
            let launched = bound.launch(&inputs, &mut results, &scalars);
            // SAFETY: as above.
            unsafe { device.finish_ahead_of(stream)? };
            launched?;
            if bound.may_fail() { bound.wait() } else { Ok(()) }
        });
        called.map_err(|error| error::run(&self.source, error))
    }
}

/// A tensor of a library.
fn like<'a, 'py>(values: &'a Values<'py>, library: Library) -> Option<&'a Bound<'py, PyAny>> {
    values.iter().find_map(|value| match value {
        Value::Tensor(tensor) if tensor.library == library => Some(&tensor.object),
        _ => None,
    })
}

/// The schedule of a program, and where it is from.
struct Chosen {
    schedule: Schedule,
    origin: String,
    /// Why it is not a better one.
    warning: Option<String>,
}

fn choose(program: &Program, machine: &Machine, wanted: Wanted) -> Chosen {
    let default = || (default_schedule(program, machine.target()), "default schedule");
    let mut warning = None;
    let (schedule, origin) = match wanted {
        Wanted::Given(schedule) => (schedule, "its own schedule"),
        Wanted::Default => default(),
        Wanted::Best => match known(program, machine) {
            Ok(Some(BestKnown { schedule, is_default: false, .. })) => (schedule, "tuned schedule"),
            Ok(_) => default(),
            Err(why) => {
                // Nothing is lost but speed.
                warning = Some(format!("{}; the default schedule is used", error::cache_text(&why)));
                default()
            }
        },
    };
    Chosen { schedule, origin: origin.to_owned(), warning }
}

/// The best schedule that the cache has.
fn known(program: &Program, machine: &Machine) -> Result<Option<BestKnown>, CacheError> {
    let cache = match Cache::open_existing(&cache_path()?) {
        Err(CacheError::Missing(_)) => return Ok(None),
        cache => cache?,
    };
    Ok(cache.best_schedule(program, machine.target())?.best)
}

/// How many elements are computed, with all that is added up for them.
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

fn named(memory: Memory) -> String {
    match memory {
        Memory::Host => "in the memory of the CPU".to_owned(),
        Memory::Cuda(ordinal) => format!("on cuda:{ordinal}"),
    }
}

fn elsewhere(what: &str, found: Memory, wanted: Memory) -> PyErr {
    PyValueError::new_err(format!(
        "{what} is {}, and others are {}: move it there",
        named(found),
        named(wanted)
    ))
}
