//! Helpers from the text of a program and a schedule to results that must agree.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;
use std::path::Path;

use tilewright_interp::{Inputs, Order, run, run_nest, seed};
use tilewright_ir::{DType, LoopNest, Number, Program, Tensor, TensorId, print, verify_nest};
use tilewright_schedule::{Refusal, Schedule, apply, text};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Cpu, Gpu, VectorInstructions};

/// A machine that is the same wherever the tests run.
pub fn cpu() -> Cpu {
    Cpu { cores: 2, vectors: VectorInstructions::Avx512, caches: vec![32 << 10, 1 << 20] }
}

/// The program of the last function in a source.
pub fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let bindings: Bindings = sizes.iter().copied().collect();
    let checked = check(&parsed.ast, &parsed.ast.functions.last().unwrap().name.text, &bindings);
    checked.program.unwrap_or_else(|| panic!("{source}\nis refused: {:?}", checked.diagnostics))
}

/// The programs of a file, with a size for each symbol.
pub fn programs(path: &Path, size: &dyn Fn(&str) -> i64) -> Vec<(String, Program)> {
    let parsed = parse(&std::fs::read_to_string(path).unwrap());
    let names = parsed.ast.functions.iter().map(|function| function.name.text.clone());
    let sized = |name: String| {
        let open = check(&parsed.ast, &name, &Bindings::default()).program?;
        let mut bindings = Bindings::default();
        open.symbols.iter().for_each(|symbol| bindings.set(&symbol.name, size(&symbol.name)));
        let program = check(&parsed.ast, &name, &bindings).program.filter(Program::is_concrete)?;
        Some((format!("{} of {}", name, path.file_name().unwrap().to_string_lossy()), program))
    };
    names.filter_map(sized).collect()
}

/// The last function of a source, with no size known.
pub fn open_program(source: &str) -> Program {
    program(source, &[])
}

/// The schedule of a text.
pub fn schedule(source: &str) -> Schedule {
    let parsed = text::parse(source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    parsed.schedule
}

/// Small whole numbers for every input, so that sums are exact in any order.
pub fn inputs(program: &Program, seed: u64) -> Inputs {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64
    };
    let mut inputs = Inputs::default();
    for (id, tensor) in program.tensors_with(|role| role.is_supplied()) {
        let shape = program.shape(id).unwrap();
        // Integers may be subscripts, so they stay within every dimension.
        let shortest = (0..program.tensors.len()).filter_map(|at| program.shape(TensorId(at as u32)));
        let shortest = shortest.flatten().min().unwrap_or(1).clamp(1, 4) as i64;
        let mut filled = Tensor::zeros(tensor.dtype, &shape).unwrap();
        for at in 0..filled.len() {
            let value = if tensor.dtype.is_float() { next() % 7 - 3 } else { next() % shortest };
            let number = if tensor.dtype.is_float() {
                Number::Float(value as f64)
            } else {
                Number::Int(value as i128)
            };
            filled.set(at, number.convert(tensor.dtype));
        }
        inputs.tensors.insert(tensor.name.clone(), filled);
    }
    seed::find_determining_scalars(program, &mut inputs);
    for scalar in &program.scalars {
        let bound = program.symbols.iter().find(|symbol| symbol.name == scalar.name);
        let value = bound.and_then(|symbol| symbol.value).unwrap_or(2);
        let value = Number::Int(value as i128).convert(scalar.dtype);
        inputs.scalars.entry(scalar.name.clone()).or_insert(value);
    }
    inputs
}

/// Applies a schedule, runs the loops in both orders, and checks that they give the program's
/// results.
#[track_caller]
pub fn agrees(source: &str, sizes: &[(&str, i64)], steps: &str) -> LoopNest {
    let program = program(source, sizes);
    let nest =
        apply(&program, &schedule(steps), &cpu()).unwrap_or_else(|refusal| panic!("{refusal}\n{steps}"));
    expect_agreement(&program, &nest, 1);
    nest
}

/// Runs the program and the loops on the same data, and checks that they agree.
#[track_caller]
pub fn expect_agreement(program: &Program, nest: &LoopNest, seed: u64) {
    verify_nest(nest).unwrap_or_else(|invalid| panic!("{invalid}\n{}", print::nest(nest)));
    let inputs = inputs(program, seed);
    let wanted = run(program, inputs.clone()).unwrap();
    for order in [Order::Ascending, Order::Descending] {
        let found = run_nest(nest, program, inputs.clone(), order)
            .unwrap_or_else(|error| panic!("{order:?}: {error}\n{}", print::nest(nest)));
        compare(&wanted, &found, &print::nest(nest));
    }
}

/// Checks that results are equal, element by element, up to the rounding of another order.
#[track_caller]
pub fn compare(wanted: &BTreeMap<String, Tensor>, found: &BTreeMap<String, Tensor>, what: &str) {
    assert_eq!(wanted.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    for (name, tensor) in wanted {
        let other = &found[name];
        for at in 0..tensor.len() {
            let (left, right) = (tensor.get(at), other.get(at));
            let close = match (left, right) {
                (Number::Float(left), Number::Float(right)) => {
                    left == right
                        || left.is_nan() && right.is_nan()
                        || (left - right).abs()
                            <= tolerance(tensor.dtype()) * (1.0 + left.abs().max(right.abs()))
                }
                _ => left == right,
            };
            assert!(close, "{name}[{at}] is {right:?}, not {left:?}\n{what}");
        }
    }
}

fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::Float64 => 1e-10,
        DType::Float32 => 1e-4,
        _ => 2e-2,
    }
}

/// The refusal of a schedule.
#[track_caller]
pub fn refused(source: &str, sizes: &[(&str, i64)], steps: &str) -> Refusal {
    match apply(&program(source, sizes), &schedule(steps), &cpu()) {
        Err(refusal) => refusal,
        Ok(nest) => panic!("not refused:\n{steps}\n{}", print::nest(&nest)),
    }
}

/// Applies a schedule for a GPU, and runs its loops thread by thread.
#[track_caller]
pub fn agrees_on_gpu(source: &str, sizes: &[(&str, i64)], steps: &str) -> LoopNest {
    let (program, gpu) = (program(source, sizes), Gpu::h200());
    let nest = apply(&program, &schedule(steps), &gpu).unwrap_or_else(|refusal| panic!("{refusal}\n{steps}"));
    expect_agreement(&program, &nest, 1);
    nest
}

/// The refusal of a schedule for a GPU.
#[track_caller]
pub fn refused_on_gpu(source: &str, sizes: &[(&str, i64)], steps: &str) -> Refusal {
    match apply(&program(source, sizes), &schedule(steps), &Gpu::h200()) {
        Err(refusal) => refusal,
        Ok(nest) => panic!("not refused:\n{steps}\n{}", print::nest(&nest)),
    }
}

/// The program with every open size set by `choose`, which receives the index of the size.
pub fn at_sizes(source: &str, name: &str, choose: &dyn Fn(usize) -> i64) -> Option<Program> {
    let parsed = parse(source);
    let open = check(&parsed.ast, name, &Bindings::default()).program?;
    let mut bindings = Bindings::default();
    for (at, symbol) in open.symbols.iter().enumerate() {
        bindings.set(&symbol.name, choose(at));
    }
    check(&parsed.ast, name, &bindings).program.filter(Program::is_concrete)
}
