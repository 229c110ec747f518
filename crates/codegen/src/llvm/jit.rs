//! Links object code into this process, and looks up the addresses of its functions.
//!
//! One LLJIT, LLVM's just-in-time compiler, serves the whole process. Each kernel is an object file
//! with its own resource tracker, so that dropping the kernel frees its memory.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use inkwell::llvm_sys::core::LLVMCreateMemoryBufferWithMemoryRangeCopy;
use inkwell::llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use inkwell::llvm_sys::orc2::lljit::{
    LLVMOrcCreateLLJIT, LLVMOrcLLJITAddObjectFileWithRT, LLVMOrcLLJITGetExecutionSession,
    LLVMOrcLLJITGetGlobalPrefix, LLVMOrcLLJITGetMainJITDylib, LLVMOrcLLJITLookup, LLVMOrcLLJITRef,
};
use inkwell::llvm_sys::orc2::{
    LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess, LLVMOrcExecutionSessionGetSymbolStringPool,
    LLVMOrcJITDylibAddGenerator, LLVMOrcJITDylibCreateResourceTracker, LLVMOrcReleaseResourceTracker,
    LLVMOrcResourceTrackerRef, LLVMOrcResourceTrackerRemove, LLVMOrcSymbolStringPoolClearDeadEntries,
};

use crate::CodegenError;

/// The number of drops after which the names of dropped kernels are removed.
const DROPS_BETWEEN_CLEANINGS: u64 = 256;

struct Jit(LLVMOrcLLJITRef);

// SAFETY: ORC sessions have their own locks; any thread may add, look up and remove code.
unsafe impl Send for Jit {}
// SAFETY: as above.
unsafe impl Sync for Jit {}

static JIT: OnceLock<Result<Jit, String>> = OnceLock::new();
static KERNELS: AtomicU64 = AtomicU64::new(0);
static DROPS: AtomicU64 = AtomicU64::new(0);

/// A symbol that is unique to each kernel of the process.
pub(super) fn unique_symbol() -> String {
    format!("tilewright_{}", KERNELS.fetch_add(1, Ordering::Relaxed))
}

fn jit() -> Result<&'static Jit, CodegenError> {
    let jit = JIT.get_or_init(create).as_ref();
    jit.map_err(|what| CodegenError::Llvm(what.clone()))
}

fn create() -> Result<Jit, String> {
    let mut jit = std::ptr::null_mut();
    // SAFETY: a null builder means the defaults; the library takes ownership of the generator that
    // is added to it.
    unsafe {
        check_error(LLVMOrcCreateLLJIT(&mut jit, std::ptr::null_mut()))?;
        let mut generator = std::ptr::null_mut();
        check_error(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
            &mut generator,
            LLVMOrcLLJITGetGlobalPrefix(jit),
            None,
            std::ptr::null_mut(),
        ))?;
        LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(jit), generator);
    }
    Ok(Jit(jit))
}

/// Consumes an error and returns its message.
fn check_error(error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is not null, its message is a C string that we own, and both are used once.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(text)
    }
}

/// Code in memory, which is freed on drop.
pub(super) struct Code {
    tracker: LLVMOrcResourceTrackerRef,
}

// SAFETY: the tracker is only used to remove the code, which ORC locks.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    /// Links an object file.
    pub(super) fn link(object: &[u8]) -> Result<Code, CodegenError> {
        let jit = jit()?;
        // SAFETY: the buffer is a copy, and the JIT takes ownership of it.
        unsafe {
            let tracker = LLVMOrcJITDylibCreateResourceTracker(LLVMOrcLLJITGetMainJITDylib(jit.0));
            let code = Code { tracker };
            let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
                object.as_ptr().cast(),
                object.len(),
                c"kernel".as_ptr(),
            );
            check_error(LLVMOrcLLJITAddObjectFileWithRT(jit.0, tracker, buffer))
                .map_err(CodegenError::Llvm)?;
            Ok(code)
        }
    }

    /// Returns the address of a function. The first lookup links the code.
    pub(super) fn address(&self, symbol: &str) -> Result<*const (), CodegenError> {
        let name = CString::new(symbol).map_err(|error| CodegenError::Llvm(error.to_string()))?;
        let mut address = 0;
        // SAFETY: the name is a C string that outlives the call.
        check_error(unsafe { LLVMOrcLLJITLookup(jit()?.0, &mut address, name.as_ptr()) })
            .map_err(CodegenError::Llvm)?;
        Ok(address as usize as *const ())
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        // SAFETY: we own the tracker, and nothing can call the code any more. If the removal fails,
        // the memory stays allocated; nothing more can be done here.
        unsafe {
            let _ = check_error(LLVMOrcResourceTrackerRemove(self.tracker));
            LLVMOrcReleaseResourceTracker(self.tracker);
            if DROPS.fetch_add(1, Ordering::Relaxed).is_multiple_of(DROPS_BETWEEN_CLEANINGS)
                && let Ok(jit) = jit()
            {
                let session = LLVMOrcLLJITGetExecutionSession(jit.0);
                LLVMOrcSymbolStringPoolClearDeadEntries(LLVMOrcExecutionSessionGetSymbolStringPool(session));
            }
        }
    }
}
