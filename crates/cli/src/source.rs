//! Reads and parses source files, and finds the function that `FILE:NAME` names.

use std::path::{Path, PathBuf};

use tilewright::driver::source::source_diagnostics;
use tilewright::syntax::ast::Function;
use tilewright::syntax::diagnostic::most_similar;
use tilewright::syntax::{Bindings, Code, Diagnostic, Parsed, check, parse, runs_alone, uncalled_function};

use crate::failure::Failure;
use crate::text::TextFile;

/// A source file that could be read.
pub struct Source {
    /// The file.
    pub file: TextFile,
    /// The syntax tree, and the mistakes of parsing.
    pub parsed: Parsed,
}

impl Source {
    /// Reads and parses a file.
    pub fn read(path: &Path) -> Result<Source, Failure> {
        let file = TextFile::read(path)?;
        let parsed = parse(&file.text);
        Ok(Source { file, parsed })
    }

    /// Reads `FILE` or `FILE:NAME`. The named function need not exist.
    pub fn read_named(spec: &str) -> Result<(Source, Option<&str>), Failure> {
        let (path, name) = split_name(spec);
        Ok((Source::read(&path)?, name))
    }

    /// Reads `FILE` or `FILE:NAME`, and finds the function.
    pub fn read_function(spec: &str) -> Result<(Source, String), Failure> {
        let (source, name) = Source::read_named(spec)?;
        let refused = source.file_errors();
        if !refused.is_empty() {
            source.print(&refused);
            return Err(Failure::Reported);
        }
        let function = source.find_function(name)?.name.text.clone();
        // A signature that contradicts itself cannot be matched with inputs.
        let checked = check(&source.parsed.ast, &function, &Bindings::default());
        let collisions: Vec<Diagnostic> =
            checked.diagnostics.into_iter().filter(|found| found.code == Code::NameCollision).collect();
        if !collisions.is_empty() {
            source.print(&collisions);
            return Err(Failure::Reported);
        }
        Ok((source, function))
    }

    /// Returns the mistakes of the file as a whole: syntax errors, and functions with the same
    /// name.
    pub fn file_errors(&self) -> Vec<Diagnostic> {
        source_diagnostics(&self.parsed)
    }

    /// The function of this name, or the only one.
    pub fn find_function(&self, name: Option<&str>) -> Result<&Function, Failure> {
        let names: Vec<&str> =
            self.parsed.ast.functions.iter().map(|function| function.name.text.as_str()).collect();
        let listed = names.join(", ");
        match (name, self.parsed.ast.functions.as_slice()) {
            (_, []) => Err(Failure::Input(format!("{} has no functions", self.path()))),
            (Some(name), _) => self.parsed.ast.function(name).ok_or_else(|| {
                let hint = most_similar(name, names.iter().copied())
                    .map(|close| format!(" Did you mean {close}?"))
                    .unwrap_or_default();
                Failure::Input(format!("{} has no function `{name}`.{hint} It has: {listed}.", self.path()))
            }),
            (None, [only]) => Ok(only),
            (None, _) => self.main_function().ok_or_else(|| {
                Failure::Usage(format!(
                    "{} has several functions; name one of them, as in {}:{}. It has: {listed}",
                    self.path(),
                    self.path(),
                    names[0]
                ))
            }),
        }
    }

    /// The function with the name of the file, or the only one that can be run by itself, or the
    /// only one that no other function calls.
    fn main_function(&self) -> Option<&Function> {
        let all = &self.parsed.ast.functions;
        let stem = Path::new(self.path()).file_stem().and_then(|stem| stem.to_str());
        let mut runnable = all.iter().filter(|function| runs_alone(function));
        let only = runnable.next().filter(|_| runnable.next().is_none());
        all.iter()
            .find(|function| Some(function.name.text.as_str()) == stem)
            .or(only)
            .or_else(|| uncalled_function(&self.parsed.ast))
    }

    /// The function that was picked before.
    pub fn function(&self, name: &str) -> &Function {
        self.parsed.ast.function(name).expect("the function was found when the file was read")
    }

    /// The file name for messages.
    pub fn path(&self) -> &str {
        &self.file.path
    }

    /// Draws diagnostics on standard error.
    pub fn print(&self, diagnostics: &[Diagnostic]) {
        self.file.draw(diagnostics);
    }
}

/// Splits `FILE:NAME`, unless a file with the whole name exists.
fn split_name(spec: &str) -> (PathBuf, Option<&str>) {
    match spec.rsplit_once(':') {
        Some((path, name)) if !path.is_empty() && !Path::new(spec).exists() => (path.into(), Some(name)),
        _ => (spec.into(), None),
    }
}
