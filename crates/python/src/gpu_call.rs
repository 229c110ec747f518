//! Calls compiled code with tensors on a GPU. If any tensor is PyTorch's, the call is queued on
//! PyTorch's current stream like one of its own kernels. Otherwise it is queued on the default
//! stream that all libraries share.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;
use tilewright::ir::Number;
use tilewright::runtime::RunError;
use tilewright::runtime::gpu::buffer::ALIGNMENT;
use tilewright::runtime::gpu::{Device, DeviceBuffer};

use crate::arguments::{Value, Values};
use crate::compiled::Compiled;
use crate::error;
use crate::results::Results;
use crate::streams::{self, DEFAULT_STREAM};
use crate::tensor::{Library, Tensor, torch};

impl Compiled {
    /// Calls the code with tensors on the GPU.
    pub fn call_on_gpu<'py>(
        &self,
        py: Python<'py>,
        values: &Values<'py>,
        results: &Results<'py>,
        has_out_argument: bool,
        ordinal: usize,
    ) -> PyResult<()> {
        let code = self.code.on_gpu().ok_or_else(|| {
            let names = self.constants().collect::<Vec<_>>().join(", ");
            PyTypeError::new_err(format!(
                "on a GPU, constants are given once: call compile(...).bind({names})"
            ))
        })?;
        let device = code.device();
        let given = tensors(values).chain(results.iter().filter(|_| has_out_argument));
        let torch = given.clone().find(|tensor| tensor.library == Library::Torch);
        let has_others = given.clone().any(|tensor| tensor.library != Library::Torch);
        let stream = torch.map_or(Ok(DEFAULT_STREAM), |tensor| streams::current(&tensor.object, ordinal))?;
        if has_others && stream != DEFAULT_STREAM {
            // The other libraries have made their tensors ready for the shared stream.
            // SAFETY: both are streams of the device.
            unsafe { device.make_stream_wait(stream, DEFAULT_STREAM) }.map_err(error::gpu)?;
        }
        // Copies are kept until the call is queued. PyTorch reuses their memory only later on the
        // same stream.
        let names = self.parameters.iter().filter(|own| own.is_tensor).map(|own| own.name.as_str());
        let read = tensors(values).zip(names).map(|(tensor, name)| kernel_tensor(tensor, name));
        let read = read.collect::<PyResult<SmallVec<[KernelTensor<'_, 'py>; 6]>>>()?;
        let names = self.signature().results.iter().map(|own| own.name.as_str());
        let written = results.iter().zip(names).map(|(tensor, name)| kernel_tensor(tensor, name));
        let written = written.collect::<PyResult<SmallVec<[KernelTensor<'_, 'py>; 2]>>>()?;
        let foreign = |own: &KernelTensor<'_, '_>| own.foreign(device, self);
        let inputs = read.iter().map(foreign).collect::<PyResult<Vec<_>>>()?;
        let mut outputs = written.iter().map(foreign).collect::<PyResult<Vec<_>>>()?;
        let scalars: SmallVec<[Number; 4]> = values.iter().filter_map(number).collect();
        let called = py.detach(|| {
            // SAFETY: `stream` is a stream of the device, on which all tensors are ready.
            unsafe { code.queue(stream, &inputs, &mut outputs, &scalars) }?;
            if has_others {
                // The other libraries do not know that their tensors are still in use.
                // SAFETY: as above.
                unsafe { device.wait_for_stream(stream) }?;
            }
            Ok::<(), RunError>(())
        });
        called.map_err(|error| error::run(&self.source, error))?;
        written.iter().try_for_each(KernelTensor::copy_back)
    }
}

fn tensors<'a, 'py>(values: &'a Values<'py>) -> impl Iterator<Item = &'a Tensor<'py>> + Clone {
    values.iter().filter_map(|value| match value {
        Value::Tensor(tensor) => Some(tensor),
        Value::Scalar(_) => None,
    })
}

fn number(value: &Value<'_>) -> Option<Number> {
    match value {
        Value::Scalar(number) => Some(*number),
        Value::Tensor(_) => None,
    }
}

/// A tensor as kernels accept it: without gaps, at an address that is aligned for wide loads.
struct KernelTensor<'a, 'py> {
    tensor: &'a Tensor<'py>,
    /// A suitable copy, where the tensor itself is not suitable.
    copy: Option<Tensor<'py>>,
}

fn kernel_tensor<'a, 'py>(tensor: &'a Tensor<'py>, name: &str) -> PyResult<KernelTensor<'a, 'py>> {
    if tensor.is_contiguous() && (tensor.start.addr() as u64).is_multiple_of(ALIGNMENT) {
        return Ok(KernelTensor { tensor, copy: None });
    }
    if tensor.library != Library::Torch {
        return Err(PyValueError::new_err(format!(
            "`{name}` is on a GPU, and has gaps between its elements or begins at an address that is no multiple of {ALIGNMENT}: give a copy of it"
        )));
    }
    let py = tensor.object.py();
    let options = PyDict::new(py);
    let format = torch(py)?.getattr(intern!(py, "contiguous_format"))?;
    options.set_item(intern!(py, "memory_format"), format)?;
    let copy = tensor.object.call_method(intern!(py, "clone"), (), Some(&options))?;
    Ok(KernelTensor { tensor, copy: Some(Tensor::read(&copy, name)?) })
}

impl KernelTensor<'_, '_> {
    fn foreign(&self, device: &Device, compiled: &Compiled) -> PyResult<DeviceBuffer> {
        let Tensor { dtype, shape, start, .. } = self.copy.as_ref().unwrap_or(self.tensor);
        // SAFETY: the library guarantees that the elements are there. The call is ordered on the
        // stream after all earlier work and before all later work, so nothing else uses the
        // elements meanwhile.
        let made = unsafe { DeviceBuffer::from_foreign(device, *dtype, shape, start.addr() as u64) };
        made.map_err(|error| error::run(&compiled.source, error))
    }

    /// Copies the written elements from the copy back to the tensor.
    fn copy_back(&self) -> PyResult<()> {
        if let Some(copy) = &self.copy {
            self.tensor.object.call_method1("copy_", (&copy.object,))?;
        }
        Ok(())
    }
}
