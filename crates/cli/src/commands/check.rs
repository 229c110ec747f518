//! `tilewright check`: reports every mistake in programs.

use tilewright::syntax::ast::Function;
use tilewright::syntax::{Bindings, Diagnostic, check, diagnose};

use crate::args::CheckArgs;
use crate::failure::Failure;
use crate::inputs::{add_scalars, bindings, refuse_unknown_sizes};
use crate::output::{print, print_error_line};
use crate::source::Source;

/// Checks every file, prints all diagnostics, and fails if any of them is an error.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    let mut bindings = bindings(&args.sizes)?;
    // If one file cannot be read, the other files are still checked.
    let sources: Vec<_> = args.files.iter().map(|spec| Source::read_named(spec)).collect();
    let readable = || sources.iter().filter_map(|source| source.as_ref().ok());
    let functions: Vec<_> = readable().flat_map(|(source, name)| functions(source, *name)).collect();
    if let Some((first, _)) = readable().next().filter(|_| !functions.is_empty()) {
        refuse_unknown_sizes(first, &functions, &bindings)?;
        add_scalars(first, &functions, &args.inputs, &mut bindings)?;
    }
    let mut refused = false;
    let mut closed = false;
    for source in &sources {
        let outcome = match source {
            Ok((source, name)) => check_file(source, *name, &bindings),
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

/// Returns the function of the given name, or all functions.
fn functions<'s>(source: &'s Source, name: Option<&str>) -> Vec<&'s Function> {
    let all = source.parsed.ast.functions.iter();
    all.filter(|function| name.is_none_or(|name| function.name.text == name)).collect()
}

/// Returns all diagnostics of a file, or those of one function if the file can be parsed.
fn diagnostics(source: &Source, name: Option<&str>, bindings: &Bindings) -> Result<Vec<Diagnostic>, Failure> {
    if name.is_none() {
        return Ok(diagnose(&source.parsed, bindings));
    }
    let mut found = source.file_errors();
    if found.is_empty() {
        let function = source.find_function(name)?;
        found = check(&source.parsed.ast, &function.name.text, bindings).diagnostics;
    }
    found.sort_by_key(|diagnostic| diagnostic.primary.0);
    Ok(found)
}

/// Checks one file, or one of its functions. Returns true when there are no errors.
fn check_file(source: &Source, name: Option<&str>, bindings: &Bindings) -> Result<bool, Failure> {
    let diagnostics = diagnostics(source, name, bindings)?;
    source.print(&diagnostics);
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_error()).count();
    let warnings = diagnostics.len() - errors;
    if errors > 0 {
        print_error_line(&format!("{}: {}", source.path(), count(errors, warnings)));
        return Ok(false);
    }
    let on_tensors = functions(source, name).into_iter().map(|function| &function.name);
    let on_numbers = source.parsed.ast.scalar_functions.iter().map(|function| &function.name);
    let on_numbers = on_numbers.filter(|_| name.is_none());
    let names: Vec<&str> = on_tensors.chain(on_numbers).map(|name| name.text.as_str()).collect();
    if names.is_empty() {
        return Err(Failure::Input(format!("{} has no functions", source.path())));
    }
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
