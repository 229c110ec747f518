//! The type [`Failure`]: the reason why a command ends early. It has an exit status, and is made
//! from the errors of the compiler.

use thiserror::Error;
use tilewright::codegen::CodegenError;
use tilewright::driver::stage::StageError;
use tilewright::ir::tensor::TensorError;
use tilewright::runtime::gpu::GpuError;
use tilewright::runtime::{BuildError, RunError};
use tilewright::syntax::{Code, Diagnostic};

use crate::source::Source;

/// The user's input was at fault.
pub const INPUT: u8 = 1;
/// The command line was used wrongly.
pub const USAGE: u8 = 2;
/// The machine lacks something that the options require.
pub const MACHINE: u8 = 3;
/// A bug in Tilewright.
pub const BUG: u8 = 70;

/// The reason why a command ends early.
#[derive(Debug, Error)]
pub enum Failure {
    /// Diagnostics have been printed already.
    #[error("")]
    Reported,
    /// The user's input was at fault.
    #[error("{0}")]
    Input(String),
    /// The command line was used wrongly.
    #[error("{0}")]
    Usage(String),
    /// The machine lacks something that the options require.
    #[error("{0}")]
    Machine(String),
    /// An internal error.
    #[error("this is a bug in Tilewright, please report it: {0}")]
    Bug(String),
    /// The reader of standard output has closed it.
    #[error("")]
    ClosedOutput,
}

impl Failure {
    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Reported | Failure::Input(_) => INPUT,
            Failure::Usage(_) => USAGE,
            Failure::Machine(_) => MACHINE,
            Failure::Bug(_) => BUG,
            Failure::ClosedOutput => 0,
        }
    }

    /// Prints the failure on standard error, unless it has been printed already.
    pub fn print(&self) {
        let text = self.to_string();
        if !text.is_empty() {
            crate::output::print_error_line(&format!("error: {text}"));
        }
    }
}

/// Translations of the compiler's errors.
impl Failure {
    /// A tensor does not fit into memory.
    pub fn no_memory(error: TensorError) -> Failure {
        Failure::Input(format!("{error}; give smaller sizes"))
    }

    /// A device is not present, or failed.
    pub fn from_gpu(error: GpuError) -> Failure {
        Failure::Machine(error.to_string())
    }

    /// Code could not be generated, or cannot run on this computer.
    pub fn from_codegen(error: CodegenError) -> Failure {
        match error {
            CodegenError::Target(_) => Failure::Machine(error.to_string()),
            CodegenError::Unsupported(_) | CodegenError::Llvm(_) => Failure::Bug(error.to_string()),
        }
    }

    /// A stage of compilation could not be shown.
    pub fn from_stage(error: StageError) -> Failure {
        match error {
            StageError::Codegen(error) => Failure::from_codegen(error),
            StageError::NoSuchStage(_) => Failure::Usage(error.to_string()),
            StageError::InvalidNest(_) => Failure::Bug(error.to_string()),
        }
    }

    /// A loop nest could not be compiled.
    pub fn from_build(error: BuildError) -> Failure {
        match error {
            BuildError::Codegen(error) => Failure::from_codegen(error),
            BuildError::UnsupportedVectors(_) | BuildError::Gpu(_) => Failure::Machine(error.to_string()),
            BuildError::UnknownShape(_) => Failure::Input(error.to_string()),
            BuildError::NestMismatch(_) | BuildError::InvalidNest(_) => Failure::Bug(error.to_string()),
        }
    }

    /// A call failed. An index out of bounds is shown at its place in the source text.
    pub fn from_run(source: &Source, error: RunError) -> Failure {
        match error {
            RunError::OutOfBounds(out) => {
                let diagnostic = Diagnostic::error(Code::OutOfBounds, out.origin.into(), out.to_string());
                source.print(&[diagnostic
                    .help("check the data that the index or its condition depends on, or clamp the index")
                    .help("`tilewright run --target interp` prints the element and the iteration")]);
                Failure::Reported
            }
            RunError::Memory(_) => Failure::Input(format!("{error}; give smaller sizes")),
            RunError::Tensor(error) => Failure::no_memory(error),
            RunError::Gpu(error) => Failure::from_gpu(error),
            RunError::Derived(error) => Failure::Input(error.to_string()),
            RunError::Count { .. } | RunError::Mismatch { .. } | RunError::Specialised { .. } => {
                Failure::Bug(error.to_string())
            }
        }
    }
}
