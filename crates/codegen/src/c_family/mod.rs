//! Generates code in the C-like languages of devices, CUDA C++ and OpenCL C, from loop nests.
//!
//! [`gpu_code`] writes one source text with a kernel for every statement that the host does not run
//! itself, and returns the text with the commands of the host: launches of kernels, and loops and
//! conditions around them. The text is meant to be readable: identifiers are the names of the
//! program and its schedule, and loops stay loops. A [`Dialect`] is one of the languages. The files
//! `dialect`, `prelude` and `combine` hold almost all differences between the languages.
//!
//! | file | content |
//! |---|---|
//! | `host` | the commands of the host: launches, and loops and conditions around them |
//! | `kernel` | which statements form a kernel; its grid, shared memory and parameters |
//! | `stmt` | loops, conditional statements, stores |
//! | `lanes` | vector loops: one access for several elements |
//! | `packed` | vector loops over narrow integers: four bytes or two halfwords in a word |
//! | `serpentine` | the order of a thread's accumulations, for operand reuse |
//! | `combine` | reductions across the threads of a block |
//! | `barriers` | barriers moved out of conditions, for OpenCL |
//! | `expr` | value expressions |
//! | `index` | subscripts, extents and conditions |
//! | `range` | intervals of the values of index expressions |
//! | `c_expr` | C expressions as text, with parentheses where they are needed |
//! | `dialect` | the languages, their spellings and other differences |
//! | `restrict` | which pointers are `restrict` and `const` |
//! | `prelude` | helper functions for operations that C lacks or defines differently |
//! | `names` | identifiers of buffers, variables and scalars |

mod barriers;
mod c_expr;
mod combine;
mod dialect;
mod expr;
mod host;
mod index;
mod integer;
mod kernel;
mod lane_vector;
mod lanes;
mod names;
mod packed;
mod prelude;
mod range;
mod restrict;
mod serpentine;
mod stmt;

use tilewright_ir::{LoopNest, VerifiedNest};
use tilewright_target::Gpu;

pub use dialect::Dialect;
pub use host::{Argument, Command, GpuCode, Launch, ScratchBlock};

use crate::CodegenError;

/// Writes the kernels of a nest in a device's language. `header` becomes the comment at the top of
/// the text: the program and its schedule.
pub fn gpu_code(nest: VerifiedNest<'_>, gpu: &Gpu, header: &str) -> Result<GpuCode, CodegenError> {
    let nest = nest.nest();
    match Dialect::from(gpu.api).has_barriers_in_conditions() {
        true => kernel::Unit::new(nest, gpu).write(header),
        false => {
            let [setup, body] = [&nest.setup, &nest.body].map(|stmts| barriers::hoist_from_conditions(stmts));
            kernel::Unit::new(&LoopNest { setup, body, ..nest.clone() }, gpu).write(header)
        }
    }
}
