//! `tilewright show --stage graph`: draws the statements of a program and what they read.

use tilewright::report::graph::{program_graph, scheduled_graph};
use tilewright::syntax::{Bindings, check};

use super::target_of;
use crate::args::ShowArgs;
use crate::failure::Failure;
use crate::machine::machine_or_typical;
use crate::problem::{OR_INPUTS, concrete_program};
use crate::schedule::ScheduleOption;
use crate::source::Source;

/// Draws a program as SVG. Sizes may be open, unless the user asks for a schedule.
pub fn show_graph(
    args: &ShowArgs,
    source: &Source,
    function: &str,
    bindings: &Bindings,
) -> Result<String, Failure> {
    if args.compile.schedule.is_some() {
        return show_scheduled_graph(args, source, function, bindings);
    }
    let checked = check(&source.parsed.ast, function, bindings);
    source.print(&checked.diagnostics);
    let Some(program) = &checked.program else { return Err(Failure::Reported) };
    Ok(program_graph(program))
}

/// Draws a program as a schedule computes it.
fn show_scheduled_graph(
    args: &ShowArgs,
    source: &Source,
    function: &str,
    bindings: &Bindings,
) -> Result<String, Failure> {
    let machine = machine_or_typical(target_of(args)?, &args.compile.cpu)?;
    let asked = ScheduleOption::read(&args.compile)?;
    let program = concrete_program(source, function, bindings, args.rounding, OR_INPUTS)?;
    let schedule = asked.without_cache(&program, machine.target());
    Ok(scheduled_graph(&program, &schedule.lower(&program, machine.target())?))
}
