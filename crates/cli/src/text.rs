//! Reads text files, and draws diagnostics under their lines on standard error.

use std::fs;
use std::io::IsTerminal;
use std::path::Path;

use tilewright::syntax::Diagnostic;
use tilewright::syntax::diagnostic::Style;

use crate::failure::Failure;
use crate::output::print_error_line;

/// The maximum number of diagnostics that are printed.
const MAX_SHOWN: usize = 100;

/// A text file that could be read.
pub struct TextFile {
    /// The file name for messages.
    pub path: String,
    /// The contents of the file.
    pub text: String,
}

impl TextFile {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<TextFile, Failure> {
        let shown = path.display().to_string();
        let bytes =
            fs::read(path).map_err(|error| Failure::Input(format!("cannot read {shown}: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            let byte = error.as_bytes()[at];
            Failure::Input(format!("{shown}:{line}: this is not text in UTF-8: byte {at} is 0x{byte:02x}"))
        })?;
        Ok(TextFile { path: shown, text })
    }

    /// Draws diagnostics on standard error.
    pub fn draw(&self, diagnostics: &[Diagnostic]) {
        let style = style();
        for diagnostic in diagnostics.iter().take(MAX_SHOWN) {
            print_error_line(&format!("{}\n", diagnostic.render(&self.path, &self.text, style)));
        }
        if diagnostics.len() > MAX_SHOWN {
            print_error_line(&format!("… and {} more\n", diagnostics.len() - MAX_SHOWN));
        }
    }
}

/// The style of diagnostics on standard error.
pub fn style() -> Style {
    Style { color: use_color(), width: terminal_width() }
}

fn use_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && std::io::stderr().is_terminal()
}

fn terminal_width() -> usize {
    std::env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse().ok())
        .map_or(140, |columns: usize| columns.clamp(60, 300))
}
