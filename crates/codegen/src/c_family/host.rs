//! Defines [`GpuCode`], the generated code of a program: the source text of its kernels, and the
//! commands that the host runs. A command is a kernel launch, a loop over commands, or an `if`.

use tilewright_ir::ScalarId;
use tilewright_ir::nest::{BufferId, IndexExpr, LoopVarId};

use super::dialect::Dialect;
use crate::Check;

/// Kernels in the language of a device, and the commands that call them.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuCode {
    /// The language of the text.
    pub dialect: Dialect,
    /// One source text with all kernels.
    pub text: String,
    /// The commands that fill the constant buffers, which run once.
    pub setup: Vec<Command>,
    /// The commands of each call.
    pub body: Vec<Command>,
    /// The memory of the scratch buffers that are in device memory.
    pub scratch: Vec<ScratchBlock>,
    /// The subscripts that kernels check while they run. A failed check writes 1 plus its position
    /// in this list to the status.
    pub checks: Vec<Check>,
}

/// Device memory that several scratch buffers use, one after the other in the order of the
/// commands. It lives for the whole call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScratchBlock {
    /// The size in bytes.
    pub bytes: usize,
    /// The buffers.
    pub buffers: Vec<BufferId>,
}

/// One command of the host. Each command starts after the previous one has finished.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Launches a kernel.
    Launch(Launch),
    /// Runs commands for each value of a variable from 0 up to, but excluding, an extent.
    Repeat {
        /// The variable, which launches inside may take as an argument.
        var: LoopVarId,
        /// The number of iterations, which depends on variables of enclosing loops only.
        extent: IndexExpr,
        /// The repeated commands.
        body: Vec<Command>,
    },
    /// Runs one of two lists of commands.
    Choose {
        /// The conditions, each of which holds when its expression is at least 0. They depend on
        /// variables of enclosing loops only.
        conditions: Vec<IndexExpr>,
        /// The commands that run when all conditions hold.
        then: Vec<Command>,
        /// The commands that run otherwise.
        otherwise: Vec<Command>,
    },
}

/// A kernel launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// The name of the kernel in the source text.
    pub kernel: String,
    /// The number of blocks along x, y and z.
    pub grid: [u32; 3],
    /// The number of threads of a block along x, y and z.
    pub block: [u32; 3],
    /// The shared memory of a block in bytes. In CUDA, the launch passes this number; in OpenCL,
    /// the kernel declares the memory.
    pub shared_bytes: u32,
    /// The arguments of the kernel, in the order of its parameters.
    pub arguments: Vec<Argument>,
}

/// One argument of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The address of a buffer: an argument of the program, a constant or scratch memory.
    Buffer(BufferId),
    /// A scalar parameter in its memory type: `bool` as one byte, 16-bit floats as their bits.
    Scalar(ScalarId),
    /// The variable of a loop that the host runs, as a 64-bit integer.
    Variable(LoopVarId),
    /// The address of a 64-bit integer that is 0 before the call. A failed check writes its number
    /// there.
    Status,
}
