//! From Python's arguments to the parameters of a function.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyTuple};
use smallvec::SmallVec;
use tilewright_ir::{DType, Number};
use tilewright_syntax::ast::Function;
use tilewright_syntax::diagnostic::similar;

use crate::tensor::{Tensor, about, refuse_odd_bools};

/// A parameter as the function declares it.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The type of it, or of its elements.
    pub dtype: DType,
    /// Whether it is a tensor.
    pub is_tensor: bool,
}

/// What was given for a parameter.
pub enum Value<'py> {
    /// A tensor.
    Tensor(Tensor<'py>),
    /// A number.
    Scalar(Number),
}

/// One for each parameter, in order.
pub type Values<'py> = SmallVec<[Value<'py>; 6]>;

/// The parameters of a function, in order.
pub fn parameters(function: &Function) -> Vec<Parameter> {
    let parameter = |param: &tilewright_syntax::ast::Param| Parameter {
        name: param.name.text.clone(),
        dtype: param.ty.dtype,
        is_tensor: !param.ty.dims.is_empty(),
    };
    function.params.iter().map(parameter).collect()
}

/// Reads the arguments of a call. Names that are no parameters are told to `other`, which says whether it knows them.
pub fn read<'py>(
    function: &str,
    parameters: &[Parameter],
    args: &Bound<'py, PyTuple>,
    kwargs: Option<&Bound<'py, PyDict>>,
    mut other: impl FnMut(&str, &Bound<'py, PyAny>) -> PyResult<bool>,
) -> PyResult<Values<'py>> {
    if args.len() > parameters.len() {
        let takes = parameters.iter().map(|own| own.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(PyTypeError::new_err(format!(
            "{function}({takes}) takes {} arguments, and {} were given; results go into out=",
            parameters.len(),
            args.len()
        )));
    }
    let mut values = Values::new();
    if kwargs.is_none() && args.len() == parameters.len() {
        for (parameter, object) in parameters.iter().zip(args.iter_borrowed()) {
            values.push(value(parameter, &object)?);
        }
        return Ok(values);
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
                None if other(&name, &object)? => {}
                None => return Err(unknown(function, parameters, &name)),
            }
        }
    }
    for (at, parameter) in parameters.iter().enumerate() {
        let named = |kwargs: &Bound<'py, PyDict>| kwargs.get_item(&parameter.name);
        let object = match args.get_item(at) {
            Ok(object) => Some(object),
            Err(_) => kwargs.map(named).transpose()?.flatten(),
        };
        let missing = || PyTypeError::new_err(format!("{function}() misses `{}`", parameter.name));
        values.push(value(parameter, &object.ok_or_else(missing)?)?);
    }
    Ok(values)
}

fn unknown(function: &str, parameters: &[Parameter], name: &str) -> PyErr {
    let names = || parameters.iter().map(|own| own.name.as_str());
    let hint = similar(name, names()).map(|close| format!(" Did you mean {close}?")).unwrap_or_default();
    let listed = names().collect::<Vec<_>>().join(", ");
    PyTypeError::new_err(format!("{function}() has no parameter `{name}`.{hint} It has: {listed}"))
}

/// What was given for a parameter, checked to be of its type.
fn value<'py>(parameter: &Parameter, object: &Bound<'py, PyAny>) -> PyResult<Value<'py>> {
    if !parameter.is_tensor {
        return Ok(Value::Scalar(number(&parameter.name, parameter.dtype, object)?));
    }
    let tensor = Tensor::read(object, &parameter.name)?;
    refuse_other_type(&parameter.name, parameter.dtype, &tensor)?;
    refuse_odd_bools(&tensor, &parameter.name)?;
    Ok(Value::Tensor(tensor))
}

/// Refuses elements of another type, and says how to convert them.
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

/// A number of a type. Whole ones are not rounded for it.
pub fn number(name: &str, dtype: DType, object: &Bound<'_, PyAny>) -> PyResult<Number> {
    let py = object.py();
    let wrong = |what: &str| {
        let class = object.get_type().name().map_or("an object".to_owned(), |name| name.to_string());
        PyTypeError::new_err(format!("`{name}` is {dtype} and takes {what}, not {class}"))
    };
    if dtype.is_float() {
        let number: f64 = object.extract().map_err(|_| wrong("a number"))?;
        return Ok(Number::Float(number).convert(dtype));
    }
    if dtype == DType::Bool {
        let number = object.cast::<PyBool>().map(|own| own.is_true());
        let number = number.or_else(|_| object.extract::<bool>()).map_err(|_| wrong("True or False"))?;
        return Ok(Number::Int(number.into()));
    }
    let whole = object.call_method0(pyo3::intern!(py, "__index__")).map_err(|_| wrong("a whole number"))?;
    let (low, high) = dtype.integer_bounds().unwrap_or((i128::MIN, i128::MAX));
    let number: Option<i128> = whole.extract().ok();
    match number.filter(|number| (low..=high).contains(number)) {
        Some(number) => Ok(Number::Int(number)),
        None => {
            let error = PyOverflowError::new_err(format!("{whole} is not between {low} and {high}"));
            Err(about(py, name, error))
        }
    }
}
