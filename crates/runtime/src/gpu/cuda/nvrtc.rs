//! Compiles CUDA C++ to machine code ([`Cubin`]) with NVRTC, NVIDIA's compiler as a library. NVRTC
//! needs no GPU.

use std::ffi::{CStr, CString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use cudarc::nvrtc::result::{self, NvrtcError};
use cudarc::nvrtc::sys;

use crate::gpu::error::GpuError;

/// Machine code for NVIDIA GPUs of one compute capability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cubin {
    /// The code, as the driver loads it.
    pub bytes: Vec<u8>,
    /// The log of the compiler: warnings, and the registers and memory that each kernel uses.
    pub log: String,
}

/// Compiles CUDA C++ for GPUs of a compute capability, such as 90 for 9.0. Fast but inexact
/// arithmetic stays off.
pub fn compile_cuda(text: &str, architecture: u32) -> Result<Cubin, GpuError> {
    if !is_present() {
        return Err(GpuError::NoCompiler);
    }
    let contains_zero = |_| GpuError::Compile { log: "the source text contains a zero byte".to_owned() };
    let source = CString::new(text).map_err(contains_zero)?;
    let program = Program::new(&source).map_err(|error| compile_error(error, ""))?;
    let compiled = program.compile(&options(text, architecture));
    let log = program.log();
    let bytes = compiled.and_then(|()| program.cubin()).map_err(|error| compile_error(error, &log))?;
    Ok(Cubin { bytes, log })
}

fn compile_error(error: NvrtcError, log: &str) -> GpuError {
    GpuError::Compile { log: format!("{:?}\n{log}", error.0) }
}

/// Folders with Python packages, one of which may contain the library.
static PACKAGE_FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Adds folders with Python packages, in which the compiler is searched for if it is not where
/// libraries usually are.
pub fn add_nvrtc_folders(folders: impl IntoIterator<Item = PathBuf>) {
    PACKAGE_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).extend(folders);
}

/// Checks whether the library can be loaded. Only success is remembered, because another library
/// that needs NVRTC may load it later.
fn is_present() -> bool {
    static PRESENT: AtomicBool = AtomicBool::new(false);
    // SAFETY: this only looks for the library; loading it has no side effects.
    let found = || unsafe { sys::is_culib_present() };
    let present = PRESENT.load(Ordering::Relaxed) || found() || load_from_packages() && found();
    PRESENT.store(present, Ordering::Relaxed);
    present
}

/// Loads the library from a package, `nvidia/*/lib`. Afterwards it is found by its name.
fn load_from_packages() -> bool {
    let packages = PACKAGE_FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    let entries =
        |folder: PathBuf| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let libraries = packages.iter().flat_map(|folder| entries(folder.join("nvidia")));
    let mut files = libraries.flat_map(|package| entries(package.join("lib")));
    files.any(|file| {
        let named = |name: &str| name.starts_with("libnvrtc.so.") && !name.contains(".alt.");
        if !file.file_name().and_then(|name| name.to_str()).is_some_and(named) {
            return false;
        }
        // SAFETY: loading the library has no side effects.
        let loaded = unsafe { libloading::Library::new(&file) };
        // The library must stay loaded.
        loaded.map(std::mem::forget).is_ok()
    })
}

fn options(text: &str, architecture: u32) -> Vec<String> {
    let mut options = vec![
        format!("--gpu-architecture=sm_{architecture}"),
        "--std=c++17".to_owned(),
        "--device-as-default-execution-space".to_owned(),
        // The text has explicit fused multiply-adds where the language allows them.
        "--fmad=false".to_owned(),
        // Reports the registers and spills of each kernel in the log.
        "--ptxas-options=-v".to_owned(),
    ];
    if text.contains("#include") {
        options.extend(headers().map(|folder| format!("--include-path={}", folder.display())));
    }
    options
}

/// The folder of headers such as `cuda_fp16.h`: in the toolkit, or beside the library, where Python
/// packages put them.
fn headers() -> Option<PathBuf> {
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let libraries = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let beside: Vec<PathBuf> = std::env::split_paths(&libraries)
        .filter_map(|folder| folder.parent().map(Path::to_path_buf))
        .collect();
    let usual = PathBuf::from("/usr/local/cuda");
    let mut folders = toolkits.chain(beside).chain([usual]).map(|folder| folder.join("include"));
    folders.find(|folder| folder.join("cuda_fp16.h").is_file())
}

/// A program of the compiler, which may refer to its source while it lives.
struct Program<'s> {
    program: sys::nvrtcProgram,
    _source: &'s CStr,
}

impl<'s> Program<'s> {
    fn new(source: &'s CStr) -> Result<Program<'s>, NvrtcError> {
        Ok(Program { program: result::create_program(source, None)?, _source: source })
    }

    fn compile(&self, options: &[String]) -> Result<(), NvrtcError> {
        // SAFETY: the program has not been destroyed.
        unsafe { result::compile_program(self.program, options) }
    }

    fn log(&self) -> String {
        // SAFETY: the program has not been destroyed.
        let log = unsafe { result::get_program_log(self.program) }.unwrap_or_default();
        let bytes: Vec<u8> = log.into_iter().map(|byte| byte as u8).take_while(|byte| *byte != 0).collect();
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }

    fn cubin(&self) -> Result<Vec<u8>, NvrtcError> {
        let mut size = 0;
        // SAFETY: the program has not been destroyed, and the pointer is to a local integer.
        unsafe { sys::nvrtcGetCUBINSize(self.program, &raw mut size) }.result()?;
        let mut bytes = vec![0u8; size];
        // SAFETY: `bytes` has room for the whole code.
        unsafe { sys::nvrtcGetCUBIN(self.program, bytes.as_mut_ptr().cast()) }.result()?;
        Ok(bytes)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was made in `new`, and nobody uses it any more. A failure to destroy
        // it does no harm.
        let _ = unsafe { result::destroy_program(self.program) };
    }
}
