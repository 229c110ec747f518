//! `tilewright bench --target cuda:0`

use std::fmt::Write;

use serde_json::json;
use tilewright_runtime::Timing;
use tilewright_runtime::gpu::Sampling;
use tilewright_target::GpuApi;

use super::{CAP, NO_CAP, SAMPLES, milliseconds};
use crate::args::BenchArgs;
use crate::commands::cache::skipped_json;
use crate::failure::Failure;
use crate::gpu::{GpuCompiled, GpuCompiler};
use crate::interpret::check;
use crate::lookup::passed_over;
use crate::output::print;
use crate::problem::Problem;
use crate::time::seconds;
use crate::work::{Work, work};

/// Compiles a program for a device and measures how long a call takes there.
pub fn run(args: &BenchArgs, api: GpuApi, number: usize) -> Result<(), Failure> {
    let mut compiler = GpuCompiler::new(&args.compile, api, number)?;
    let mut problem = Problem::read(&args.program)?;
    let mut inputs = problem.kernel_inputs(args.check)?;
    compiler.look_up(&args.file, &problem.program)?;
    let compiled = compiler.compile(&problem.program)?;
    let mut call = compiled.call(&problem.source, &mut inputs, args.check)?;
    if args.check {
        let found = call.results(&problem.source)?;
        check(&problem.source, &problem.program, inputs, &found)?;
    }
    let sampling = Sampling {
        warm_up_time: args.time / 5,
        samples: args.samples.unwrap_or(SAMPLES),
        cap: if args.samples.is_some() { NO_CAP } else { CAP.max(4 * args.time) },
        flush: true,
        ..Sampling::default()
    };
    let timing = call.time(&problem.source, &sampling)?;
    let work = work(&problem.program);
    let report = Report { problem: &problem, compiler: &compiler, compiled: &compiled, timing, work };
    print(&if args.json { report.json() } else { report.table() })
}

/// What is known after measuring.
struct Report<'a> {
    problem: &'a Problem,
    compiler: &'a GpuCompiler,
    compiled: &'a GpuCompiled,
    timing: Timing,
    work: Work,
}

impl Report<'_> {
    fn table(&self) -> String {
        let Report { problem, compiler, compiled, timing, work } = self;
        let sizes: Vec<String> = problem.sizes().map(|(name, value)| format!("{name}={value}")).collect();
        let mut out = format!("{} {}\n", problem.program.name, sizes.join(","));
        let mut row = |name: &str, value: String| {
            let _ = writeln!(out, "  {name:<9} {value}");
        };
        row("target", format!("{}, {}", compiler.device.name(), compiler.device.gpu().name));
        row("schedule", compiler.schedule.describe());
        compiler.skipped.iter().for_each(|one| row("skipped", passed_over(one)));
        row("median", seconds(timing.median));
        row("p10", seconds(timing.p10));
        row("p90", seconds(timing.p90));
        row("samples", format!("{}, with an empty cache", timing.samples));
        row("GFLOP/s", format!("{:.2}", work.operations / timing.median / 1e9));
        row("GB/s", format!("{:.2}", work.bytes / timing.median / 1e9));
        row("compile", format!("{:.1} ms", milliseconds(compiled.compile_time)));
        out
    }

    fn json(&self) -> String {
        let Report { problem, compiler, compiled, timing, work } = self;
        let sizes: serde_json::Map<String, serde_json::Value> =
            problem.sizes().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let object = json!({
            "program": problem.source.path(),
            "function": problem.program.name,
            "sizes": sizes,
            "target": compiler.device.name(),
            "device": compiler.device.gpu().name,
            "median_us": timing.median * 1e6,
            "p10_us": timing.p10 * 1e6,
            "p90_us": timing.p90 * 1e6,
            "samples": timing.samples,
            "gflops": work.operations / timing.median / 1e9,
            "gbps": work.bytes / timing.median / 1e9,
            "operations": work.operations as u64,
            "bytes": work.bytes as u64,
            "schedule_source": compiler.schedule.name(),
            "schedule": compiler.schedule.describe(),
            "skipped": skipped_json(&compiler.skipped),
            "compile_ms": milliseconds(compiled.compile_time),
        });
        format!("{object}\n")
    }
}
