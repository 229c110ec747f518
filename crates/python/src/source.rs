//! The text of programs, parsed once.

use std::sync::Arc;

use pyo3::prelude::*;
use tilewright_ir::{Program, verify};
use tilewright_syntax::ast::Function;
use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, Checked, Diagnostic, Parsed, check, diagnose, parse};

use crate::error::{ProgramError, bug};

/// A text with functions in it.
pub struct Source {
    /// The text.
    pub text: String,
    /// What it says.
    pub parsed: Parsed,
}

impl Source {
    /// Reads and checks a text; all mistakes in it are shown at once.
    pub fn new(text: &str) -> PyResult<Arc<Source>> {
        let source = Source { text: text.to_owned(), parsed: parse(text) };
        let found = diagnose(&source.parsed, &Bindings::default());
        source.refuse(&found)?;
        if source.parsed.ast.functions.is_empty() {
            return Err(ProgramError::new_err(
                "the source has no functions: write `def name(...) -> (...) { ... }`",
            ));
        }
        Ok(Arc::new(source))
    }

    /// The function of this name.
    pub fn function(&self, name: &str) -> PyResult<&Function> {
        self.parsed.ast.function(name).ok_or_else(|| {
            let names = self.parsed.ast.functions.iter().map(|function| function.name.text.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            pyo3::exceptions::PyAttributeError::new_err(format!(
                "there is no function `{name}`; the source has: {names}"
            ))
        })
    }

    /// A function at these sizes.
    pub fn program(&self, name: &str, sizes: &Bindings) -> PyResult<Program> {
        let Checked { program, diagnostics, .. } = check(&self.parsed.ast, name, sizes);
        self.refuse(&diagnostics)?;
        let program = program.ok_or_else(|| bug(&format!("`{name}` could not be checked")))?;
        verify(&program).map_err(|error| bug(&error))?;
        Ok(program)
    }

    /// Refuses a text with mistakes in it.
    pub fn refuse(&self, found: &[Diagnostic]) -> PyResult<()> {
        let errors: Vec<Diagnostic> = found.iter().filter(|found| found.is_error()).cloned().collect();
        if errors.is_empty() { Ok(()) } else { Err(ProgramError::new_err(self.draw(&errors))) }
    }

    /// Diagnostics, drawn under the text. An exception's message begins on a line of its own.
    pub fn draw(&self, found: &[Diagnostic]) -> String {
        let drawn = found.iter().map(|found| found.render("source", &self.text, Style::default()));
        format!("\n{}", drawn.collect::<Vec<_>>().join("\n").trim_end())
    }
}
