//! Runs random programs of several statements, loops and calls under many schedules, and compares
//! the results of every way to run them with the interpreter. Another test prints such programs as
//! source text and parses them again.
//!
//! `make test` runs a fixed range of cases. `make fuzz-compile` runs a campaign of any length,
//! which these variables control:
//!
//! - FUZZ_CASES, FUZZ_SECONDS, FUZZ_SEED and FUZZ_FIRST choose the cases.
//! - FUZZ_WORKERS is the number of processes.
//! - FUZZ_DEVICE is the percentage of programs that also run on an OpenCL device, or on a CUDA
//!   device with FUZZ_API=cuda.
//! - FUZZ_COMPILED is the percentage of schedules for a CPU that are compiled; the default is all.
//! - FUZZ_ONLY chooses schedules: `Cpu`, `Gpu`, `Device`, `Default`, `Plain`, `Steps`, `Point`, or
//!   two such as `Cpu Point`.
//! - FUZZ_FOLDER is the folder for failures, which are made smaller first.
//!
//! A case depends only on FUZZ_SEED and its number.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod harness;

#[path = "../../schedule/tests/random/mod.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod random;

#[path = "../../schedule/tests/support/mod.rs"]
mod support;

mod whole;

use std::env;
use std::path::PathBuf;
use std::time::Duration;

use tilewright_cache::Canonical;
use tilewright_driver::Source;
use tilewright_ir::{BinaryOp, Expr, ExprKind, Node, Number, Program, UnaryOp, arithmetic, print};
use whole::campaign::Campaign;
use whole::examine::{Settings, source};
use whole::source::MAIN;
use whole::worker::Worker;

/// The number of cases of every run.
const CASES: u64 = 200;

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn settings(on_device: u64) -> Settings {
    let on_device = setting("FUZZ_DEVICE", on_device) as usize;
    let compiled = setting("FUZZ_COMPILED", 100) as usize;
    let only = env::var("FUZZ_ONLY").unwrap_or_default();
    Settings { seed: setting("FUZZ_SEED", 1), on_device, compiled, only }
}

fn folder() -> PathBuf {
    let otherwise = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fuzz-compile");
    env::var_os("FUZZ_FOLDER").map_or(otherwise, PathBuf::from)
}

fn workers() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    setting("FUZZ_WORKERS", cores as u64) as usize
}

#[test]
fn whole_programs_compute_what_the_interpreter_says() {
    let campaign = Campaign {
        settings: Settings { seed: 1, on_device: 0, compiled: 100, only: String::new() },
        first: 0,
        cases: CASES,
        time: Duration::from_secs(3600),
        workers: workers(),
        folder: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("whole-programs"),
        every: Duration::from_secs(3600),
    };
    let summary = campaign.run();
    summary.print();
    let accepted = summary.tally.get("program: accepted").copied().unwrap_or_default();
    assert!(4 * accepted > 3 * CASES, "only {accepted} of {CASES} programs are accepted");
    assert!(summary.failures.is_empty(), "failures are in {}", campaign.folder.display());
}

/// The program of a function at these sizes, where the checker accepts it.
fn checked(text: &str, sizes: &[(String, i64)]) -> Option<Program> {
    let sizes = sizes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    Source::new(text).program(MAIN, &sizes, true).program.ok()
}

/// The program with a literal for every index value that is a number. Where variables cancel, as in
/// `i - i`, such a value comes back as a literal.
fn with_literals(program: Program) -> Program {
    fn replace(value: &mut Expr) {
        if let ExprKind::Index(index) = &value.kind
            && let Some(number) = index.as_constant()
        {
            *value = Expr::literal(value.dtype, Number::Int(number.into()));
        }
        value.operands_mut().iter_mut().for_each(replace);
        if let ExprKind::Cast(operand) = &value.kind {
            *value = operand.as_ref().clone().cast(value.dtype);
        }
        if let Some(number) = of_numbers(value) {
            *value = Expr::literal(value.dtype, number);
        }
    }
    /// The value of an operation on the bits of numbers, which the text computes at once.
    fn of_numbers(value: &Expr) -> Option<Number> {
        let number = |operand: &Expr| match operand.kind {
            ExprKind::Literal(number) => Some(number),
            _ => None,
        };
        match &value.kind {
            ExprKind::Unary(UnaryOp::Complement, operand) => {
                Some(arithmetic::unary(UnaryOp::Complement, number(operand)?, value.dtype))
            }
            ExprKind::Binary(
                op @ (BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor
                | BinaryOp::Power
                | BinaryOp::ShiftLeft
                | BinaryOp::ShiftRight),
                operands,
            ) if value.dtype.is_integer() => {
                Some(arithmetic::binary(*op, number(&operands[0])?, number(&operands[1])?, value.dtype))
            }
            _ => None,
        }
    }
    fn replace_in(nodes: &mut [Node]) {
        for node in nodes {
            match node {
                Node::Statement(statement) => replace(&mut statement.value),
                Node::For(inner) => replace_in(&mut inner.body),
            }
        }
    }
    let mut program = program.general.as_deref().unwrap_or(&program).clone();
    program.stages.iter_mut().for_each(|stage| replace_in(&mut stage.body));
    program
}

#[test]
fn whole_programs_come_back_from_their_source_text() {
    let settings = Settings { seed: 2, on_device: 0, compiled: 0, only: String::new() };
    let mut count = 0;
    for number in 0..5 * CASES {
        let source = source(&settings, number);
        let Some(program) = checked(&source.to_string(), &source.sizes) else { continue };
        let text = print::source(&program);
        let again = checked(&text, &source.sizes).unwrap_or_else(|| panic!("{source}\n{text}"));
        let (own, again) = [program, again].map(with_literals).map(|program| Canonical::new(&program)).into();
        assert_eq!(again.text(), own.text(), "{source}\n{text}");
        count += 1;
    }
    assert!(count > 3 * CASES, "only {count} programs are accepted");
}

#[test]
#[ignore = "make fuzz-compile runs it"]
fn campaign() {
    let seconds = setting("FUZZ_SECONDS", u64::from(u32::MAX));
    let campaign = Campaign {
        settings: settings(3),
        first: setting("FUZZ_FIRST", 0),
        cases: setting("FUZZ_CASES", 10_000),
        time: Duration::from_secs(seconds),
        workers: workers(),
        folder: folder(),
        every: Duration::from_secs(setting("FUZZ_EVERY", 10)),
    };
    let summary = campaign.run();
    summary.print();
    assert!(summary.failures.is_empty(), "failures are in {}", campaign.folder.display());
}

#[test]
#[ignore = "campaigns start it"]
fn worker_of_a_campaign() {
    let Some(current) = env::var_os("FUZZ_WORKER").map(PathBuf::from) else { return };
    random::keep_expected_panics();
    let shrinking = Duration::from_secs(setting("FUZZ_SHRINK_SECONDS", 10));
    Worker::new(settings(0), folder(), shrinking).serve(&current);
}
