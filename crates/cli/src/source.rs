//! Reading programs and drawing what there is to say about them.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use tilewright_syntax::ast::Function;
use tilewright_syntax::diagnostic::{Style, similar};
use tilewright_syntax::{Bindings, Code, Diagnostic, Parsed, check, name_collisions, parse};

use crate::failure::Failure;
use crate::output::complain;

/// Nobody reads more messages than this at once.
const MOST_SHOWN: usize = 100;

/// A source file that could be read.
pub struct Source {
    /// Its name for messages.
    pub path: String,
    /// Its text.
    pub text: String,
    /// What could be parsed of it, and what could not.
    pub parsed: Parsed,
}

impl Source {
    /// Reads and parses a file.
    pub fn read(path: &Path) -> Result<Source, Failure> {
        let shown = path.display().to_string();
        let bytes =
            fs::read(path).map_err(|error| Failure::Input(format!("cannot read {shown}: {error}")))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            let byte = error.as_bytes()[at];
            Failure::Input(format!("{shown}:{line}: this is not text in UTF-8: byte {at} is 0x{byte:02x}"))
        })?;
        let parsed = parse(&text);
        Ok(Source { path: shown, text, parsed })
    }

    /// Reads `FILE` or `FILE:NAME`, and finds the function.
    pub fn read_function(spec: &str) -> Result<(Source, String), Failure> {
        let (path, name) = split_name(spec);
        let source = Source::read(&path)?;
        let mut refused = source.parsed.diagnostics.clone();
        refused.extend(name_collisions(&source.parsed.ast));
        if !refused.is_empty() {
            source.print(&refused);
            return Err(Failure::Reported);
        }
        let function = source.pick(name)?.name.text.clone();
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

    fn pick(&self, name: Option<&str>) -> Result<&Function, Failure> {
        let names: Vec<&str> =
            self.parsed.ast.functions.iter().map(|function| function.name.text.as_str()).collect();
        let listed = names.join(", ");
        match (name, self.parsed.ast.functions.as_slice()) {
            (_, []) => Err(Failure::Input(format!("{} has no functions", self.path))),
            (Some(name), _) => self.parsed.ast.function(name).ok_or_else(|| {
                let hint = similar(name, names.iter().copied())
                    .map(|close| format!(" Did you mean {close}?"))
                    .unwrap_or_default();
                Failure::Input(format!("{} has no function `{name}`.{hint} It has: {listed}.", self.path))
            }),
            (None, [only]) => Ok(only),
            (None, _) => Err(Failure::Usage(format!(
                "{} has several functions; say which, as in {}:{}. It has: {listed}",
                self.path, self.path, names[0]
            ))),
        }
    }

    /// The function that was picked.
    pub fn function(&self, name: &str) -> &Function {
        self.parsed.ast.function(name).expect("the function was found when the file was read")
    }

    /// Draws diagnostics on standard error.
    pub fn print(&self, diagnostics: &[Diagnostic]) {
        let style = Style { color: use_color(), width: terminal_width() };
        for diagnostic in diagnostics.iter().take(MOST_SHOWN) {
            complain(&format!("{}\n", diagnostic.render(&self.path, &self.text, style)));
        }
        if diagnostics.len() > MOST_SHOWN {
            complain(&format!("… and {} more\n", diagnostics.len() - MOST_SHOWN));
        }
    }
}

/// `FILE:NAME`, unless a file of the whole name exists.
fn split_name(spec: &str) -> (PathBuf, Option<&str>) {
    match spec.rsplit_once(':') {
        Some((path, name)) if !path.is_empty() && !Path::new(spec).exists() => (path.into(), Some(name)),
        _ => (spec.into(), None),
    }
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
