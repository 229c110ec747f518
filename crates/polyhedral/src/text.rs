//! Formats the statements and the dependences of a program as text, for `tilewright show --stage
//! dependences`.

use std::fmt::Write;

use tilewright_ir::{Program, print};
use tilewright_isl::{Answer, Context, GaveUp};

use crate::dependence::{Dependence, DependenceKind};
use crate::model::{Instances, Model};

/// Prints the statements and the dependences of a program whose sizes are numbers.
pub fn describe(program: &Program) -> Answer<String> {
    let context = Context::new();
    let model = Model::new(&context, program).ok_or(GaveUp)?;
    Ok(describe_dependences(&model, &crate::dependence::dependences(&model)?))
}

/// Prints each dependence on a few lines: its two instances, their distance, and the reason.
pub fn describe_dependences(model: &Model, all: &[Dependence]) -> String {
    let mut out = String::new();
    for (at, own) in model.statements.iter().enumerate() {
        let _ = writeln!(out, "S{at}  {}", describe_statement(model, own));
    }
    for dependence in all {
        out.push('\n');
        match describe_dependence(model, dependence) {
            Ok(text) => out.push_str(&text),
            Err(_) => out.push_str("a dependence whose description takes isl too many operations\n"),
        }
    }
    if all.is_empty() {
        out.push_str("\nno dependences: the statements may run in any order\n");
    }
    out
}

fn describe_statement(model: &Model, own: &Instances) -> String {
    let loops: Vec<String> =
        own.loops.iter().map(|var| format!("for {}: ", model.program.var(*var).name)).collect();
    format!("{}{}", loops.concat(), print::statement(own.statement, model.program))
}

fn describe_dependence(model: &Model, dependence: &Dependence) -> Answer<String> {
    let (from, to) = (&model.statements[dependence.from], &model.statements[dependence.to]);
    let tensor = &model.program.tensor(dependence.tensor).name;
    let kind = match dependence.kind {
        _ if dependence.relaxed => "reduction",
        DependenceKind::Flow => "flow",
        DependenceKind::Anti => "anti",
        DependenceKind::Output => "output",
    };
    let why = match dependence.kind {
        _ if dependence.relaxed => {
            format!("both are reduced into one element of {tensor}: any order, one at a time")
        }
        DependenceKind::Flow => format!("the second reads {tensor} where the first has written it"),
        DependenceKind::Anti => format!("the second overwrites {tensor} where the first has read it"),
        DependenceKind::Output => format!("the second overwrites {tensor} where the first has written it"),
    };
    let mut out = format!("{kind:9} S{} -> S{}  {tensor}", dependence.from, dependence.to);
    let distance = describe_distance(model, from, to, dependence)?;
    if !distance.is_empty() {
        let _ = write!(out, "  {distance}");
    }
    if !dependence.exact {
        out.push_str("  (upper bound: the pairs depend on data)");
    }
    out.push('\n');
    let _ = writeln!(out, "          {why}");
    if let Some((first, second)) = dependence.pairs.sample()? {
        let _ = writeln!(
            out,
            "          such as S{}{} -> S{}{}",
            dependence.from,
            describe_instance(model, from, &first),
            dependence.to,
            describe_instance(model, to, &second)
        );
    }
    Ok(out)
}

/// Prints an instance as `(t=1, i=3)`.
pub fn describe_instance(model: &Model, own: &Instances, values: &[i64]) -> String {
    let parts = own.coordinates.vars().zip(values);
    let parts: Vec<String> =
        parts.map(|(var, value)| format!("{}={value}", model.program.var(var).name)).collect();
    format!("({})", parts.join(", "))
}

/// Prints the distance between two instances in the variables that both have: a number, or how the
/// two values compare.
fn describe_distance(
    model: &Model,
    from: &Instances,
    to: &Instances,
    dependence: &Dependence,
) -> Answer<String> {
    let shared: Vec<(usize, usize, String)> = if dependence.from == dependence.to {
        let all = from.coordinates.vars().enumerate();
        all.map(|(at, var)| (at, at, model.program.var(var).name.clone())).collect()
    } else {
        let all = 0..from.common_loops(to);
        all.map(|at| (at, at, model.program.var(from.loops[at]).name.clone())).collect()
    };
    let mut parts = Vec::new();
    for (at, other, name) in shared {
        let pairs = project_pairs(dependence, from.coordinates.len(), to.coordinates.len(), (at, other));
        let text = match pairs.deltas().bounds(0)? {
            Some((low, high)) if low == high => format!("{name}: {low:+}"),
            Some((low, _)) if low > 0 => format!("{name}: later"),
            Some((_, high)) if high < 0 => format!("{name}: earlier"),
            Some((0, _)) => format!("{name}: same or later"),
            Some((_, 0)) => format!("{name}: same or earlier"),
            _ => format!("{name}: any"),
        };
        parts.push(text.replace("+0", "same"));
    }
    Ok(if parts.is_empty() { String::new() } else { format!("[{}]", parts.join(", ")) })
}

/// The pairs of the dependence, reduced to one coordinate on each side.
fn project_pairs(
    dependence: &Dependence,
    inputs: usize,
    outputs: usize,
    (at, other): (usize, usize),
) -> tilewright_isl::Map {
    let results =
        dependence.pairs.project_out_outputs(other + 1, outputs - other - 1).project_out_outputs(0, other);
    let reversed = results.reverse();
    reversed.project_out_outputs(at + 1, inputs - at - 1).project_out_outputs(0, at).reverse()
}
