//! Schedules for GPUs, proved: loops over blocks and threads, shared memory, registers of threads, pipelines and combined
//! threads.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::program;
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::{apply, default_schedule};
use tilewright_target::Gpu;

/// Proves the default schedules of a program.
#[track_caller]
fn proves_default(source: &str, sizes: &[(&str, i64)]) {
    let program = program(source, sizes);
    for gpu in [Gpu::h200(), Gpu::opencl()] {
        let schedule = default_schedule(&program, &gpu);
        let nest = apply(&program, &schedule, &gpu).unwrap();
        let start = std::time::Instant::now();
        let verdict = prove(&program, &nest);
        eprintln!("{} {sizes:?} {:?}", program.name, start.elapsed());
        assert_eq!(verdict, Verdict::Proved, "{source}\n{schedule}\n{}", tilewright_ir::print::nest(&nest));
    }
}

const GEMM: &str = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";

#[test]
fn pointwise_kernels_are_proved() {
    proves_default("def f(float(N) x) -> (y) { y(i) = x(i) + 1 }", &[("N", 7)]);
    proves_default("def f(float(N) x) -> (y) { y(i) = x(i) + 1 }", &[("N", 1000)]);
}

#[test]
fn default_products_are_proved() {
    for (m, n, k) in [(5, 6, 7), (64, 64, 64), (100, 130, 70)] {
        proves_default(GEMM, &[("M", m), ("N", n), ("K", k)]);
    }
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
    proves_default(
        source,
        &[("N", 2), ("C", 3), ("H", 9), ("W", 11), ("F", 4), ("KH", 3), ("KW", 3)],
    );
}
