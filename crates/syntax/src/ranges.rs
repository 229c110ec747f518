//! Prints the shapes and ranges that the checker inferred for a function, for human readers.

use std::fmt::Write;

use tilewright_ir::{Program, Role, TensorId, VarId, print as text};

use crate::check::Checked;
use crate::span::Span;

/// Prints the shape of each tensor, and each statement with the ranges of its variables and their
/// reasons.
pub fn ranges_text(source: &str, checked: &Checked, program: &Program) -> String {
    let mut out = format!("{}\n", program.name);
    for (at, tensor) in program.tensors.iter().enumerate() {
        let role = match tensor.role {
            Role::Input { .. } => "input",
            Role::Output => "output",
            Role::InOut => "in-out",
            Role::Temporary => "temporary",
        };
        let _ = writeln!(
            out,
            "  {:<12} {} {}",
            role,
            text::tensor_type(program, TensorId(at as u32)),
            tensor.name
        );
    }
    // At given sizes, the expressions of the program itself have numbers for the sizes.
    let general = program.general.as_deref().unwrap_or(program);
    for derived in &general.derived {
        let name = &general.symbols[derived.symbol.index()].name;
        let text = format!("{name} = {}", text::expr(&derived.value, general));
        let line = line_of(source, derived.origin.into());
        let _ = writeln!(out, "  {:<12} {text:<24} line {line}", "derived");
    }
    for precondition in &general.preconditions {
        let line = line_of(source, precondition.origin.into());
        let text = precondition.text(program);
        let _ = writeln!(out, "  {:<12} {text:<24} line {line}: `requires`", "requires");
    }
    for requirement in &checked.requirements {
        let _ = writeln!(out, "  {:<12} {} >= 0", "requires", text::index(requirement, program));
    }
    let mut loops_shown: Vec<VarId> = Vec::new();
    for (statement, loops) in program.statements() {
        for var in loops.iter().filter(|var| !loops_shown.contains(var)).collect::<Vec<_>>() {
            let _ = writeln!(out, "\nfor {}", variable(source, checked, program, *var));
        }
        loops_shown = loops;
        let _ = writeln!(out, "\n{}", text::statement(statement, program));
        for var in &statement.vars {
            let _ = writeln!(out, "    {}", variable(source, checked, program, *var));
        }
    }
    out
}

fn variable(source: &str, checked: &Checked, program: &Program, id: VarId) -> String {
    let var = program.var(id);
    let reasons: Vec<String> = checked.reasons[id.index()]
        .iter()
        .map(|reason| format!("line {}: {}", line_of(source, reason.span), reason.kind))
        .collect();
    let range = format!("{} in {}", var.name, text::range(&var.range, program));
    if reasons.is_empty() { range } else { format!("{range:<24} {}", reasons.join("; ")) }
}

/// The number of the line in which a span begins.
fn line_of(source: &str, span: Span) -> usize {
    1 + source[..span.start as usize].matches('\n').count()
}
