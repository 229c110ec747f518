//! Running a program in the reference interpreter.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tilewright_interp::{Inputs, RunError, compare, points, run_with_progress};
use tilewright_ir::{Program, Tensor};
use tilewright_syntax::{Code, Diagnostic};

use crate::failure::Failure;
use crate::kernel::no_memory;
use crate::source::Source;

/// The results of a program by name, in the order of the signature.
pub type Results = Vec<(String, Tensor)>;

/// Refuses results that differ from those of the interpreter by more than rounding.
pub fn expect_same(program: &Program, found: &Results, wanted: &Results) -> Result<(), Failure> {
    for ((name, found), (_, wanted)) in found.iter().zip(wanted) {
        let same = compare(program, name, found, wanted);
        same.map_err(|difference| Failure::Bug(format!("the interpreter disagrees: {difference}")))?;
    }
    Ok(())
}

/// Interprets a program. What goes wrong is shown where it was written.
pub fn interpret(source: &Source, program: &Program, inputs: Inputs) -> Result<Results, Failure> {
    let bar = progress_bar(points(program));
    let outcome = run_with_progress(program, inputs, &mut |done| {
        bar.set_position(done);
        true
    });
    bar.finish_and_clear();
    let mut results = match outcome {
        Ok(results) => results,
        Err(RunError::OutOfBounds(out)) => {
            let diagnostic = Diagnostic::error(Code::OutOfBounds, out.origin.into(), out.describe());
            source.print(&[at_point(diagnostic, &out.point)
                .help("check the data that the index or its condition depends on, or clamp the index")]);
            return Err(Failure::Reported);
        }
        Err(RunError::Undefined(undefined)) => {
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
            return Err(Failure::Reported);
        }
        Err(RunError::Tensor(error)) => return Err(no_memory(error)),
        Err(error) => return Err(Failure::Input(error.to_string())),
    };
    let ordered = program.tensors_with(|role| role.is_result());
    Ok(ordered.filter_map(|(_, tensor)| results.remove_entry(&tensor.name)).collect())
}

fn at_point(diagnostic: Diagnostic, point: &[(String, i64)]) -> Diagnostic {
    let point: Vec<String> = point.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if point.is_empty() { diagnostic } else { diagnostic.label(format!("at {}", point.join(", "))) }
}

/// Appears only where somebody watches and the run takes long enough to wonder.
fn progress_bar(points: u64) -> ProgressBar {
    let bar = ProgressBar::new(points);
    let style = ProgressStyle::with_template("interpreting {wide_bar} {percent}% {eta} left");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}
