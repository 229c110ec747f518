//! Parses source text ([`Source`]), and makes a checked [`Program`] of one of its functions at
//! given sizes.

use thiserror::Error;
use tilewright_ir::verify::InvalidProgram;
use tilewright_ir::{Program, Symbol, SymbolKind, print, verify_form};
use tilewright_syntax::ast::Function;
use tilewright_syntax::{Bindings, Checked, Diagnostic, Parsed, check, name_collisions, parse};

/// Source text of one or several functions.
#[derive(Clone, Debug)]
pub struct Source {
    /// The text.
    pub text: String,
    /// The syntax tree, and the syntax errors.
    pub parsed: Parsed,
}

/// Why a function of a source cannot become a program at these sizes.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ProgramError {
    /// The source has no function of this name.
    #[error("there is no function `{0}`")]
    NoFunction(String),
    /// The function has errors. They are among the diagnostics.
    #[error("the program has errors")]
    HasErrors,
    /// These sizes are not known.
    #[error("no value is known for the size `{}`", .0.join("`, `"))]
    UnknownSizes(Vec<String>),
    /// A size is computed from scalars whose values are not known.
    #[error("`{size}` is computed from `{}`, which has no value", scalars.join("`, `"))]
    UnknownScalars {
        /// The name of the size.
        size: String,
        /// The expression of the size.
        value: String,
        /// The scalars without a value.
        scalars: Vec<String>,
    },
    /// The checker accepted a program that breaks an invariant. This is a bug.
    #[error(transparent)]
    Invalid(#[from] InvalidProgram),
}

/// A function as a program, with everything that the checker says about it.
#[derive(Clone, Debug)]
pub struct CheckedFunction {
    /// The program, or why there is none.
    pub program: Result<Program, ProgramError>,
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Source {
    /// Parses a text. Syntax errors are in [`Source::source_diagnostics`].
    pub fn new(text: impl Into<String>) -> Source {
        let text = text.into();
        let parsed = parse(&text);
        Source { text, parsed }
    }

    /// The defects of the source as a whole: syntax errors, and functions that share a name.
    pub fn source_diagnostics(&self) -> Vec<Diagnostic> {
        source_diagnostics(&self.parsed)
    }

    /// The functions, in the order of the text.
    pub fn functions(&self) -> &[Function] {
        &self.parsed.ast.functions
    }

    /// The names of the functions, in the order of the text.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.functions().iter().map(|function| function.name.text.as_str())
    }

    /// A function as a program at these sizes, all of which must be known. `contract` says whether
    /// products may be rounded together with sums: [`Program::contract`].
    pub fn program(&self, function: &str, sizes: &Bindings, contract: bool) -> CheckedFunction {
        program(&self.parsed, function, sizes, contract)
    }
}

/// The defects of a parsed source as a whole: [`Source::source_diagnostics`].
pub fn source_diagnostics(parsed: &Parsed) -> Vec<Diagnostic> {
    let mut found = parsed.diagnostics.clone();
    found.extend(name_collisions(&parsed.ast));
    found
}

/// A function of a parsed source as a program: [`Source::program`].
pub fn program(parsed: &Parsed, function: &str, sizes: &Bindings, contract: bool) -> CheckedFunction {
    let CheckedFunction { program, diagnostics } = general_program(parsed, function, sizes, contract);
    CheckedFunction { program: program.and_then(|program| require_known_sizes(program, sizes)), diagnostics }
}

/// A function of a parsed source as a program, whose sizes may stay unknown.
pub fn general_program(parsed: &Parsed, function: &str, sizes: &Bindings, contract: bool) -> CheckedFunction {
    if parsed.ast.function(function).is_none() {
        let program = Err(ProgramError::NoFunction(function.to_owned()));
        return CheckedFunction { program, diagnostics: Vec::new() };
    }
    let Checked { program, diagnostics, .. } = check(&parsed.ast, function, sizes);
    let program = program.ok_or(ProgramError::HasErrors).and_then(|program| {
        verify_form(&program)?;
        Ok(if contract { program } else { program.without_contraction() })
    });
    CheckedFunction { program, diagnostics }
}

/// Refuses a program with unknown sizes. Of the sizes that scalars determine, it names the scalars.
fn require_known_sizes(program: Program, given: &Bindings) -> Result<Program, ProgramError> {
    let is_open = |symbol: &&Symbol| symbol.value.is_none();
    let is_free = |symbol: &&Symbol| symbol.kind != SymbolKind::Derived;
    let open = program.symbols.iter().filter(is_open).filter(is_free);
    let open: Vec<String> = open.map(|symbol| symbol.name.clone()).collect();
    if !open.is_empty() {
        return Err(ProgramError::UnknownSizes(open));
    }
    for derived in &program.derived {
        let symbol = &program.symbols[derived.symbol.index()];
        if symbol.value.is_none() {
            let names = derived.scalar_names(&program.scalars);
            let scalars = names.filter(|name| given.scalar(name).is_none()).map(str::to_owned).collect();
            let value = print::expr(&derived.value, program.general.as_deref().unwrap_or(&program));
            return Err(ProgramError::UnknownScalars { size: symbol.name.clone(), value, scalars });
        }
    }
    Ok(program)
}
