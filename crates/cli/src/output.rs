//! Writes text to standard output and standard error.

use std::io::{self, Write};

use crate::failure::Failure;

/// Writes text to standard output. A closed pipe, as after `head`, ends the command quietly.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Failure::ClosedOutput),
        Err(error) => Err(Failure::Machine(format!("cannot write to standard output: {error}"))),
    }
}

/// Writes text to standard error, and ignores errors of writing.
pub fn print_error_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Replaces control characters in untrusted text, so that a terminal does not interpret them.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
