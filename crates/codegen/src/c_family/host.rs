//! What the host does for a program: a list of kernels to launch.

use tilewright_ir::{IndexExpr, ScalarId, TensorId, VarId};
use tilewright_target::GpuApi;

use crate::Check;

/// Kernels in the language of a device, and how they are called.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuCode {
    /// The language.
    pub api: GpuApi,
    /// One source text with all kernels.
    pub text: String,
    /// Fills the constant buffers, once.
    pub setup: Vec<Command>,
    /// What a call does.
    pub body: Vec<Command>,
    /// Scratch buffers in the device's memory, of the whole call: which, and how many bytes.
    pub scratch: Vec<(TensorId, usize)>,
    /// Subscripts that are checked while kernels run: a failed check leaves 1 + its place here in the status.
    pub checks: Vec<Check>,
}

/// One thing that the host does. Commands run in order, each after the one before is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Launches a kernel.
    Launch(Launch),
    /// Runs commands for a variable at 0, 1, … up to an extent.
    Repeat {
        /// The variable, which launches inside may be given.
        var: VarId,
        /// How often; holds variables of loops around only.
        extent: IndexExpr,
        /// What is repeated.
        body: Vec<Command>,
    },
    /// Runs one of two lists.
    Choose {
        /// All of these at least 0 is what is asked for; they hold variables of loops around only.
        conditions: Vec<IndexExpr>,
        /// What is done where that holds.
        then: Vec<Command>,
        /// What is done where it does not.
        otherwise: Vec<Command>,
    },
}

/// A kernel with the shape of its grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Its name in the source text.
    pub kernel: String,
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Bytes of shared memory of a block. In CUDA it is given at the launch; in OpenCL the kernel declares it.
    pub shared_bytes: u32,
    /// What it is called with, in the order of its parameters.
    pub arguments: Vec<Argument>,
}

/// One argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The address of a buffer: an argument of the program, a constant or scratch memory.
    Buffer(TensorId),
    /// A scalar parameter, in the type that memory has for it: `bool` as one byte, 16-bit floats as their bits.
    Scalar(ScalarId),
    /// The variable of a loop of the host, as a 64-bit integer.
    Variable(VarId),
    /// The address of a 64-bit integer that is 0 before the call, and in which a failed check leaves its number.
    Status,
}
