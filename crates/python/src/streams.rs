//! The streams of other libraries, on which they queue work for a GPU.

use pyo3::intern;
use pyo3::prelude::*;

use crate::dlpack::{CUDA, DlDevice};
use crate::exchange;

/// CUDA's stream that all share.
pub const SHARED: u64 = 0;

/// The stream on which PyTorch, whose tensor this is, works with a GPU now.
pub fn current(tensor: &Bound<'_, PyAny>, ordinal: usize) -> PyResult<u64> {
    let py = tensor.py();
    let device = DlDevice { kind: CUDA, ordinal: ordinal as i32 };
    let told = exchange::of(tensor).and_then(|table| table.stream(py, device));
    told.unwrap_or_else(|| {
        let cuda = py.import(intern!(py, "torch.cuda"))?;
        let stream = cuda.call_method1(intern!(py, "current_stream"), (ordinal,))?;
        stream.getattr(intern!(py, "cuda_stream"))?.extract()
    })
}
