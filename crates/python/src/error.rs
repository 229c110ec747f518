//! Converts the errors of the compiler and the runtime to Python exceptions.

use pyo3::exceptions::{PyIndexError, PyMemoryError, PyOSError, PyRuntimeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use tilewright::cache::CacheError;
use tilewright::codegen::CodegenError;
use tilewright::runtime::gpu::GpuError;
use tilewright::runtime::{BuildError, RunError};
use tilewright::schedule::{Illegal, Refusal, Schedule};
use tilewright::syntax::{Code, Diagnostic};

use crate::source::Source;

pyo3::create_exception!(
    tilewright,
    ProgramError,
    PyValueError,
    "A mistake in a program or a schedule, shown under its text."
);
pyo3::create_exception!(
    tilewright,
    ProgramWarning,
    PyUserWarning,
    "A possible mistake in a program, shown under its text."
);
pyo3::create_exception!(tilewright, DeviceError, PyRuntimeError, "A device that is missing or has failed.");

/// The exception for a kernel that could not be compiled.
pub fn build(error: BuildError) -> PyErr {
    match error {
        BuildError::Gpu(error) => gpu(error),
        BuildError::UnknownShape(_) => PyValueError::new_err(error.to_string()),
        BuildError::Codegen(CodegenError::Target(_)) | BuildError::UnsupportedVectors(_) => {
            DeviceError::new_err(error.to_string())
        }
        BuildError::Codegen(_) | BuildError::NestMismatch(_) | BuildError::InvalidNest(_) => bug(&error),
    }
}

/// The exception for a failed call. A subscript out of bounds is shown at its place in the source
/// text.
pub fn run(source: &Source, error: RunError) -> PyErr {
    match error {
        RunError::OutOfBounds(out) => {
            let found = Diagnostic::error(Code::OutOfBounds, out.origin.into(), out.to_string())
                .help("check the data that the index or its condition depends on, or clamp the index");
            PyIndexError::new_err(source.draw(&[found]))
        }
        RunError::Memory(_) | RunError::Tensor(_) => PyMemoryError::new_err(error.to_string()),
        RunError::Gpu(error) => gpu(error),
        RunError::Mismatch { .. }
        | RunError::Specialised { .. }
        | RunError::Derived(_)
        | RunError::Count { .. } => PyValueError::new_err(error.to_string()),
    }
}

/// The exception for a tensor that could not be allocated on a device.
pub fn on_device(error: RunError) -> PyErr {
    match error {
        RunError::Gpu(error) => gpu(error),
        other => PyMemoryError::new_err(other.to_string()),
    }
}

/// The exception for a failure of a device.
pub fn gpu(error: GpuError) -> PyErr {
    match error {
        GpuError::OutOfMemory { .. } => PyMemoryError::new_err(error.to_string()),
        _ => DeviceError::new_err(error.to_string()),
    }
}

/// The exception for an illegal step of a schedule.
pub fn refused(schedule: &Schedule, refusal: &Refusal) -> PyErr {
    let step = refusal.step.and_then(|at| schedule.steps.get(at));
    match (&refusal.reason, step) {
        (Illegal::TooLarge { .. }, _) => PyMemoryError::new_err(refusal.reason.to_string()),
        (reason, Some(step)) => ProgramError::new_err(format!("the step `{step}` is refused: {reason}")),
        (reason, None) => ProgramError::new_err(format!("the schedule is refused: {reason}")),
    }
}

/// The exception for a cache that cannot be used.
pub fn cache(error: CacheError) -> PyErr {
    match error {
        CacheError::Invalid(_) => bug(&error),
        _ => PyOSError::new_err(cache_text(&error)),
    }
}

/// The message of a cache error, with the Python function instead of the command-line option.
pub fn cache_text(error: &CacheError) -> String {
    in_python(&error.to_string())
}

/// Replaces the command-line option for the cache by the Python function.
pub fn in_python(text: &str) -> String {
    text.replace("with --cache", "with tilewright.cache.use(path)")
}

/// The exception for an internal error.
pub fn bug(error: &dyn std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("this is a bug in Tilewright, please report it: {error}"))
}
