//! Why a command ends early, and with which status.

use thiserror::Error;

/// The user's input was at fault.
pub const INPUT: u8 = 1;
/// The command line was used wrongly.
pub const USAGE: u8 = 2;
/// The machine lacks what was asked for.
pub const MACHINE: u8 = 3;
/// A bug in Tilewright.
pub const BUG: u8 = 70;

/// Why a command ends early.
#[derive(Debug, Error)]
pub enum Failure {
    /// Diagnostics have said it already.
    #[error("")]
    Reported,
    /// The user's input was at fault.
    #[error("{0}")]
    Input(String),
    /// The command line was used wrongly.
    #[error("{0}")]
    Usage(String),
    /// The machine lacks what was asked for.
    #[error("{0}")]
    Machine(String),
    /// Something that never should happen did.
    #[error("this is a bug in Tilewright, please report it: {0}")]
    Bug(String),
    /// Whoever reads our output has had enough.
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

    /// Says it on standard error, unless it has been said.
    pub fn print(&self) {
        let text = self.to_string();
        if !text.is_empty() {
            crate::output::complain(&format!("error: {text}"));
        }
    }
}
