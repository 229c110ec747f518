//! `compute_with`: two loops are joined. Each accepted schedule is run against the program and
//! proved.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{agrees, agrees_on_gpu, program, refused};
use tilewright_ir::print;
use tilewright_polyhedral::{Verdict, prove};

const SIZES: &[(&str, i64)] = &[("H", 11), ("W", 13)];

/// Two results of the same input, with different numbers of rows.
const SIBLINGS: &str = "def siblings(float(H, W) I) -> (up, sum) {
    up(y, x) = I(y + 1, x) - I(y, x)
    sum(y) +=! I(y, x)
}";
/// A stage that reads rows of another above and below its own.
const STENCIL: &str = "def stencil(float(H, W) I) -> (a, b) {
    a(y, x) = 2 * I(y, x)
    b(y, x) = a(y, x) + a(y + 2, x)
}";

#[track_caller]
fn loops(source: &str, steps: &str) -> String {
    let nest = agrees(source, SIZES, steps);
    let text = print::nest(&nest);
    assert_eq!(prove(&program(source, SIZES), &nest), Verdict::Proved, "{steps}\n{text}");
    text
}

#[track_caller]
fn loops_on_gpu(source: &str, steps: &str) -> String {
    let nest = agrees_on_gpu(source, SIZES, steps);
    let text = print::nest(&nest);
    assert_eq!(prove(&program(source, SIZES), &nest), Verdict::Proved, "{steps}\n{text}");
    text
}

fn reason(source: &str, steps: &str) -> String {
    refused(source, SIZES, steps).reason.to_string()
}

#[test]
fn siblings_share_a_loop() {
    let joined = loops(SIBLINGS, "compute_with up.y, sum.y");
    assert_eq!(joined.matches("for y in 11").count(), 1, "{joined}");
    assert!(joined.contains("if y <= 9"), "{joined}");
    // The other one may move too, and the loop has the name of the loop that stays.
    loops(SIBLINGS, "compute_with sum.y, up.y\nparallel up.y");
    loops(SIBLINGS, "split up.y -> rows, r:4\ncompute_with sum.y, up.rows\nvectorize up.x");
    loops(SIBLINGS, "compute_with up.y, sum.y\nsplit sum.y -> yo, yi:4\nparallel up.yo\nvectorize up.x");
    // Either part may run ahead.
    // The guards are no loop that steps can name.
    let guard = reason(SIBLINGS, "compute_with up.y, sum.y\nunroll up.once");
    assert!(guard.ends_with("`y` and `x`") || guard.contains("y, x"), "{guard}");
    for ahead in [1, 5, 20] {
        loops(SIBLINGS, &format!("compute_with up.y, sum.y ahead {ahead}"));
        loops(SIBLINGS, &format!("compute_with sum.y, up.y ahead {ahead}\nparallel up.y"));
    }
}

#[test]
fn consumers_in_one_loop_share_a_producer() {
    let source = "def f(float(H, W) I) -> (a, b) {
        rows(y, x) = 2 * I(y, x)
        a(y, x) = rows(y, x) + rows(y + 1, x)
        b(y, x) = rows(y, x) - rows(y + 2, x)
    }";
    loops(source, "compute_with a.y, b.y\ncompute_at rows, b.y");
    loops(source, "compute_with a.y, b.y\ncompute_at rows, a.y store_at root fold 4");
    loops(source, "compute_with b.y, a.y\nsplit a.y -> yo, yi:3\nparallel a.yo\ncompute_at rows, a.yo");
    let alike = source.replace("y + 2", "y + 1");
    loops(&alike, "compute_with a.y, b.y\ncompute_with a.x, b.x\ncompute_at rows, b.x");
}

#[test]
fn a_consumer_follows_its_producer() {
    let plain = reason(STENCIL, "compute_with a.y, b.y");
    assert_eq!(
        plain,
        "`a.y` cannot be computed with `b.y`: an iteration of `b` would use elements of `a` before a later \
         iteration of `a` does"
    );
    assert!(reason(STENCIL, "compute_with a.y, b.y ahead 1").contains("before a later iteration"));
    loops(STENCIL, "compute_with a.y, b.y ahead 2");
    loops(STENCIL, "compute_with a.y, b.y ahead 3\nvectorize a.x\nvectorize b.x");
    // Columns do not depend on each other, so they are joined as they are, and run in parallel.
    loops(STENCIL, "reorder a.x, a.y\nreorder b.x, b.y\ncompute_with a.x, b.x\nparallel b.x");
}

#[test]
fn iterations_that_depend_on_each_other_stay_in_order() {
    let joined = "compute_with a.y, b.y ahead 2\n";
    for step in ["parallel b.y", "split b.y -> yo, yi:4\nparallel b.yo", "split b.y -> y, i:4\nvectorize b.i"]
    {
        let why = reason(STENCIL, &format!("{joined}{step}"));
        assert!(why.contains("later iterations use what earlier iterations have"), "{why}");
    }
    let swapped = reason(STENCIL, &format!("{joined}split b.y -> yo, yi:4\nreorder b.yi, b.yo"));
    assert!(swapped.contains("later iterations use"), "{swapped}");
    loops(STENCIL, &format!("{joined}split b.y -> yo, yi:11\nfuse b.yo, b.yi -> y\nunroll b.y"));
}

#[test]
fn inlined_values_are_seen() {
    let source = "def f(float(H, W) I) -> (a, c) {
        a(y, x) = 2 * I(y, x)
        b(y, x) = a(y + 1, x)
        c(y, x) = b(y, x) + b(y + 1, x)
    }";
    assert!(reason(source, "inline b\ncompute_with a.y, c.y ahead 1").contains("elements of `a`"));
    let joined = "inline b\ncompute_with a.y, c.y ahead 2";
    loops(source, joined);
    assert!(reason(source, &format!("{joined}\nparallel c.y")).contains("later iterations use"));
}

#[test]
fn buffers_that_hold_a_piece_are_seen() {
    let source = "def f(float(H, W) I) -> (c) {
        a(y, x) = 2 * I(y, x)
        b(y, x) = a(y, x) + a(y + 1, x)
        c(y, x) = b(y, x) + b(y + 1, x)
    }";
    let tile = "split c.y -> yo, yi:4\ncompute_at b, c.yo\ncompute_at a, c.yo\n";
    assert!(reason(source, &format!("{tile}compute_with a.y, b.y")).contains("elements of `a`"));
    loops(source, &format!("{tile}compute_with a.y, b.y ahead 1\nparallel c.yo"));
    loops(source, &format!("{tile}compute_with a.y, b.y ahead 1\ncompute_with b.y, c.yi ahead 2"));
}

#[test]
fn recurrences_take_turns() {
    let source = "def f(float(H, W) I) -> (a, b, t) {
        a(0, x) = I(0, x)
        for y in 1:H { a(y, x) = a(y - 1, x) + I(y, x) }
        b(0, x) = I(0, x)
        for y in 1:H { b(y, x) = fmax(b(y - 1, x), I(y, x)) }
        t(y, x) = a(y, x) * b(y, x)
    }";
    loops(source, "compute_with a[2].y, t.y");
    let early = reason(source, "compute_with t.y, b[2].y ahead 2");
    assert!(early.contains("elements of `b`"), "{early}");
    loops(source, "compute_with a[2].y, b[2].y\nvectorize a[2].x\nvectorize b[2].x");
    loops(source, "compute_with a[2].y, b[2].y\ncompute_with t.y, b[2].y");
    let parallel = reason(source, "compute_with a[2].y, b[2].y\nparallel b[2].y");
    assert!(parallel.contains("must read `a` after"), "{parallel}");
}

#[test]
fn stages_of_equal_size_are_one_kernel() {
    let source = "def f(float(H, W) I) -> (a, b) {
        a(y, x) = 2 * I(y, x)
        b(y, x) = a(y, W - 1 - x) + 1
    }";
    let joined = "compute_with a.y, b.y\nbind b.y -> block.x\nbind a.x -> thread.x\nbind b.x -> thread.x";
    let kernel = loops_on_gpu(source, joined);
    assert!(kernel.contains("barrier"), "{kernel}");
    loops_on_gpu(SIBLINGS, "compute_with up.y, sum.y\nbind sum.y -> block.x\nbind up.x -> thread.x");
    loops_on_gpu(SIBLINGS, "compute_with up.y, sum.y ahead 2\nbind sum.y -> thread.x");
    // Blocks do not wait for each other.
    let apart = "compute_with a.y, b.y\nbind b.y -> block.y\nbind a.x -> block.x\nbind b.x -> block.x";
    let why = reason_on_gpu(source, apart);
    assert!(why.contains("between"), "{why}");
}

fn reason_on_gpu(source: &str, steps: &str) -> String {
    let program = program(source, SIZES);
    let refusal =
        tilewright_schedule::apply(&program, &support::schedule(steps), &tilewright_target::Gpu::h200());
    refusal.unwrap_err().reason.to_string()
}

#[test]
fn loops_that_cannot_be_joined() {
    let why = |steps| reason(SIBLINGS, steps);
    assert!(why("compute_with up.y, up.y").contains("one loop already"));
    assert!(why("compute_with up.x, sum.y").contains("join the loops around them first"));
    assert!(why("compute_with sum.x, up.x").contains("join the loops around them first"));
    let alike = SIBLINGS.replace("I(y, x)\n}", "I(y, x) where y in 0:H-1\n}");
    let reduced = reason(&alike, "compute_with up.y, sum.y\ncompute_with up.x, sum.x");
    assert!(reduced.contains("a loop of a reduction"), "{reduced}");
    assert!(why("parallel up.y\ncompute_with up.y, sum.y").contains("already parallel"));
    assert!(why("compute_with up.y, sum.y\nunroll up.y\nunroll sum.y").contains("unrolled already"));
    let between = "def f(float(H, W) I) -> (c) {
        a(y, x) = 2 * I(y, x)
        b(y, x) = a(H - 1 - y, x)
        c(y, x) = a(y, x) + b(y, x)
    }";
    let passes = reason(between, "compute_with a.y, c.y");
    assert!(passes.contains("`b` is between them, and it and `a` use the same tensor"), "{passes}");
    let scatter = "def f(int32(H, W) I) -> (h, s) {
        h(k) +=! 1 where y in 0:H, x in 0:W, k = I(y, x), k in 0:4
        s(y) +=! I(y, x)
    }";
    assert!(reason(scatter, "compute_with h.y, s.y").contains("a loop of a reduction"));
    // The first subscript of this scatter is a row of its own, until the loop belongs to `s`.
    let rows = "def f(int32(H, W) I) -> (h, s) {
        h(y, k) +=! 1 where y in 0:H, x in 0:W, k = I(y, x), k in 0:4
        s(y) +=! I(y, x)
    }";
    for (moved, host) in [("h.y", "s.y"), ("s.y", "h.y")] {
        let program = program(rows, SIZES);
        let steps = support::schedule(&format!("compute_with {moved}, {host}"));
        match tilewright_schedule::apply(&program, &steps, &support::cpu()) {
            Ok(nest) => support::expect_agreement(&program, &nest, 1),
            Err(refusal) => assert!(refusal.to_string().contains("neutral element"), "{refusal}"),
        }
    }
}
