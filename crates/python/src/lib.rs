//! Tilewright for Python: the native part of the package. `python/tilewright` has the part that is
//! written in Python.
//!
//! | module | contents |
//! |---|---|
//! | [`function`] | a function, compiled for the tensors that it is called with |
//! | [`kernel`] | the class `Kernel` that `compile` returns |
//! | [`compiled`] | a program at given sizes, compiled for a place; functions and kernels call it |
//! | [`empty`] | calls with a size of 0, which need no kernel |
//! | [`code`] | compiled code for a CPU or a GPU, and how it runs |
//! | [`fast_path`] | the fast path for calls with NumPy arrays |
//! | [`arguments`], [`results`] | Python's arguments as parameters, and the tensors of results |
//! | [`tensor`], [`arrays`] | reading tensors of all libraries, and NumPy arrays among them |
//! | [`dlpack`], [`exchange`] | the protocol for other libraries' tensors, and its faster C table |
//! | [`device_tensor`] | results on a GPU for libraries whose tensors cannot be made from here |
//! | [`xla`], [`frame`] | calls from programs that `jax.jit` has compiled, and XLA's structures |
//! | [`gpu_call`], [`streams`] | calls with tensors on a GPU, and the streams of other libraries |
//! | [`place`], [`pools`] | where kernels run, and their threads |
//! | [`tune`], [`records`] | searching for schedules, and the cache of records |
//! | [`source`], [`error`] | source texts, and exceptions |
//! | [`stack`] | a deep stack for the compiler |
//!
//! Three rules hold everywhere. The interpreter lock is released while a program is compiled, run
//! or tuned, except in calls on NumPy arrays that take about a microsecond. Bad arguments raise
//! exceptions. A panic would be a bug, and is an exception too.

#![allow(missing_docs, reason = "the macros of PyO3 write items without any")]

mod arguments;
mod arrays;
mod code;
mod compiled;
mod device_tensor;
mod dlpack;
mod empty;
mod error;
mod exchange;
mod fast_path;
mod frame;
mod function;
mod gpu_call;
mod kernel;
mod place;
mod pools;
mod records;
mod results;
mod source;
mod stack;
mod streams;
mod tensor;
mod tune;
mod xla;

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tilewright::runtime::gpu::add_nvrtc_folders;
use tilewright::tuner::worker::WorkerCommand;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Returns the number of threads of kernels that are compiled from now on.
#[pyfunction]
fn get_threads() -> usize {
    pools::threads()
}

/// Sets the number of threads of kernels that are compiled from now on. The default is one per
/// core.
#[pyfunction]
#[pyo3(signature = (threads = None))]
fn set_threads(threads: Option<usize>) -> PyResult<()> {
    match threads {
        Some(0) => Err(PyValueError::new_err("the number of threads must be at least 1")),
        Some(threads) if threads > pools::MAX_THREADS => Err(PyValueError::new_err(format!(
            "{threads} threads are more than the maximum of {}",
            pools::MAX_THREADS
        ))),
        threads => {
            pools::set_threads(threads.unwrap_or(0));
            Ok(())
        }
    }
}

/// Forgets threads and devices that do not exist in a forked process.
#[pyfunction]
fn after_fork(py: Python<'_>) {
    pools::discard_pools(py);
    place::mark_forked();
}

/// Sets the folders of Python packages, one of which may contain NVIDIA's compiler.
#[pyfunction]
fn set_package_folders(folders: Vec<PathBuf>) {
    add_nvrtc_folders(folders);
}

/// Runs the command `tilewright` with these arguments, and returns its exit status. `python` with
/// `options` starts a worker process of a search.
#[pyfunction]
fn command(py: Python<'_>, arguments: Vec<OsString>, python: PathBuf, options: Vec<String>) -> u8 {
    let worker = WorkerCommand { program: python, arguments: options, variables: Vec::new() };
    py.detach(|| tilewright_cli::run(arguments, Some(worker)))
}

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ProgramError", py.get_type::<error::ProgramError>())?;
    module.add("ProgramWarning", py.get_type::<error::ProgramWarning>())?;
    module.add("DeviceError", py.get_type::<error::DeviceError>())?;
    module.add_class::<source::Text>()?;
    module.add_class::<function::Function>()?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<device_tensor::DeviceTensor>()?;
    module.add_function(wrap_pyfunction!(get_threads, module)?)?;
    module.add_function(wrap_pyfunction!(set_threads, module)?)?;
    module.add_function(wrap_pyfunction!(after_fork, module)?)?;
    module.add_function(wrap_pyfunction!(set_package_folders, module)?)?;
    module.add_function(wrap_pyfunction!(command, module)?)?;
    module.add_function(wrap_pyfunction!(place::list_devices, module)?)?;
    module.add_function(wrap_pyfunction!(records::cache_path, module)?)?;
    module.add_function(wrap_pyfunction!(records::set_cache_path, module)?)?;
    module.add_function(wrap_pyfunction!(records::cache_list, module)?)?;
    module.add_function(wrap_pyfunction!(records::cache_clear, module)?)?;
    module.add_function(wrap_pyfunction!(records::cache_export, module)?)?;
    module.add_function(wrap_pyfunction!(records::cache_import, module)?)?;
    module.add_function(wrap_pyfunction!(tune::search, module)?)?;
    module.add_function(wrap_pyfunction!(xla::xla_operation, module)?)?;
    module.add_function(wrap_pyfunction!(xla::xla_handlers, module)?)?;
    Ok(())
}
