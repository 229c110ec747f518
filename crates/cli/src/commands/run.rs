//! `tilewright run`: runs a program and prints or writes its results.

use std::fmt::Write;
use std::path::PathBuf;

use tilewright::driver::TargetName;
use tilewright::ir::{DType, Number, Tensor};
use xxhash_rust::xxh3::xxh3_64;

use crate::args::RunArgs;
use crate::compiler::Compiler;
use crate::destination::Destinations;
use crate::failure::Failure;
use crate::interpret::{Results, check, interpret};
use crate::loaded::Loaded;
use crate::output::{print, print_error_line};
use crate::problem::Problem;
use crate::target::Target;

/// Runs a program and prints or writes its results.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let finished = match Target::find(&args.target)? {
        Target::Interp => run_interpreter(args)?,
        Target::Compiled(name) => run_compiled(args, name)?,
    };
    finished.destinations.write(&finished.results)?;
    print(&summary(&finished))?;
    finished.schedule.iter().for_each(|line| print_error_line(line));
    Ok(())
}

/// A program that has run.
struct Finished {
    results: Results,
    /// Where the results go.
    destinations: Destinations,
    /// Lines that say which schedule the program was compiled with.
    schedule: Vec<String>,
}

fn run_interpreter(args: &RunArgs) -> Result<Finished, Failure> {
    let without = |option: &str| {
        Err(Failure::Usage(format!("{option} is for compiled code, and --target interp has none")))
    };
    match &args.compile {
        compile if compile.schedule.is_some() => return without("--schedule"),
        compile if compile.cpu.threads.is_some() => return without("--threads"),
        compile if compile.cpu.vectors.is_some() => return without("--vectors"),
        _ if args.check => return without("--check"),
        _ => {}
    }
    let problem = Problem::read_to_run(&args.program)?;
    let destinations = Destinations::read(&args.out, &problem)?;
    Ok(Finished { results: interpret_problem(problem)?, destinations, schedule: Vec::new() })
}

fn interpret_problem(mut problem: Problem) -> Result<Results, Failure> {
    let inputs = problem.interpreter_inputs()?;
    interpret(&problem.source, &problem.program, inputs)
}

fn run_compiled(args: &RunArgs, name: TargetName) -> Result<Finished, Failure> {
    let compiler = Compiler::new(&args.compile, name)?;
    let mut problem = Problem::read_to_run(&args.program)?;
    let destinations = Destinations::read(&args.out, &problem)?;
    if problem.is_empty() {
        let how = "schedule: none; a size is 0, so the interpreter has computed the results";
        let results = interpret_problem(problem)?;
        return Ok(Finished { results, destinations, schedule: vec![how.to_owned()] });
    }
    let mut inputs = problem.kernel_inputs(args.check)?;
    let (compiled, _) = compiler.compile(&args.cache, &problem.program)?;
    let mut loaded = Loaded::new(&compiled, &problem.source, &mut inputs, args.check)?;
    let results = loaded.results(&problem.source)?;
    if args.check {
        check(&problem.source, &problem.program, inputs, &results)?;
    }
    let chosen = format!("schedule: {}", compiled.schedule.describe());
    let skipped = compiled.schedule.skipped().map(|one| format!("skipped: {one}"));
    let schedule = std::iter::once(chosen).chain(skipped).collect();
    Ok(Finished { results, destinations, schedule })
}

/// A line for each result: its type and shape, where it is, and a checksum of its bytes.
fn summary(finished: &Finished) -> String {
    let mut out = String::new();
    for (name, tensor) in &finished.results {
        let shape: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
        let _ = write!(out, "{name}: {}({})", tensor.dtype(), shape.join(", "));
        let _ = write!(out, "  checksum {:016x}", xxh3_64(tensor.bytes()));
        let paths = finished.destinations.paths(name);
        let paths: Vec<String> = paths.iter().map(|path: &PathBuf| path.display().to_string()).collect();
        let _ = match paths.is_empty() {
            true => writeln!(out, "  {}", preview(tensor)),
            false => writeln!(out, "  -> {}", paths.join(", ")),
        };
    }
    out
}

/// The first few elements.
fn preview(tensor: &Tensor) -> String {
    let shown: Vec<String> = (0..tensor.len().min(6))
        .map(|at| match tensor.get(at) {
            Number::Int(value) if tensor.dtype() == DType::Bool => (value != 0).to_string(),
            Number::Int(value) => value.to_string(),
            Number::Float(value) => format!("{value:.6}"),
        })
        .collect();
    let more = if tensor.len() > 6 { ", …" } else { "" };
    format!("[{}{more}]", shown.join(", "))
}
