//! The class `Function`: a function of a source text. A call compiles it for the tensors that it is
//! called with, unless a kernel for such tensors exists.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use tilewright::ir::{
    Expr, ExprKind, IndexExpr, Number, Program, Role, ScalarId, SymbolId, SymbolKind, TensorId, print as text,
};
use tilewright::schedule::text::parse as parse_schedule;
use tilewright::syntax::diagnostic::Style;
use tilewright::syntax::sizes::{Sizes, size_names};
use tilewright::syntax::{Bindings, check, ranges_text};

use crate::arguments::{self, Parameter, Value, Values};
use crate::compiled::{Compiled, ScheduleChoice};
use crate::empty;
use crate::error::ProgramError;
use crate::kernel::Kernel;
use crate::place::Place;
use crate::source::{Source, Text};
use crate::tensor::{Memory, Tensor, with_parameter_name};

/// A function. A call with tensors of new shapes compiles a kernel for them. It keeps the 256
/// kernels that were used last.
#[pyclass(subclass, frozen, weakref, module = "tilewright")]
pub struct Function {
    /// The source text that defines the function.
    pub source: Arc<Source>,
    /// The name.
    pub name: String,
    /// The parameters, in order.
    pub parameters: Arc<[Parameter]>,
    /// The program for all sizes.
    pub general: Program,
    /// Whether a kernel is compiled for the value of each parameter.
    specialised: Vec<bool>,
    /// Whether a size is computed from each parameter.
    determines_size: Vec<bool>,
    /// Whether some results are declared with a shape, which may determine sizes that no input
    /// determines.
    results_determine_sizes: bool,
    kernels: Mutex<Kernels>,
}

/// The maximum number of kernels that a function keeps. The least recently used one is dropped.
const MAX_KERNELS: usize = 256;

/// The compiled kernels of a function.
#[derive(Default)]
struct Kernels {
    all: HashMap<Key, KeptKernel>,
    last: Option<Arc<Compiled>>,
    /// Whether the last kernel is for sizes that were given by name. A call without names needs
    /// another one.
    last_has_named_sizes: bool,
    /// The number of lookups so far.
    lookups: u64,
}

/// A kernel, and the lookup that used it last.
struct KeptKernel {
    compiled: Arc<Compiled>,
    used: u64,
}

/// The properties of a call that decide whether a kernel fits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    place: Place,
    /// For each tensor its number of dimensions and its extents, and the scalars that a kernel is
    /// compiled for.
    numbers: SmallVec<[i64; 12]>,
    /// Sizes that were given by name, sorted by name.
    named: Vec<(String, i64)>,
}

/// A call with its arguments.
pub struct Request<'py> {
    /// The arguments.
    pub values: Values<'py>,
    /// Sizes that were given by name.
    named: Vec<(String, i64)>,
    /// The place where the call runs.
    pub place: Place,
}

impl Request<'_> {
    /// Whether some size is 0: an extent of a tensor, or a size that was given by name.
    pub fn has_zero(&self) -> bool {
        let is_empty = |value: &Value<'_>| match value {
            Value::Tensor(tensor) => tensor.shape.contains(&0),
            Value::Scalar(_) => false,
        };
        self.values.iter().any(is_empty) || self.named.iter().any(|(_, value)| *value == 0)
    }
}

#[pymethods]
impl Function {
    #[new]
    fn new(text: &Text, name: &str) -> PyResult<Function> {
        let (source, name) = (Arc::clone(&text.source), name.to_owned());
        let parameters = arguments::parameters(source.function(&name)?);
        let general = source.program(&name, &Bindings::default())?;
        let is_size = |parameter: &Parameter| {
            general
                .symbols
                .iter()
                .any(|symbol| symbol.name == parameter.name && matches!(symbol.kind, SymbolKind::Scalar(_)))
        };
        let specialised = parameters.iter().map(is_size).collect();
        let scalars = general.derived.iter().flat_map(|derived| derived.scalars());
        let deriving: Vec<&str> = scalars.map(|id| general.scalars[id.index()].name.as_str()).collect();
        let determines_size =
            parameters.iter().map(|parameter| deriving.contains(&parameter.name.as_str())).collect();
        let results_determine_sizes =
            source.function(&name)?.results.iter().any(|result| result.ty.is_some());
        Ok(Function {
            source,
            name,
            parameters: parameters.into(),
            general,
            specialised,
            determines_size,
            results_determine_sizes,
            kernels: Mutex::default(),
        })
    }

    #[pyo3(signature = (*args, out = None, target = None, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        target: Option<&str>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if kwargs.is_none()
            && target.is_none()
            && !self.results_determine_sizes
            && let Some(last) = self.last_on_cpu()
            && let Some(result) = last.call_fast_path(py, args, out)?
        {
            return Ok(result);
        }
        let request = self.request(args, kwargs, out, target)?;
        if let Some(result) = empty::call(py, self, &request, out)? {
            return Ok(result);
        }
        let compiled = self.compiled(py, &request, out)?;
        compiled.call(py, &request.values, out)
    }

    /// Compiles a kernel for tensors like these. Calls of a kernel have little overhead.
    #[pyo3(signature = (*args, out = None, target = None, schedule = None, **kwargs))]
    fn compile<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        target: Option<&str>,
        schedule: Option<&str>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Kernel> {
        let request = self.request(args, kwargs, out, target)?;
        let Some(schedule) = schedule else {
            return Ok(Kernel::new(self.compiled(py, &request, out)?));
        };
        let wanted = match schedule {
            "default" => ScheduleChoice::Default,
            "auto" => ScheduleChoice::Auto,
            text => ScheduleChoice::Given(read_schedule(text)?),
        };
        let program = self.program(&request, out)?;
        let compiled = Compiled::new(py, &self.source, &self.parameters, program, request.place, wanted)?;
        Ok(Kernel::new(Arc::new(compiled)))
    }

    /// The name of the function.
    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    /// The types of the parameters and results.
    #[getter]
    fn signature(&self) -> String {
        signature(&self.general, &self.parameters)
    }

    /// Whether a product may be fused with the sum that uses it.
    #[getter]
    fn _contract(&self) -> bool {
        self.source.contract
    }

    /// The source text that defines the function.
    #[getter]
    fn text(&self) -> &str {
        &self.source.text
    }

    /// Name, type, and whether it is a tensor, for each parameter.
    #[getter]
    fn _parameters(&self) -> Vec<(String, String, bool)> {
        let own = |own: &Parameter| (own.name.clone(), own.dtype.name().to_owned(), own.is_tensor);
        self.parameters.iter().map(own).collect()
    }

    /// Whether a kernel is compiled for the value of each parameter. This holds for numbers that
    /// shapes or subscripts depend on.
    #[getter]
    fn _specialised(&self) -> Vec<bool> {
        let both = self.specialised.iter().zip(&self.determines_size);
        both.map(|(is_size, determines_size)| *is_size || *determines_size).collect()
    }

    /// The names of the sizes that scalars determine.
    #[getter]
    fn _derived(&self) -> Vec<&str> {
        let symbols =
            self.general.derived.iter().map(|derived| &self.general.symbols[derived.symbol.index()]);
        symbols.map(|symbol| symbol.name.as_str()).collect()
    }

    /// The values of the sizes that scalars determine, from the values of all other sizes and of
    /// the scalars, by name. Returns `None` if one has no value.
    fn _derived_sizes(
        &self,
        sizes: HashMap<String, i64>,
        scalars: HashMap<String, f64>,
    ) -> Option<HashMap<String, i64>> {
        let symbols = &self.general.symbols;
        let given = |id: SymbolId| sizes.get(&symbols[id.index()].name).copied();
        let scalar = |name: &str| scalars.get(name).copied().map(Number::Float);
        let values = self.general.derived_values(&given, &scalar)?;
        let derived = self.general.derived.iter().map(|own| own.symbol.index());
        Some(derived.map(|at| (symbols[at].name.clone(), values[at])).collect())
    }

    /// Whether a call checks afterwards that no subscript was out of bounds.
    #[getter]
    fn _is_checked(&self) -> bool {
        let statements = self.general.statements();
        statements
            .iter()
            .any(|(own, _)| own.indices.iter().any(IndexExpr::has_data) || reads_by_data(&own.value))
    }

    /// For each result: name, element type, shape in terms of sizes, and whether it is updated in
    /// place.
    #[getter]
    fn _results(&self) -> Vec<(String, String, Vec<String>, bool)> {
        let results = self.general.tensors_with(|role| matches!(role, Role::Output | Role::InOut));
        let shape = |own: &tilewright::ir::TensorDecl| {
            own.shape.iter().map(|extent| text::index(extent, &self.general)).collect()
        };
        results
            .map(|(_, own)| {
                (own.name.clone(), own.dtype.name().to_owned(), shape(own), own.role == Role::InOut)
            })
            .collect()
    }

    /// The name and the extents of each tensor parameter, as the program writes them.
    #[getter]
    fn _shapes(&self) -> Vec<(String, Vec<String>)> {
        let inputs = self.general.tensors_with(|role| matches!(role, Role::Input { .. }));
        let shape = |own: &tilewright::ir::TensorDecl| {
            own.shape.iter().map(|extent| text::index(extent, &self.general)).collect()
        };
        inputs.map(|(_, own)| (own.name.clone(), shape(own))).collect()
    }

    /// The ranges of the index variables, with the reason for each.
    #[getter]
    fn ranges(&self) -> String {
        let checked = check(&self.source.parsed.ast, &self.name, &Bindings::default());
        ranges_text(&self.source.text, &checked, &self.general).trim_end().to_owned()
    }

    /// The schedule of the kernel that was used last.
    #[getter]
    fn schedule(&self) -> PyResult<String> {
        Ok(self.last()?.schedule.to_string().trim_end().to_owned())
    }

    /// A stage of the kernel that was used last: "program", "ranges", "schedule", "loops", "llvm",
    /// "asm", "cuda" or "opencl".
    #[pyo3(signature = (stage = "loops"))]
    fn source(&self, py: Python<'_>, stage: &str) -> PyResult<String> {
        match (stage, self.last()) {
            ("ranges", _) => Ok(self.ranges()),
            ("program", Err(_)) => Ok(text::program(&self.general).trim_end().to_owned()),
            (_, last) => {
                let last = last?;
                py.detach(|| last.stage(stage))
            }
        }
    }

    /// The number of kernels that the function keeps.
    #[getter]
    fn _kernel_count(&self) -> usize {
        self.kernels().all.len()
    }

    /// Discards all compiled kernels. The next call looks up tuned schedules again.
    fn forget(&self) {
        *self.kernels() = Kernels::default();
    }

    fn __repr__(&self) -> String {
        let kernels = match self._kernel_count() {
            0 => "not compiled yet".to_owned(),
            1 => "1 kernel".to_owned(),
            many => format!("{many} kernels"),
        };
        format!("<tilewright function {}; {kernels}>", self.signature())
    }
}

impl Function {
    /// Reads the arguments of a call.
    pub fn request<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        out: Option<&Bound<'py, PyAny>>,
        target: Option<&str>,
    ) -> PyResult<Request<'py>> {
        let mut named = Vec::new();
        let values = arguments::read(&self.name, &self.parameters, args, kwargs, |name, object| {
            let sizes = size_names(self.source.function(&self.name)?);
            if !sizes.contains(&name) {
                return Ok(Err(sizes.iter().map(|size| (*size).to_owned()).collect()));
            }
            let whole = object.extract::<i64>();
            let value = whole.map_err(|error| with_parameter_name(object.py(), name, error))?;
            named.push((name.to_owned(), value));
            Ok(Ok(()))
        })?;
        let mut memory = values.iter().find_map(|value| match value {
            Value::Tensor(tensor) => Some(tensor.memory),
            Value::Scalar(_) => None,
        });
        if let (None, None, Some(out)) = (memory, target, out) {
            memory = self.memory_of_results(out)?;
        }
        let place = match target {
            Some(target) => Place::find(target)?,
            None => Place::of_memory(memory.unwrap_or(Memory::Host)),
        };
        Ok(Request { values, named, place })
    }

    /// Returns the kernel for a call, and compiles it if it is missing.
    pub fn compiled<'py>(
        &self,
        py: Python<'py>,
        request: &Request<'py>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Arc<Compiled>> {
        let key = self.key(request, out)?;
        if let Some(found) = self.find(&key) {
            return Ok(found);
        }
        let program = self.program(request, out)?;
        let place = request.place;
        // Several threads may compile the same kernel at the same time. A lock would avoid that,
        // but a process that is forked meanwhile would inherit it locked for ever.
        let made = Compiled::new(py, &self.source, &self.parameters, program, place, ScheduleChoice::Best)?;
        match self.find(&key) {
            Some(found) => Ok(found),
            None => Ok(self.keep(key, made)),
        }
    }

    fn kernels(&self) -> MutexGuard<'_, Kernels> {
        self.kernels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, key: &Key) -> Option<Arc<Compiled>> {
        let mut kernels = self.kernels();
        kernels.lookups += 1;
        let now = kernels.lookups;
        let kept = kernels.all.get_mut(key)?;
        kept.used = now;
        let found = Arc::clone(&kept.compiled);
        if !kernels.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, &found)) {
            kernels.last = Some(Arc::clone(&found));
            kernels.last_has_named_sizes = !key.named.is_empty();
        }
        Some(found)
    }

    /// Keeps a kernel for calls with this key.
    pub fn keep(&self, key: Key, made: Compiled) -> Arc<Compiled> {
        let made = Arc::new(made);
        let mut kernels = self.kernels();
        if kernels.all.len() >= MAX_KERNELS
            && let Some(oldest) =
                kernels.all.iter().min_by_key(|(_, kept)| kept.used).map(|(key, _)| key.clone())
        {
            kernels.all.remove(&oldest);
        }
        let used = kernels.lookups;
        kernels.last_has_named_sizes = !key.named.is_empty();
        kernels.all.insert(key, KeptKernel { compiled: Arc::clone(&made), used });
        kernels.last = Some(Arc::clone(&made));
        made
    }

    /// The kernel that was used last, if it runs on the CPU with the current number of threads, and
    /// the arguments of a call determine all its sizes.
    fn last_on_cpu(&self) -> Option<Arc<Compiled>> {
        let wanted = Place::of_memory(Memory::Host);
        let kernels = self.kernels();
        let last = kernels.last.as_ref().filter(|_| !kernels.last_has_named_sizes);
        last.filter(|last| last.place == wanted).cloned()
    }

    fn last(&self) -> PyResult<Arc<Compiled>> {
        self.kernels().last.clone().ok_or_else(|| {
            PyRuntimeError::new_err(format!(
                "`{}` was not compiled yet: call it, or give example tensors to compile(...)",
                self.name
            ))
        })
    }

    /// The properties of a call that decide which kernel fits.
    pub fn key<'py>(&self, request: &Request<'py>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Key> {
        let mut numbers = SmallVec::new();
        self.add_derived_sizes(request, &mut numbers);
        for (value, specialised) in request.values.iter().zip(&self.specialised) {
            match value {
                Value::Tensor(tensor) => extend(&mut numbers, tensor),
                Value::Scalar(number) if *specialised => {
                    numbers.push(i64::try_from(number.as_i128()).unwrap_or(i64::MAX));
                }
                Value::Scalar(_) => {}
            }
        }
        if let Some(out) = out.filter(|_| self.results_determine_sizes) {
            for (_, tensor) in self.typed_results(out)? {
                extend(&mut numbers, &tensor);
            }
        }
        let mut named = request.named.clone();
        named.sort_unstable();
        Ok(Key { place: request.place, numbers, named })
    }

    /// Appends the sizes that the scalars of a call determine. Where a size depends on other sizes
    /// too, or has no value, the scalars stand for it.
    fn add_derived_sizes(&self, request: &Request<'_>, numbers: &mut SmallVec<[i64; 12]>) {
        if self.general.derived.is_empty() {
            return;
        }
        let values = request.values.iter().zip(self.parameters.iter());
        let scalars: HashMap<&str, Number> = values
            .filter_map(|(value, own)| match value {
                Value::Scalar(number) => Some((own.name.as_str(), number.convert(own.dtype))),
                Value::Tensor(_) => None,
            })
            .collect();
        let scalar = |id: ScalarId| scalars.get(self.general.scalars[id.index()].name.as_str()).copied();
        for derived in &self.general.derived {
            match derived.evaluate(&|_| None, &scalar) {
                Ok(size) => numbers.push(size),
                Err(_) => numbers.extend(derived.scalars().into_iter().filter_map(scalar).map(exact_bits)),
            }
        }
    }

    /// The program at the sizes of a call.
    pub fn program<'py>(&self, request: &Request<'py>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Program> {
        let sizes = self.sizes(request, out)?;
        let program = self.source.program(&self.name, &sizes)?;
        let open: Vec<&str> =
            program.symbols.iter().filter(|own| own.value.is_none()).map(|own| own.name.as_str()).collect();
        if open.is_empty() {
            return Ok(program);
        }
        let open = open.join(", ");
        Err(PyTypeError::new_err(format!(
            "the tensors do not determine {open}: give it by name, as in {}(…, {}=…)",
            self.name,
            open.split(", ").next().unwrap_or_default()
        )))
    }

    /// The sizes that the arguments of a call determine.
    pub fn sizes<'py>(&self, request: &Request<'py>, out: Option<&Bound<'py, PyAny>>) -> PyResult<Bindings> {
        let function = self.source.function(&self.name)?;
        let mut sizes = Sizes::default();
        for (name, value) in &request.named {
            sizes.set(name, *value, "its argument");
        }
        let params = || function.params.iter().filter(|param| !param.is_static);
        for ((value, param), specialised) in request.values.iter().zip(params()).zip(&self.specialised) {
            if let (Value::Scalar(number), true) = (value, specialised) {
                let value = i64::try_from(number.as_i128());
                let value = value
                    .map_err(|_| PyValueError::new_err(format!("`{}` is too large", param.name.text)))?;
                sizes.set(&param.name.text, value, "its argument");
            }
        }
        for ((value, param), determines_size) in
            request.values.iter().zip(params()).zip(&self.determines_size)
        {
            if let (Value::Scalar(number), true) = (value, determines_size) {
                sizes.bindings.set_scalar(&param.name.text, *number);
            }
        }
        for (value, param) in request.values.iter().zip(params()) {
            if let Value::Tensor(tensor) = value {
                let taken =
                    sizes.infer_from_shape(&param.name, &param.ty, &tensor.shape, param.name.text.clone());
                taken.map_err(|found| ProgramError::new_err(self.source.draw(&[*found])))?;
            }
        }
        if let Some(out) = out.filter(|_| self.results_determine_sizes) {
            for (at, tensor) in self.typed_results(out)? {
                let result = &function.results[at];
                let Some(ty) = &result.ty else { continue };
                let taken = sizes.infer_from_shape(
                    &result.name,
                    ty,
                    &tensor.shape,
                    format!("out {}", result.name.text),
                );
                taken.map_err(|found| ProgramError::new_err(self.source.draw(&[*found])))?;
            }
        }
        Ok(sizes.bindings)
    }

    /// The memory that holds the tensors for the results, judged by the first of them.
    fn memory_of_results(&self, out: &Bound<'_, PyAny>) -> PyResult<Option<Memory>> {
        let function = self.source.function(&self.name)?;
        let names: Vec<&str> = function.results.iter().map(|result| result.name.text.as_str()).collect();
        let objects = crate::results::objects(&names, out)?;
        let first = objects.first().zip(names.first());
        first.map(|(object, name)| Ok(Tensor::read(object, name)?.memory)).transpose()
    }

    /// The tensors that were given for results with a declared shape.
    fn typed_results<'py>(&self, out: &Bound<'py, PyAny>) -> PyResult<Vec<(usize, Tensor<'py>)>> {
        let function = self.source.function(&self.name)?;
        let names: Vec<&str> = function.results.iter().map(|result| result.name.text.as_str()).collect();
        let objects = crate::results::objects(&names, out)?;
        let mut found = Vec::new();
        for (at, (object, result)) in objects.iter().zip(&function.results).enumerate() {
            if result.ty.is_some() {
                found.push((at, Tensor::read(object, &result.name.text)?));
            }
        }
        Ok(found)
    }
}

/// A number that differs for different scalars of one type.
fn exact_bits(number: Number) -> i64 {
    match number {
        Number::Int(value) => value as i64,
        Number::Float(value) => value.to_bits() as i64,
    }
}

/// Appends the number of dimensions and the extents of a tensor.
fn extend(numbers: &mut SmallVec<[i64; 12]>, tensor: &Tensor<'_>) {
    numbers.push(tensor.shape.len() as i64);
    numbers.extend(tensor.shape.iter().map(|extent| *extent as i64));
}

/// Formats `name(float32(M, K) A, float32 a) -> (float32(M) y)`.
fn signature(program: &Program, parameters: &[Parameter]) -> String {
    let tensor = |name: &str| program.tensors.iter().position(|own| own.name == name);
    let typed = |name: &str, at: usize| format!("{} {name}", text::tensor_type(program, TensorId(at as u32)));
    let takes = parameters.iter().map(|own| match tensor(&own.name) {
        Some(at) => typed(&own.name, at),
        None => format!("{} {}", own.dtype, own.name),
    });
    let results = program.tensors_with(|role| matches!(role, Role::Output | Role::InOut));
    let gives = results.map(|(tensor, own)| typed(&own.name, tensor.index()));
    let (takes, gives) = (takes.collect::<Vec<_>>(), gives.collect::<Vec<_>>());
    format!("{}({}) -> ({})", program.name, takes.join(", "), gives.join(", "))
}

/// Whether a subscript of a load in the expression depends on data.
fn reads_by_data(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Load(access) => access.indices.iter().any(IndexExpr::has_data),
        _ => value.operands().iter().any(reads_by_data),
    }
}

/// Parses a schedule. The exception shows all mistakes under its text.
fn read_schedule(source: &str) -> PyResult<tilewright::schedule::Schedule> {
    let parsed = parse_schedule(source);
    if parsed.has_errors() {
        let errors = parsed.diagnostics.iter().filter(|found| found.is_error());
        let drawn: Vec<String> =
            errors.map(|found| found.render("schedule", source, Style::default())).collect();
        return Err(ProgramError::new_err(format!("\n{}", drawn.join("\n").trim_end())));
    }
    Ok(parsed.schedule)
}
