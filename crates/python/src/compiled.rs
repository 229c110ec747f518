//! A function at given sizes, compiled for a place, and its calls.

use std::ffi::CString;
use std::sync::Arc;

use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use tilewright_cache::{BestKnown, Cache, CacheError};
use tilewright_codegen::c_family::gpu_code;
use tilewright_codegen::{assembly, llvm_ir};
use tilewright_ir::{LoopNest, Number, Program, VarId, print as text};
use tilewright_runtime::{Signature, View, ViewMut};
use tilewright_schedule::{Schedule, apply, blame, default_schedule};
use tilewright_target::{GpuApi, Machine};

use crate::arguments::{Parameter, Value, Values};
use crate::code::Code;
use crate::error;
use crate::place::{Place, cache_path, refuse_forked};
use crate::pools;
use crate::quick::{self, Addresses, Pointers, Quick};
use crate::results::{self, Results};
use crate::source::Source;
use crate::stack::with_stack;
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
    /// The code.
    pub code: Code,
    /// How arrays of NumPy are called with the least effort, where that is possible.
    quick: Option<Quick>,
    /// Whether a call is over before another thread could make use of the interpreter.
    is_tiny: bool,
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

    /// The same, with what there is to warn of. Takes a deep stack.
    pub fn make(
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
        let about = format!("{}\n\n{schedule}", program.name);
        let code = Code::new(&program, &nest, &machine, place, &about)?;
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
        self.code.signature()
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
        self.code.bind(constants).map_err(|error| error::run(&self.source, error))?;
        if self.code.threads().is_some() {
            self.quick = Quick::new(&self.parameters, self.code.signature());
        }
        Ok(())
    }

    /// The same with its constants given once for all calls.
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
        let given = out.map(|out| results::given(&signature.results, out)).transpose()?;
        let (library, memory) = self.whose(values, given.as_deref().unwrap_or_default())?;
        let mut results = match given {
            None => results::make(py, &signature.results, library, memory, like(values, library))?,
            Some(given) => {
                if let Some(other) = given.iter().find(|given| given.memory != memory) {
                    return Err(elsewhere("out", other.memory, memory));
                }
                let name = |at: usize| self.parameters[at].name.clone();
                results::refuse_overlap(&signature.results, &given, name, values)?;
                given
            }
        };
        match (&self.code, memory) {
            (_, Memory::Host) => self.call_here(py, values, &mut results)?,
            (Code::Gpu { .. }, Memory::Cuda(ordinal)) => {
                self.call_there(py, values, &results, out.is_some(), ordinal)?;
            }
            (Code::Cpu { .. }, Memory::Cuda(_)) => return Err(elsewhere("a tensor", memory, Memory::Host)),
        }
        results::returned(py, results, library, out.is_some())
    }

    /// Whose the tensors are, and where all of them lie; where no input is one, those for the results say it.
    fn whose(&self, values: &Values<'_>, results: &[Tensor<'_>]) -> PyResult<(Library, Memory)> {
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
        if let (None, [first, ..]) = (memory, results) {
            (library, memory) = (first.library, Some(first.memory));
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
        let pool = self.code.threads().map(|threads| pools::pool(py, threads));
        let called =
            py.detach(|| self.code.run(pool.as_deref(), &constants, &inputs, &mut written, &scalars));
        called.map_err(|error| error::run(&self.source, error))
    }

    /// Whether this one of the parameters that are tensors is a constant.
    pub fn is_constant_tensor(&self, at: usize) -> bool {
        let mut tensors = self.parameters.iter().zip(&self.is_constant).filter(|(own, _)| own.is_tensor);
        tensors.nth(at).is_some_and(|(_, is_constant)| *is_constant)
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
