//! `tilewright run`: runs a program and prints or writes its results.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tilewright::driver::TargetName;
use tilewright::ir::{DType, Number, Tensor};
use xxhash_rust::xxh3::xxh3_64;

use crate::args::RunArgs;
use crate::compiler::Compiler;
use crate::failure::Failure;
use crate::interpret::{Results, check, interpret};
use crate::loaded::Loaded;
use crate::npy;
use crate::output::{print, print_error_line};
use crate::problem::Problem;
use crate::target::Target;

/// Runs a program and prints or writes its results.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let (results, schedule) = match Target::find(&args.target)? {
        Target::Interp => (run_interpreter(args)?, Vec::new()),
        Target::Compiled(name) => run_compiled(args, name)?,
    };
    if let Some(folder) = &args.out {
        write_results(folder, &results)?;
    }
    print(&summary(&results, args.out.as_deref()))?;
    schedule.iter().for_each(|line| print_error_line(line));
    Ok(())
}

fn run_interpreter(args: &RunArgs) -> Result<Results, Failure> {
    let without = |option: &str| {
        Err(Failure::Usage(format!("{option} is for compiled code, and --target interp has none")))
    };
    match &args.compile {
        compile if compile.schedule.is_some() => return without("--schedule"),
        compile if compile.threads.is_some() => return without("--threads"),
        compile if compile.vectors.is_some() => return without("--vectors"),
        _ if args.check => return without("--check"),
        _ => {}
    }
    interpret_problem(Problem::read_to_run(&args.program)?)
}

fn interpret_problem(mut problem: Problem) -> Result<Results, Failure> {
    let inputs = problem.interpreter_inputs()?;
    interpret(&problem.source, &problem.program, inputs)
}

/// The results of the compiled program, and lines that say which schedule it was compiled with.
fn run_compiled(args: &RunArgs, name: TargetName) -> Result<(Results, Vec<String>), Failure> {
    let compiler = Compiler::new(&args.compile, name)?;
    let mut problem = Problem::read_to_run(&args.program)?;
    if problem.is_empty() {
        let how = "schedule: none; a size is 0, so the interpreter has computed the results";
        return Ok((interpret_problem(problem)?, vec![how.to_owned()]));
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
    Ok((results, std::iter::once(chosen).chain(skipped).collect()))
}

fn write_results(folder: &Path, results: &Results) -> Result<(), Failure> {
    if folder.exists() && !folder.is_dir() {
        return Err(Failure::Input(format!("--out {} is a file, not a folder", folder.display())));
    }
    let failed =
        |error: std::io::Error| Failure::Machine(format!("cannot write to {}: {error}", folder.display()));
    fs::create_dir_all(folder)
        .map_err(|error| Failure::Input(format!("--out {}: {error}", folder.display())))?;
    results.iter().try_for_each(|(name, tensor)| {
        npy::write(&folder.join(format!("{name}.npy")), tensor).map_err(failed)
    })
}

/// A line for each result: its type and shape, where it is, and a checksum of its bytes.
fn summary(results: &Results, folder: Option<&Path>) -> String {
    let mut out = String::new();
    for (name, tensor) in results {
        let shape: Vec<String> = tensor.shape().iter().map(usize::to_string).collect();
        let _ = write!(out, "{name}: {}({})", tensor.dtype(), shape.join(", "));
        let _ = write!(out, "  checksum {:016x}", xxh3_64(tensor.bytes()));
        match folder {
            Some(folder) => {
                let _ = writeln!(out, "  -> {}", folder.join(format!("{name}.npy")).display());
            }
            None => {
                let _ = writeln!(out, "  {}", preview(tensor));
            }
        }
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
