//! Writing to standard output and standard error.

use std::io::{self, Write};

use crate::failure::Failure;

/// Writes text to standard output. A reader that went away, as `head` does, ends the command quietly.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ClosedOutput),
        Err(error) => Err(Failure::Machine(format!("cannot write to standard output: {error}"))),
    }
}

/// Writes text to standard error, and lets it go where nobody can read it.
pub fn complain(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Text that a stranger may have written, without what a terminal would obey.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
