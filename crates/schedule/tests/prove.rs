//! Default schedules and steps, proved: every nest computes what its program says, whatever the data.

mod support;

use support::{cpu, program, schedule};
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::{apply, default_schedule};

#[track_caller]
fn proves(source: &str, sizes: &[(&str, i64)], steps: &str) {
    let program = program(source, sizes);
    let nest =
        apply(&program, &schedule(steps), &cpu()).unwrap_or_else(|refusal| panic!("{refusal}\n{steps}"));
    let verdict = prove(&program, &nest);
    assert_eq!(verdict, Verdict::Proved, "{source}\n{steps}\n{}", tilewright_ir::print::nest(&nest));
}

const GEMM: &str = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";

#[test]
fn plain_loops_are_proved() {
    proves(GEMM, &[("M", 5), ("N", 6), ("K", 7)], "");
    proves("def f(float(N) x) -> (y) { y(i) = x(i) + 1 }", &[("N", 7)], "");
    proves("def f(float(N) x) -> (y) { t(i) = x(i) * 2\n y(i) = t(i) + t(N - 1 - i) }", &[("N", 7)], "");
}

#[test]
fn tiles_are_proved() {
    let steps = "split C.i -> io, ii:4\nsplit C.j -> jo, ji:8\nsplit C.k -> ko, ki:4\nreorder C.io, C.jo, C.ko, C.ki, C.ii, C.ji\nvectorize C.ji\nunroll C.ii\npromote C at C.ko -> acc registers\nparallel C.io";
    proves(GEMM, &[("M", 13), ("N", 30), ("K", 17)], steps);
    proves(GEMM, &[("M", 16), ("N", 32), ("K", 16)], steps);
}

#[test]
fn default_schedules_are_proved() {
    for (m, n, k) in [(5, 6, 7), (64, 64, 64), (100, 130, 70)] {
        let sizes = [("M", m), ("N", n), ("K", k)];
        let program = program(GEMM, &sizes);
        proves(GEMM, &sizes, &default_schedule(&program, &cpu()).to_string());
    }
}
