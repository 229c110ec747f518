//! Tests which products are fused with a sum: those that the language reference names, on every
//! target alike, and none if contraction is turned off.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use ndarray::Array1;
use tilewright::{Compile, Cpu, Module, OpenTarget, Program, VectorInstructions, parse_schedule};
use tilewright_codegen::c_family::gpu_code;
use tilewright_codegen::llvm_ir;
use tilewright_ir::{LoopNest, VerifiedNest, verify_nest};
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_target::{Gpu, Target};

const LENGTH: usize = 40;

fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let name = module.functions().last().unwrap().to_owned();
    module.program(&name, sizes.iter().copied()).unwrap_or_else(|error| panic!("{error}"))
}

/// The vector instruction sets that this machine has.
fn vectors() -> impl Iterator<Item = VectorInstructions> {
    VectorInstructions::ALL.into_iter().filter(|vectors| *vectors <= Cpu::host().vectors)
}

fn verified(nest: &LoopNest) -> VerifiedNest<'_> {
    verify_nest(nest).unwrap()
}

/// Numbers whose products are not exact in single precision.
fn operand(seed: usize) -> Array1<f32> {
    Array1::from_shape_fn(LENGTH, |at| 1.0 + ((at * 37 + seed * 101) % 251) as f32 / 253.0)
}

/// Computes an expression of `a`, `b`, `c` and `d`.
fn compute(program: &Program, vectors: VectorInstructions, schedule: Option<&str>) -> Vec<f32> {
    let cpu = Cpu { vectors, ..Cpu::host() };
    let options = schedule.map(|text| Compile::with(parse_schedule(text).unwrap())).unwrap_or_default();
    let kernel = program.compile_with(&options.on(OpenTarget::Cpu(cpu)).threads(1)).unwrap();
    let operands: Vec<Array1<f32>> = (0..4).map(operand).collect();
    let mut y = Array1::<f32>::zeros(LENGTH);
    let mut call = kernel.call();
    for (name, operand) in ["a", "b", "c", "d"].iter().zip(&operands) {
        call = call.input(name, operand).unwrap();
    }
    call.output("y", &mut y).unwrap().run().unwrap();
    y.to_vec()
}

type Wanted = fn(f32, f32, f32, f32) -> f32;

/// An expression, its result with fused multiply-adds, and its result without.
const VALUES: [(&str, Wanted, Wanted); 11] = [
    ("a(i) * b(i) + c(i)", |a, b, c, _| a.mul_add(b, c), |a, b, c, _| a * b + c),
    ("c(i) + a(i) * b(i)", |a, b, c, _| a.mul_add(b, c), |a, b, c, _| c + a * b),
    ("a(i) * b(i) - c(i)", |a, b, c, _| a.mul_add(b, -c), |a, b, c, _| a * b - c),
    ("c(i) - a(i) * b(i)", |a, b, c, _| (-a).mul_add(b, c), |a, b, c, _| c - a * b),
    ("c(i) + -(a(i) * b(i))", |a, b, c, _| (-a).mul_add(b, c), |a, b, c, _| c - a * b),
    ("a(i) * a(i) - a(i) * a(i)", |_, _, _, _| 0.0, |_, _, _, _| 0.0),
    ("a(i) * b(i) - b(i) * a(i)", |_, _, _, _| 0.0, |_, _, _, _| 0.0),
    ("a(i) * b(i) + -(c(i) * d(i))", |a, b, c, d| a * b - c * d, |a, b, c, d| a * b - c * d),
    ("a(i) * b(i) - (c(i) > 0 ? a(i) * b(i) : d(i))", |_, _, _, _| 0.0, |_, _, _, _| 0.0),
    // The sum of two products is not a product.
    (
        "(a(i) * b(i) + c(i) * d(i)) + a(i) * d(i)",
        |a, b, c, d| a.mul_add(d, a * b + c * d),
        |a, b, c, d| (a * b + c * d) + a * d,
    ),
    ("a(i) * (b(i) * c(i) + d(i))", |a, b, c, d| a * b.mul_add(c, d), |a, b, c, d| a * (b * c + d)),
];

fn of_value(value: &str) -> Program {
    let source = format!("def f(float(N) a, float(N) b, float(N) c, float(N) d) -> (y) {{ y(i) = {value} }}");
    program(&source, &[("N", LENGTH as i64)])
}

/// Evaluates a function of the four operands, element by element.
fn expected(wanted: Wanted) -> Vec<f32> {
    let operands: Vec<Array1<f32>> = (0..4).map(operand).collect();
    (0..LENGTH).map(|at| wanted(operands[0][at], operands[1][at], operands[2][at], operands[3][at])).collect()
}

#[test]
fn products_are_rounded_as_the_language_says() {
    for (value, fused, rounded) in VALUES {
        for vectors in vectors() {
            let program = of_value(value);
            let here = if vectors == VectorInstructions::Baseline { rounded } else { fused };
            assert_eq!(compute(&program, vectors, None), expected(here), "{value} with {}", vectors.name());
            let program = program.without_contraction();
            let found = compute(&program, vectors, None);
            assert_eq!(found, expected(rounded), "{value} with {}, not contracted", vectors.name());
        }
    }
}

/// Checks sums in vectors, scalars, registers and memory.
#[test]
fn a_sum_of_products_is_fused() {
    let source = "def f(float(N) a, float(N) b, float(N) c, float(N) d) -> (y) { y(i) = c(i)\n y(i) += a(i) * b(i) where k in 0:1 }";
    let program = program(source, &[("N", LENGTH as i64)]);
    let steps = [
        None,
        Some(""),
        Some("vectorize y[2].i"),
        Some("split y[2].i -> io, ii:8\nvectorize y[2].ii\npromote y at y[2].io -> acc registers"),
    ];
    for vectors in vectors().filter(|vectors| *vectors > VectorInstructions::Baseline) {
        for steps in steps {
            let found = compute(&program, vectors, steps);
            assert_eq!(found, expected(|a, b, c, _| a.mul_add(b, c)), "{steps:?} with {}", vectors.name());
            let plain = compute(&program.clone().without_contraction(), vectors, steps);
            assert_eq!(plain, expected(|a, b, c, _| a * b + c), "{steps:?} with {}", vectors.name());
        }
    }
}

fn loops<'t>(program: &'t Program, target: impl Into<Target<'t>>) -> LoopNest {
    let target = target.into();
    apply(program.ir(), &schedule_by_rules(program.ir(), target), target).unwrap()
}

/// Matrix products keep their fused multiply-adds, also with 16-bit operands.
#[test]
fn the_code_of_every_target_says_what_is_fused() {
    let cpu = Cpu { vectors: VectorInstructions::Avx2, cores: 1, ..Cpu::host() };
    let (cuda, opencl) = (Gpu::h200(), Gpu::opencl());
    let sizes = [("M", 64), ("N", 64), ("K", 64)];
    for dtype in ["float", "half", "bfloat16", "double"] {
        let source =
            format!("def mm({dtype}(M, K) A, {dtype}(K, N) B) -> (C) {{ C(i, j) +=! A(i, k) * B(k, j) }}");
        let fused = program(&source, &sizes);
        let plain = fused.clone().without_contraction();
        let code = |program: &Program| {
            [
                llvm_ir(verified(&loops(program, &cpu)), &cpu).unwrap(),
                gpu_code(verified(&loops(program, &cuda)), &cuda, "").unwrap().text,
                gpu_code(verified(&loops(program, &opencl)), &opencl, "").unwrap().text,
            ]
        };
        let words = ["llvm.fmuladd", if dtype == "double" { "fma(" } else { "fmaf(" }, "tw_multiply_add"];
        for ((fused, plain), word) in code(&fused).iter().zip(code(&plain)).zip(words) {
            assert!(fused.contains(word), "{dtype}: no {word} in\n{fused}");
            assert!(!plain.contains(word), "{dtype}: {word} in\n{plain}");
            assert!(!fused.contains("fmul contract") && !fused.contains("fadd contract"), "{fused}");
        }
    }
    let squares = of_value("a(i) * a(i) - b(i) * b(i)");
    for gpu in [&cuda, &opencl] {
        let text = gpu_code(verified(&loops(&squares, gpu)), gpu, "").unwrap().text;
        assert!(!text.contains("fma"), "{text}");
        assert_eq!(text.contains("#pragma OPENCL FP_CONTRACT OFF"), gpu.api == opencl.api, "{text}");
    }
}
