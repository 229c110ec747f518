//! Parses a source text to a [`Module`] and the text of a schedule to a [`Schedule`], and makes the
//! [`Program`] of a function at given sizes.

use std::sync::Arc;

use tilewright_driver::source::{CheckedFunction, ProgramError, Source};
use tilewright_ir::{Number, Program as Ir, Symbol, print, verify};
use tilewright_schedule::{Schedule, text};
use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, Diagnostic};

use crate::error::Error;

/// The source text of one or several functions.
pub struct Module {
    source: Source,
}

/// A function with the sizes of its tensors.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) ir: Ir,
    /// The source text that the program was read from, or its own text if it was built.
    pub(crate) source: Arc<str>,
    /// The sizes that were given.
    pub(crate) sizes: Vec<(String, i64)>,
}

impl Module {
    /// Parses a source text. Its functions are checked when a [`Program`] is made.
    pub fn parse(source: &str) -> Result<Module, Error> {
        let source = Source::new(source);
        match render_errors(&source.text, "source", &source.parsed.diagnostics) {
            Some(message) => Err(Error::Text(message)),
            None => Ok(Module { source }),
        }
    }

    /// The names of the functions, in order.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.source.names()
    }

    /// Returns a function at these sizes. Integer scalars that shapes or subscripts depend on count
    /// as sizes too.
    pub fn program<'s>(
        &self,
        name: &str,
        sizes: impl IntoIterator<Item = (&'s str, i64)>,
    ) -> Result<Program, Error> {
        self.program_with_scalars(name, sizes, [])
    }

    /// Returns a function at these sizes, with the values of the scalars that named integers are
    /// computed from. Calls must pass scalars that give these integers the same values.
    pub fn program_with_scalars<'s>(
        &self,
        name: &str,
        sizes: impl IntoIterator<Item = (&'s str, i64)>,
        scalars: impl IntoIterator<Item = (&'s str, f64)>,
    ) -> Result<Program, Error> {
        let mut sizes: Bindings = sizes.into_iter().collect();
        for (scalar, value) in scalars {
            sizes.set_scalar(scalar, Number::Float(value));
        }
        let source: Arc<str> = self.source.text.as_str().into();
        let CheckedFunction { program, diagnostics } = self.source.program(name, &sizes, true);
        if let Some(message) = render_errors(&self.source.text, "source", &diagnostics) {
            return Err(Error::Text(message));
        }
        let made = |ir: Ir| {
            let mut given: Vec<_> = sizes.iter().map(|(name, value)| (name.to_owned(), value)).collect();
            // A recording of a search has sizes, and no scalars.
            for size in ir.derived_sizes() {
                given.retain(|(name, _)| *name != size.name);
                given.push((size.name, size.value));
            }
            Program { ir, source, sizes: given }
        };
        program.map(made).map_err(|error| match error {
            ProgramError::NoFunction(name) => {
                let known = self.functions().map(|own| format!("`{own}`")).collect::<Vec<_>>().join(", ");
                Error::NoFunction { name, known }
            }
            ProgramError::UnknownSizes(open) => Error::OpenSize(open.into_iter().next().unwrap_or_default()),
            ProgramError::UnknownScalars { size, mut scalars, .. } => {
                Error::OpenScalar { size, scalar: scalars.pop().unwrap_or_default() }
            }
            ProgramError::HasErrors | ProgramError::Invalid(_) => Error::Text(error.to_string()),
        })
    }
}

impl Program {
    /// The name of the function.
    pub fn name(&self) -> &str {
        &self.ir.name
    }

    /// The program in the compiler's representation.
    pub fn ir(&self) -> &Ir {
        &self.ir
    }

    /// Returns the same program with every operation rounded separately: no product is fused with
    /// the sum that uses it.
    pub fn without_contraction(self) -> Program {
        Program { ir: self.ir.without_contraction(), ..self }
    }
}

/// A program without text, such as one that a [`ProgramBuilder`](crate::ProgramBuilder) made. The
/// program is checked here, whoever made it, and its sizes must be known.
impl TryFrom<Ir> for Program {
    type Error = Error;

    fn try_from(ir: Ir) -> Result<Program, Error> {
        verify(&ir)?;
        let size = |symbol: &Symbol| {
            let value = symbol.value.ok_or_else(|| Error::OpenSize(symbol.name.clone()))?;
            Ok((symbol.name.clone(), value))
        };
        let sizes: Result<Vec<(String, i64)>, Error> = ir.symbols.iter().map(size).collect();
        Ok(Program { source: print::source(&ir).into(), sizes: sizes?, ir })
    }
}

/// Parses the text of a schedule.
pub fn parse_schedule(source: &str) -> Result<Schedule, Error> {
    let parsed = text::parse(source);
    match render_errors(source, "schedule", &parsed.diagnostics) {
        Some(message) => Err(Error::Text(message)),
        None => Ok(parsed.schedule),
    }
}

/// Renders the errors among diagnostics under the text, or returns `None` if there are none.
fn render_errors(source: &str, name: &str, diagnostics: &[Diagnostic]) -> Option<String> {
    let errors: Vec<String> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_error())
        .map(|diagnostic| diagnostic.render(name, source, Style::default()))
        .collect();
    (!errors.is_empty()).then(|| errors.join("\n"))
}
