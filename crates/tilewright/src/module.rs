//! From text to programs.

use tilewright_ir::Program as Ir;
use tilewright_schedule::{Schedule, default_schedule, text};
use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, Diagnostic, Parsed, check, parse};
use tilewright_target::Cpu;

use crate::error::Error;

/// A source of one or several functions.
pub struct Module {
    source: String,
    parsed: Parsed,
}

/// A function with the sizes of its tensors.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) ir: Ir,
}

impl Module {
    /// Reads a source. Whether its functions make sense is checked when a [`Program`] is asked for.
    pub fn parse(source: &str) -> Result<Module, Error> {
        let parsed = parse(source);
        match drawn(source, "source", &parsed.diagnostics) {
            Some(message) => Err(Error::Text(message)),
            None => Ok(Module { source: source.to_string(), parsed }),
        }
    }

    /// The names of its functions, in order.
    pub fn functions(&self) -> impl Iterator<Item = &str> {
        self.parsed.ast.functions.iter().map(|function| function.name.text.as_str())
    }

    /// A function at these sizes. Integer scalars that shapes or subscripts depend on count as sizes too.
    pub fn program<'s>(
        &self,
        name: &str,
        sizes: impl IntoIterator<Item = (&'s str, i64)>,
    ) -> Result<Program, Error> {
        if !self.functions().any(|own| own == name) {
            let known = self.functions().map(|own| format!("`{own}`")).collect::<Vec<_>>().join(", ");
            return Err(Error::NoFunction { name: name.to_string(), known });
        }
        let bindings: Bindings = sizes.into_iter().collect();
        let checked = check(&self.parsed.ast, name, &bindings);
        if let Some(message) = drawn(&self.source, "source", &checked.diagnostics) {
            return Err(Error::Text(message));
        }
        let ir = checked.program.ok_or_else(|| Error::Text(format!("`{name}` could not be checked")))?;
        if let Some(open) = ir.symbols.iter().find(|symbol| symbol.value.is_none()) {
            return Err(Error::OpenSize(open.name.clone()));
        }
        Ok(Program { ir })
    }
}

impl Program {
    /// The function's name.
    pub fn name(&self) -> &str {
        &self.ir.name
    }

    /// The program as the compiler sees it.
    pub fn ir(&self) -> &Ir {
        &self.ir
    }

    /// The same program with every operation rounded by itself: no product is computed together with the sum it stands in.
    pub fn without_contraction(self) -> Program {
        Program { ir: self.ir.without_contraction() }
    }

    /// The schedule that is used where none is given.
    pub fn default_schedule(&self, cpu: &Cpu) -> Schedule {
        default_schedule(&self.ir, cpu)
    }
}

impl From<Ir> for Program {
    fn from(ir: Ir) -> Program {
        Program { ir }
    }
}

/// Reads the text of a schedule.
pub fn parse_schedule(source: &str) -> Result<Schedule, Error> {
    let parsed = text::parse(source);
    match drawn(source, "schedule", &parsed.diagnostics) {
        Some(message) => Err(Error::Text(message)),
        None => Ok(parsed.schedule),
    }
}

/// The errors among diagnostics, drawn under the text.
fn drawn(source: &str, name: &str, diagnostics: &[Diagnostic]) -> Option<String> {
    let errors: Vec<String> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_error())
        .map(|diagnostic| diagnostic.render(name, source, Style::default()))
        .collect();
    (!errors.is_empty()).then(|| errors.join("\n"))
}
