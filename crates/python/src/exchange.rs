//! Reads and makes tensors through DLPack's table of C functions, which is faster than calls of
//! Python methods. A library stores the table as an attribute of its tensor class.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;
use pyo3::types::PyType;
use pyo3::{ffi, intern};
use tilewright::ir::DType;

use crate::dlpack::{DlDevice, DlTensor, MAJOR, Managed, VersionedManaged};

const NAME: &CStr = c"dlpack_exchange_api";

/// The function table of a library.
#[repr(C)]
pub struct ExchangeTable {
    major: u32,
    _minor: u32,
    _previous: *const c_void,
    allocate: Option<
        unsafe extern "C" fn(*mut DlTensor, *mut *mut VersionedManaged, *mut c_void, SetError) -> c_int,
    >,
    _export: *const c_void,
    wrap: Option<unsafe extern "C" fn(*mut VersionedManaged, *mut *mut c_void) -> c_int>,
    borrow: Option<unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int>,
    current_stream: Option<unsafe extern "C" fn(c_int, i32, *mut *mut c_void) -> c_int>,
}

type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

/// A tensor class that has a function table.
struct KnownClass {
    class: Py<PyType>,
    table: &'static ExchangeTable,
}

// SAFETY: the table is constant, and its library is never unloaded.
unsafe impl Send for KnownClass {}

/// Returns the function table of an object's library.
pub fn table_of(object: &Bound<'_, PyAny>) -> Option<&'static ExchangeTable> {
    /// The maximum number of remembered classes. Some programs make a new class for every call.
    const MAX_CLASSES: usize = 64;
    static KNOWN: Mutex<Vec<KnownClass>> = Mutex::new(Vec::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let class = object.get_type();
    if let Some(found) = known().iter().find(|known| known.class.is(&class)) {
        return Some(found.table);
    }
    // The lock is released while Python code runs.
    let table = table(&class)?;
    let mut known = known();
    if known.len() < MAX_CLASSES {
        known.push(KnownClass { class: class.unbind(), table });
    }
    Some(table)
}

fn table(class: &Bound<'_, PyType>) -> Option<&'static ExchangeTable> {
    let capsule = class.getattr(intern!(class.py(), "__dlpack_c_exchange_api__")).ok()?;
    // SAFETY: a capsule of this name points to such a table, which lives until the process ends.
    let table = unsafe {
        let capsule = capsule.as_ptr();
        let is_one = ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1;
        is_one.then(|| ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast::<ExchangeTable>().as_ref())
    };
    table.flatten().filter(|table| table.major == MAJOR)
}

impl ExchangeTable {
    /// Returns the description of an object's tensor without taking ownership. The description is
    /// valid while the object is unchanged. The tensor is not made ready for any stream.
    pub fn borrow_tensor(&self, object: &Bound<'_, PyAny>) -> Option<PyResult<DlTensor>> {
        let mut tensor = MaybeUninit::uninit();
        // SAFETY: the object is of the class that the table belongs to, and the interpreter lock is
        // held. On success, the function has written the tensor.
        unsafe {
            let status = self.borrow?(object.as_ptr().cast(), tensor.as_mut_ptr());
            Some(if status == 0 { Ok(tensor.assume_init()) } else { Err(PyErr::fetch(object.py())) })
        }
    }

    /// Makes a new tensor with undefined elements.
    pub fn make<'py>(
        &self,
        py: Python<'py>,
        dtype: DType,
        shape: &[usize],
        device: DlDevice,
    ) -> Option<PyResult<Bound<'py, PyAny>>> {
        let (allocate, wrap) = (self.allocate?, self.wrap?);
        let mut extents: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
        let mut wanted = DlTensor::without_data(dtype, &mut extents, device);
        let (mut managed, mut object) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut message = String::new();
        // SAFETY: all pointers point to local values. The object takes ownership of the new tensor.
        unsafe {
            let told = (&raw mut message).cast();
            if allocate(&raw mut wanted, &raw mut managed, told, set_error) != 0 || managed.is_null() {
                return Some(Err(PyMemoryError::new_err(message)));
            }
            if wrap(managed, &raw mut object) != 0 {
                // On failure this function still owns the tensor and must release it.
                drop(NonNull::new(managed).map(Managed::versioned));
                return Some(Err(PyErr::fetch(py)));
            }
            Some(Bound::from_owned_ptr_or_err(py, object.cast()))
        }
    }

    /// Returns the stream that the library currently uses on a device.
    pub fn stream(&self, py: Python<'_>, device: DlDevice) -> Option<PyResult<u64>> {
        let mut stream = std::ptr::null_mut();
        // SAFETY: the pointer points to a local value.
        let status = unsafe { self.current_stream?(device.kind, device.ordinal, &raw mut stream) };
        Some(if status == 0 { Ok(stream.addr() as u64) } else { Err(PyErr::fetch(py)) })
    }
}

/// Stores the error message of an allocator.
unsafe extern "C" fn set_error(told: *mut c_void, _kind: *const c_char, message: *const c_char) {
    if !message.is_null() {
        // SAFETY: `told` points to the string in `make`, and the message is null-terminated.
        unsafe { *told.cast::<String>() = CStr::from_ptr(message).to_string_lossy().into_owned() };
    }
}
