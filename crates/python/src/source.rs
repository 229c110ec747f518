//! The text of programs, parsed once.

use std::collections::HashSet;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use tilewright_driver::source::general_program;
use tilewright_ir::Program;
use tilewright_syntax::ast::Function;
use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, Code, Diagnostic, Parsed, diagnose, parse};

use crate::error::{ProgramError, ProgramWarning, bug};
use crate::stack::with_stack;

/// Frames of Python from the caller's code to here: through `define` and `Module`, and of a call itself.
const IN_DEFINE: i32 = 3;
const IN_CALL: i32 = 1;

/// A text with functions in it.
pub struct Source {
    /// The text.
    pub text: String,
    /// What it says.
    pub parsed: Parsed,
    /// Whether products may be rounded together with the sums they stand in.
    pub contract: bool,
    /// Warnings that were told.
    told: Mutex<HashSet<(&'static str, u32)>>,
}

/// A text, for Python.
#[pyclass(frozen, module = "tilewright")]
pub struct Text {
    /// What it says.
    pub source: Arc<Source>,
}

#[pymethods]
impl Text {
    #[new]
    #[pyo3(signature = (text, contract = true))]
    fn new(text: &str, contract: bool) -> PyResult<Text> {
        Ok(Text { source: Source::new(text, contract)? })
    }

    /// The names of its functions, in order.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.source.parsed.ast.functions.iter().map(|function| function.name.text.clone()).collect()
    }
}

impl Source {
    /// Reads and checks a text; all mistakes in it are shown at once.
    pub fn new(text: &str, contract: bool) -> PyResult<Arc<Source>> {
        let (parsed, found) = with_stack(|| {
            let parsed = parse(text);
            let found = diagnose(&parsed, &Bindings::default());
            (parsed, found)
        });
        let source = Source { text: text.to_owned(), parsed, contract, told: Mutex::default() };
        source.refuse(&found)?;
        source.warn(&found, IN_DEFINE)?;
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
        let checked = with_stack(|| general_program(&self.parsed, name, sizes, self.contract));
        self.refuse(&checked.diagnostics)?;
        self.warn(&checked.diagnostics, IN_CALL)?;
        checked.program.map_err(|error| bug(&error))
    }

    /// Refuses a text with mistakes in it.
    pub fn refuse(&self, found: &[Diagnostic]) -> PyResult<()> {
        let errors: Vec<Diagnostic> = found.iter().filter(|found| found.is_error()).cloned().collect();
        if errors.is_empty() { Ok(()) } else { Err(ProgramError::new_err(self.draw(&errors))) }
    }

    /// Tells what may be a mistake, each once.
    fn warn(&self, found: &[Diagnostic], frames: i32) -> PyResult<()> {
        // A call without the tensor that is updated says so itself.
        let is_told = |found: &&Diagnostic| !found.is_error() && found.code != Code::UninitializedReduction;
        for found in found.iter().filter(is_told) {
            let key = (found.code.name(), found.primary.0.start);
            let told = || self.told.lock().unwrap_or_else(PoisonError::into_inner);
            if !told().contains(&key) {
                let drawn = self.draw(std::slice::from_ref(found)).replace('\0', " ");
                let text = CString::new(drawn).unwrap_or_default();
                Python::attach(|py| PyErr::warn(py, &py.get_type::<ProgramWarning>(), &text, frames))?;
                told().insert(key);
            }
        }
        Ok(())
    }

    /// Diagnostics, drawn under the text. An exception's message begins on a line of its own.
    pub fn draw(&self, found: &[Diagnostic]) -> String {
        let drawn = found.iter().map(|found| found.render("source", &self.text, Style::default()));
        format!("\n{}", drawn.collect::<Vec<_>>().join("\n").trim_end())
    }
}
