//! Every step: cases that it accepts, whose loops must compute what the program does, and cases that it refuses.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{agrees, refused};
use tilewright_ir::print;
use tilewright_schedule::Illegal;

const GEMM: &str = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
const SIZES: &[(&str, i64)] = &[("M", 13), ("N", 37), ("K", 11)];

#[test]
fn without_steps_the_loops_are_those_of_the_text() {
    let nest = agrees(GEMM, SIZES, "");
    println!("{}", print::nest(&nest));
}

#[test]
fn gemm_in_register_tiles() {
    let nest = agrees(
        GEMM,
        SIZES,
        "split C.j -> jo, j1:2, jv:4
         split C.i -> io, ii:3
         split C.k -> ko, ki:4
         reorder C.jo, C.ko, C.io, C.ki, C.ii, C.j1, C.jv
         promote B at C.ko -> Bp packed (d1/8, d0, d1%8)
         promote C at C.io -> acc registers
         vectorize C.jv
         unroll C.ii
         unroll C.j1
         parallel C.jo",
    );
    println!("{}", print::nest(&nest));
}
