//! Converts error codes of OpenCL to [`GpuError`], and decides whether an error may be permanent.

use opencl3::error_codes::{
    CL_CONTEXT_TERMINATED_KHR, CL_DEVICE_NOT_AVAILABLE, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST,
    CL_INVALID_BUFFER_SIZE, CL_INVALID_COMMAND_QUEUE, CL_INVALID_CONTEXT, CL_MEM_OBJECT_ALLOCATION_FAILURE,
    CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES, error_text,
};
use opencl3::types::cl_int;

use crate::gpu::error::GpuError;

/// Converts an error code to a `GpuError` that names the operation.
pub(super) fn driver_error(operation: &'static str) -> impl Fn(cl_int) -> GpuError {
    move |code| GpuError::Driver {
        operation,
        name: error_text(code).to_owned(),
        text: String::new(),
        sticky: is_sticky(code),
    }
}

/// Checks whether an error may be permanent. OpenCL does not say from which errors a device
/// recovers. Drivers return these codes after a kernel accessed memory out of bounds, or ran for
/// too long. Starting a new process in vain now and then does no harm.
fn is_sticky(code: cl_int) -> bool {
    matches!(
        code,
        CL_OUT_OF_RESOURCES
            | CL_DEVICE_NOT_AVAILABLE
            | CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
            | CL_INVALID_COMMAND_QUEUE
            | CL_INVALID_CONTEXT
            | CL_CONTEXT_TERMINATED_KHR
    )
}

/// Checks whether a buffer could not be allocated because it is too large.
pub(super) fn is_out_of_memory(code: cl_int) -> bool {
    matches!(
        code,
        CL_INVALID_BUFFER_SIZE
            | CL_MEM_OBJECT_ALLOCATION_FAILURE
            | CL_OUT_OF_HOST_MEMORY
            | CL_OUT_OF_RESOURCES
    )
}
