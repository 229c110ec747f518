//! Reads and makes NumPy arrays through NumPy's C interface, because this work dominates the time
//! of small calls.

use std::sync::atomic::{AtomicBool, Ordering};

use numpy::npyffi::{NPY_TYPES, NpyTypes, PY_ARRAY_API, PyArrayObject, get_type_object};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use smallvec::SmallVec;
use tilewright::ir::DType;

use crate::tensor::{Library, Memory, Owner, Strides, Tensor, imported, row_major};

/// NumPy's flag for writeable arrays.
const WRITEABLE: i32 = 0x400;

/// Reads an object if it is a NumPy array.
pub fn read<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Tensor<'py>>> {
    let py = object.py();
    if !is_loaded(py)? {
        return Ok(None);
    }
    // SAFETY: NumPy is loaded, and the object is alive.
    if unsafe { numpy::npyffi::PyArray_Check(py, object.as_ptr()) } == 0 {
        return Ok(None);
    }
    // SAFETY: the object is an array, so it has these fields. Its descriptor lives as long as the
    // array.
    let (fields, number, order) = unsafe {
        let fields = &(*object.as_ptr().cast::<PyArrayObject>()).fields;
        let descriptor = &(*fields.descr).fields;
        (fields, descriptor.type_num, descriptor.byteorder as u8)
    };
    if !object.get_type().is(plain(py)) && object.hasattr("mask")? {
        return Err(PyTypeError::new_err(format!(
            "`{name}` is a masked array, which programs do not support: give {name}.filled(…), or {name}.data to ignore the mask"
        )));
    }
    let dtype = match dtype_of(number) {
        Some(dtype) if order != b'>' => dtype,
        _ => other_type(object, name)?,
    };
    let dimensions = fields.nd as usize;
    let numbers = |from: *mut isize| {
        // SAFETY: an array has as many extents and strides as dimensions.
        if dimensions == 0 { &[][..] } else { unsafe { std::slice::from_raw_parts(from, dimensions) } }
    };
    let (extents, steps) = (numbers(fields.dimensions), numbers(fields.strides));
    let shape = extents.iter().map(|extent| *extent as usize).collect();
    let bytes = dtype.bytes() as isize;
    if steps.iter().any(|step| step % bytes != 0) {
        return Err(PyValueError::new_err(format!(
            "`{name}` has strides that are not multiples of the element size, like a field of a structured array; give {name}.copy()"
        )));
    }
    let strides: Strides = steps.iter().map(|step| step / bytes).collect();
    Ok(Some(Tensor {
        object: object.clone(),
        library: Library::NumPy,
        memory: Memory::Host,
        dtype,
        start: fields.data.cast(),
        shape,
        strides,
        writable: fields.flags & WRITEABLE != 0,
        owner: Owner::Object,
    }))
}

/// NumPy's class of plain arrays.
fn plain(py: Python<'_>) -> Bound<'_, PyAny> {
    // SAFETY: NumPy is loaded, and its class lives as long as NumPy.
    unsafe { Bound::from_borrowed_ptr(py, get_type_object(py, NpyTypes::PyArray_Type).cast()) }
}

/// Checks whether NumPy has been imported. Without NumPy there are no arrays.
pub fn is_loaded(py: Python<'_>) -> PyResult<bool> {
    static LOADED: AtomicBool = AtomicBool::new(false);
    if !LOADED.load(Ordering::Relaxed) && imported(py, "numpy")?.is_some() {
        LOADED.store(true, Ordering::Relaxed);
    }
    Ok(LOADED.load(Ordering::Relaxed))
}

/// Makes a new array with undefined elements.
pub fn make<'py>(py: Python<'py>, dtype: DType, shape: &[usize]) -> PyResult<Tensor<'py>> {
    if !is_loaded(py)? {
        py.import("numpy")?;
    }
    let Some(number) = number_of(dtype) else { return make_bfloat16(py, shape) };
    let mut extents: SmallVec<[isize; 6]> = shape.iter().map(|extent| *extent as isize).collect();
    // SAFETY: NumPy is loaded, `extents` has the length that is passed, and NumPy makes the strides
    // and the memory itself.
    let made = unsafe {
        let class = get_type_object(py, NpyTypes::PyArray_Type);
        let (null, none) = (std::ptr::null_mut(), std::ptr::null_mut());
        let array = PY_ARRAY_API.PyArray_New(
            py,
            class,
            extents.len() as i32,
            extents.as_mut_ptr(),
            number as i32,
            none,
            null,
            0,
            0,
            std::ptr::null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, array)?
    };
    // SAFETY: `made` is an array.
    let start = unsafe { (*made.as_ptr().cast::<PyArrayObject>()).fields.data.cast() };
    Ok(Tensor {
        object: made,
        library: Library::NumPy,
        memory: Memory::Host,
        dtype,
        start,
        shape: shape.into(),
        strides: row_major(shape),
        writable: true,
        owner: Owner::Object,
    })
}

/// Makes a bfloat16 array. NumPy itself has no such type; the package `ml_dtypes`, which JAX uses,
/// adds it.
fn make_bfloat16<'py>(py: Python<'py>, shape: &[usize]) -> PyResult<Tensor<'py>> {
    let missing = |_| {
        PyTypeError::new_err(
            "NumPy has no bfloat16: install ml_dtypes, which adds it, or give PyTorch or JAX tensors",
        )
    };
    let class = py.import("ml_dtypes").map_err(missing)?.getattr("bfloat16")?;
    let array = py.import("numpy")?.call_method1("empty", (shape.to_vec(), class))?;
    read(&array, "result")?.ok_or_else(|| PyTypeError::new_err("numpy.empty gave no array"))
}

/// The element type of a NumPy type number. `long` has 64 bits on every supported platform.
pub fn dtype_of(number: i32) -> Option<DType> {
    const BOOL: i32 = NPY_TYPES::NPY_BOOL as i32;
    const BYTE: i32 = NPY_TYPES::NPY_BYTE as i32;
    const UBYTE: i32 = NPY_TYPES::NPY_UBYTE as i32;
    const SHORT: i32 = NPY_TYPES::NPY_SHORT as i32;
    const USHORT: i32 = NPY_TYPES::NPY_USHORT as i32;
    const INT: i32 = NPY_TYPES::NPY_INT as i32;
    const UINT: i32 = NPY_TYPES::NPY_UINT as i32;
    const LONG: i32 = NPY_TYPES::NPY_LONG as i32;
    const ULONG: i32 = NPY_TYPES::NPY_ULONG as i32;
    const LONGLONG: i32 = NPY_TYPES::NPY_LONGLONG as i32;
    const ULONGLONG: i32 = NPY_TYPES::NPY_ULONGLONG as i32;
    const HALF: i32 = NPY_TYPES::NPY_HALF as i32;
    const FLOAT: i32 = NPY_TYPES::NPY_FLOAT as i32;
    const DOUBLE: i32 = NPY_TYPES::NPY_DOUBLE as i32;
    Some(match number {
        BOOL => DType::Bool,
        BYTE => DType::Int8,
        UBYTE => DType::UInt8,
        SHORT => DType::Int16,
        USHORT => DType::UInt16,
        INT => DType::Int32,
        UINT => DType::UInt32,
        LONG | LONGLONG => DType::Int64,
        ULONG | ULONGLONG => DType::UInt64,
        HALF => DType::Float16,
        FLOAT => DType::Float32,
        DOUBLE => DType::Float64,
        _ => return None,
    })
}

/// NumPy's type number of an element type, if NumPy itself has the type.
pub fn number_of(dtype: DType) -> Option<NPY_TYPES> {
    Some(match dtype {
        DType::Bool => NPY_TYPES::NPY_BOOL,
        DType::Int8 => NPY_TYPES::NPY_BYTE,
        DType::UInt8 => NPY_TYPES::NPY_UBYTE,
        DType::Int16 => NPY_TYPES::NPY_SHORT,
        DType::UInt16 => NPY_TYPES::NPY_USHORT,
        DType::Int32 => NPY_TYPES::NPY_INT,
        DType::UInt32 => NPY_TYPES::NPY_UINT,
        DType::Int64 => NPY_TYPES::NPY_LONG,
        DType::UInt64 => NPY_TYPES::NPY_ULONG,
        DType::Float16 => NPY_TYPES::NPY_HALF,
        DType::BFloat16 => return None,
        DType::Float32 => NPY_TYPES::NPY_FLOAT,
        DType::Float64 => NPY_TYPES::NPY_DOUBLE,
    })
}

/// Returns an element type that another package added to NumPy, or an error for a type that no
/// program has.
fn other_type(array: &Bound<'_, PyAny>, name: &str) -> PyResult<DType> {
    let dtype = array.getattr("dtype")?;
    let is_native = dtype.getattr("byteorder")?.to_string() != ">";
    if is_native && dtype.getattr("name")?.to_string() == DType::BFloat16.name() {
        return Ok(DType::BFloat16);
    }
    let message = if is_native && dtype.getattr("isnative")?.is_truthy()? {
        format!("`{name}` is an array of {dtype}, which the language does not have")
    } else {
        format!(
            "`{name}` is an array of {dtype}, with the bytes of another machine: give {name}.astype({name}.dtype.newbyteorder('='))"
        )
    };
    Err(PyTypeError::new_err(message))
}
