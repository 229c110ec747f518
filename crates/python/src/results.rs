//! Reads the tensors that the caller gives for results, or makes new ones of the same library as
//! the inputs.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple};
use smallvec::SmallVec;
use tilewright::ir::{DType, Role};
use tilewright::runtime::signature::Parameter;
use tilewright::syntax::sizes::shape_text;
use tilewright::target::GpuApi;

use crate::arguments::{Value, counted};
use crate::arrays;
use crate::device_tensor;
use crate::dlpack::{self, DlDevice};
use crate::exchange;
use crate::place::open;
use crate::tensor::{Library, Memory, Tensor, of_torch, refuse_invalid_bools, torch};

/// The tensors of one call's results, in the order of the signature.
pub type Results<'py> = SmallVec<[Tensor<'py>; 2]>;

/// Makes new tensors for all results, of the same library as `like`.
pub fn make_results<'py>(
    py: Python<'py>,
    parameters: &[Parameter],
    library: Library,
    memory: Memory,
    like: Option<&Bound<'py, PyAny>>,
) -> PyResult<Results<'py>> {
    let mut results = Results::new();
    for parameter in parameters {
        if parameter.role == Role::InOut {
            return Err(PyTypeError::new_err(format!(
                "`{0}` is updated, so it needs an initial value: give out={0}",
                parameter.name
            )));
        }
        let (dtype, shape) = (parameter.layout.dtype(), parameter.layout.shape());
        results.push(match (library, memory) {
            (Library::NumPy | Library::Jax, Memory::Host) => arrays::make(py, dtype, shape)?,
            (Library::Torch, _) => make_torch(like, dtype, shape, memory)?,
            (Library::NumPy | Library::Jax, Memory::Cuda(ordinal)) => {
                let device = open(GpuApi::Cuda, ordinal)?;
                device_tensor::make(py, &device, ordinal, dtype, shape, library)?
            }
        });
    }
    Ok(results)
}

fn make_torch<'py>(
    like: Option<&Bound<'py, PyAny>>,
    dtype: DType,
    shape: &[usize],
    memory: Memory,
) -> PyResult<Tensor<'py>> {
    let like = like.ok_or_else(|| {
        PyTypeError::new_err("no argument is a PyTorch tensor, so the results have no device")
    })?;
    let py = like.py();
    // On a GPU, the tensor must come from PyTorch's own allocator, which keeps track of streams.
    let table = if memory == Memory::Host { exchange::table_of(like) } else { None };
    let here = DlDevice { kind: dlpack::CPU, ordinal: 0 };
    if let Some(made) = table.and_then(|table| table.make(py, dtype, shape, here)) {
        return of_torch(&made?);
    }
    let options = PyDict::new(py);
    options.set_item(intern!(py, "dtype"), torch(py)?.getattr(dtype.name())?)?;
    // `new_empty` inherits the device of `like`, so that PyTorch has fewer arguments to parse.
    let extents = PyTuple::new(py, shape)?;
    let empty = like.call_method(intern!(py, "new_empty"), (extents,), Some(&options))?;
    of_torch(&empty)
}

/// Reads the tensors that the caller gives: one, or a tuple, list or dict of several.
pub fn read_out_argument<'py>(parameters: &[Parameter], out: &Bound<'py, PyAny>) -> PyResult<Results<'py>> {
    let names: SmallVec<[&str; 2]> = parameters.iter().map(|own| own.name.as_str()).collect();
    let objects = objects(&names, out)?;
    let mut results = Results::new();
    for (parameter, object) in parameters.iter().zip(&objects) {
        let tensor = Tensor::read(object, &parameter.name)?;
        refuse_unsuitable(parameter, &tensor)?;
        if parameter.role == Role::InOut {
            refuse_invalid_bools(&tensor, &parameter.name)?;
        }
        results.push(tensor);
    }
    Ok(results)
}

/// Returns the objects for results of these names: one, or a tuple, list or dict of several.
pub fn objects<'py>(names: &[&str], out: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let listed = || names.join(", ");
    let several = match (out.cast::<PyTuple>(), out.cast::<PyList>(), out.cast::<PyDict>()) {
        (Ok(tuple), _, _) => tuple.iter().collect(),
        (_, Ok(list), _) => list.iter().collect(),
        (_, _, Ok(dict)) => {
            let one = |name: &&str| {
                dict.get_item(name)?.ok_or_else(|| PyTypeError::new_err(format!("out has no `{name}`")))
            };
            let found = names.iter().map(one).collect::<PyResult<Vec<_>>>()?;
            if dict.len() > found.len() {
                let message = format!("out has names that are not results; the results are: {}", listed());
                return Err(PyTypeError::new_err(message));
            }
            found
        }
        _ => vec![out.clone()],
    };
    if several.len() != names.len() {
        return Err(PyTypeError::new_err(format!(
            "the function has {} ({}), and out has {}",
            counted(names.len(), "result"),
            listed(),
            several.len()
        )));
    }
    Ok(several)
}

fn refuse_unsuitable(parameter: &Parameter, tensor: &Tensor<'_>) -> PyResult<()> {
    let name = &parameter.name;
    if tensor.dtype != parameter.layout.dtype() {
        return Err(PyTypeError::new_err(format!(
            "the result `{name}` is {}, and the tensor for it {}",
            parameter.layout.dtype(),
            tensor.dtype
        )));
    }
    if tensor.shape.as_slice() != parameter.layout.shape() {
        let (wanted, found) = (shape_text(parameter.layout.shape()), shape_text(&tensor.shape));
        return Err(PyValueError::new_err(format!(
            "the result `{name}` has the shape {wanted}, and the tensor for it {found}"
        )));
    }
    if !tensor.writable {
        let why = match tensor.library {
            Library::Jax => "arrays of JAX cannot be written to",
            _ => "it is read-only",
        };
        return Err(PyValueError::new_err(format!("the tensor for the result `{name}` is refused: {why}")));
    }
    if tensor.overlaps_itself() {
        return Err(PyValueError::new_err(format!(
            "the tensor for the result `{name}` has several elements at one address, like a broadcast tensor"
        )));
    }
    Ok(())
}

/// Refuses results that share memory with inputs or with each other, because kernels read and write
/// in any order.
pub fn refuse_overlap(
    parameters: &[Parameter],
    results: &[Tensor<'_>],
    names: impl Fn(usize) -> String,
    values: &[Value<'_>],
) -> PyResult<()> {
    let refused = |name: &str, other: &str| {
        let message =
            format!("the result `{name}` shares memory with `{other}`, which may change while it is read");
        Err(PyValueError::new_err(message))
    };
    for (at, (parameter, result)) in parameters.iter().zip(results).enumerate() {
        for (place, value) in values.iter().enumerate() {
            if let Value::Tensor(tensor) = value
                && tensor.memory == result.memory
                && result.may_share(tensor)
            {
                return refused(&parameter.name, &names(place));
            }
        }
        if let Some(other) = (0..at).find(|other| result.may_share(&results[*other])) {
            return refused(&parameter.name, &parameters[other].name);
        }
    }
    Ok(())
}

/// Tells PyTorch that tensors were written to, so that it refuses a gradient that needs the old
/// values.
fn mark_changed(py: Python<'_>, results: &Results<'_>) -> PyResult<()> {
    static INCREMENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    for result in results.iter().filter(|result| result.library == Library::Torch) {
        INCREMENT.import(py, "torch.autograd.graph", "increment_version")?.call1((&result.object,))?;
    }
    Ok(())
}

/// Converts a result to a JAX array, unless JAX would truncate its elements to 32 bits.
fn to_jax_array(tensor: Tensor<'_>) -> PyResult<Bound<'_, PyAny>> {
    let py = tensor.object.py();
    let is_wide = matches!(tensor.dtype, DType::Int64 | DType::UInt64 | DType::Float64);
    if is_wide && !py.import("jax")?.getattr("config")?.getattr("jax_enable_x64")?.is_truthy()? {
        return Ok(tensor.object);
    }
    match tensor.memory {
        Memory::Host => py.import("jax.numpy")?.call_method1("asarray", (tensor.object,)),
        Memory::Cuda(_) => py.import("jax.dlpack")?.call_method1("from_dlpack", (tensor.object,)),
    }
}

/// The return value of a call: a tensor, or a tuple of several tensors.
pub fn return_value<'py>(
    py: Python<'py>,
    results: Results<'py>,
    library: Library,
    has_out_argument: bool,
) -> PyResult<Bound<'py, PyAny>> {
    if has_out_argument {
        mark_changed(py, &results)?;
    }
    let to_jax = library == Library::Jax && !has_out_argument;
    let object = |tensor: Tensor<'py>| if to_jax { to_jax_array(tensor) } else { Ok(tensor.object) };
    let mut objects = results.into_iter().map(object);
    if objects.len() == 1
        && let Some(only) = objects.next()
    {
        return only;
    }
    Ok(PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)?.into_any())
}
