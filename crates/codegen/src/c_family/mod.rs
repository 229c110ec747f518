//! Loop nests to the C-like languages of devices: CUDA C++ and OpenCL C.
//!
//! [`gpu_code`] writes one source text with a kernel for every statement outside of all loops, and says how the host calls
//! them. The text is for people too: names are those of the program and its schedule, loops are loops, and what one
//! language calls differently from the other is in `dialect`.
//!
//! | file | is |
//! |---|---|
//! | `host` | what the host does: launches, and loops around them |
//! | `kernel` | which statements are a kernel, its shape, its shared memory, its parameters |
//! | `stmt` | loops, choices, stores |
//! | `lanes` | vector loops: several elements in one access |
//! | `combine` | threads that are combined |
//! | `waits` | barriers out of conditions, for OpenCL |
//! | `expr` | values |
//! | `index` | subscripts, extents and conditions |
//! | `range` | what is known of the values of index expressions |
//! | `c_expr` | expressions of C as text, with parentheses where they are needed |
//! | `dialect` | what CUDA and OpenCL call things |
//! | `promise` | whether pointers may be `restrict` |
//! | `prelude` | the few functions that the language's own do not do as Tilewright defines them |
//! | `names` | identifiers |

mod c_expr;
mod combine;
mod dialect;
mod expr;
mod host;
mod index;
mod kernel;
mod lanes;
mod names;
mod prelude;
mod promise;
mod range;
mod serpentine;
mod stmt;
mod waits;

use tilewright_ir::{LoopNest, verify_nest};
use tilewright_target::{Gpu, GpuApi};

pub use host::{Argument, Command, GpuCode, Launch};

use crate::CodegenError;

/// The kernels of a nest in a device's language, after [`verify_nest()`] has accepted it. `about` says what they are, for a
/// comment on top: the program and its schedule.
pub fn gpu_code(nest: &LoopNest, gpu: &Gpu, about: &str) -> Result<GpuCode, CodegenError> {
    verify_nest(nest)?;
    match gpu.api {
        GpuApi::Cuda => kernel::Unit::new(nest, gpu).write(about),
        GpuApi::OpenCl => {
            let [setup, body] = [&nest.setup, &nest.body].map(|stmts| waits::out_of_conditions(stmts));
            kernel::Unit::new(&LoopNest { setup, body, ..nest.clone() }, gpu).write(about)
        }
    }
}
