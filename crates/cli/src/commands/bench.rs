//! `tilewright bench`

mod gpu;

use std::fmt::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tilewright_interp::Inputs;
use tilewright_runtime::timing::{CacheFlush, Options};
use tilewright_runtime::{Timing, measure};
use tilewright_target::Cpu;

use crate::args::BenchArgs;
use crate::commands::cache::skipped_json;
use crate::failure::Failure;
use crate::interpret::check;
use crate::kernel::{Arguments, Compiled, Compiler, run_failure, views, views_mut};
use crate::lookup::passed_over;
use crate::output::print;
use crate::problem::Problem;
use crate::target::Target;
use crate::time::seconds;
use crate::work::{Work, work};

/// Samples that are taken where the user does not say.
const SAMPLES: usize = 30;

/// A kernel gets this long, or a few times as long as was asked for, even if that is too short for all samples.
const CAP: Duration = Duration::from_secs(3);

/// Longer than anybody waits for the samples that were asked for.
const NO_CAP: Duration = Duration::from_secs(30 * 24 * 3600);

/// What is known after measuring.
struct Report<'a> {
    problem: &'a Problem,
    compiler: &'a Compiler,
    compiled: &'a Compiled,
    timing: Timing,
    work: Work,
}

/// Compiles a program and measures how long a call takes.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    match Target::find(&args.target)? {
        Target::Interp => {
            return Err(Failure::Usage("bench measures kernels, and --target interp has none".to_owned()));
        }
        Target::Gpu(api, number) => return gpu::run(args, api, number),
        Target::Cpu => {}
    }
    let mut compiler = Compiler::new(&args.compile)?;
    let mut problem = Problem::read(&args.program)?;
    let inputs = problem.kernel_inputs(args.check)?;
    compiler.look_up(&args.file, &problem.program)?;
    let compiled = compiler.compile(&problem.program)?;
    let timing = timed(args, &problem, &compiled, inputs)?;
    let work = work(&problem.program);
    let report = Report { problem: &problem, compiler: &compiler, compiled: &compiled, timing, work };
    print(&if args.json { report.json() } else { report.table() })
}

/// Measures calls, after one whose results are checked if that is asked for.
fn timed(
    args: &BenchArgs,
    problem: &Problem,
    compiled: &Compiled,
    mut inputs: Inputs,
) -> Result<Timing, Failure> {
    let mut arguments = compiled.arguments(&mut inputs, args.check)?;
    if args.check {
        let found = compiled.call(&problem.source, &mut arguments)?;
        check(&problem.source, &problem.program, inputs, &found)?;
    }
    let flush_caches = if args.cold { Some(cache_flush(compiled)?) } else { None };
    let options = Options {
        warm_up_time: args.time / 5,
        samples: args.samples.unwrap_or(SAMPLES),
        time: args.time,
        cap: if args.samples.is_some() { NO_CAP } else { CAP.max(4 * args.time) },
        flush_caches,
        ..Options::default()
    };
    let Arguments { constants, inputs, results, scalars } = &mut arguments;
    let bound = compiled.bind(&problem.source, constants)?;
    let (inputs, mut results) = (views(inputs), views_mut(results));
    let spinner = spinner();
    let timing = measure(&options, || bound.run(&compiled.pool, &inputs, &mut results, scalars));
    spinner.finish_and_clear();
    timing.map_err(|error| run_failure(&problem.source, error))
}

/// Reads twice what the last cache holds.
fn cache_flush(compiled: &Compiled) -> Result<CacheFlush<'_>, Failure> {
    let last = Cpu::host().caches.last().copied().unwrap_or(32 << 20);
    CacheFlush::new(2 * last, &compiled.pool)
        .map_err(|error| Failure::Machine(format!("emptying the caches takes memory: {error}")))
}

/// Appears only where somebody watches. It moves so rarely that it does not disturb what is measured.
fn spinner() -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    let style = ProgressStyle::with_template("measuring {spinner} {elapsed}");
    spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    spinner.enable_steady_tick(Duration::from_millis(500));
    spinner
}

impl Report<'_> {
    fn gflops(&self) -> f64 {
        self.work.operations / self.timing.median / 1e9
    }

    fn gbps(&self) -> f64 {
        self.work.bytes / self.timing.median / 1e9
    }

    fn table(&self) -> String {
        let Report { problem, compiler, compiled, timing, .. } = self;
        let sizes: Vec<String> = problem.sizes().map(|(name, value)| format!("{name}={value}")).collect();
        let threads = match compiled.pool.threads() {
            1 => "1 thread".to_owned(),
            threads => format!("{threads} threads"),
        };
        let mut out = format!(
            "{} {}\n  target    cpu, {threads}, {} vectors\n",
            problem.program.name,
            sizes.join(","),
            compiler.cpu.vectors.name()
        );
        let mut row = |name: &str, value: String| {
            let _ = writeln!(out, "  {name:<9} {value}");
        };
        row("schedule", compiler.schedule.describe());
        compiler.skipped.iter().for_each(|one| row("skipped", passed_over(one)));
        row("median", seconds(timing.median));
        row("p10", seconds(timing.p10));
        row("p90", seconds(timing.p90));
        let batch = if timing.batch == 1 { String::new() } else { format!(" of {} calls", timing.batch) };
        row("samples", format!("{}{batch}", timing.samples));
        row("GFLOP/s", format!("{:.2}", self.gflops()));
        row("GB/s", format!("{:.2}", self.gbps()));
        row(
            "compile",
            format!(
                "{:.1} ms (schedule {:.1} ms, code {:.1} ms)",
                milliseconds(compiled.compile_time()),
                milliseconds(compiled.apply_time),
                milliseconds(compiled.codegen_time)
            ),
        );
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
            "target": Target::Cpu.to_string(),
            "threads": compiled.pool.threads(),
            "vectors": compiler.cpu.vectors.name(),
            "median_us": timing.median * 1e6,
            "p10_us": timing.p10 * 1e6,
            "p90_us": timing.p90 * 1e6,
            "samples": timing.samples,
            "gflops": self.gflops(),
            "gbps": self.gbps(),
            "operations": work.operations as u64,
            "bytes": work.bytes as u64,
            "schedule_source": compiler.schedule.name(),
            "schedule": compiler.schedule.describe(),
            "skipped": skipped_json(&compiler.skipped),
            "compile_ms": milliseconds(compiled.compile_time()),
            "apply_ms": milliseconds(compiled.apply_time),
            "codegen_ms": milliseconds(compiled.codegen_time),
        });
        format!("{object}\n")
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
