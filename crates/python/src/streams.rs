//! Finds the stream on which PyTorch queues its work for a GPU, and names the default stream that
//! all libraries share.

use pyo3::intern;
use pyo3::prelude::*;

use crate::dlpack::{CUDA, DlDevice};
use crate::exchange;

/// CUDA's default stream, which all libraries share.
pub const DEFAULT_STREAM: u64 = 0;

/// Returns the stream that PyTorch currently uses on a GPU. `tensor` is one of its tensors.
pub fn current(tensor: &Bound<'_, PyAny>, ordinal: usize) -> PyResult<u64> {
    let py = tensor.py();
    let device = DlDevice { kind: CUDA, ordinal: ordinal as i32 };
    let known = exchange::table_of(tensor).and_then(|table| table.stream(py, device));
    known.unwrap_or_else(|| {
        let cuda = py.import(intern!(py, "torch.cuda"))?;
        let stream = cuda.call_method1(intern!(py, "current_stream"), (ordinal,))?;
        stream.getattr(intern!(py, "cuda_stream"))?.extract()
    })
}
