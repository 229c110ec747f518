//! `tilewright bench`: compiles a program and measures the time of a call.

mod nests;

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tilewright::driver::OpenTarget;
use tilewright::runtime::Timing;

use crate::args::BenchArgs;
use crate::commands::cache::skipped_json;
use crate::compiler::{Compiled, Compiler};
use crate::failure::Failure;
use crate::interpret::check;
use crate::loaded::{Loaded, TimingOptions};
use crate::output::{print, spinner};
use crate::pending_file::PendingFile;
use crate::problem::Problem;
use crate::target::Target;
use tilewright::report::MeasuredTimes;
use tilewright::report::time::seconds;
use tilewright::tuner::work::{Work, count_work};

/// The number of samples without `--samples`.
const SAMPLES: usize = 30;
/// The time after which sampling ends without `--samples`. A long `--time` raises it.
const SAMPLING_LIMIT: Duration = Duration::from_secs(3);
/// The time limit with `--samples`: in practice none.
const NO_SAMPLING_LIMIT: Duration = Duration::from_secs(30 * 24 * 3600);

/// The measurements of a program.
struct Report<'a> {
    problem: &'a Problem,
    target: &'a OpenTarget,
    compiled: &'a Compiled,
    timing: Timing,
    work: Work,
}

/// Compiles a program and measures how long a call takes.
pub fn run(args: &BenchArgs) -> Result<(), Failure> {
    let name =
        Target::find(&args.target)?.compiled("bench measures kernels, and --target interp has none")?;
    let page = PendingFile::new("--report", args.report.as_deref())?;
    let compiler = Compiler::new(&args.compile, name)?;
    let mut problem = Problem::read(&args.program)?;
    let mut inputs = problem.kernel_inputs(args.check)?;
    let (compiled, target) = compiler.compile(&args.cache, &problem.program)?;
    let mut loaded = Loaded::new(&compiled, &problem.source, &mut inputs, args.check)?;
    if args.check {
        let found = loaded.results(&problem.source)?;
        check(&problem.source, &problem.program, inputs, &found)?;
    }
    let timing = time_calls(args, &problem, &mut loaded)?;
    if let Some(page) = page {
        let roots = nests::measured(&problem, &compiled, &target, &mut loaded, &clock(args))?;
        let measured = MeasuredTimes { whole: timing.median, roots };
        let source = &problem.source.file.text;
        page.write(&compiled.schedule.page(&problem.program, source, target.target(), Some(measured))?)?;
    }
    drop(loaded);
    let work = count_work(&problem.program);
    let report = Report { problem: &problem, target: &target, compiled: &compiled, timing, work };
    print(&if args.json { report.json() } else { report.table() })
}

fn clock(args: &BenchArgs) -> TimingOptions {
    TimingOptions {
        time: args.time,
        samples: args.samples.unwrap_or(SAMPLES),
        cap: if args.samples.is_some() { NO_SAMPLING_LIMIT } else { SAMPLING_LIMIT.max(4 * args.time) },
        cold: args.cold,
    }
}

fn time_calls(args: &BenchArgs, problem: &Problem, loaded: &mut Loaded<'_>) -> Result<Timing, Failure> {
    let spinner = spinner("measuring");
    let timing = loaded.time(&problem.source, &clock(args));
    spinner.finish_and_clear();
    timing
}

impl Report<'_> {
    fn gflops(&self) -> f64 {
        self.work.operations / self.timing.median / 1e9
    }

    fn gbps(&self) -> f64 {
        self.work.bytes / self.timing.median / 1e9
    }

    fn table(&self) -> String {
        let Report { problem, compiled, timing, .. } = self;
        let sizes: Vec<String> = problem.sizes().map(|(name, value)| format!("{name}={value}")).collect();
        let mut out = format!("{} {}\n", problem.program.name, sizes.join(","));
        let mut row = |name: &str, value: String| {
            let _ = writeln!(out, "  {name:<9} {value}");
        };
        row("target", self.target_text());
        row("schedule", compiled.schedule.describe());
        compiled.schedule.skipped().for_each(|one| row("skipped", one));
        row("median", seconds(timing.median));
        row("p10", seconds(timing.p10));
        row("p90", seconds(timing.p90));
        row("samples", self.samples_text());
        row("GFLOP/s", format!("{:.2}", self.gflops()));
        row("GB/s", format!("{:.2}", self.gbps()));
        row("memory", self.memory_text());
        row("compile", self.compile_text());
        out
    }

    fn target_text(&self) -> String {
        let hardware = self.target.target().hardware();
        match self.target.device() {
            Some(device) => format!("{}, {}", device.name(), hardware.model()),
            None => {
                let (count, threads) = hardware.parallel_units();
                format!("{}, {count} {threads}, {} vectors", hardware.interface(), hardware.instruction_set())
            }
        }
    }

    fn samples_text(&self) -> String {
        let Timing { samples, batch, .. } = self.timing;
        match self.target.device() {
            Some(_) => format!("{samples}, with an empty cache"),
            None if batch == 1 => samples.to_string(),
            None => format!("{samples} of {batch} calls"),
        }
    }

    fn memory_text(&self) -> String {
        format!("{:.2} MB of temporaries", self.temporary_bytes() as f64 / 1e6)
    }

    fn temporary_bytes(&self) -> usize {
        self.compiled.code.temporary_bytes(self.target.threads())
    }

    fn compile_text(&self) -> String {
        let Compiled { apply_time, codegen_time, .. } = self.compiled;
        format!(
            "{:.1} ms (schedule {:.1} ms, code {:.1} ms)",
            milliseconds(self.compiled.compile_time()),
            milliseconds(*apply_time),
            milliseconds(*codegen_time)
        )
    }

    fn json(&self) -> String {
        let Report { problem, compiled, timing, work, .. } = self;
        let sizes: Map<String, Value> =
            problem.sizes().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let mut object = json!({
            "program": problem.source.path(),
            "function": problem.program.name,
            "sizes": sizes,
            "median_us": timing.median * 1e6,
            "p10_us": timing.p10 * 1e6,
            "p90_us": timing.p90 * 1e6,
            "samples": timing.samples,
            "gflops": self.gflops(),
            "gbps": self.gbps(),
            "operations": work.operations as u64,
            "bytes": work.bytes as u64,
            "temporary_bytes": self.temporary_bytes(),
            "schedule_source": compiled.schedule.name(),
            "schedule": compiled.schedule.describe(),
            "skipped": skipped_json(&compiled.schedule.chosen.unusable),
            "compile_ms": milliseconds(compiled.compile_time()),
            "apply_ms": milliseconds(compiled.apply_time),
            "codegen_ms": milliseconds(compiled.codegen_time),
        });
        if let Value::Object(object) = &mut object {
            object.extend(self.target_json());
        }
        format!("{object}\n")
    }

    fn target_json(&self) -> Vec<(String, Value)> {
        let hardware = self.target.target().hardware();
        let named: Vec<(&str, Value)> = match self.target.device() {
            Some(device) => {
                vec![("target", device.name().to_string().into()), ("device", hardware.model().into())]
            }
            None => vec![
                ("target", hardware.interface().into()),
                ("threads", hardware.parallel_units().0.into()),
                ("vectors", hardware.instruction_set().into()),
            ],
        };
        named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
