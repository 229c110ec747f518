//! The class `Kernel`: a compiled kernel for tensors of given shapes.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilewright::syntax::sizes::shape_text;

use crate::arguments::{self, Parameter, Value, Values};
use crate::compiled::Compiled;
use crate::tensor::{Memory, Tensor};

/// Machine code for tensors of given shapes. A call only checks its arguments and runs the code.
#[pyclass(frozen, weakref, module = "tilewright")]
pub struct Kernel {
    compiled: Arc<Compiled>,
}

impl Kernel {
    /// Wraps compiled code for Python.
    pub fn new(compiled: Arc<Compiled>) -> Kernel {
        Kernel { compiled }
    }
}

#[pymethods]
impl Kernel {
    #[pyo3(signature = (*args, out = None, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let compiled = &self.compiled;
        if kwargs.is_none()
            && let Some(result) = compiled.call_fast_path(py, args, out)?
        {
            return Ok(result);
        }
        let values = arguments::read(&compiled.program.name, &compiled.parameters, args, kwargs, |_, _| {
            Ok(Err(Vec::new()))
        })?;
        compiled.call(py, &values, out)
    }

    /// Returns the kernel with its constant inputs bound. Work that the schedule does on constants,
    /// such as packing, is done once, now.
    #[pyo3(signature = (*args, **kwargs))]
    fn bind<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Kernel> {
        let compiled = &self.compiled;
        let names: Vec<&str> = compiled.constants().collect();
        let is_constant = |own: &&Parameter| names.contains(&own.name.as_str());
        let constants: Vec<Parameter> = compiled.parameters.iter().filter(is_constant).cloned().collect();
        if constants.is_empty() {
            return Err(PyTypeError::new_err(
                "there is nothing to bind: no unbound input is declared `const`",
            ));
        }
        let values: Values<'py> =
            arguments::read("bind", &constants, args, kwargs, |_, _| Ok(Err(Vec::new())))?;
        let tensors = values.into_iter().zip(&constants).filter_map(|(value, constant)| match value {
            Value::Tensor(tensor) => Some(on_host(py, tensor, &constant.name)),
            Value::Scalar(_) => None,
        });
        let tensors = tensors.collect::<PyResult<Vec<_>>>()?;
        Ok(Kernel { compiled: Arc::new(compiled.with_constants(py, &tensors)?) })
    }

    /// The name of the function.
    #[getter]
    fn __name__(&self) -> &str {
        &self.compiled.program.name
    }

    /// The schedule that the kernel was compiled with.
    #[getter]
    fn schedule(&self) -> String {
        self.compiled.schedule.to_string().trim_end().to_owned()
    }

    /// The sizes that the kernel was compiled for.
    #[getter]
    fn sizes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sizes = PyDict::new(py);
        for (name, value) in self.compiled.sizes() {
            sizes.set_item(name, value)?;
        }
        Ok(sizes)
    }

    /// A stage of the kernel: "program", "schedule", "loops", and "llvm" and "asm", "cuda" or
    /// "opencl".
    #[pyo3(signature = (stage = "loops"))]
    fn source(&self, py: Python<'_>, stage: &str) -> PyResult<String> {
        py.detach(|| self.compiled.stage(stage))
    }

    /// The name, and the types and shapes of the parameters and results.
    #[getter]
    fn signature(&self) -> String {
        let signature = self.compiled.signature();
        let inputs = self.compiled.parameters.iter().map(|own| {
            let mut tensors = signature.inputs.iter().chain(&signature.constants);
            match tensors.find(|tensor| tensor.name == own.name) {
                Some(tensor) => format!("{} {}", tensor.layout, own.name),
                None => format!("{} {}", own.dtype, own.name),
            }
        });
        let results = signature.results.iter().map(|own| format!("{} {}", own.layout, own.name));
        let (inputs, results) = (inputs.collect::<Vec<_>>(), results.collect::<Vec<_>>());
        format!("{}({}) -> ({})", self.compiled.program.name, inputs.join(", "), results.join(", "))
    }

    /// Where the kernel runs, and where its schedule comes from.
    #[getter]
    fn _made_for(&self) -> (String, String) {
        (self.compiled.place.to_string(), self.compiled.origin.clone())
    }

    fn __repr__(&self) -> String {
        let Compiled { place, origin, .. } = &*self.compiled;
        format!("<tilewright kernel {}; {place}; {origin}>", self.signature())
    }

    /// The kernel as a notebook shows it.
    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("tilewright._html")?.call_method1("of_kernel", (slf,))
    }
}

/// Copies a constant to the host's memory if it is on a GPU.
fn on_host<'py>(py: Python<'py>, tensor: Tensor<'py>, name: &str) -> PyResult<Tensor<'py>> {
    match tensor.memory {
        Memory::Host => Ok(tensor),
        Memory::Cuda(_) if tensor.object.hasattr("cpu")? => {
            Tensor::read(&tensor.object.call_method0(pyo3::intern!(py, "cpu"))?, name)
        }
        Memory::Cuda(_) => Err(PyTypeError::new_err(format!(
            "`{name}` of shape {} is on a GPU: give it in the memory of the CPU",
            shape_text(&tensor.shape)
        ))),
    }
}
