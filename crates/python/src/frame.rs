//! What a handler of XLA's foreign function interface is given, as far as it is used. New versions of the interface add to the ends of
//! these structures.

#![allow(dead_code, reason = "fields that only others use")]

use std::ffi::{CString, c_char, c_int, c_void};

use smallvec::SmallVec;
use tilewright_ir::{DType, Number, Tensor};
use tilewright_runtime::{View, ViewMut};

use crate::tensor::{Extents, row_major};

/// What went wrong, for people.
pub type Failure = String;

const EXECUTE: c_int = 3;
/// The version of the interface whose structures are below.
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

/// XLA's functions; those that are not used have no types.
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
    /// Its arguments.
    pub args: Buffers,
    /// Where its results go.
    pub rets: Buffers,
    /// Its attributes.
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
    /// Whether this is the call itself, and no preparation for it.
    pub fn is_to_run(&self) -> bool {
        self.stage == EXECUTE
    }

    /// Answers, if XLA only asks for which version the handler was made.
    ///
    /// # Safety
    ///
    /// It is XLA's, as it is in all that follow.
    pub unsafe fn tell_version(&self) -> bool {
        // SAFETY: extensions are a list, and one of this kind is a question for metadata.
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

    /// An error for XLA.
    pub unsafe fn error(&self, why: &str) -> *mut c_void {
        let message = CString::new(why.replace('\0', " ")).unwrap_or_default();
        let mut wanted = MakeError {
            size: size_of::<MakeError>(),
            extensions: std::ptr::null_mut(),
            message: message.as_ptr(),
            code: INTERNAL,
        };
        // SAFETY: XLA's own function, which copies the message.
        unsafe { ((*self.api).make_error)(&raw mut wanted) }
    }

    /// The stream of the call.
    pub unsafe fn stream(&self) -> Result<u64, Failure> {
        let (context, none) = (self.context, std::ptr::null_mut());
        let mut asked =
            GetStream { size: size_of::<GetStream>(), extensions: none, context, stream: none.cast() };
        // SAFETY: XLA's own function.
        let failed = unsafe { ((*self.api).stream)(&raw mut asked) };
        // SAFETY: as above.
        unsafe { self.refuse(failed, "XLA has no stream")? };
        Ok(asked.stream.addr() as u64)
    }

    /// The number of the GPU.
    pub unsafe fn ordinal(&self) -> Result<usize, Failure> {
        let (context, extensions) = (self.context, std::ptr::null_mut());
        let mut asked = GetOrdinal { size: size_of::<GetOrdinal>(), extensions, context, ordinal: 0 };
        // SAFETY: an older XLA does not have the function, and says so by the size of the table.
        let failed = unsafe {
            if (*self.api).size < size_of::<Api>() {
                return Err("this JAX is too old to tell which GPU it is".to_owned());
            }
            ((*self.api).ordinal)(&raw mut asked)
        };
        // SAFETY: as above.
        unsafe { self.refuse(failed, "XLA has no device")? };
        Ok(asked.ordinal.max(0) as usize)
    }

    /// Gives an error of XLA back, if it is one.
    unsafe fn refuse(&self, error: *mut c_void, why: &str) -> Result<(), Failure> {
        if error.is_null() {
            return Ok(());
        }
        let mut dropped = DropError { size: size_of::<DropError>(), extensions: std::ptr::null_mut(), error };
        // SAFETY: XLA's own function, and an error that it has made for us.
        unsafe { ((*self.api).drop_error)(&raw mut dropped) };
        Err(why.to_owned())
    }
}

impl Buffers {
    /// All of them.
    ///
    /// # Safety
    ///
    /// They are XLA's.
    pub unsafe fn buffers(&self) -> SmallVec<[&XlaBuffer; 8]> {
        // SAFETY: there are as many as XLA says, all of them buffers.
        (0..self.count as usize).map(|at| unsafe { &**self.all.add(at) }).collect()
    }
}

impl Attributes {
    /// An integer by its name.
    ///
    /// # Safety
    ///
    /// They are XLA's.
    pub unsafe fn integer(&self, wanted: &str) -> Option<i64> {
        // SAFETY: there are as many attributes as XLA says; one of a scalar is what its kind says.
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
    /// The type of its elements.
    pub fn dtype(&self) -> Result<DType, Failure> {
        dtype_of(self.dtype).ok_or_else(|| format!("elements of XLA's type {} are not known", self.dtype))
    }

    /// Where it lies.
    pub fn address(&self) -> u64 {
        self.data.addr() as u64
    }

    /// Its extents.
    pub fn shape(&self) -> Extents {
        // SAFETY: there are as many extents as XLA says.
        let extent = |at| unsafe { *self.extents.add(at) };
        (0..self.rank as usize).map(|at| extent(at).max(0) as usize).collect()
    }

    /// For reading.
    ///
    /// # Safety
    ///
    /// It lies in the host's memory, and nobody writes to it while the view is used.
    pub unsafe fn view(&self) -> Result<View<'_>, Failure> {
        let (dtype, shape) = (self.dtype()?, self.shape());
        // SAFETY: the caller's promise.
        Ok(unsafe { View::from_raw_parts(dtype, self.data, &shape, &row_major(&shape)) })
    }

    /// For writing.
    ///
    /// # Safety
    ///
    /// It lies in the host's memory, and nobody else uses it while the view is used.
    pub unsafe fn view_mut(&self) -> Result<ViewMut<'_>, Failure> {
        let (dtype, shape) = (self.dtype()?, self.shape());
        // SAFETY: the caller's promise.
        Ok(unsafe { ViewMut::from_raw_parts(dtype, self.data, &shape, &row_major(&shape)) })
    }

    /// The only element.
    ///
    /// # Safety
    ///
    /// As for [`XlaBuffer::view`].
    pub unsafe fn number(&self) -> Result<Number, Failure> {
        // SAFETY: the caller's promise.
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
