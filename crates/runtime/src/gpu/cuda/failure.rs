//! Converts errors of the CUDA driver to [`GpuError`], and decides whether an error is permanent:
//! only a new process can then use the device again.

use std::ffi::CStr;

use cudarc::driver::DriverError;
use cudarc::driver::sys::CUresult;

use crate::gpu::error::GpuError;

/// Converts an error of the driver to a `GpuError` that names the operation.
pub(super) fn driver_error(operation: &'static str) -> impl Fn(DriverError) -> GpuError {
    move |error| GpuError::Driver {
        operation,
        name: text(error.error_name()),
        text: text(error.error_string()),
        sticky: is_sticky(error.0),
    }
}

fn text(message: Result<&CStr, DriverError>) -> String {
    message.map_or_else(|_| "unknown driver error".to_owned(), |text| text.to_string_lossy().into())
}

/// Checks whether the driver's manual says that the process must be ended and started again after
/// this error.
fn is_sticky(error: CUresult) -> bool {
    matches!(
        error,
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_CONTAINED
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_EXTERNAL_DEVICE
            | CUresult::CUDA_ERROR_MPS_CLIENT_TERMINATED
    )
}
