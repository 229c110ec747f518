//! Reads the Python arguments of a call as tensors and numbers, one for each parameter of the
//! function.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyTuple};
use smallvec::SmallVec;
use tilewright::ir::{DType, Number};
use tilewright::syntax::ast::Function;
use tilewright::syntax::diagnostic::most_similar;

use crate::tensor::{Tensor, refuse_gradient, refuse_invalid_bools, with_parameter_name};

/// A parameter as the function declares it.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The name.
    pub name: String,
    /// The type of the number, or of the tensor's elements.
    pub dtype: DType,
    /// Whether the parameter is a tensor.
    pub is_tensor: bool,
}

/// The argument for a parameter.
pub enum Value<'py> {
    /// A tensor.
    Tensor(Tensor<'py>),
    /// A number.
    Scalar(Number),
}

/// The arguments of a call: one for each parameter, in order.
pub type Values<'py> = SmallVec<[Value<'py>; 6]>;

/// The parameters of a function, in order. Static parameters are given by name, like sizes.
pub fn parameters(function: &Function) -> Vec<Parameter> {
    let parameter = |param: &tilewright::syntax::ast::Param| Parameter {
        name: param.name.text.clone(),
        dtype: param.ty.dtype,
        is_tensor: !param.ty.dims.is_empty(),
    };
    function.params.iter().filter(|param| !param.is_static).map(parameter).collect()
}

/// Reads the arguments of a call. `other` receives the names that are no parameters. For a name
/// that it does not know, it returns the names that it knows.
pub fn read<'py>(
    function: &str,
    parameters: &[Parameter],
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    mut other: impl FnMut(&str, &Bound<'py, PyAny>) -> PyResult<Result<(), Vec<String>>>,
) -> PyResult<Values<'py>> {
    let args = &tensors_of_lists(parameters, args)?;
    let kwargs = kwargs.map(|kwargs| named_tensors_of_lists(parameters, kwargs)).transpose()?;
    let kwargs = kwargs.as_ref();
    if args.len() > parameters.len() {
        let takes = parameters.iter().map(|own| own.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(PyTypeError::new_err(format!(
            "{function}({takes}) takes {}, and was given {}; results go into out=",
            counted(parameters.len(), "argument"),
            args.len()
        )));
    }
    if let Some(kwargs) = kwargs {
        for (name, object) in kwargs {
            let name = name.to_string();
            let place = parameters.iter().position(|own| own.name == name);
            match place {
                Some(place) if place < args.len() => {
                    return Err(PyTypeError::new_err(format!("{function}() got two values for `{name}`")));
                }
                Some(_) => {}
                None => {
                    if let Err(known) = other(&name, &object)? {
                        return Err(unknown(function, parameters, &known, &name));
                    }
                }
            }
        }
    }
    let mut objects: SmallVec<[Bound<'py, PyAny>; 6]> = SmallVec::new();
    for (at, parameter) in parameters.iter().enumerate() {
        let named = |kwargs: &Bound<'py, PyDict>| kwargs.get_item(&parameter.name);
        let object = match args.get_item(at) {
            Ok(object) => Some(object),
            Err(_) => kwargs.map(named).transpose()?.flatten(),
        };
        let missing =
            || PyTypeError::new_err(format!("{function}() is missing the argument `{}`", parameter.name));
        objects.push(object.ok_or_else(missing)?);
    }
    // Numbers are read first, because their conversion may run Python code, which must not change a
    // tensor that was checked before.
    let mut numbers: SmallVec<[Option<Number>; 6]> = SmallVec::new();
    for (parameter, object) in parameters.iter().zip(&objects) {
        let is_number = !parameter.is_tensor;
        numbers.push(is_number.then(|| number(&parameter.name, parameter.dtype, object)).transpose()?);
    }
    let mut values = Values::new();
    for ((parameter, object), number) in parameters.iter().zip(&objects).zip(numbers) {
        values.push(match number {
            Some(number) => Value::Scalar(number),
            None => Value::Tensor(tensor(parameter, object)?),
        });
    }
    Ok(values)
}

/// The arguments with the tensors of a list in its place, where the parameters begin a list: `g_0`.
fn tensors_of_lists<'py>(
    parameters: &[Parameter],
    args: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyTuple>> {
    if !args.iter().any(|object| is_list(&object)) {
        return Ok(args.clone());
    }
    let mut all = Vec::new();
    for object in args {
        let begins_list = parameters.get(all.len()).is_some_and(|own| own.name.ends_with("_0"));
        match begins_list && is_list(&object) {
            true => all.extend(object.try_iter()?.collect::<PyResult<Vec<_>>>()?),
            false => all.push(object),
        }
    }
    PyTuple::new(args.py(), all)
}

/// The named arguments, with `g_0`, `g_1` and so on for a list that is given as `g`.
fn named_tensors_of_lists<'py>(
    parameters: &[Parameter],
    kwargs: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(kwargs.py());
    for (name, object) in kwargs {
        let element = |at: usize| format!("{name}_{at}");
        let has_list = parameters.iter().any(|own| own.name == element(0));
        if !(has_list && is_list(&object)) {
            all.set_item(name, object)?;
            continue;
        }
        for (at, tensor) in object.try_iter()?.enumerate() {
            all.set_item(element(at), tensor?)?;
        }
    }
    Ok(all)
}

fn is_list(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>()
}

/// Formats a count: `1 argument`, `2 arguments`.
pub fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn unknown(function: &str, parameters: &[Parameter], sizes: &[String], name: &str) -> PyErr {
    let is_parameter = |size: &&str| parameters.iter().any(|own| own.name == *size);
    let sizes = || sizes.iter().map(String::as_str).filter(|size| !is_parameter(size));
    let names = || parameters.iter().map(|own| own.name.as_str()).chain(sizes());
    let hint = most_similar(name, names()).map(|close| format!(" Did you mean {close}?")).unwrap_or_default();
    let listed = names().collect::<Vec<_>>().join(", ");
    PyTypeError::new_err(format!("{function}() has no parameter `{name}`.{hint} It has: {listed}"))
}

/// Reads the tensor for a parameter, and checks its element type.
fn tensor<'py>(parameter: &Parameter, object: &Bound<'py, PyAny>) -> PyResult<Tensor<'py>> {
    let tensor = Tensor::read(object, &parameter.name)?;
    refuse_other_type(&parameter.name, parameter.dtype, &tensor)?;
    refuse_invalid_bools(&tensor, &parameter.name)?;
    Ok(tensor)
}

/// Refuses a tensor of another element type, and says how to convert it.
pub fn refuse_other_type(name: &str, wanted: DType, tensor: &Tensor<'_>) -> PyResult<()> {
    use crate::tensor::Library;
    if tensor.dtype == wanted {
        return Ok(());
    }
    let convert = match (tensor.library, wanted) {
        (Library::Torch, _) => format!("{name}.to(torch.{wanted})"),
        (Library::Jax, _) => format!("{name}.astype(jnp.{wanted})"),
        (Library::NumPy, DType::BFloat16) => format!("{name}.astype(ml_dtypes.bfloat16)"),
        (Library::NumPy, DType::Bool) => format!("{name}.astype(np.bool_)"),
        (Library::NumPy, _) => format!("{name}.astype(np.{wanted})"),
    };
    Err(PyTypeError::new_err(format!(
        "`{name}` is {wanted} in the program, and {} was given: convert it, with {convert}",
        tensor.dtype
    )))
}

/// Reads a number of a type. A float is never rounded to an integer.
pub fn number(name: &str, dtype: DType, object: &Bound<'_, PyAny>) -> PyResult<Number> {
    let py = object.py();
    let wrong = |what: &str| {
        let class = object.get_type().name().map_or("an object".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("`{name}` is {dtype} and takes {what}, not {class}"))
    };
    // An exception of the object itself, other than `TypeError`, says more than a generic message.
    let other = |error: PyErr, what: &str| match error.is_instance_of::<PyTypeError>(py) {
        true => wrong(what),
        false => with_parameter_name(py, name, error),
    };
    refuse_gradient(object, name)?;
    if dtype.is_float() {
        let number: f64 = object.extract().map_err(|error| other(error, "a number"))?;
        return Ok(Number::Float(number).convert(dtype));
    }
    if dtype == DType::Bool {
        let number = object.cast::<PyBool>().map(|own| own.is_true());
        let number = number.or_else(|_| object.extract::<bool>());
        // A tensor without dimensions is not a number, but holds one.
        let number = number.or_else(|error| match object.hasattr(pyo3::intern!(py, "item"))? {
            true => object.call_method0(pyo3::intern!(py, "item"))?.extract::<bool>(),
            false => Err(error),
        });
        let number = number.map_err(|error| other(error, "True or False"))?;
        return Ok(Number::Int(number.into()));
    }
    if !object.hasattr(pyo3::intern!(py, "__index__"))? {
        return Err(wrong("a whole number"));
    }
    let whole = object
        .call_method0(pyo3::intern!(py, "__index__"))
        .map_err(|error| other(error, "a whole number"))?;
    let (low, high) = dtype.integer_bounds().unwrap_or((i128::MIN, i128::MAX));
    let number: Option<i128> = whole.extract().ok();
    match number.filter(|number| (low..=high).contains(number)) {
        Some(number) => Ok(Number::Int(number)),
        None => {
            let error = PyOverflowError::new_err(format!("{whole} is not between {low} and {high}"));
            Err(with_parameter_name(py, name, error))
        }
    }
}
