//! `tilewright run`

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tilewright_interp::{RunError, bytes_needed, points, run_with_progress};
use tilewright_ir::print::tensor_type;
use tilewright_ir::tensor::byte_size;
use tilewright_ir::{Program, Tensor, TensorId, verify};
use tilewright_syntax::{Code, Diagnostic, check};
use xxhash_rust::xxh3::xxh3_64;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::inputs::{Given, gather, machine_inputs};
use crate::npy;
use crate::output::print;
use crate::source::Source;

/// Runs a program and prints or writes its results.
pub fn run(args: &RunArgs) -> Result<(), Failure> {
    refuse_absent_target(&args.target)?;
    let (source, name) = Source::read_function(&args.file)?;
    let given = gather(&source, &name, &args.sizes, &args.inputs)?;
    let checked = check(&source.parsed.ast, &name, &given.sizes);
    source.print(&checked.diagnostics);
    let program = checked.program.ok_or(Failure::Reported)?;
    verify(&program).expect("what the checker accepts is a valid program");
    refuse_open_sizes(&program, &given)?;
    refuse_too_large(&program)?;
    let results = interpret(&source, &program, given, args.seed)?;
    if let Some(folder) = &args.out {
        write_results(folder, &results)?;
    }
    print(&summary(&results, args.out.as_deref()))
}

fn refuse_absent_target(target: &str) -> Result<(), Failure> {
    let device = target.split(':').next().unwrap_or_default();
    match device {
        "interp" if target == "interp" => Ok(()),
        "cpu" | "cuda" | "opencl" => {
            Err(Failure::Machine(format!("this build has no target {target}; it has: interp")))
        }
        _ => Err(Failure::Usage(format!("there is no target {target}; targets are: interp"))),
    }
}

fn refuse_open_sizes(program: &Program, given: &Given) -> Result<(), Failure> {
    let open: Vec<&str> = program
        .symbols
        .iter()
        .filter(|symbol| symbol.value.is_none())
        .map(|symbol| symbol.name.as_str())
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    let values: Vec<String> = open.iter().map(|name| format!("{name}=…")).collect();
    let known =
        given.sizes.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(", ");
    let known = if known.is_empty() { String::new() } else { format!(" (known: {known})") };
    let what = if open.len() == 1 { "a value for" } else { "values for" };
    Err(Failure::Input(format!(
        "`{}` needs {what} {}{known}: give --sizes {}, or inputs that tell (--in NAME=FILE.npy, or --in NAME=NUMBER for a scalar)",
        program.name,
        open.join(", "),
        values.join(",")
    )))
}

/// Says before trying that memory will not do.
fn refuse_too_large(program: &Program) -> Result<(), Failure> {
    let endless = program.tensors.iter().enumerate().find(|(at, tensor)| {
        let shape = program.shape(TensorId(*at as u32));
        shape.is_none_or(|shape| byte_size(tensor.dtype, &shape).is_none())
    });
    if let Some((at, tensor)) = endless {
        let kind = tensor_type(program, TensorId(at as u32));
        return Err(Failure::Input(format!(
            "`{}` would be {kind}, which is larger than any memory",
            tensor.name
        )));
    }
    let needed = bytes_needed(program).unwrap_or(u128::MAX);
    match available_memory() {
        Some(available) if needed > available as u128 => Err(Failure::Input(format!(
            "running `{}` takes {}, and {} of memory are free; give smaller sizes",
            program.name,
            human(needed),
            human(available as u128)
        ))),
        _ => Ok(()),
    }
}

/// Bytes of memory that can be had without swapping, where the system tells: of the machine, or of the container.
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max");
    let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0);
    let contained = limit.map_or(u64::MAX, |limit| limit.saturating_sub(used));
    Some((kib * 1024).min(contained))
}

fn human(bytes: u128) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{value:.1} {}", units[unit]) }
}

type Results = Vec<(String, Tensor)>;

fn interpret(source: &Source, program: &Program, given: Given, seed: u64) -> Result<Results, Failure> {
    let inputs = machine_inputs(program, given, seed)?;
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
        Err(RunError::Tensor(error)) => return Err(Failure::Machine(error.to_string())),
        Err(error) => return Err(Failure::Input(error.to_string())),
    };
    // In the order of the signature.
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
            tilewright_ir::Number::Int(value) if tensor.dtype() == tilewright_ir::DType::Bool => {
                (value != 0).to_string()
            }
            tilewright_ir::Number::Int(value) => value.to_string(),
            tilewright_ir::Number::Float(value) => format!("{value:.6}"),
        })
        .collect();
    let more = if tensor.len() > 6 { ", …" } else { "" };
    format!("[{}{more}]", shown.join(", "))
}
