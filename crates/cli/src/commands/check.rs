//! `tilewright check`

use tilewright_syntax::{Bindings, diagnose};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::inputs::{bindings, refuse_unknown_sizes};
use crate::output::{complain, print};
use crate::source::Source;

/// Checks every file, says all that is wrong, and fails if anything is.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let bindings = bindings(&args.sizes)?;
    // A file that cannot be read does not keep the others from being checked.
    let sources: Vec<Result<Source, Failure>> = args.files.iter().map(|path| Source::read(path)).collect();
    let readable = || sources.iter().filter_map(|source| source.as_ref().ok());
    let functions: Vec<_> = readable().flat_map(|source| &source.parsed.ast.functions).collect();
    if let Some(first) = readable().next() {
        refuse_unknown_sizes(first, &functions, &bindings)?;
    }
    let mut refused = false;
    let mut closed = false;
    for source in &sources {
        let outcome = match source {
            Ok(source) => check_file(source, &bindings),
            Err(failure) => {
                failure.print();
                Ok(false)
            }
        };
        match outcome {
            Ok(fine) => refused |= !fine,
            Err(Failure::ClosedOutput) => closed = true,
            Err(failure @ Failure::Input(_)) => {
                failure.print();
                refused = true;
            }
            Err(failure) => return Err(failure),
        }
    }
    match (refused, closed) {
        (true, _) => Err(Failure::Reported),
        (false, true) => Err(Failure::ClosedOutput),
        (false, false) => Ok(()),
    }
}

/// Checks one file; whether it is accepted.
fn check_file(source: &Source, bindings: &Bindings) -> Result<bool, Failure> {
    let diagnostics = diagnose(&source.parsed, bindings);
    source.print(&diagnostics);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.len() - errors;
    if errors > 0 {
        complain(&format!("{}: {}", source.path(), count(errors, warnings)));
        return Ok(false);
    }
    if source.parsed.ast.functions.is_empty() {
        return Err(Failure::Input(format!("{} has no functions", source.path())));
    }
    let names: Vec<&str> =
        source.parsed.ast.functions.iter().map(|function| function.name.text.as_str()).collect();
    let warned = if warnings > 0 { format!(", {}", plural(warnings, "warning")) } else { String::new() };
    print(&format!("{}: ok ({}){warned}\n", source.path(), names.join(", ")))?;
    Ok(true)
}

fn count(errors: usize, warnings: usize) -> String {
    match warnings {
        0 => plural(errors, "error"),
        _ => format!("{}, {}", plural(errors, "error"), plural(warnings, "warning")),
    }
}

fn plural(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
