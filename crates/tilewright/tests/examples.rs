//! Compiles every function of every example with its default schedule, and with every schedule in
//! the repository, at sizes so small and odd that all remainders occur. Pipelines are compiled at
//! the sizes of their own command lines, also with their schedules for CPUs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod harness;

#[path = "../../../tests/example_lines.rs"]
mod example_lines;
#[path = "../../../tests/examples.rs"]
mod examples;
#[path = "../../schedule/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::{Path, PathBuf};

use tilewright::{Error, Module, Program, Schedule, VectorInstructions, parse_schedule};
use tilewright_interp::seed::{Uniform, complete_inputs};
use tilewright_interp::{Expected, Inputs, count_points};
use tilewright_ir::{BinaryOp, DType, Expr, ExprKind, Number, Program as Ir, Tensor, print};
use tilewright_syntax::{Bindings, check, parse};

use example_lines::{Line, own_lines};
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

/// Compiles for all vector instruction sets, and expects the results of the interpreter.
fn expect_agreement(what: &str, program: &Program, schedule: Option<&Schedule>, turn: usize) {
    let inputs = inputs(program.ir());
    let wanted = tilewright_interp::run(program.ir(), inputs.clone())
        .unwrap_or_else(|error| panic!("{what}: {error}\n{}", print::program(program.ir())));
    let exact = is_exact(program.ir());
    expect_results(what, program, schedule, turn, &inputs, |found| difference(&wanted, found, exact));
}

/// Compiles for all vector instruction sets and runs; `differs` returns a difference of the results
/// from the expected ones. `turn` alternates which sets run on one thread and which on two.
fn expect_results(
    what: &str,
    program: &Program,
    schedule: Option<&Schedule>,
    turn: usize,
    inputs: &Inputs,
    differs: impl Fn(&Results) -> Option<String>,
) {
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
        let found = Arguments::new(&kernel, inputs, Placement::contiguous)
            .run(&kernel, inputs, 2, Placement::contiguous)
            .map(|found: Results| differs(&found));
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

/// The scalars of a line, and positive floats, as pixels are; other inputs from the seed alone.
fn inputs_of(line: &Line, program: &Ir) -> Inputs {
    const SEED: u64 = 7;
    let positive = Uniform { low: Number::Float(0.1), high: Number::Float(1.0) };
    let mut inputs = Inputs::default();
    for (id, declared) in program.tensors_with(|role| role.is_supplied()) {
        if declared.dtype.is_float() {
            let shape = program.shape(id).unwrap();
            let tensor = positive.tensor(&declared.name, declared.dtype, &shape, SEED).unwrap();
            inputs.tensors.insert(declared.name.clone(), tensor);
        }
    }
    for scalar in program.scalars.iter().filter(|scalar| scalar.dtype.is_float()) {
        let given = line.scalars.iter().find(|(name, _)| *name == scalar.name);
        let value = given.map(|(_, value)| Number::Float(*value).convert(scalar.dtype));
        let value = value.unwrap_or_else(|| positive.scalar(&scalar.name, scalar.dtype, SEED));
        inputs.scalars.insert(scalar.name.clone(), value);
    }
    complete_inputs(program, inputs, SEED).unwrap()
}

/// Sizes for schedules by hand, where those of the pipeline's own line are too small: the schedules
/// name all stages and levels, and windows must move.
const SCHEDULED_SIZES: &[(&str, &str, i64)] = &[
    ("unsharp", "H", 70),
    ("unsharp", "W", 41),
    ("stencil_chain", "stages", 32),
    ("interpolate", "levels", 10),
    ("local_laplacian", "levels", 8),
];

/// Pipelines restrict their sizes, so they run at those of their own lines. They divide and cut off
/// fractions, so elements may differ by the interpreter's bound on the effect of rounding.
#[test]
fn pipelines() {
    let lines = own_lines().into_iter().filter(|line| line.starts_with("examples/pipelines/"));
    let lines: Vec<Line> = lines.map(|line| Line::new(&line)).collect();
    assert!(lines.len() >= 17, "only {} pipelines", lines.len());
    for (turn, line) in lines.iter().enumerate() {
        expect_pipeline(line, None, turn);
    }
}

#[test]
fn pipelines_by_hand() {
    let lines = own_lines().into_iter().filter(|line| line.starts_with("examples/pipelines/"));
    let mut schedules = 0;
    for (turn, mut line) in lines.map(|line| Line::new(&line)).enumerate() {
        let name = line.path.file_stem().unwrap().to_str().unwrap().to_owned();
        let file = root(&format!("schedules/pipelines/{name}.cpu.sched"));
        let Ok(text) = fs::read_to_string(file) else { continue };
        for (_, size, value) in SCHEDULED_SIZES.iter().filter(|(pipeline, ..)| *pipeline == name) {
            line.sizes.iter_mut().filter(|(own, _)| own == size).for_each(|own| own.1 = *value);
        }
        expect_pipeline(&line, Some(&parse_schedule(&text).unwrap()), turn);
        schedules += 1;
    }
    assert!(schedules >= 16, "only {schedules} schedules");
}

/// Expects the results of the interpreter, as far as rounding allows.
fn expect_pipeline(line: &Line, schedule: Option<&Schedule>, turn: usize) {
    let name = line.path.file_stem().unwrap().to_str().unwrap();
    let source = fs::read_to_string(&line.path).unwrap();
    let module = Module::parse(&source).unwrap_or_else(|error| panic!("{name}: {error}"));
    let sizes = line.sizes.iter().map(|(size, value)| (size.as_str(), *value));
    let scalars = line.scalars.iter().map(|(scalar, value)| (scalar.as_str(), *value));
    let program = module.program_with_scalars(name, sizes, scalars);
    let program = program.unwrap_or_else(|error| panic!("{name}: {error}"));
    let inputs = inputs_of(line, program.ir());
    let wanted = tilewright_interp::expect(program.ir(), inputs.clone())
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    expect_results(name, &program, schedule, turn, &inputs, |found| {
        let differs =
            |(result, expected): (&String, &Expected)| pipeline_difference(result, expected, &found[result]);
        wanted.iter().find_map(differs)
    });
}

/// Scatters in parts, and by threads that share the elements.
#[test]
fn scatters() {
    let source = "def f(uint8(H, W) x, int16(H, W) v, int64(H, W) w) -> (count, least, most) {
        rows(y, x(y, i)) +=! 1
        count(b) +=! rows(y, b)
        least(x(y, i) % 7) min=! v(y, i)
        most(i % 3, x(y, i)) max=! w(y, i)
    }";
    let program = Module::parse(source).unwrap().program("f", [("H", 13), ("W", 37)]).unwrap();
    let steps = [
        "parallel rows.y\nparallel least.y\nparallel most.y",
        "reorder rows.i, rows.y\nparallel rows.i\nparallel least.i\nreorder most.i, most.y\nparallel most.i",
        "split least.i -> io, iv:8\nvectorize least.iv\nparallel least.y",
        "reorder count.y, count.b\nsplit count.y -> yo, yi:4\nrfactor count.yo -> part\ncompute_at rows, part.yi\nsplit rows.i -> io, iv:16\nvectorize rows.iv\nparallel part.yo",
        "rfactor least.y -> part\nparallel part.y",
    ];
    for (turn, steps) in steps.into_iter().enumerate() {
        let schedule = parse_schedule(steps).unwrap();
        expect_agreement(steps, &program, Some(&schedule), turn);
    }
}

/// Returns a difference of a result. The bound decides no element of lens_blur, whose least cost
/// selects pixels; such a result may differ by what rounding can explain elsewhere.
fn pipeline_difference(name: &str, expected: &Expected, found: &Tensor) -> Option<String> {
    if expected.not_compared(name).is_some_and(|left_out| left_out.is_whole_tensor()) {
        let by_name = |tensor: &Tensor| Results::from([(name.to_owned(), tensor.clone())]);
        return difference(&by_name(&expected.tensor), &by_name(found), false);
    }
    expected.compare(name, found).err().map(|difference| difference.to_string())
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
    // The schedules of pipelines are compiled at the sizes of these.
    for path in schedules.into_iter().filter(|path| !path.parent().unwrap().ends_with("pipelines")) {
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
