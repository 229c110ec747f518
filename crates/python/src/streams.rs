//! The streams of other libraries, on which they queue work for a GPU.

use pyo3::intern;
use pyo3::prelude::*;

use crate::tensor::Library;

/// The stream on which a library works with a GPU now; 0 is CUDA's stream that all share.
pub fn current(py: Python<'_>, library: Library, ordinal: usize) -> PyResult<u64> {
    match library {
        Library::Torch => {
            let cuda = py.import(intern!(py, "torch.cuda"))?;
            let stream = cuda.call_method1(intern!(py, "current_stream"), (ordinal,))?;
            stream.getattr(intern!(py, "cuda_stream"))?.extract()
        }
        // They have made their tensors ready for the shared stream.
        Library::NumPy | Library::Jax => Ok(0),
    }
}
