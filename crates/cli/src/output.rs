//! Writes text to standard output and standard error, and shows that long work goes on.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

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

/// Shows on a terminal what the command does, and for how long it has done so.
pub fn spinner(what: &'static str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner().with_message(what);
    let style = ProgressStyle::with_template("{msg} {spinner} {elapsed}");
    spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    spinner.enable_steady_tick(Duration::from_millis(500));
    spinner
}

/// Replaces control characters in untrusted text, so that a terminal does not interpret them.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
