//! The streams of other libraries, on which they queue work for a GPU.

use pyo3::intern;
use pyo3::prelude::*;

use crate::dlpack::{CUDA, DlDevice};
use crate::exchange;
use crate::tensor::Library;

/// The stream on which a library, which has this tensor, works with a GPU now; 0 is CUDA's stream that all share.
pub fn current(
    py: Python<'_>,
    tensor: Option<&Bound<'_, PyAny>>,
    library: Library,
    ordinal: usize,
) -> PyResult<u64> {
    if library != Library::Torch {
        // They have made their tensors ready for the shared stream.
        return Ok(0);
    }
    let device = DlDevice { kind: CUDA, ordinal: ordinal as i32 };
    let told = tensor.and_then(exchange::of).and_then(|table| table.stream(py, device));
    told.unwrap_or_else(|| {
        let cuda = py.import(intern!(py, "torch.cuda"))?;
        let stream = cuda.call_method1(intern!(py, "current_stream"), (ordinal,))?;
        stream.getattr(intern!(py, "cuda_stream"))?.extract()
    })
}
