//! The type [`Error`] for every failure of this crate, and conversions from the errors of the
//! compiler's parts.

use thiserror::Error;
use tilewright_cache::CacheError;
use tilewright_driver::CompileError;
use tilewright_driver::stage::StageError;
use tilewright_ir::verify::InvalidProgram;
use tilewright_runtime::{BuildError, RunError};
use tilewright_schedule::Refusal;
use tilewright_tuner::tune::TuneError;
use tilewright_tuner::worker::WorkerError;

/// The reason why an operation failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A source or schedule has mistakes. The message shows them under its text.
    #[error("{0}")]
    Text(String),
    /// A program without text has mistakes, one on each line.
    #[error("{0}")]
    Program(String),
    /// The source has no function of this name.
    #[error("there is no function `{name}`; the source has {known}")]
    NoFunction {
        /// The requested name.
        name: String,
        /// The names of the functions in the source.
        known: String,
    },
    /// A size was not given, and no tensor determines it before the kernel is compiled.
    #[error("the size `{0}` has no value: give it with the other sizes")]
    OpenSize(String),
    /// A size is computed from a scalar that was not given.
    #[error(
        "the size `{size}` is computed from `{scalar}`, which has no value: give it to `program_with_scalars`"
    )]
    OpenScalar {
        /// The size.
        size: String,
        /// The scalar.
        scalar: String,
    },
    /// A step of the schedule is not legal.
    #[error(transparent)]
    Schedule(#[from] Refusal),
    /// Code could not be generated.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A call was not possible, or failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The tuning cache cannot be read.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A stage cannot be shown.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The worker process of a search cannot be started, or gave up.
    #[error("{0}")]
    Worker(String),
    /// A search failed.
    #[error(transparent)]
    Tune(#[from] TuneError),
    /// An argument that the program does not have, or that was given twice.
    #[error("{0}")]
    Argument(String),
}

impl From<InvalidProgram> for Error {
    fn from(mistake: InvalidProgram) -> Error {
        Error::Program(mistake.to_string())
    }
}

impl From<Vec<tilewright_ir::builder::BuildError>> for Error {
    fn from(mistakes: Vec<tilewright_ir::builder::BuildError>) -> Error {
        Error::Program(mistakes.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    }
}

impl From<CompileError> for Error {
    fn from(error: CompileError) -> Error {
        match error {
            CompileError::Refused(refusal) => refusal.into(),
            CompileError::Build(error) => error.into(),
        }
    }
}

impl From<WorkerError> for Error {
    fn from(lost: WorkerError) -> Error {
        let hint = match lost {
            WorkerError::Ended(_) | WorkerError::InvalidReply | WorkerError::NoAnswer => {
                "; does `main` begin with `tilewright::serve_if_worker()`?"
            }
            _ => "",
        };
        Error::Worker(format!("{lost}{hint}"))
    }
}
