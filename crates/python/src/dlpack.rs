//! DLPack: the protocol by which array libraries exchange tensors without copying them.
//!
//! The structures are those of `dlpack.h`, versions 0.8 and 1.x. A producer returns a capsule with
//! one of them, and the capsule's name says which one. The consumer renames the capsule and calls
//! the deleter when it is done.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use pyo3::{ffi, intern};
use tilewright::ir::DType;

/// The device kind of host memory.
pub const CPU: i32 = 1;
/// The device kind of an NVIDIA GPU's memory.
pub const CUDA: i32 = 2;
/// The device kind of host memory that a GPU can access too.
pub const CUDA_HOST: i32 = 3;

const VERSIONED: &CStr = c"dltensor_versioned";
const USED_VERSIONED: &CStr = c"used_dltensor_versioned";
/// The name of a capsule from before version 1.
pub const PLAIN: &CStr = c"dltensor";
const USED_PLAIN: &CStr = c"used_dltensor";
/// The supported major version. Minor versions only add flags and types.
pub const MAJOR: u32 = 1;
const READ_ONLY: u64 = 1;

/// The device that holds a tensor.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DlDevice {
    /// The kind of the device.
    pub kind: i32,
    /// The index among the devices of this kind.
    pub ordinal: i32,
}

/// The type of an element.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DlType {
    code: u8,
    bits: u8,
    lanes: u16,
}

/// A tensor.
#[repr(C)]
pub struct DlTensor {
    data: *mut c_void,
    pub device: DlDevice,
    dimensions: i32,
    dtype: DlType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// A tensor with its owner, in the format before version 1.
#[repr(C)]
pub struct UnversionedManaged {
    tensor: DlTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut UnversionedManaged)>,
}

impl UnversionedManaged {
    /// Makes a tensor that `deleter` releases.
    pub fn new(
        tensor: DlTensor,
        deleter: unsafe extern "C" fn(*mut UnversionedManaged),
    ) -> UnversionedManaged {
        UnversionedManaged { tensor, context: std::ptr::null_mut(), deleter: Some(deleter) }
    }

    /// The owner's data.
    pub fn context(&self) -> *mut c_void {
        self.context
    }

    /// Sets the owner's data.
    pub fn set_context(&mut self, context: *mut c_void) {
        self.context = context;
    }

    /// Sets the address of the extents, which must stay valid.
    pub fn set_shape(&mut self, shape: *mut i64) {
        self.tensor.shape = shape;
    }
}

/// A tensor with its version and its owner, in the format since version 1.
#[repr(C)]
pub struct VersionedManaged {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut VersionedManaged)>,
    flags: u64,
    tensor: DlTensor,
}

/// A tensor that a producer has handed over. Dropping it calls the deleter.
pub enum Managed {
    /// The format before version 1.
    Plain(NonNull<UnversionedManaged>),
    /// The format since version 1.
    Versioned(NonNull<VersionedManaged>),
}

impl Managed {
    /// Takes the tensor that an object exports, ready for work on `stream` if one is given.
    pub fn take(object: &Bound<'_, PyAny>, stream: Option<i64>) -> PyResult<Managed> {
        let py = object.py();
        let arguments = PyDict::new(py);
        arguments.set_item(intern!(py, "max_version"), (MAJOR, 1))?;
        if let Some(stream) = stream {
            arguments.set_item(intern!(py, "stream"), stream)?;
        }
        let method = object.getattr(intern!(py, "__dlpack__"))?;
        let capsule = match method.call((), Some(&arguments)) {
            // Producers from before version 1 do not have this argument.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                arguments.del_item(intern!(py, "max_version"))?;
                method.call((), Some(&arguments))?
            }
            capsule => capsule?,
        };
        Managed::from_capsule(capsule.cast::<PyCapsule>()?)
    }

    fn from_capsule(capsule: &Bound<'_, PyCapsule>) -> PyResult<Managed> {
        let raw = capsule.as_ptr();
        let taken = |name: &CStr, used: &CStr| {
            // SAFETY: the names are constants and outlive the capsule. The pointer is requested by
            // the capsule's own name.
            unsafe {
                (ffi::PyCapsule_IsValid(raw, name.as_ptr()) == 1).then(|| {
                    let pointer = ffi::PyCapsule_GetPointer(raw, name.as_ptr());
                    ffi::PyCapsule_SetName(raw, used.as_ptr());
                    pointer
                })
            }
        };
        if let Some(pointer) = taken(VERSIONED, USED_VERSIONED).and_then(NonNull::new) {
            return Managed::versioned(pointer.cast());
        }
        let plain = taken(PLAIN, USED_PLAIN).and_then(NonNull::new);
        plain.map(|pointer| Managed::Plain(pointer.cast())).ok_or_else(|| {
            PyBufferError::new_err("__dlpack__ returned no tensor, or one that was consumed before")
        })
    }

    /// Takes over a tensor that a producer has already released.
    pub fn versioned(pointer: NonNull<VersionedManaged>) -> PyResult<Managed> {
        let managed = Managed::Versioned(pointer);
        // SAFETY: the first two fields are the same in all versions.
        let major = unsafe { pointer.as_ref().major };
        match major {
            MAJOR => Ok(managed),
            _ => Err(PyBufferError::new_err(format!("DLPack version {major} is not known"))),
        }
    }

    /// The tensor description.
    pub fn tensor(&self) -> &DlTensor {
        // SAFETY: a producer keeps the structure until its deleter is called.
        match self {
            Managed::Plain(managed) => unsafe { &managed.as_ref().tensor },
            Managed::Versioned(managed) => unsafe { &managed.as_ref().tensor },
        }
    }

    /// Whether the tensor may be written to. Before version 1, producers could not declare a tensor
    /// as read-only.
    pub fn is_writable(&self) -> bool {
        match self {
            Managed::Plain(_) => true,
            // SAFETY: as above.
            Managed::Versioned(managed) => unsafe { managed.as_ref().flags & READ_ONLY == 0 },
        }
    }
}

impl Drop for Managed {
    fn drop(&mut self) {
        // SAFETY: the tensor was taken from a capsule once, so its deleter was not called yet.
        unsafe {
            match self {
                Managed::Plain(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
                Managed::Versioned(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
        }
    }
}

impl DlTensor {
    /// Describes a tensor to allocate, without data. The description is valid as long as `shape`.
    pub fn without_data(dtype: DType, shape: &mut [i64], device: DlDevice) -> DlTensor {
        let code = match dtype {
            DType::Bool => 6,
            DType::BFloat16 => 4,
            _ if dtype.is_float() => 2,
            DType::UInt8 | DType::UInt16 | DType::UInt32 | DType::UInt64 => 1,
            _ => 0,
        };
        DlTensor {
            data: std::ptr::null_mut(),
            device,
            dimensions: shape.len() as i32,
            dtype: DlType { code, bits: dtype.bits() as u8, lanes: 1 },
            shape: shape.as_mut_ptr(),
            strides: std::ptr::null_mut(),
            byte_offset: 0,
        }
    }

    /// The same description with data at an address.
    pub fn with_address(self, address: u64) -> DlTensor {
        DlTensor { data: std::ptr::without_provenance_mut(address as usize), ..self }
    }

    /// The type of the elements.
    pub fn dtype(&self) -> PyResult<DType> {
        let DlType { code, bits, lanes } = self.dtype;
        let dtype = match (code, bits, lanes) {
            (0, 8, 1) => DType::Int8,
            (0, 16, 1) => DType::Int16,
            (0, 32, 1) => DType::Int32,
            (0, 64, 1) => DType::Int64,
            (1, 8, 1) => DType::UInt8,
            (1, 16, 1) => DType::UInt16,
            (1, 32, 1) => DType::UInt32,
            (1, 64, 1) => DType::UInt64,
            (2, 16, 1) => DType::Float16,
            (2, 32, 1) => DType::Float32,
            (2, 64, 1) => DType::Float64,
            (4, 16, 1) => DType::BFloat16,
            (6, 8, 1) => DType::Bool,
            (5, ..) => {
                let message = format!("it has complex{bits} elements, which the language does not have");
                return Err(PyTypeError::new_err(message));
            }
            _ => {
                let message = format!(
                    "it has elements of {bits} bits (DLPack type {code}), which the language does not have"
                );
                return Err(PyTypeError::new_err(message));
            }
        };
        Ok(dtype)
    }

    /// The address of the first element.
    pub fn start(&self) -> *mut u8 {
        self.data.cast::<u8>().wrapping_add(self.byte_offset as usize)
    }

    /// The extents.
    pub fn shape(&self) -> PyResult<&[i64]> {
        let negative = || PyValueError::new_err("the tensor has a negative extent");
        let shape = self.numbers(self.shape);
        if self.dimensions < 0 || shape.iter().any(|extent| *extent < 0) {
            Err(negative())
        } else {
            Ok(shape)
        }
    }

    /// The strides in elements; `None` for a row-major tensor without gaps.
    pub fn strides(&self) -> Option<&[i64]> {
        (!self.strides.is_null()).then(|| self.numbers(self.strides))
    }

    fn numbers(&self, from: *mut i64) -> &[i64] {
        let count = usize::try_from(self.dimensions).unwrap_or(0);
        if count == 0 || from.is_null() {
            return &[];
        }
        // SAFETY: the producer keeps as many numbers there as the tensor has dimensions.
        unsafe { std::slice::from_raw_parts(from, count) }
    }
}

/// Returns the device that holds the elements of an object.
pub fn device(object: &Bound<'_, PyAny>) -> PyResult<DlDevice> {
    let device = object.call_method0(intern!(object.py(), "__dlpack_device__"))?;
    // The kind may be an enumeration, which is an integer too.
    let (kind, ordinal): (Bound<'_, PyAny>, i32) = device.extract()?;
    Ok(DlDevice { kind: kind.call_method0(intern!(object.py(), "__index__"))?.extract()?, ordinal })
}
