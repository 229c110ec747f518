//! Defines [`Kernel`], the machine code of one loop nest, linked into this process. A kernel is
//! called with a [`Call`]. If the nest has a setup, a second function fills its constant buffers.

use super::jit::Code;
use super::object::{Object, setup_symbol};
use crate::{Call, Check, CodegenError, CompileTime};

type Entry = unsafe extern "C" fn(*const Call);

/// Machine code for one loop nest, callable from any thread.
pub struct Kernel {
    body: Entry,
    setup: Option<Entry>,
    scratch_bytes: usize,
    thread_scratch_bytes: usize,
    constants: Vec<usize>,
    checks: Vec<Check>,
    time: CompileTime,
    /// Owns the memory of the functions above.
    _code: Code,
}

impl Kernel {
    /// A kernel of an object whose code is linked.
    pub(super) fn new(object: Object, code: Code, time: CompileTime) -> Result<Kernel, CodegenError> {
        let setup = object.has_setup.then(|| entry(&code, &setup_symbol(&object.symbol)));
        Ok(Kernel {
            body: entry(&code, &object.symbol)?,
            setup: setup.transpose()?,
            scratch_bytes: object.scratch_bytes,
            thread_scratch_bytes: object.thread_scratch_bytes,
            constants: object.constants,
            checks: object.checks,
            time,
            _code: code,
        })
    }

    /// Runs the body of the nest.
    ///
    /// # Safety
    /// The memory that `call` points to must be as [`Call`] describes, with buffers of the sizes
    /// that the nest declares. Buffers must not overlap.
    pub unsafe fn call(&self, call: &Call) {
        // SAFETY: the caller guarantees that the call is valid; the code lives as long as the
        // kernel.
        unsafe { (self.body)(call) }
    }

    /// Runs the setup of the nest, which fills the constant buffers.
    ///
    /// # Safety
    /// As for [`Kernel::call`].
    pub unsafe fn setup(&self, call: &Call) {
        if let Some(setup) = self.setup {
            // SAFETY: as in `call`.
            unsafe { setup(call) }
        }
    }

    /// The number of bytes of scratch memory that [`Call::scratch`] must provide.
    pub fn scratch_bytes(&self) -> usize {
        self.scratch_bytes
    }

    /// The number of bytes of scratch memory that each thread of a parallel loop needs, beside
    /// [`Kernel::scratch_bytes`].
    pub fn thread_scratch_bytes(&self) -> usize {
        self.thread_scratch_bytes
    }

    /// The size of each constant buffer in bytes, in the order of the nest's buffers.
    pub fn constants(&self) -> &[usize] {
        &self.constants
    }

    /// The checks that can fail while the kernel runs. A status of `1 + i` means that `checks()[i]`
    /// failed.
    pub fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// The duration of each stage of compilation.
    pub fn compile_time(&self) -> CompileTime {
        self.time
    }
}

fn entry(code: &Code, symbol: &str) -> Result<Entry, CodegenError> {
    let address = code.address(symbol)?;
    // SAFETY: the symbol names a function that was emitted with this signature.
    Ok(unsafe { std::mem::transmute::<*const (), Entry>(address) })
}
