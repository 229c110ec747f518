//! Calls a function if a size is 0. The interpreter computes the results, and nothing is compiled.

use std::collections::BTreeMap;

use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use tilewright::driver::zero_sizes::empty_program;
use tilewright::interp::{Inputs, RunError, run};
use tilewright::ir::{Program, Role, Tensor as Values};
use tilewright::runtime::{Buffer, Signature};
use tilewright::syntax::{Code, Diagnostic};

use crate::arguments::Value;
use crate::error;
use crate::function::{Function, Request};
use crate::results::{self, Results};
use crate::source::Source;
use crate::stack::with_stack;
use crate::tensor::{Library, Memory, Tensor};
use crate::tune::example_inputs;

/// Calls a function if some size is 0. Returns `None` for other calls, and for sizes at which the
/// function does not exist; compiling the function reports those.
pub fn call<'py>(
    py: Python<'py>,
    function: &Function,
    request: &Request<'py>,
    out: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    if !request.has_zero() {
        return Ok(None);
    }
    let (source, sizes) = (&function.source, function.sizes(request, out)?);
    let program = with_stack(|| empty_program(&source.parsed, &function.name, &sizes, source.contract));
    let Some(program) = program else { return Ok(None) };
    let signature = Signature::new(&program).map_err(|name| error::bug(&name))?;
    let whose = ResultKind::of(request);
    let mut results = match out {
        Some(out) => results::read_out_argument(&signature.results, out)?,
        None => {
            results::make_results(py, &signature.results, whose.library, whose.memory, whose.like.as_ref())?
        }
    };
    let inputs = inputs(function, request, &signature, &results)?;
    let found = py.detach(|| with_stack(|| run(&program, inputs))).map_err(|error| failed(source, error))?;
    write(source, &program, found, &mut results)?;
    results::return_value(py, results, whose.library, out.is_some()).map(Some)
}

/// The library and the memory of the results, and a tensor of this library.
struct ResultKind<'py> {
    library: Library,
    memory: Memory,
    like: Option<Bound<'py, PyAny>>,
}

impl<'py> ResultKind<'py> {
    /// Results are like the first input that is not NumPy's, as in every call.
    fn of(request: &Request<'py>) -> ResultKind<'py> {
        let tensors = || {
            request.values.iter().filter_map(|value| match value {
                Value::Tensor(tensor) => Some(tensor),
                Value::Scalar(_) => None,
            })
        };
        let first = tensors().find(|tensor| tensor.library != Library::NumPy).or_else(|| tensors().next());
        ResultKind {
            library: first.map_or(Library::NumPy, |first| first.library),
            memory: first.map_or(Memory::Host, |first| first.memory),
            like: first.map(|first| first.object.clone()),
        }
    }
}

/// The arguments, and the values that updated results begin with.
fn inputs(
    function: &Function,
    request: &Request<'_>,
    signature: &Signature,
    results: &Results<'_>,
) -> PyResult<Inputs> {
    let mut inputs = example_inputs(function, request)?;
    let updated = signature.results.iter().zip(results).filter(|(own, _)| own.role == Role::InOut);
    for (parameter, tensor) in updated {
        refuse_device(tensor)?;
        // SAFETY: the tensor is in the host's memory, and nothing writes to it while the
        // interpreter lock is held.
        let packed = Buffer::pack(&unsafe { tensor.view() }).and_then(|packed| packed.to_tensor());
        let packed = packed.map_err(|error| error::run(&function.source, error.into()))?;
        inputs.tensors.insert(parameter.name.clone(), packed);
    }
    Ok(inputs)
}

/// Copies the results of the interpreter to their tensors.
fn write(
    source: &Source,
    program: &Program,
    mut found: BTreeMap<String, Values>,
    results: &mut Results<'_>,
) -> PyResult<()> {
    let names = program.tensors_with(Role::is_result).map(|(_, own)| &own.name);
    for (name, result) in names.zip(results) {
        let Some(values) = found.remove(name).filter(|values| !values.is_empty()) else { continue };
        refuse_device(result)?;
        let values = Buffer::from_tensor(&values).map_err(|error| error::run(source, error.into()))?;
        // SAFETY: the tensor is in the host's memory, and has the type and shape of the result. The
        // interpreter lock is held.
        values.unpack(&mut unsafe { result.view_mut() }).map_err(|error| error::bug(&error))?;
    }
    Ok(())
}

/// Only results without elements may be on a GPU, because nothing has to be written to them.
fn refuse_device(result: &Tensor<'_>) -> PyResult<()> {
    match result.memory {
        Memory::Host => Ok(()),
        Memory::Cuda(_) => Err(PyValueError::new_err(
            "a size is 0, and a result has elements on a GPU: give the tensors in the memory of the CPU",
        )),
    }
}

/// The exception for a program that is not defined at these sizes.
fn failed(source: &Source, error: RunError) -> PyErr {
    match error {
        RunError::OutOfBounds(out) => {
            let found = Diagnostic::error(Code::OutOfBounds, out.origin.into(), out.describe());
            PyIndexError::new_err(source.draw(&[found.help("a size is 0")]))
        }
        other => PyValueError::new_err(format!("a size is 0, and {other}")),
    }
}
