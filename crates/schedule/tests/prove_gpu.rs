//! Proofs for GPU schedules: loops over blocks and threads, shared memory, registers of threads,
//! pipelines and combined threads.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;
mod support;

use std::collections::BTreeMap;
use std::time::Instant;

use examples::examples;
use support::{at_sizes, program, schedule};
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_syntax::parse;
use tilewright_target::Gpu;

/// Proves the default schedules of a program.
#[track_caller]
fn proves_default(source: &str, sizes: &[(&str, i64)]) {
    let program = program(source, sizes);
    for gpu in [Gpu::h200(), Gpu::opencl()] {
        let schedule = schedule_by_rules(&program, &gpu);
        let nest = apply(&program, &schedule, &gpu).unwrap();
        let verdict = prove(&program, &nest);
        assert_eq!(verdict, Verdict::Proved, "{source}\n{schedule}\n{}", tilewright_ir::print::nest(&nest));
    }
}

#[track_caller]
fn proves(source: &str, sizes: &[(&str, i64)], steps: &str) {
    let program = program(source, sizes);
    let nest = apply(&program, &schedule(steps), &Gpu::h200())
        .unwrap_or_else(|refusal| panic!("{refusal}\n{steps}"));
    assert_eq!(prove(&program, &nest), Verdict::Proved, "{}", tilewright_ir::print::nest(&nest));
}

const GEMM: &str = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";

#[test]
fn pointwise_kernels_are_proved() {
    proves_default("def f(float(N) x) -> (y) { y(i) = x(i) + 1 }", &[("N", 7)]);
    proves_default("def f(float(N) x) -> (y) { y(i) = x(i) + 1 }", &[("N", 1000)]);
}

#[test]
fn default_products_are_proved() {
    for (m, n, k) in [(1, 1, 1), (5, 6, 7), (33, 17, 9)] {
        proves_default(GEMM, &[("M", m), ("N", n), ("K", k)]);
    }
}

/// The partial totals begin with 0, and their sum is added to the bias.
#[test]
fn parts_of_a_sum_that_goes_on_are_proved() {
    let source = "def f(float(M, K) A, float(K, N) B, float(N) b) -> (C) { C(i, j) = b(j) where i in 0:M
        C(i, j) += A(i, k) * B(k, j) }";
    let sizes = [("M", 8), ("N", 16), ("K", 64)];
    let steps = schedule_by_rules(&program(source, &sizes), &Gpu::h200()).to_string();
    assert!(steps.contains("rfactor"), "{steps}");
    proves_default(source, &sizes);
}

#[test]
fn transposes_are_proved() {
    proves_default("def f(float(M, N) x) -> (y) { y(j, i) = x(i, j) }", &[("M", 33), ("N", 65)]);
}

#[test]
fn softmax_is_proved() {
    let source = "def softmax(float(M, N) x) -> (y) {
        m(i) max=! x(i, j)
        e(i, j) = exp(x(i, j) - m(i))
        s(i) +=! e(i, j)
        y(i, j) = e(i, j) / s(i) }";
    proves_default(source, &[("M", 5), ("N", 70)]);
}

#[test]
fn convolutions_are_proved() {
    let source = "def conv(float(N, C, H, W) x, float(F, C, KH, KW) w) -> (y) {
        y(n, f, i, j) +=! x(n, c, i + p, j + q) * w(f, c, p, q) }";
    proves_default(source, &[("N", 2), ("C", 3), ("H", 9), ("W", 11), ("F", 4), ("KH", 3), ("KW", 3)]);
}

#[test]
fn padded_convolutions_are_proved() {
    let source = "def conv(float(C, H, W) x, float(F, C, 3, 3) w) -> (y) {
        y(f, i, j) +=! (i + p >= 1 && i + p <= H && j + q >= 1 && j + q <= W
            ? x(c, i + p - 1, j + q - 1) : 0) * w(f, c, p, q) where i in 0:H, j in 0:W }";
    proves_default(source, &[("C", 2), ("H", 7), ("W", 5), ("F", 3)]);
}

#[test]
fn chains_of_stencils_are_proved() {
    let source = "def blur(float(H, W) x) -> (y) {
        t(i, j) = x(i, j) + x(i, j + 1) + x(i, j + 2)
        y(i, j) = t(i, j) + t(i + 1, j) + t(i + 2, j) }";
    proves_default(source, &[("H", 19), ("W", 33)]);
    let steps = "split y.i -> ib, ii:4\nsplit y.j -> jb, jj:8\nreorder y.ib, y.jb, y.ii, y.jj
        bind y.ib -> block.y\nbind y.jb -> block.x\nbind y.ii -> thread.y\nbind y.jj -> thread.x
        compute_at t, y.jb\nbind t.i -> thread.y\nbind t.j -> thread.x";
    proves(source, &[("H", 11), ("W", 21)], steps);
}

/// Prints the prover's verdicts on the examples, and how long they take.
#[test]
#[ignore = "takes minutes; for looking"]
fn survey_of_the_examples() {
    let rounds: [&dyn Fn(usize) -> i64; 2] = [&|at| 4 + at as i64, &|at| [17, 18, 16, 4, 3, 2, 2][at % 7]];
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for path in examples() {
        let source = std::fs::read_to_string(&path).unwrap();
        for function in &parse(&source).ast.functions {
            for choose in rounds {
                let Some(program) = at_sizes(&source, &function.name.text, choose) else { continue };
                if tilewright_interp::count_points(&program) > 200_000 {
                    continue;
                }
                let gpu = Gpu::h200();
                let nest = apply(&program, &schedule_by_rules(&program, &gpu), &gpu).unwrap();
                let start = Instant::now();
                let verdict = prove(&program, &nest);
                let took = start.elapsed();
                println!("{took:?} {} {}: {verdict:?}", path.file_name().unwrap().display(), program.name);
                let kind = match verdict {
                    Verdict::Proved => "proved".to_string(),
                    Verdict::Refuted(what) => format!("refuted: {what}"),
                    Verdict::Undecided(why) => format!("undecided: {why}"),
                };
                *counts.entry(kind).or_default() += 1;
            }
        }
    }
    counts.iter().for_each(|(kind, count)| println!("{count:4} {kind}"));
}
