//! Declares the structures that XLA's foreign function interface passes to a handler, as far as
//! Tilewright uses them. New versions of the interface append to the ends of these structures.

#![allow(dead_code, reason = "fields that only others use")]

use std::ffi::{CString, c_char, c_int, c_void};

use smallvec::SmallVec;
use tilewright::ir::{DType, Number, Tensor};
use tilewright::runtime::{View, ViewMut};

use crate::tensor::{Extents, row_major};

/// An error message.
pub type Failure = String;

const EXECUTE: c_int = 3;
/// The version of the interface that these structures follow.
const VERSION: (c_int, c_int) = (0, 3);
const METADATA: c_int = 1;
const SCALAR: c_int = 3;
const INTERNAL: c_int = 13;

#[repr(C)]
struct Extension {
    size: usize,
    kind: c_int,
    next: *mut Extension,
}

#[repr(C)]
struct Version {
    size: usize,
    extensions: *mut Extension,
    major: c_int,
    minor: c_int,
}

#[repr(C)]
struct Metadata {
    size: usize,
    version: Version,
    traits: u32,
}

#[repr(C)]
struct MetadataExtension {
    base: Extension,
    metadata: *mut Metadata,
}

/// XLA's function table. Unused functions have no types.
#[repr(C)]
struct Api {
    size: usize,
    extensions: *mut Extension,
    version: Version,
    internal: *const c_void,
    make_error: unsafe extern "C" fn(*mut MakeError) -> *mut c_void,
    error_message: *const c_void,
    drop_error: unsafe extern "C" fn(*mut DropError),
    register: *const c_void,
    stream: unsafe extern "C" fn(*mut GetStream) -> *mut c_void,
    unused_before_ordinal: [*const c_void; 12],
    ordinal: unsafe extern "C" fn(*mut GetOrdinal) -> *mut c_void,
}

#[repr(C)]
struct MakeError {
    size: usize,
    extensions: *mut Extension,
    message: *const c_char,
    code: c_int,
}

#[repr(C)]
struct DropError {
    size: usize,
    extensions: *mut Extension,
    error: *mut c_void,
}

#[repr(C)]
struct GetStream {
    size: usize,
    extensions: *mut Extension,
    context: *mut c_void,
    stream: *mut c_void,
}

#[repr(C)]
struct GetOrdinal {
    size: usize,
    extensions: *mut Extension,
    context: *mut c_void,
    ordinal: i32,
}

/// Arguments, or results.
#[repr(C)]
pub struct Buffers {
    size: usize,
    extensions: *mut Extension,
    count: i64,
    kinds: *const c_int,
    all: *const *const XlaBuffer,
}

#[repr(C)]
struct ByteSpan {
    start: *const u8,
    length: usize,
}

#[repr(C)]
struct ScalarAttribute {
    dtype: c_int,
    value: *const c_void,
}

/// Attributes.
#[repr(C)]
pub struct Attributes {
    size: usize,
    extensions: *mut Extension,
    count: i64,
    kinds: *const c_int,
    names: *const *const ByteSpan,
    all: *const *const c_void,
}

/// A call.
#[repr(C)]
pub struct CallFrame {
    size: usize,
    extensions: *mut Extension,
    api: *const Api,
    context: *mut c_void,
    stage: c_int,
    /// The arguments.
    pub args: Buffers,
    /// The results to write.
    pub rets: Buffers,
    /// The attributes.
    pub attrs: Attributes,
}

/// A tensor of XLA, row-major without gaps.
#[repr(C)]
pub struct XlaBuffer {
    size: usize,
    extensions: *mut Extension,
    dtype: c_int,
    data: *mut u8,
    rank: i64,
    extents: *const i64,
}

impl CallFrame {
    /// Whether XLA executes the call now. The other stages prepare it.
    pub fn is_execution(&self) -> bool {
        self.stage == EXECUTE
    }

    /// Handles XLA's query for the interface version. Returns true if the call was only this query.
    ///
    /// # Safety
    ///
    /// XLA must have made the frame. The following functions require the same.
    pub unsafe fn answer_version_query(&self) -> bool {
        // SAFETY: the extensions are a list, and an extension of this kind is a query for metadata.
        unsafe {
            let mut next = self.extensions;
            while let Some(extension) = next.as_ref() {
                if extension.kind == METADATA {
                    let metadata = (*next.cast::<MetadataExtension>()).metadata;
                    ((*metadata).version.major, (*metadata).version.minor) = VERSION;
                    (*metadata).traits = 0;
                    return true;
                }
                next = extension.next;
            }
        }
        false
    }

    /// Makes an error for XLA.
    pub unsafe fn error(&self, why: &str) -> *mut c_void {
        let message = CString::new(why.replace('\0', " ")).unwrap_or_default();
        let mut wanted = MakeError {
            size: size_of::<MakeError>(),
            extensions: std::ptr::null_mut(),
            message: message.as_ptr(),
            code: INTERNAL,
        };
        // SAFETY: the function is XLA's own, and copies the message.
        unsafe { ((*self.api).make_error)(&raw mut wanted) }
    }

    /// The stream of the call.
    pub unsafe fn stream(&self) -> Result<u64, Failure> {
        let (context, none) = (self.context, std::ptr::null_mut());
        let mut asked =
            GetStream { size: size_of::<GetStream>(), extensions: none, context, stream: none.cast() };
        // SAFETY: the function is XLA's own.
        let failed = unsafe { ((*self.api).stream)(&raw mut asked) };
        // SAFETY: as above.
        unsafe { self.refuse(failed, "XLA did not return the stream of the call")? };
        Ok(asked.stream.addr() as u64)
    }

    /// The index of the GPU.
    pub unsafe fn ordinal(&self) -> Result<usize, Failure> {
        let (context, extensions) = (self.context, std::ptr::null_mut());
        let mut asked = GetOrdinal { size: size_of::<GetOrdinal>(), extensions, context, ordinal: 0 };
        // SAFETY: an older XLA lacks the function, which the size of its table shows.
        let failed = unsafe {
            if (*self.api).size < size_of::<Api>() {
                return Err("this version of JAX is too old: it does not report the GPU of a call".to_owned());
            }
            ((*self.api).ordinal)(&raw mut asked)
        };
        // SAFETY: as above.
        unsafe { self.refuse(failed, "XLA did not return the GPU of the call")? };
        Ok(asked.ordinal.max(0) as usize)
    }

    /// Releases an error of XLA and returns `why`, if there is an error.
    unsafe fn refuse(&self, error: *mut c_void, why: &str) -> Result<(), Failure> {
        if error.is_null() {
            return Ok(());
        }
        let mut dropped = DropError { size: size_of::<DropError>(), extensions: std::ptr::null_mut(), error };
        // SAFETY: the function is XLA's own, and XLA made this error.
        unsafe { ((*self.api).drop_error)(&raw mut dropped) };
        Err(why.to_owned())
    }
}

impl Buffers {
    /// Returns all buffers.
    ///
    /// # Safety
    ///
    /// XLA must have made this structure.
    pub unsafe fn buffers(&self) -> SmallVec<[&XlaBuffer; 8]> {
        // SAFETY: there are `count` pointers, all of them to buffers.
        (0..self.count as usize).map(|at| unsafe { &**self.all.add(at) }).collect()
    }
}

impl Attributes {
    /// Returns an integer attribute by name.
    ///
    /// # Safety
    ///
    /// XLA must have made this structure.
    pub unsafe fn integer(&self, wanted: &str) -> Option<i64> {
        // SAFETY: there are `count` attributes, and the kind of an attribute says what it points
        // to.
        unsafe {
            let named = |at: usize| {
                let name = &**self.names.add(at);
                std::slice::from_raw_parts(name.start, name.length) == wanted.as_bytes()
            };
            let at = (0..self.count as usize).find(|at| named(*at))?;
            if *self.kinds.add(at) != SCALAR {
                return None;
            }
            let scalar = &*(*self.all.add(at)).cast::<ScalarAttribute>();
            (dtype_of(scalar.dtype)? == DType::Int64).then(|| *scalar.value.cast::<i64>())
        }
    }
}

impl XlaBuffer {
    /// The type of the elements.
    pub fn dtype(&self) -> Result<DType, Failure> {
        dtype_of(self.dtype).ok_or_else(|| format!("elements of XLA's type {} are not known", self.dtype))
    }

    /// The address of the elements.
    pub fn address(&self) -> u64 {
        self.data.addr() as u64
    }

    /// The extents.
    pub fn shape(&self) -> Extents {
        // SAFETY: there are `rank` extents.
        let extent = |at| unsafe { *self.extents.add(at) };
        (0..self.rank as usize).map(|at| extent(at).max(0) as usize).collect()
    }

    /// Returns a view for reading.
    ///
    /// # Safety
    ///
    /// The buffer is in the host's memory, and nothing writes to it while the view is used.
    pub unsafe fn view(&self) -> Result<View<'_>, Failure> {
        let (dtype, shape) = (self.dtype()?, self.shape());
        // SAFETY: the caller guarantees it.
        Ok(unsafe { View::from_raw_parts(dtype, self.data, &shape, &row_major(&shape)) })
    }

    /// Returns a view for writing.
    ///
    /// # Safety
    ///
    /// The buffer is in the host's memory, and nothing else uses it while the view is used.
    pub unsafe fn view_mut(&self) -> Result<ViewMut<'_>, Failure> {
        let (dtype, shape) = (self.dtype()?, self.shape());
        // SAFETY: the caller guarantees it.
        Ok(unsafe { ViewMut::from_raw_parts(dtype, self.data, &shape, &row_major(&shape)) })
    }

    /// Returns the only element.
    ///
    /// # Safety
    ///
    /// As for [`XlaBuffer::view`].
    pub unsafe fn number(&self) -> Result<Number, Failure> {
        // SAFETY: the caller guarantees it.
        let view = unsafe { self.view()? };
        let bytes = view.contiguous_bytes().unwrap_or_default().to_vec();
        Ok(Tensor::from_bytes(self.dtype()?, &[], bytes).map_err(|error| error.to_string())?.get(0))
    }
}

fn dtype_of(number: c_int) -> Option<DType> {
    Some(match number {
        1 => DType::Bool,
        2 => DType::Int8,
        3 => DType::Int16,
        4 => DType::Int32,
        5 => DType::Int64,
        6 => DType::UInt8,
        7 => DType::UInt16,
        8 => DType::UInt32,
        9 => DType::UInt64,
        10 => DType::Float16,
        11 => DType::Float32,
        12 => DType::Float64,
        16 => DType::BFloat16,
        _ => return None,
    })
}
