//! The class `DeviceTensor`: a tensor in GPU memory that Tilewright owns. Results have this class
//! if their library offers no way to make its tensors from here. Any `from_dlpack` accepts it.

use std::ffi::c_void;
use std::sync::Arc;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use tilewright::ir::DType;
use tilewright::runtime::gpu::{Device, DeviceBuffer};
use tilewright::syntax::sizes::shape_text;

use crate::dlpack::{CUDA, DlDevice, DlTensor, PLAIN, UnversionedManaged};
use crate::error;
use crate::tensor::{Library, Memory, Owner, Tensor, row_major};

/// A tensor on a GPU. The kernel that computes it has finished.
#[pyclass(frozen, module = "tilewright")]
pub struct DeviceTensor {
    buffer: Arc<DeviceBuffer>,
    dtype: DType,
    shape: Vec<usize>,
    ordinal: usize,
}

/// The data that an exported tensor needs until its deleter is called.
struct ExportedTensor {
    managed: UnversionedManaged,
    shape: Vec<i64>,
    _buffer: Arc<DeviceBuffer>,
}

#[pymethods]
impl DeviceTensor {
    /// Exports the tensor. It is ready for every stream, and it is not moved.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<&Bound<'py, PyAny>>,
        dl_device: Option<(i32, usize)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _ = (stream, max_version);
        if copy == Some(true) || dl_device.is_some_and(|device| device != (CUDA, self.ordinal)) {
            return Err(PyBufferError::new_err("this tensor cannot be copied or moved to another device"));
        }
        let buffer = Arc::clone(&self.buffer);
        let device = DlDevice { kind: CUDA, ordinal: self.ordinal as i32 };
        let mut shape: Vec<i64> = self.shape.iter().map(|extent| *extent as i64).collect();
        let tensor = DlTensor::without_data(self.dtype, &mut shape, device).with_address(buffer.address());
        let managed = UnversionedManaged::new(tensor, release_exported);
        let handed = Box::into_raw(Box::new(ExportedTensor { managed, shape, _buffer: buffer }));
        // SAFETY: the box was just made. The consumer of the capsule calls the deleter. The
        // destructor of a capsule that was never consumed calls it otherwise.
        unsafe {
            (*handed).managed.set_context(handed.cast());
            (*handed).managed.set_shape((*handed).shape.as_mut_ptr());
            let capsule = ffi::PyCapsule_New(
                (&raw mut (*handed).managed).cast(),
                PLAIN.as_ptr(),
                Some(destroy_capsule),
            );
            Bound::from_owned_ptr_or_err(py, capsule)
        }
    }

    fn __dlpack_device__(&self) -> (i32, usize) {
        (CUDA, self.ordinal)
    }

    fn __repr__(&self) -> String {
        format!("<tilewright tensor {}{} on cuda:{}>", self.dtype, shape_text(&self.shape), self.ordinal)
    }
}

/// The deleter, which the consumer of the tensor calls when it is done.
unsafe extern "C" fn release_exported(managed: *mut UnversionedManaged) {
    // SAFETY: the context is the box that `__dlpack__` made, and the deleter is called once.
    unsafe { drop(Box::from_raw((*managed).context().cast::<ExportedTensor>())) };
}

/// The destructor of a capsule. A capsule that still has its first name was never consumed.
unsafe extern "C" fn destroy_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: the capsule was made by `__dlpack__`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) == 1 {
            release_exported(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast::<c_void>().cast());
        }
    }
}

/// Makes a new tensor on a device.
pub fn make<'py>(
    py: Python<'py>,
    device: &Device,
    ordinal: usize,
    dtype: DType,
    shape: &[usize],
    library: Library,
) -> PyResult<Tensor<'py>> {
    let buffer = Arc::new(DeviceBuffer::undefined(device, dtype, shape).map_err(error::on_device)?);
    let start = std::ptr::without_provenance_mut(buffer.address() as usize);
    let object = DeviceTensor { buffer, dtype, shape: shape.to_vec(), ordinal };
    Ok(Tensor {
        object: Bound::new(py, object)?.into_any(),
        library,
        memory: Memory::Cuda(ordinal),
        dtype,
        start,
        shape: shape.into(),
        strides: row_major(shape),
        writable: true,
        owner: Owner::Object,
    })
}
