//! `tilewright check`

use tilewright_syntax::{Bindings, Diagnostic, check_module};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::inputs::{bindings, refuse_unknown_sizes};
use crate::output::{complain, print};
use crate::source::Source;

/// Checks every file, says all that is wrong, and fails if anything is.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let bindings = bindings(&args.sizes)?;
    let mut refused = false;
    for path in &args.files {
        // A file that cannot be read does not keep the others from being checked.
        match check_file(path, &bindings, args) {
            Ok(fine) => refused |= !fine,
            Err(failure @ (Failure::Input(_) | Failure::Reported)) => {
                failure.print();
                refused = true;
            }
            Err(failure) => return Err(failure),
        }
    }
    if refused { Err(Failure::Reported) } else { Ok(()) }
}

fn check_file(path: &std::path::Path, bindings: &Bindings, args: &CheckArgs) -> Result<bool, Failure> {
    let source = Source::read(path)?;
    if !args.sizes.is_empty() {
        refuse_unknown_sizes(&source, &source.module.functions.iter().collect::<Vec<_>>(), bindings)?;
    }
    let mut diagnostics = source.syntax_errors.clone();
    diagnostics.extend(check_module(&source.module, bindings));
    diagnostics.sort_by_key(|diagnostic| diagnostic.primary.0);
    source.print(&diagnostics);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.len() - errors;
    if errors > 0 {
        complain(&format!("{}: {}", source.path, count(errors, warnings)));
        return Ok(false);
    }
    if source.module.functions.is_empty() {
        return Err(Failure::Input(format!("{} has no functions", source.path)));
    }
    let names: Vec<&str> =
        source.module.functions.iter().map(|function| function.name.text.as_str()).collect();
    let warned = if warnings > 0 { format!(", {}", plural(warnings, "warning")) } else { String::new() };
    print(&format!("{}: ok ({}){warned}\n", source.path, names.join(", ")))?;
    Ok(diagnostics.iter().all(|diagnostic: &Diagnostic| !diagnostic.is_error()))
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
