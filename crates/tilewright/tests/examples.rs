//! Compiles every function of every example with its default schedule, and with every schedule in
//! the repository, at sizes so small and odd that all remainders occur.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod harness;

#[path = "../../schedule/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use tilewright::{Error, Module, Program, Schedule, VectorInstructions, parse_schedule};
use tilewright_interp::{Inputs, count_points};
use tilewright_ir::{BinaryOp, DType, Expr, ExprKind, Program as Ir, Tensor, print};
use tilewright_syntax::{Bindings, check, parse};

use harness::fenced_tensor::Placement;
use harness::{Arguments, Results, difference};

/// The maximum number of points of a program, because the interpreter is slow.
const MOST_POINTS: u64 = 20_000;

/// The values of sizes in each set, by their order in the program.
const SETS: [&[i64]; 4] = [&[1], &[9, 7, 5, 3], &[2, 5, 3, 6, 1, 4], &[19, 17, 33, 11, 3]];

fn root(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)
}

/// The files with this extension in a folder and its subfolders, in order.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, extension));
        } else if path.extension().is_some_and(|own| own == extension) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The names of the sizes that a function leaves open.
fn open_sizes(source: &str, function: &str) -> Vec<String> {
    let checked = check(&parse(source).ast, function, &Bindings::default());
    let program = checked.program.unwrap_or_else(|| panic!("{function}: {:?}", checked.diagnostics));
    program.symbols.iter().map(|symbol| symbol.name.clone()).collect()
}

/// A value for a size: windows are small, and strides smaller.
fn size(name: &str, at: usize, set: &[i64], turn: usize) -> i64 {
    match name {
        "KH" | "KW" | "KL" | "KD" => [1, 3, 2, 3][turn],
        "stride" | "sh" | "sw" => [1, 2, 1, 3][turn],
        "pad" => [0, 1, 1, 0][turn],
        "dilation" => [1, 2, 1, 1][turn],
        _ => set[at % set.len()],
    }
}

/// Returns the function at the sizes of a set, reduced until it is quick. Returns `None` if these
/// sizes are invalid.
fn sized(source: &str, function: &str, turn: usize) -> Option<Program> {
    let module = Module::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let names = open_sizes(source, function);
    let own = names.iter().enumerate().map(|(at, name)| (name.as_str(), size(name, at, SETS[turn], turn)));
    let mut sizes: Vec<(&str, i64)> = own.collect();
    loop {
        let program = module.program(function, sizes.iter().copied()).ok()?;
        if count_points(program.ir()) <= MOST_POINTS {
            return Some(program);
        }
        let largest = sizes.iter_mut().max_by_key(|(_, value)| *value).unwrap();
        largest.1 = largest.1 * 2 / 3;
    }
}

/// Whether a program only adds, multiplies and compares floats, so that small integers stay exact.
fn is_exact(program: &Ir) -> bool {
    fn rounds(expr: &Expr) -> bool {
        let own = match &expr.kind {
            ExprKind::Call(..) => true,
            ExprKind::Binary(BinaryOp::Div, _) => expr.dtype.is_float(),
            _ => false,
        };
        own || expr.operands().iter().any(rounds)
    }
    !program.statements().iter().any(|(statement, _)| rounds(&statement.value))
}

/// Small integers, but pixels of all values.
fn inputs(program: &Ir) -> Inputs {
    let mut inputs = support::inputs(program, 7);
    for tensor in inputs.tensors.values_mut().filter(|tensor| tensor.dtype() == DType::UInt8) {
        let pixels = (0..tensor.len()).map(|at| (at * at * 89 + at * 37) as u8).collect();
        *tensor = Tensor::from_bytes(DType::UInt8, tensor.shape(), pixels).unwrap();
    }
    inputs
}

/// Compiles for all vector instruction sets, and expects the results of the interpreter. `turn`
/// alternates which sets run on one thread and which on two.
fn expect_agreement(what: &str, program: &Program, schedule: Option<&Schedule>, turn: usize) {
    let inputs = inputs(program.ir());
    let wanted = tilewright_interp::run(program.ir(), inputs.clone())
        .unwrap_or_else(|error| panic!("{what}: {error}\n{}", print::program(program.ir())));
    for (at, vectors) in harness::vectors().into_iter().enumerate() {
        let threads = 1 + (at + turn) % 2;
        let what = format!("{what} for {vectors:?} on {threads}");
        let kernel = match harness::compile(program, schedule.cloned(), vectors, threads) {
            Ok(kernel) => kernel,
            // The schedules are for the widest vectors, which have more registers.
            Err(Error::Schedule(refusal)) if schedule.is_some() && vectors < VectorInstructions::Avx512 => {
                println!("skipped {what}: {refusal}");
                continue;
            }
            Err(error) => panic!("{what}: {error}"),
        };
        let found = Arguments::new(&kernel, &inputs, Placement::contiguous)
            .run(&kernel, &inputs, 2, Placement::contiguous)
            .map(|found: Results| difference(&wanted, &found, is_exact(program.ir())));
        if let Some(message) = found.unwrap_or_else(Some) {
            panic!("{what}: {message}\n{}\n{}", kernel.schedule(), print::nest(kernel.loops()));
        }
    }
}

fn sizes_of(program: &Program) -> String {
    let sizes = program.ir().symbols.iter().filter_map(|symbol| Some((&symbol.name, symbol.value?)));
    sizes.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

fn expect_folder(folder: &str, at_least: usize) {
    let mut functions = 0;
    for path in files(&root(&format!("examples/{folder}")), "tw") {
        let source = fs::read_to_string(&path).unwrap();
        let module = Module::parse(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for function in module.functions() {
            let turns = 0..SETS.len();
            let programs: Vec<(usize, Program)> =
                turns.filter_map(|turn| Some((turn, sized(&source, function, turn)?))).collect();
            assert!(programs.len() >= 3, "{function} of {} at {} sets", path.display(), programs.len());
            for (turn, program) in programs {
                expect_agreement(&format!("{function} at {}", sizes_of(&program)), &program, None, turn);
            }
            functions += 1;
        }
    }
    assert!(functions >= at_least, "only {functions} functions");
}

#[test]
fn benchmarks() {
    expect_folder("benchmarks", 23);
}

#[test]
fn flextensor() {
    expect_folder("flextensor", 12);
}

#[test]
fn images() {
    expect_folder("images", 6);
}

#[test]
fn paper() {
    expect_folder("paper", 17);
}

/// The program of a schedule: the example whose name starts the schedule's name, or at least shares
/// its first word.
fn program_of(schedule: &Path) -> PathBuf {
    let own = schedule.file_stem().unwrap().to_str().unwrap();
    let word = |name: &str| name.split('_').next().map(str::to_owned);
    let candidates =
        || files(&root("examples/flextensor"), "tw").into_iter().chain(files(&root("examples"), "tw"));
    let stem = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let exact = candidates().find(|path| own.starts_with(&stem(path)));
    exact
        .or_else(|| candidates().find(|path| word(&stem(path)) == word(own)))
        .unwrap_or_else(|| panic!("{} is named after no example", schedule.display()))
}

#[test]
fn schedules_of_the_repository() {
    let schedules = files(&root("schedules"), "sched");
    assert!(schedules.len() >= 3);
    for path in schedules {
        let text = fs::read_to_string(&path).unwrap();
        let schedule = parse_schedule(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let source = fs::read_to_string(program_of(&path)).unwrap();
        let module = Module::parse(&source).unwrap_or_else(|error| panic!("{error}"));
        let function = module.functions().last().unwrap().to_owned();
        for turn in 0..SETS.len() {
            let Some(program) = sized(&source, &function, turn) else { continue };
            let what = format!("{} with {} at {}", path.display(), function, sizes_of(&program));
            expect_agreement(&what, &program, Some(&schedule), turn);
        }
    }
}
