//! Parses and checks a source text once, and makes the programs of its functions.

use std::collections::HashSet;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use tilewright::driver::source::general_program;
use tilewright::ir::Program;
use tilewright::syntax::ast::Function;
use tilewright::syntax::diagnostic::Style;
use tilewright::syntax::{Bindings, Code, Diagnostic, Parsed, diagnose, parse, runs_alone, signature};

use crate::error::{ProgramError, ProgramWarning, bug};
use crate::stack::with_stack;

/// The number of Python frames between the caller's code and this module: through `define` and
/// `Module`, and in a call.
const FRAMES_IN_DEFINE: i32 = 3;
const FRAMES_IN_CALL: i32 = 1;

/// A source text with functions.
pub struct Source {
    /// The text.
    pub text: String,
    /// The parsed text.
    pub parsed: Parsed,
    /// Whether a product may be fused with the sum that uses it.
    pub contract: bool,
    /// The functions, with a parameter for each tensor of a list.
    functions: Vec<Function>,
    /// The warnings that were already issued.
    issued: Mutex<HashSet<(&'static str, u32)>>,
}

/// A source text, for Python.
#[pyclass(frozen, module = "tilewright")]
pub struct Text {
    /// The text and its functions.
    pub source: Arc<Source>,
}

#[pymethods]
impl Text {
    #[new]
    #[pyo3(signature = (text, contract = true))]
    fn new(text: &str, contract: bool) -> PyResult<Text> {
        Ok(Text { source: Source::new(text, contract)? })
    }

    /// The names of the functions that can be called by themselves, in order.
    #[getter]
    fn names(&self) -> Vec<String> {
        let functions = self.source.parsed.ast.functions.iter();
        functions.filter(|function| runs_alone(function)).map(|function| function.name.text.clone()).collect()
    }
}

impl Source {
    /// Parses and checks a text. The exception shows all mistakes at once.
    pub fn new(text: &str, contract: bool) -> PyResult<Arc<Source>> {
        let (parsed, found) = with_stack(|| {
            let parsed = parse(text);
            let found = diagnose(&parsed, &Bindings::default());
            (parsed, found)
        });
        let functions = parsed.ast.functions.iter();
        let functions = functions.map(|own| signature(own, &Bindings::default()).into_owned()).collect();
        let source = Source { text: text.to_owned(), parsed, contract, functions, issued: Mutex::default() };
        source.refuse(&found)?;
        source.warn(&found, FRAMES_IN_DEFINE)?;
        if source.parsed.ast.functions.is_empty() {
            return Err(ProgramError::new_err(
                "the source has no functions: write `def name(...) -> (...) { ... }`",
            ));
        }
        Ok(Arc::new(source))
    }

    /// Returns the function of this name. It has a parameter for each tensor of a list.
    pub fn function(&self, name: &str) -> PyResult<&Function> {
        self.functions.iter().find(|function| function.name.text == name).ok_or_else(|| {
            let names = self.functions.iter().map(|function| function.name.text.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            pyo3::exceptions::PyAttributeError::new_err(format!(
                "there is no function `{name}`; the source has: {names}"
            ))
        })
    }

    /// Returns the program of a function at these sizes.
    pub fn program(&self, name: &str, sizes: &Bindings) -> PyResult<Program> {
        let checked = with_stack(|| general_program(&self.parsed, name, sizes, self.contract));
        self.refuse(&checked.diagnostics)?;
        self.warn(&checked.diagnostics, FRAMES_IN_CALL)?;
        checked.program.map_err(|error| bug(&error))
    }

    /// Raises an exception that shows all errors, if there are any.
    pub fn refuse(&self, found: &[Diagnostic]) -> PyResult<()> {
        let errors: Vec<Diagnostic> = found.iter().filter(|found| found.is_error()).cloned().collect();
        if errors.is_empty() { Ok(()) } else { Err(ProgramError::new_err(self.draw(&errors))) }
    }

    /// Issues each warning once.
    fn warn(&self, found: &[Diagnostic], frames: i32) -> PyResult<()> {
        // A call without the tensor to update raises its own exception, so this warning is left
        // out.
        let is_issued = |found: &&Diagnostic| !found.is_error() && found.code != Code::UninitializedReduction;
        for found in found.iter().filter(is_issued) {
            let key = (found.code.name(), found.primary.0.start);
            let told = || self.issued.lock().unwrap_or_else(PoisonError::into_inner);
            if !told().contains(&key) {
                let drawn = self.draw(std::slice::from_ref(found)).replace('\0', " ");
                let text = CString::new(drawn).unwrap_or_default();
                Python::attach(|py| PyErr::warn(py, &py.get_type::<ProgramWarning>(), &text, frames))?;
                told().insert(key);
            }
        }
        Ok(())
    }

    /// Renders diagnostics under the text. It starts with a line break, so that an exception's
    /// message begins on its own line.
    pub fn draw(&self, found: &[Diagnostic]) -> String {
        let drawn = found.iter().map(|found| found.render("source", &self.text, Style::default()));
        format!("\n{}", drawn.collect::<Vec<_>>().join("\n").trim_end())
    }
}
