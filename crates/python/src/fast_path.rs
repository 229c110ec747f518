//! The fast path for calls with NumPy arrays that the code accepts as they are: of the right type
//! and shape, aligned, without gaps.
//!
//! For small arrays, the overhead dominates the time of a call. So this module allocates nothing
//! but the results. It compares the arguments with requirements that were stored when the kernel
//! was compiled. All other calls take the general path, which also has the error messages.

use numpy::npyffi::{NpyTypes, PY_ARRAY_API, PyArrayObject, get_type_object};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;
use tilewright::ir::{DType, Number, Role};
use tilewright::runtime::{Bound as Callable, Pool, RunError, Signature, signature};

use crate::arguments::{Parameter, number};
use crate::arrays::{is_loaded, number_of};

/// NumPy's flags: row-major without gaps, aligned, and writeable.
const READABLE: i32 = 0x1 | 0x100;
const WRITEABLE: i32 = READABLE | 0x400;

/// The requirements of a kernel on its arguments.
pub struct FastPath {
    parameters: Vec<Requirement>,
    results: Vec<ArrayType>,
}

enum Requirement {
    Array(ArrayType),
    Number { name: String, dtype: DType },
}

/// The type and shape of an array, in NumPy's terms.
struct ArrayType {
    number: i32,
    shape: Box<[isize]>,
    bytes: usize,
}

/// The addresses and numbers of a call.
pub struct Pointers<'py> {
    pub inputs: SmallVec<[*const u8; 6]>,
    pub results: SmallVec<[*mut u8; 2]>,
    pub scalars: SmallVec<[Number; 2]>,
    /// The arrays of the results.
    pub objects: SmallVec<[Bound<'py, PyAny>; 2]>,
}

/// The start addresses of the arrays of a call.
pub struct Addresses<'a> {
    pub inputs: &'a [*const u8],
    pub results: &'a [*mut u8],
}

// SAFETY: these are addresses of plain numbers, which `run` uses as its caller guarantees.
unsafe impl Send for Addresses<'_> {}
// SAFETY: as above.
unsafe impl Sync for Addresses<'_> {}

impl Addresses<'_> {
    /// Runs a kernel.
    ///
    /// # Safety
    ///
    /// As for [`Callable::run_at`].
    pub unsafe fn run(
        &self,
        bound: &Callable<'static>,
        pool: &Pool,
        scalars: &[Number],
    ) -> Result<(), RunError> {
        // SAFETY: the caller guarantees it.
        unsafe { bound.run_at(pool, self.inputs, self.results, scalars) }
    }
}

impl FastPath {
    /// Returns the requirements of a kernel, or `None` if its calls need the general path.
    pub fn new(parameters: &[Parameter], signature: &Signature) -> Option<FastPath> {
        // Another value of a fixed scalar needs another kernel, and so may one of a scalar that
        // determines a size.
        let is_fixed = signature.scalars.iter().any(|scalar| scalar.fixed.is_some());
        if is_fixed || !signature.derived.is_empty() {
            return None;
        }
        let asked = |own: &Parameter| {
            if !own.is_tensor {
                return Some(Requirement::Number { name: own.name.clone(), dtype: own.dtype });
            }
            // A constant that is not bound yet is bound in every call, which needs the general
            // path.
            let found = signature.inputs.iter().find(|input| input.name == own.name)?;
            ArrayType::new(found).map(Requirement::Array)
        };
        let parameters = parameters.iter().map(asked).collect::<Option<_>>()?;
        let result =
            |own: &signature::Parameter| (own.role == Role::Output).then(|| ArrayType::new(own)).flatten();
        let results = signature.results.iter().map(result).collect::<Option<_>>()?;
        Some(FastPath { parameters, results })
    }

    /// Reads the arguments of a call, and makes its results. Returns `None` if an argument does not
    /// fit.
    pub fn read<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Option<Pointers<'py>>> {
        if args.len() != self.parameters.len() || !is_loaded(py)? {
            return Ok(None);
        }
        let mut pointers = Pointers {
            inputs: SmallVec::new(),
            results: SmallVec::new(),
            scalars: SmallVec::new(),
            objects: SmallVec::new(),
        };
        // Numbers are read first, because their conversion may run Python code, which must not
        // change an array that was checked before.
        for (asked, object) in self.parameters.iter().zip(args.iter_borrowed()) {
            if let Requirement::Number { name, dtype } = asked {
                pointers.scalars.push(number(name, *dtype, &object)?);
            }
        }
        for (asked, object) in self.parameters.iter().zip(args.iter_borrowed()) {
            if let Requirement::Array(array) = asked {
                match array.read(py, &object, READABLE) {
                    Some(start) => pointers.inputs.push(start),
                    None => return Ok(None),
                }
            }
        }
        match (out, self.results.as_slice()) {
            (None, results) => {
                for result in results {
                    let (object, start) = result.make(py)?;
                    pointers.results.push(start);
                    pointers.objects.push(object);
                }
            }
            (Some(out), [result]) => match result.read(py, out, WRITEABLE) {
                Some(start) if !self.overlaps(start, result.bytes, &pointers.inputs) => {
                    pointers.results.push(start);
                    pointers.objects.push(out.clone());
                }
                _ => return Ok(None),
            },
            (Some(_), _) => return Ok(None),
        }
        Ok(Some(pointers))
    }

    /// Whether a result shares memory with an input.
    fn overlaps(&self, start: *const u8, bytes: usize, inputs: &[*const u8]) -> bool {
        let arrays = self.parameters.iter().filter_map(|asked| match asked {
            Requirement::Array(array) => Some(array),
            Requirement::Number { .. } => None,
        });
        arrays.zip(inputs).any(|(array, input)| {
            start.addr() < input.addr() + array.bytes && input.addr() < start.addr() + bytes
        })
    }
}

impl ArrayType {
    fn new(parameter: &signature::Parameter) -> Option<ArrayType> {
        let layout = &parameter.layout;
        // An array of bool may hold any byte, which the general path checks.
        if layout.dtype() == DType::Bool && parameter.role != Role::Output {
            return None;
        }
        let shape = layout.shape().iter().map(|extent| *extent as isize).collect();
        Some(ArrayType { number: number_of(layout.dtype())? as i32, shape, bytes: layout.bytes() })
    }

    /// Returns the start of an array, if the object is an array with this type and shape and these
    /// flags.
    fn read(&self, py: Python<'_>, object: &Bound<'_, PyAny>, flags: i32) -> Option<*mut u8> {
        // SAFETY: NumPy is loaded, and an object of exactly this class has the fields of an array.
        unsafe {
            let object = object.as_ptr();
            if ffi::Py_TYPE(object) != get_type_object(py, NpyTypes::PyArray_Type) {
                return None;
            }
            let fields = &(*object.cast::<PyArrayObject>()).fields;
            let descriptor = &(*fields.descr).fields;
            let fits = same_type(descriptor.type_num, self.number)
                && descriptor.byteorder as u8 != b'>'
                && fields.flags & flags == flags
                && fields.nd as usize == self.shape.len()
                && (self.shape.is_empty()
                    || std::slice::from_raw_parts(fields.dimensions, self.shape.len()) == &*self.shape);
            fits.then_some(fields.data.cast())
        }
    }

    /// Makes a new array.
    fn make<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, *mut u8)> {
        // SAFETY: NumPy is loaded, it takes ownership of its own descriptor, and there are as many
        // extents as is passed.
        unsafe {
            let class = get_type_object(py, NpyTypes::PyArray_Type);
            let descriptor = PY_ARRAY_API.PyArray_DescrFromType(py, self.number);
            let (extents, null) = (self.shape.as_ptr().cast_mut(), std::ptr::null_mut());
            let dimensions = self.shape.len() as i32;
            let no_base = std::ptr::null_mut();
            let made = PY_ARRAY_API.PyArray_NewFromDescr(
                py,
                class,
                descriptor,
                dimensions,
                extents,
                null,
                std::ptr::null_mut(),
                0,
                no_base,
            );
            let made = Bound::from_owned_ptr_or_err(py, made)?;
            let start = (*made.as_ptr().cast::<PyArrayObject>()).fields.data.cast();
            Ok((made, start))
        }
    }
}

/// Compares NumPy types. `long long` is the same type as `long` here.
fn same_type(found: i32, wanted: i32) -> bool {
    found == wanted
        || crate::arrays::dtype_of(found).is_some_and(|dtype| crate::arrays::dtype_of(wanted) == Some(dtype))
}

/// The return value of a call: an array, or a tuple of several arrays.
pub fn return_value<'py>(
    py: Python<'py>,
    mut objects: SmallVec<[Bound<'py, PyAny>; 2]>,
) -> PyResult<Bound<'py, PyAny>> {
    match (objects.pop(), objects.is_empty()) {
        (Some(only), true) => Ok(only),
        (last, _) => Ok(PyTuple::new(py, objects.into_iter().chain(last).collect::<Vec<_>>())?.into_any()),
    }
}
