//! Reads the caller's tensors: NumPy arrays, objects with `__dlpack__`, objects with a buffer, and
//! objects that NumPy makes an array of, such as the pictures of Pillow.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{
    PyAttributeError, PyBufferError, PyMemoryError, PyOverflowError, PyRuntimeError, PyTypeError,
    PyValueError,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyMemoryView;
use smallvec::SmallVec;
use tilewright::ir::DType;
use tilewright::runtime::{Buffer, View, ViewMut};

use crate::arrays;
use crate::dlpack::{self, DlDevice, DlTensor, Managed};
use crate::exchange;

/// Extents, stored inline for up to six dimensions.
pub type Extents = SmallVec<[usize; 6]>;
/// Strides, stored inline for up to six dimensions.
pub type Strides = SmallVec<[isize; 6]>;

/// The library of a tensor, which determines the library of the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Library {
    /// NumPy, and every library that is not distinguished from it.
    NumPy,
    /// PyTorch.
    Torch,
    /// JAX.
    Jax,
}

/// The memory that holds a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// In the host's memory.
    Host,
    /// The memory of an NVIDIA GPU.
    Cuda(usize),
}

/// A tensor of the caller.
pub struct Tensor<'py> {
    /// The object that the caller gave.
    pub object: Bound<'py, PyAny>,
    /// The library of the tensor.
    pub library: Library,
    /// The memory that holds the tensor.
    pub memory: Memory,
    /// The type of the elements.
    pub dtype: DType,
    /// The address of the element with all subscripts 0.
    pub start: *mut u8,
    /// The extents.
    pub shape: Extents,
    /// The strides in elements.
    pub strides: Strides,
    /// Whether the tensor may be written to.
    pub writable: bool,
    /// The owner of the memory, besides the object.
    pub owner: Owner,
}

/// The owner of a tensor's memory, besides its object.
#[allow(dead_code, reason = "they are held, not read")]
pub enum Owner {
    /// Nothing: the object alone does.
    Object,
    /// A tensor that was handed over by DLPack.
    Managed(Managed),
    /// A buffer.
    Buffer(PyUntypedBuffer),
}

impl<'py> Tensor<'py> {
    /// Reads the tensor for a parameter.
    pub fn read(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Tensor<'py>> {
        if let Some(array) = arrays::read(object, name)? {
            return Ok(array);
        }
        match read_foreign(object) {
            Ok(Some(tensor)) => Ok(tensor),
            Ok(None) => match as_array(object, name)? {
                // The elements may be a copy, in which results would be lost.
                Some(array) => Ok(Tensor { writable: false, ..array }),
                None => Err(no_tensor(object, name)),
            },
            Err(error) => Err(with_parameter_name(object.py(), name, error)),
        }
    }

    /// Returns a view for reading.
    ///
    /// # Safety
    ///
    /// The tensor is in the host's memory, and nothing writes to it while the view is used.
    pub unsafe fn view(&self) -> View<'_> {
        // SAFETY: the producer guarantees that the elements are there, and the caller the rest.
        unsafe { View::from_raw_parts(self.dtype, self.start, &self.shape, &self.strides) }
    }

    /// Returns a view for writing.
    ///
    /// # Safety
    ///
    /// The tensor is in the host's memory, no two of its elements overlap, and nothing else uses it
    /// while the view is used.
    pub unsafe fn view_mut(&self) -> ViewMut<'_> {
        // SAFETY: as in `view`.
        unsafe { ViewMut::from_raw_parts(self.dtype, self.start, &self.shape, &self.strides) }
    }

    /// Whether the elements follow each other in row-major order, without gaps.
    pub fn is_contiguous(&self) -> bool {
        // SAFETY: only the layout of the view is used, so the memory may be anywhere.
        unsafe { self.view() }.is_contiguous()
    }

    /// The address range from the first byte of the lowest element to the end of the highest one.
    pub fn bytes(&self) -> std::ops::Range<i128> {
        let start = self.start.addr() as i128;
        if self.shape.contains(&0) {
            return start..start;
        }
        let bytes = self.dtype.bytes() as i128;
        let (mut low, mut high) = (start, start + bytes);
        for (extent, stride) in self.shape.iter().zip(&self.strides) {
            let reach = (*extent as i128 - 1) * *stride as i128 * bytes;
            if reach < 0 {
                low += reach;
            } else {
                high += reach;
            }
        }
        low..high
    }

    /// Checks whether the tensor may share an element with another one. The answer true may be
    /// wrong.
    pub fn may_share(&self, other: &Tensor<'_>) -> bool {
        let (own, others) = (self.bytes(), other.bytes());
        if own.start >= others.end || others.start >= own.end {
            return false;
        }
        // If all strides are multiples of one step, the tensors may use disjoint parts of each
        // step, as the channels of an image do.
        let step = self.steps().chain(other.steps()).fold(0, gcd);
        let distance = (self.start.addr() as i128 - other.start.addr() as i128).rem_euclid(step.max(1));
        step == 0 || distance < other.dtype.bytes() as i128 || distance + self.dtype.bytes() as i128 > step
    }

    /// The strides in bytes of all dimensions with more than one element.
    fn steps(&self) -> impl Iterator<Item = i128> {
        let used = self.shape.iter().zip(&self.strides).filter(|(extent, _)| **extent > 1);
        used.map(|(_, stride)| (*stride as i128 * self.dtype.bytes() as i128).abs())
    }

    /// Checks whether two different subscripts may refer to the same element. The answer true may
    /// be wrong.
    pub fn overlaps_itself(&self) -> bool {
        let dimensions = self.shape.iter().zip(&self.strides).filter(|(extent, _)| **extent > 1);
        let mut dimensions: SmallVec<[(usize, usize); 6]> =
            dimensions.map(|(extent, stride)| (stride.unsigned_abs(), *extent)).collect();
        dimensions.sort_unstable();
        let mut reach = 1usize;
        for (stride, extent) in dimensions {
            if stride < reach {
                return true;
            }
            reach = reach.saturating_add(stride.saturating_mul(extent - 1));
        }
        false
    }
}

fn gcd(one: i128, other: i128) -> i128 {
    if other == 0 { one } else { gcd(other, one % other) }
}

/// Reads a tensor that is not a NumPy array, if the object is a tensor at all.
fn read_foreign<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Tensor<'py>>> {
    let py = object.py();
    if is_instance(object, &TORCH, "torch", "Tensor")? {
        return read_by_dlpack(object, Library::Torch).map(Some);
    }
    if is_instance(object, &TRACER, "jax", "core.Tracer")? {
        return Err(PyTypeError::new_err(
            "JAX only traces this call, as jax.jit and jax.grad do: make an operator with tilewright.jax.op",
        ));
    }
    if object.hasattr(intern!(py, "__dlpack__"))? {
        let is_jax = is_instance(object, &JAX, "jax", "Array")?;
        return read_by_dlpack(object, if is_jax { Library::Jax } else { Library::NumPy }).map(Some);
    }
    match PyMemoryView::from(object) {
        // A NumPy scalar has a buffer, but is not a tensor.
        Ok(view) if view.getattr(intern!(py, "ndim"))?.extract::<usize>()? == 0 => Ok(None),
        // A memory view has strides even where the buffer itself omits them.
        Ok(view) => read_buffer(object, PyUntypedBuffer::get(view.as_any())?).map(Some),
        Err(error) if error.is_instance_of::<PyTypeError>(py) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reads an object with `__array_interface__` or `__array__` by making a NumPy array of it.
fn as_array<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Tensor<'py>>> {
    let py = object.py();
    let has = |attribute| object.hasattr(attribute);
    if !has(intern!(py, "__array_interface__"))? && !has(intern!(py, "__array__"))? {
        return Ok(None);
    }
    refuse_palette(object, name)?;
    let Ok(numpy) = py.import(intern!(py, "numpy")) else { return Ok(None) };
    let array = numpy.call_method1(intern!(py, "asarray"), (object,));
    let array = array.map_err(|error| with_parameter_name(py, name, error))?;
    // A scalar of NumPy is no tensor.
    let tensor = arrays::read(&array, name)?.filter(|array| !array.shape.is_empty());
    match tensor {
        // The bytes of Pillow's bilevel pictures are 0 and 255.
        Some(tensor) if tensor.dtype == DType::Bool => {
            let bytes = array.call_method1(intern!(py, "view"), ("uint8",))?;
            arrays::read(&numpy.call_method1(intern!(py, "not_equal"), (bytes, 0))?, name)
        }
        other => Ok(other),
    }
}

/// Refuses a picture of Pillow whose elements are numbers of colours in a palette.
fn refuse_palette(object: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    let py = object.py();
    let mode = object.getattr(intern!(py, "mode")).ok();
    let is_palette = mode.is_some_and(|mode| mode.eq("P").unwrap_or(false) || mode.eq("PA").unwrap_or(false));
    if is_palette && object.hasattr(intern!(py, "getpalette"))? {
        return Err(PyTypeError::new_err(format!(
            "`{name}` is a picture with a palette, whose elements are not colours: give {name}.convert(\"RGB\")"
        )));
    }
    Ok(())
}

/// Reads a tensor by DLPack.
fn read_by_dlpack<'py>(object: &Bound<'py, PyAny>, library: Library) -> PyResult<Tensor<'py>> {
    if library == Library::Torch {
        refuse_unreadable(object)?;
        return of_torch(object);
    }
    take_by_dlpack(object, library)
}

/// Reads a PyTorch tensor whose elements are stored in memory as they are. The tensor is not made
/// ready for any stream, because the call itself is queued on PyTorch's current stream.
pub fn of_torch<'py>(object: &Bound<'py, PyAny>) -> PyResult<Tensor<'py>> {
    match exchange::table_of(object).and_then(|table| table.borrow_tensor(object)) {
        Some(seen) => from_dlpack(object, Library::Torch, &seen?, true),
        None => take_by_dlpack(object, Library::Torch),
    }
}

/// Reads a tensor that its library exports by DLPack.
fn take_by_dlpack<'py>(object: &Bound<'py, PyAny>, library: Library) -> PyResult<Tensor<'py>> {
    let stream = match memory(dlpack::device(object)?)? {
        Memory::Host => None,
        Memory::Cuda(_) => Some(export_stream(library)),
    };
    let managed = Managed::take(object, stream)?;
    let writable = managed.is_writable() && library != Library::Jax;
    let tensor = from_dlpack(object, library, managed.tensor(), writable)?;
    Ok(Tensor { owner: Owner::Managed(managed), ..tensor })
}

fn from_dlpack<'py>(
    object: &Bound<'py, PyAny>,
    library: Library,
    tensor: &DlTensor,
    writable: bool,
) -> PyResult<Tensor<'py>> {
    let memory = memory(tensor.device)?;
    let too_large = |_| PyValueError::new_err("an extent of the tensor is too large");
    let extents = tensor.shape()?.iter().map(|extent| usize::try_from(*extent).map_err(too_large));
    let shape: Extents = extents.collect::<Result<_, _>>()?;
    let strides = match tensor.strides() {
        Some(strides) if strides.len() == shape.len() => {
            strides.iter().map(|stride| *stride as isize).collect()
        }
        _ => row_major(&shape),
    };
    let (dtype, start) = (tensor.dtype()?, tensor.start());
    if start.is_null() && !shape.contains(&0) {
        return Err(PyValueError::new_err(
            "it has a shape but no memory, as while PyTorch traces a program: make an operator with tilewright.torch.op",
        ));
    }
    let (object, owner) = (object.clone(), Owner::Object);
    Ok(Tensor { object, library, memory, dtype, start, shape, strides, writable, owner })
}

/// Refuses PyTorch tensors whose memory does not hold their elements, and tensors that need a
/// gradient or a tangent.
fn refuse_unreadable(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    if object.call_method0(intern!(py, "is_neg"))?.is_truthy()? {
        return Err(PyValueError::new_err(
            "its elements are negated when they are read, not in memory: give it with .resolve_neg()",
        ));
    }
    if wants_gradient(object)? {
        return Err(PyValueError::new_err(
            "it requires a gradient, which a plain function does not compute: detach it with .detach(), call under torch.no_grad(), \
             or make an operator with a backward program, with tilewright.torch.op",
        ));
    }
    if has_tangent(object)? {
        return Err(PyValueError::new_err(
            "it carries a tangent, which a function does not propagate: give only its value, \
             torch.autograd.forward_ad.unpack_dual(…).primal",
        ));
    }
    Ok(())
}

/// Whether a tensor carries a forward-mode derivative of PyTorch.
fn has_tangent(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    static FORWARD: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let py = tensor.py();
    let import = || Ok::<_, PyErr>(py.import(intern!(py, "torch.autograd.forward_ad"))?.unbind());
    let forward = FORWARD.get_or_try_init(py, import)?.bind(py);
    // Without an active level there are no tangents, and this check is faster.
    if forward.getattr(intern!(py, "_current_level")).is_ok_and(|level| level.lt(0).unwrap_or(false)) {
        return Ok(false);
    }
    let unpacked = forward.call_method1(intern!(py, "unpack_dual"), (tensor,))?;
    Ok(!unpacked.getattr(intern!(py, "tangent"))?.is_none())
}

/// Whether PyTorch would record operations on a tensor for a gradient.
fn wants_gradient(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = tensor.py();
    Ok(tensor.getattr(intern!(py, "requires_grad"))?.is_truthy()?
        && torch(py)?.call_method0(intern!(py, "is_grad_enabled"))?.is_truthy()?)
}

/// The module `torch`. Callers have a tensor of PyTorch, so the import succeeds.
pub fn torch(py: Python<'_>) -> PyResult<&Bound<'_, PyModule>> {
    static TORCH: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let found = TORCH.get_or_try_init(py, || Ok::<_, PyErr>(py.import("torch")?.unbind()))?;
    Ok(found.bind(py))
}

/// Refuses a number that is a PyTorch tensor and needs a gradient, which it would not get.
pub fn refuse_gradient(number: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    if is_instance(number, &TORCH, "torch", "Tensor")? && (wants_gradient(number)? || has_tangent(number)?) {
        let message =
            format!("`{name}` is a number in the program, and has no gradient: give it with .item()");
        return Err(PyValueError::new_err(message));
    }
    Ok(())
}

/// The stream for which an exporter makes its elements ready, in DLPack's numbering.
fn export_stream(library: Library) -> i64 {
    /// CUDA's default stream.
    const SHARED: i64 = 1;
    const NOTHING: i64 = -1;
    match library {
        // The call itself is queued on the current stream.
        Library::Torch => NOTHING,
        Library::NumPy | Library::Jax => SHARED,
    }
}

fn memory(device: DlDevice) -> PyResult<Memory> {
    match device.kind {
        dlpack::CPU | dlpack::CUDA_HOST => Ok(Memory::Host),
        dlpack::CUDA => Ok(Memory::Cuda(usize::try_from(device.ordinal).unwrap_or(0))),
        kind => Err(PyBufferError::new_err(format!(
            "it is on a device of DLPack kind {kind}, which Tilewright cannot use: move it to the CPU or to a CUDA device"
        ))),
    }
}

/// Reads a tensor by its buffer.
fn read_buffer<'py>(object: &Bound<'py, PyAny>, buffer: PyUntypedBuffer) -> PyResult<Tensor<'py>> {
    let format = buffer.format().to_string_lossy().into_owned();
    let dtype = buffer_type(&format, buffer.item_size())
        .ok_or_else(|| PyTypeError::new_err(format!("elements of the format {format:?} are not known")))?;
    let shape: Extents = buffer.shape().into();
    let bytes = dtype.bytes() as isize;
    if buffer.strides().iter().any(|stride| stride % bytes != 0) {
        return Err(PyValueError::new_err("its strides are not multiples of the element size"));
    }
    let strides = buffer.strides().iter().map(|stride| stride / bytes).collect();
    let (start, writable) = (buffer.buf_ptr().cast(), !buffer.readonly());
    let (library, memory, owner) = (Library::NumPy, Memory::Host, Owner::Buffer(buffer));
    Ok(Tensor { object: object.clone(), library, memory, dtype, start, shape, strides, writable, owner })
}

/// The element type of a format of the module `struct`.
fn buffer_type(format: &str, bytes: usize) -> Option<DType> {
    let format = format.strip_prefix(['@', '=', '<']).unwrap_or(format);
    let dtype = match (format, bytes) {
        ("?", 1) => DType::Bool,
        ("b", 1) => DType::Int8,
        ("B" | "c", 1) => DType::UInt8,
        ("h", 2) => DType::Int16,
        ("H", 2) => DType::UInt16,
        ("i" | "l" | "q" | "n", 4) => DType::Int32,
        ("I" | "L" | "Q" | "N", 4) => DType::UInt32,
        ("i" | "l" | "q" | "n", 8) => DType::Int64,
        ("I" | "L" | "Q" | "N", 8) => DType::UInt64,
        ("e", 2) => DType::Float16,
        ("f", 4) => DType::Float32,
        ("d", 8) => DType::Float64,
        _ => return None,
    };
    Some(dtype)
}

/// The strides of a row-major tensor without gaps.
pub fn row_major(shape: &[usize]) -> Strides {
    let mut strides: Strides = SmallVec::from_elem(1, shape.len());
    for at in (1..shape.len()).rev() {
        strides[at - 1] = isize::wrapping_mul(strides[at], shape[at] as isize);
    }
    strides
}

static TORCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static JAX: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
static TRACER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Checks whether an object is of a class. The class is looked up only if its module was imported.
fn is_instance(
    object: &Bound<'_, PyAny>,
    known: &PyOnceLock<Py<PyAny>>,
    module: &str,
    class: &str,
) -> PyResult<bool> {
    let py = object.py();
    if let Some(class) = known.get(py) {
        return object.is_instance(class.bind(py));
    }
    let Some(found) = imported(py, module)? else { return Ok(false) };
    // A library version without this class has no objects of it.
    let Ok(class) = class.split('.').try_fold(found, |found, part| found.getattr(part)) else {
        return Ok(false);
    };
    object.is_instance(known.get_or_init(py, || class.unbind()).bind(py))
}

/// Returns a module if it has been imported.
pub fn imported<'py>(py: Python<'py>, module: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
    let found = modules.call_method1(intern!(py, "get"), (module,))?;
    Ok((!found.is_none()).then_some(found))
}

/// Refuses bool tensors with bytes other than 0 and 1.
pub fn refuse_invalid_bools(tensor: &Tensor<'_>, name: &str) -> PyResult<()> {
    if tensor.dtype != DType::Bool || tensor.memory != Memory::Host {
        return Ok(());
    }
    let message = || format!("`{name}` is bool, and has bytes that are neither 0 nor 1; give {name} != 0");
    // SAFETY: the tensor is in the host's memory, and nothing writes to it while the interpreter
    // lock is held. The view has bytes as elements, so any value is valid.
    let bytes = unsafe { View::from_raw_parts(DType::UInt8, tensor.start, &tensor.shape, &tensor.strides) };
    let is_invalid = match bytes.contiguous_bytes() {
        Some(bytes) => has_invalid_bool(bytes),
        None => {
            let packed = Buffer::pack(&bytes).map_err(|error| PyMemoryError::new_err(error.to_string()))?;
            has_invalid_bool(packed.bytes())
        }
    };
    if is_invalid { Err(PyValueError::new_err(message())) } else { Ok(()) }
}

/// Whether a byte is neither 0 nor 1. Reading all bytes is faster than stopping at the first such
/// byte.
fn has_invalid_bool(bytes: &[u8]) -> bool {
    bytes.iter().fold(0, |all, byte| all | byte) > 1
}

/// The exception for objects that are not tensors.
fn no_tensor(object: &Bound<'_, PyAny>, name: &str) -> PyErr {
    let class = object.get_type().name().map_or("an object".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "`{name}` takes a tensor (a NumPy array, a PyTorch or JAX tensor, or anything with __dlpack__, a buffer or __array__), not {class}"
    ))
}

/// Prefixes an exception's message with the parameter's name. Exceptions of other types stay as
/// they are.
pub fn with_parameter_name(py: Python<'_>, name: &str, error: PyErr) -> PyErr {
    let message = error.value(py).to_string();
    // PyTorch appends a location in its own code, which is removed here.
    let message = message.split("\nException raised from").next().unwrap_or_default();
    let message = format!("`{name}`: {message}");
    let named = if error.is_instance_of::<PyTypeError>(py) || error.is_instance_of::<PyAttributeError>(py) {
        PyTypeError::new_err(message)
    } else if error.is_instance_of::<PyOverflowError>(py) {
        PyOverflowError::new_err(message)
    } else if error.is_instance_of::<PyValueError>(py) {
        PyValueError::new_err(message)
    } else if error.is_instance_of::<PyBufferError>(py) {
        PyBufferError::new_err(message)
    } else if error.is_instance_of::<PyRuntimeError>(py) {
        PyRuntimeError::new_err(message)
    } else {
        return error;
    };
    named.set_cause(py, Some(error));
    named
}
