//! Proofs of reductions whose loops hold several results, one value, or values that add nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{agrees, agrees_on_gpu, program};
use tilewright_ir::{LoopNest, print};
use tilewright_polyhedral::{Verdict, prove};

#[track_caller]
fn proved(source: &str, sizes: &[(&str, i64)], nest: &LoopNest) {
    assert_eq!(prove(&program(source, sizes), nest), Verdict::Proved, "{source}\n{}", print::nest(nest));
}

#[track_caller]
fn proves(source: &str, sizes: &[(&str, i64)], steps: &str) {
    proved(source, sizes, &agrees(source, sizes, steps));
}

#[track_caller]
fn is_not_refuted(source: &str, sizes: &[(&str, i64)], steps: &str) {
    let nest = agrees(source, sizes, steps);
    let verdict = prove(&program(source, sizes), &nest);
    assert!(!matches!(verdict, Verdict::Refuted(_)), "{source}\n{verdict:?}\n{}", print::nest(&nest));
}

/// Lowering stores the only value of such a reduction, and no neutral element before it.
#[test]
fn a_reduction_of_one_value_begins_with_it() {
    let source = "def f(float(N, K) x) -> (y) { y(i) max=! x(i, k) }";
    for n in [1, 5] {
        let sizes = &[("N", n), ("K", 1)];
        let nest = agrees_on_gpu(source, sizes, "bind y.i -> block.x\nbind y.k -> thread.x");
        assert!(!print::nest(&nest).contains("max="), "{}", print::nest(&nest));
        proved(source, sizes, &nest);
    }
}

#[test]
fn choices_inside_of_choices_may_add_nothing() {
    let source = "def f(float(K) x, float(K) z) -> (y) {
        y(i) +=! (i % 2 == 0 ? x(k) : (k < 4 ? z(k) : 0)) where i in 0:5, k in 0:K
    }";
    proves(source, &[("K", 9)], "");
}

#[test]
fn partial_results_may_be_fused_with_their_reductions() {
    let source = "def f(float(N, M) x) -> (y) { y() +=! x(i, j) where i in 0:N, j in 0:M }";
    for (n, m) in [(1, 3), (3, 1), (4, 5)] {
        proves(source, &[("N", n), ("M", m)], "rfactor y.j -> p\nreorder p.j, p.i\nfuse p.j, p.i -> t");
    }
}

/// The two subscripts of a read are the same data.
#[test]
fn one_datum_may_choose_two_subscripts() {
    let source = "def f(float(4, 4) x, uint8(N) at) -> (y) {
        t(i, j) = 2 * x(i, j)
        y(n) = t(i, i) where i = at(n), i in 0:4
    }";
    proves(source, &[("N", 6)], "");
}

/// Such programs are right, even where the proof does not decide that.
#[test]
fn elements_that_keep_their_value_are_not_refuted() {
    let source = "def f(float(N) x) -> (y) { y(i) += (i % 2 == 0 ? x(2*i) : 0) where i in 0:N/2 }";
    is_not_refuted(source, &[("N", 6)], "");
    let after = "def f(float(N) x) -> (y) {
        y(i) = x(i)
        y(i) += (i % 2 == 0 ? x(0) : 0) where i in 0:N
    }";
    is_not_refuted(after, &[("N", 5)], "");
}

#[test]
fn scatters_that_share_their_elements_are_not_refuted() {
    let source = "def f(float(N) x) -> (y) {
        y(i/2) +=! x(i) where i in 0:N
        y(i) += x(0) where i in 0:N/2
    }";
    is_not_refuted(source, &[("N", 6)], "");
    let turns = "def f(float(3, N) x) -> (y) {
        y(i) = x(0, i) where i in 0:N
        for t in 0:3 {
            s(i/2) max=! x(t, i) where i in 0:N
            y(i) = y(i) + s(i/2) where i in 0:N
        }
    }";
    is_not_refuted(turns, &[("N", 6)], "");
}

/// A claim may name the loop that guards joined rows, which is not in the loop nest.
#[test]
fn guards_of_joined_loops_do_not_stop_the_prover() {
    let source = "def f(float(N, M) x) -> (y, z) {
        y(i) += x(i, k) where i in 0:3, k in 0:M
        z(i) = x(i/2, 0) where i in 0:N
    }";
    is_not_refuted(source, &[("N", 9), ("M", 3)], "promote y at y.i -> r packed\ncompute_with y.i, z.i");
}
