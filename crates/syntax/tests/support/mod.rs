//! Checking a source text in tests.

use tilewright_ir::Program;
use tilewright_syntax::{Bindings, Code, check, parse};

/// The program of the last function, or the codes of its messages.
pub fn last_program(source: &str) -> Result<Program, Vec<Code>> {
    let parsed = parse(source);
    let name = parsed.ast.functions.last().map(|last| last.name.text.clone()).unwrap_or_default();
    let checked = check(&parsed.ast, &name, &Bindings::default());
    let all = parsed.diagnostics.iter().chain(&checked.diagnostics);
    let codes: Vec<Code> = all.map(|found| found.code).collect();
    if codes.is_empty() { checked.program.ok_or(codes) } else { Err(codes) }
}
