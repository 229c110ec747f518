//! `tilewright run`

use std::fmt::Write;
use std::fs;
use std::path::Path;

use tilewright_cache::Skipped;
use tilewright_ir::{DType, Number, Tensor};
use tilewright_target::GpuApi;
use xxhash_rust::xxh3::xxh3_64;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::gpu::GpuCompiler;
use crate::interpret::{Results, check, interpret};
use crate::kernel::Compiler;
use crate::lookup::passed_over;
use crate::npy;
use crate::output::{complain, print};
use crate::problem::Problem;
use crate::schedule::ScheduleSource;
use crate::target::Target;

/// Runs a program and prints or writes its results.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    let (results, schedule) = match Target::find(&args.target)? {
        Target::Interp => (interpreted(args)?, Vec::new()),
        Target::Cpu => compiled(args)?,
        Target::Gpu(api, number) => on_gpu(args, api, number)?,
    };
    if let Some(folder) = &args.out {
        write_results(folder, &results)?;
    }
    print(&summary(&results, args.out.as_deref()))?;
    schedule.iter().for_each(|line| complain(line));
    Ok(())
}

fn interpreted(args: &RunArgs) -> Result<Results, Failure> {
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
    let mut problem = Problem::read(&args.program)?;
    let inputs = problem.interpreter_inputs()?;
    interpret(&problem.source, &problem.program, inputs)
}

/// The results of the compiled program, and lines that say which schedule it was compiled by.
fn compiled(args: &RunArgs) -> Result<(Results, Vec<String>), Failure> {
    let mut compiler = Compiler::new(&args.compile)?;
    let mut problem = Problem::read(&args.program)?;
    let mut inputs = problem.kernel_inputs(args.check)?;
    compiler.look_up(&args.file, &problem.program)?;
    let compiled = compiler.compile(&problem.program)?;
    let mut arguments = compiled.arguments(&mut inputs, args.check)?;
    let results = compiled.call(&problem.source, &mut arguments)?;
    if args.check {
        check(&problem.source, &problem.program, inputs, &results)?;
    }
    Ok((results, said_of(&compiler.schedule, &compiler.skipped)))
}

/// Which schedule it was, and which could not be used.
fn said_of(schedule: &ScheduleSource, skipped: &[Skipped]) -> Vec<String> {
    let chosen = format!("schedule: {}", schedule.describe());
    let skipped = skipped.iter().map(|one| format!("skipped: {}", passed_over(one)));
    std::iter::once(chosen).chain(skipped).collect()
}

/// The same on a device.
fn on_gpu(args: &RunArgs, api: GpuApi, number: usize) -> Result<(Results, Vec<String>), Failure> {
    let mut compiler = GpuCompiler::new(&args.compile, api, number)?;
    let mut problem = Problem::read(&args.program)?;
    let mut inputs = problem.kernel_inputs(args.check)?;
    compiler.look_up(&args.file, &problem.program)?;
    let compiled = compiler.compile(&problem.program)?;
    let results = compiled.call(&problem.source, &mut inputs, args.check)?.results(&problem.source)?;
    if args.check {
        check(&problem.source, &problem.program, inputs, &results)?;
    }
    Ok((results, said_of(&compiler.schedule, &compiler.skipped)))
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
