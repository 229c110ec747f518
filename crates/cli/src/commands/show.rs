//! `tilewright show`: prints a program at one stage of compilation, and writes the page about its
//! schedule.

mod cost;
mod explain;
mod graph;
mod space;

use std::io::IsTerminal;

use clap::ValueEnum;
use tilewright::driver::{Stage as CompiledStage, TargetName};
use tilewright::ir::print as text;
use tilewright::syntax::{Bindings, check, ranges_text};
use tilewright::target::GpuApi;
use tilewright::train::model::cost_model;

use crate::args::{ShowArgs, Stage};
use crate::failure::Failure;
use crate::inputs::read_sizes;
use crate::machine::machine_or_typical;
use crate::output::{print, print_error_line};
use crate::pending_file::PendingFile;
use crate::problem::{OR_INPUTS, concrete_program};
use crate::schedule::ScheduleOption;
use crate::source::Source;
use crate::target::Target;

/// Prints one stage of a program, and writes the page about it.
pub fn run(args: &ShowArgs) -> Result<(), Failure> {
    if args.explain && args.stage != Some(Stage::Schedule) {
        return Err(Failure::Usage("--explain is for --stage schedule".to_owned()));
    }
    let report = PendingFile::new("--report", args.report.as_deref())?;
    let (source, function) = Source::read_function(&args.file)?;
    let sizes = read_sizes(&source, &function, &args.sizes, &args.inputs)?;
    if let Some(stage) = args.stage {
        print_stage(args, stage, &source, &function, &sizes)?;
    }
    if let Some(file) = report {
        file.write(&page(args, &source, &function, &sizes)?)?;
    }
    Ok(())
}

fn print_stage(
    args: &ShowArgs,
    stage: Stage,
    source: &Source,
    function: &str,
    sizes: &Bindings,
) -> Result<(), Failure> {
    let text = match stage {
        Stage::Program | Stage::Ranges => show_checked(stage, source, function, sizes),
        Stage::Graph => graph::show_graph(args, source, function, sizes),
        Stage::Dependences => show_dependences(args, source, function, sizes),
        Stage::Hls | Stage::C => return Err(missing_stage(stage)),
        _ => show_compiled(args, stage, source, function, sizes),
    };
    print(&text?)?;
    if stage == Stage::Graph && std::io::stdout().is_terminal() {
        print_error_line("note: this is a picture in the SVG format; write it to a file with `> graph.svg`");
    }
    Ok(())
}

/// The page about a program at given sizes.
fn page(args: &ShowArgs, source: &Source, function: &str, sizes: &Bindings) -> Result<String, Failure> {
    let machine = machine_or_typical(target_of(args)?, &args.compile.cpu)?;
    let asked = ScheduleOption::read(&args.compile)?;
    let program = concrete_program(source, function, sizes, args.rounding, OR_INPUTS)?;
    let schedule = asked.without_cache(&program, machine.target());
    schedule.page(&program, &source.file.text, machine.target(), None)
}

fn missing_stage(stage: Stage) -> Failure {
    let name = |stage: &Stage| Some(stage.to_possible_value()?.get_name().to_owned());
    let shown = Stage::value_variants()
        .iter()
        .filter(|stage| stage.to_possible_value().is_some_and(|value| !value.is_hide_set()));
    let has: Vec<String> = shown.filter_map(name).collect();
    Failure::Machine(format!(
        "this build has no stage {} yet; it has: {}",
        name(&stage).unwrap_or_default(),
        has.join(", ")
    ))
}

/// Shows a stage before compilation. Sizes may be open.
fn show_checked(
    stage: Stage,
    source: &Source,
    function: &str,
    bindings: &Bindings,
) -> Result<String, Failure> {
    let checked = check(&source.parsed.ast, function, bindings);
    source.print(&checked.diagnostics);
    let Some(program) = &checked.program else { return Err(Failure::Reported) };
    Ok(match stage {
        Stage::Ranges => ranges_text(&source.file.text, &checked, program),
        _ => text::program(program),
    })
}

/// Shows the dependences between the statement instances of a program at given sizes. They do not
/// depend on the target.
fn show_dependences(
    args: &ShowArgs,
    source: &Source,
    function: &str,
    bindings: &Bindings,
) -> Result<String, Failure> {
    let program = concrete_program(source, function, bindings, args.rounding, OR_INPUTS)?;
    tilewright::polyhedral::text::describe(&program).map_err(|why| {
        Failure::Machine(format!("the dependences of this program take too long to compute: {why}"))
    })
}

/// Shows a stage of the compiler for a program at given sizes, for the CPU or for a device.
fn show_compiled(
    args: &ShowArgs,
    stage: Stage,
    source: &Source,
    function: &str,
    bindings: &Bindings,
) -> Result<String, Failure> {
    let machine = machine_or_typical(target_of(args)?, &args.compile.cpu)?;
    let target = machine.target();
    let asked = ScheduleOption::read(&args.compile)?;
    let program = concrete_program(source, function, bindings, args.rounding, OR_INPUTS)?;
    let schedule = asked.without_cache(&program, target);
    match stage {
        Stage::Space => Ok(space::space(&program, target)),
        Stage::Schedule if args.explain => explain::explained(&program, &schedule, target),
        Stage::Schedule => Ok(schedule.chosen.schedule.to_string()),
        Stage::Cost => Ok(cost::cost(
            &schedule.lower(&program, target)?,
            &*cost_model(target, args.compile.model_choice()),
        )),
        stage => {
            let nest = schedule.lower(&program, target)?;
            let text = compiled_stage(stage).text(&program, &schedule.chosen.schedule, &nest, target);
            text.map_err(Failure::from_stage)
        }
    }
}

/// Returns the target of a stage. The stages `cuda` and `opencl` imply their API.
fn target_of(args: &ShowArgs) -> Result<TargetName, Failure> {
    let name = Target::find(&args.target)?.compiled("--target interp runs a program as it is written");
    let api = match args.stage {
        Some(Stage::Cuda) => GpuApi::Cuda,
        Some(Stage::Opencl) => GpuApi::OpenCl,
        Some(stage @ (Stage::Llvm | Stage::Asm)) => match name? {
            TargetName::Cpu => return Ok(TargetName::Cpu),
            _ => {
                let stage = compiled_stage(stage).name();
                return Err(Failure::Usage(format!("--stage {stage} is for --target cpu")));
            }
        },
        _ => return name,
    };
    match name {
        Ok(name @ TargetName::Gpu(named, _)) if named == api => Ok(name),
        _ => Ok(TargetName::Gpu(api, 0)),
    }
}

/// Returns the driver's name for a stage that comes after the schedule.
fn compiled_stage(stage: Stage) -> CompiledStage {
    match stage {
        Stage::Llvm => CompiledStage::Llvm,
        Stage::Asm => CompiledStage::Assembly,
        Stage::Cuda => CompiledStage::Cuda,
        Stage::Opencl => CompiledStage::OpenCl,
        _ => CompiledStage::Loops,
    }
}
