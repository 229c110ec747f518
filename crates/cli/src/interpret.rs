//! Runs a program in the reference interpreter, and compares results with it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tilewright::interp::{Expected, Inputs, RunError, count_points, expect_with_progress, run_with_progress};
use tilewright::ir::{Program, Tensor};
use tilewright::syntax::{Code, Diagnostic};

use crate::failure::Failure;
use crate::output::print_error_line;
use crate::source::Source;

/// The results of a program by name, in the order of the signature.
pub type Results = Vec<(String, Tensor)>;

/// Refuses results that differ from those of the interpreter by more than rounding can explain.
/// Reports the elements that rounding decides, because they could not be compared.
pub fn check(source: &Source, program: &Program, inputs: Inputs, found: &Results) -> Result<(), Failure> {
    let expected = with_progress_bar(program, |progress| expect_with_progress(program, inputs, progress));
    let expected = expected.map_err(|error| failure(source, program, error))?;
    let named = |(name, found)| expected.get(name).map(|expected: &Expected| (name, found, expected));
    let results: Vec<(&String, &Tensor, &Expected)> =
        found.iter().map(|(name, found)| (name, found)).filter_map(named).collect();
    for (name, found, expected) in &results {
        let same = expected.compare(name, found);
        same.map_err(|difference| Failure::Bug(format!("the interpreter disagrees: {difference}")))?;
    }
    for doubt in results.iter().filter_map(|(name, _, expected)| expected.not_compared(name)) {
        match doubt.is_whole_tensor() {
            true => print_error_line(&format!(
                "warning: {doubt}. Give other inputs, such as --in NAME=FILE.npy or --in 'NAME=uniform(0.1,1)'"
            )),
            false => print_error_line(&format!("note: {doubt}")),
        }
    }
    Ok(())
}

/// Interprets a program. An error is shown at its place in the source text.
pub fn interpret(source: &Source, program: &Program, inputs: Inputs) -> Result<Results, Failure> {
    let results = with_progress_bar(program, |progress| run_with_progress(program, inputs, progress));
    let mut results = results.map_err(|error| failure(source, program, error))?;
    let ordered = program.tensors_with(|role| role.is_result());
    Ok(ordered.filter_map(|(_, tensor)| results.remove_entry(&tensor.name)).collect())
}

/// Runs `work` with a progress bar that counts points.
fn with_progress_bar<T>(program: &Program, work: impl FnOnce(&mut dyn FnMut(u64) -> bool) -> T) -> T {
    let bar = progress_bar(count_points(program));
    let outcome = work(&mut |done| {
        bar.set_position(done);
        true
    });
    bar.finish_and_clear();
    outcome
}

/// Converts an error of the interpreter to a failure.
fn failure(source: &Source, program: &Program, error: RunError) -> Failure {
    match error {
        RunError::OutOfBounds(out) => {
            let diagnostic = Diagnostic::error(Code::OutOfBounds, out.origin.into(), out.describe());
            source.print(&[at_point(diagnostic, &out.point)
                .help("check the data that the index or its condition depends on, or clamp the index")]);
            Failure::Reported
        }
        RunError::Undefined(undefined) => {
            let message = undefined.describe();
            let results = &source.function(&program.name).results;
            let result = results
                .iter()
                .find(|result| undefined.point.is_empty() && result.name.text == undefined.tensor);
            let diagnostic = match result {
                Some(result) => Diagnostic::error(Code::UndefinedElement, result.name.span, message),
                None => Diagnostic::error(Code::ReadBeforeWrite, undefined.origin.into(), message),
            };
            source.print(&[at_point(diagnostic, &undefined.point)]);
            Failure::Reported
        }
        RunError::Tensor(error) => Failure::no_memory(error),
        error => Failure::Input(error.to_string()),
    }
}

fn at_point(diagnostic: Diagnostic, point: &[(String, i64)]) -> Diagnostic {
    let point: Vec<String> = point.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if point.is_empty() { diagnostic } else { diagnostic.label(format!("at {}", point.join(", "))) }
}

/// The bar appears only in a terminal, after the run has taken a while.
fn progress_bar(points: u64) -> ProgressBar {
    let bar = ProgressBar::new(points);
    let style = ProgressStyle::with_template("interpreting {wide_bar} {percent}% {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
