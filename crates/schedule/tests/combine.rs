//! Reductions that the threads of a block share: each computes a part, and all parts are combined.
//! The interpreter runs every nest thread by thread, so a thread that reads a total it does not
//! have is an error.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{agrees_on_gpu as agrees, expect_agreement, program, refused_on_gpu, schedule};
use tilewright_interp::{Order, RunError, run_nest};
use tilewright_ir::nest::{Scope, Stmt};
use tilewright_ir::{LoopNest, print, verify_nest};
use tilewright_schedule::{GpuResource, Illegal, apply, schedule_by_rules};
use tilewright_target::Gpu;

const ROWS: &str = "def rows(float(N, K) A) -> (C) { C(i) +=! A(i, k) }";

/// A warp for each row, eight rows in a block.
const WARPS: &str = "
    split C.i -> ib, ir:8
    split C.k -> ko, ki:32
    bind C.ib -> block.x
    bind C.ir -> thread.y
    rfactor C.ki -> part
    reorder part.ki, part.ko
    bind part.ki -> thread.x
    bind C.ki -> thread.x";

/// A block for each row.
const BLOCKS: &str = "
    split C.k -> ko, ki:100
    bind C.i -> block.x
    rfactor C.ki -> part
    bind part.ki -> thread.x
    bind C.ki -> thread.x";

const SOFTMAX: &str = "def softmax(float(N, D) I) -> (O) {
    top(n) max=! I(n, d)
    total(n) +=! exp(I(n, d) - top(n))
    O(n, d) = exp(I(n, d) - top(n)) / total(n)
  }";

/// The whole softmax in one kernel, with a warp for each row.
const SOFTMAX_WARPS: &str = "
    split O.n -> nb, nr:4
    split O.d -> do, dt:32
    reorder O.nb, O.nr, O.dt, O.do
    bind O.nb -> block.x
    bind O.nr -> thread.y
    bind O.dt -> thread.x
    compute_at total, O.nr
    compute_at top, O.nr
    split total.d -> do, dt:32
    rfactor total.dt -> total_part
    reorder total_part.dt, total_part.do
    bind total_part.dt -> thread.x
    bind total.dt -> thread.x
    split top.d -> do, dt:32
    rfactor top.dt -> top_part
    reorder top_part.dt, top_part.do
    bind top_part.dt -> thread.x
    bind top.dt -> thread.x";

#[track_caller]
fn refused(source: &str, sizes: &[(&str, i64)], steps: &str) -> String {
    refused_on_gpu(source, sizes, steps).reason.to_string()
}

/// Replaces every combination of threads by the store that each thread would do by itself.
fn without_combining(stmts: &mut Vec<Stmt>) {
    for stmt in stmts {
        match stmt {
            Stmt::For(own) => without_combining(&mut own.body),
            Stmt::If(own) => without_combining(&mut own.then),
            Stmt::Allocate(own) => without_combining(&mut own.body),
            Stmt::Combine(own) => *stmt = Stmt::Store(own.store.clone()),
            Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) => {}
        }
    }
}

fn run_of(nest: &LoopNest, source: &str, sizes: &[(&str, i64)]) -> Result<(), RunError> {
    let program = program(source, sizes);
    run_nest(nest, &program, support::inputs(&program, 1), Order::Ascending).map(|_| ())
}

#[test]
fn a_warp_has_a_row() {
    let loops = print::nest(&agrees(ROWS, &[("N", 19), ("K", 70)], WARPS));
    for part in ["register float32 part[8, 32]", "C[8*ib + ir] = sum of part[ir, ki] over ki"] {
        assert!(loops.contains(part), "no {part}:\n{loops}");
    }
    assert!(!loops.contains("barrier"), "{loops}");
    agrees(ROWS, &[("N", 16), ("K", 64)], WARPS);
    agrees(ROWS, &[("N", 1), ("K", 3)], WARPS);
}

#[test]
fn a_block_has_a_row() {
    for columns in [1, 99, 100, 101, 230] {
        agrees(ROWS, &[("N", 3), ("K", columns)], BLOCKS);
    }
}

#[test]
fn each_operator_and_type_is_combined() {
    for (operator, value) in
        [("+=!", "A(i, k)"), ("*=!", "1 + A(i, k) % 2"), ("min=!", "A(i, k)"), ("max=!", "A(i, k)")]
    {
        for dtype in ["float", "double", "int32", "uint8", "int64", "half"] {
            let value =
                if dtype == "half" || dtype == "float" || dtype == "double" { "A(i, k)" } else { value };
            let source = format!("def f({dtype}(N, K) A) -> (C) {{ C(i) {operator} {value} }}");
            agrees(&source, &[("N", 5), ("K", 37)], WARPS);
        }
    }
}

#[test]
fn an_iteration_a_thread_needs_no_totals_of_its_own() {
    let steps = "bind C.i -> block.x\nbind C.k -> thread.x";
    let loops = print::nest(&agrees(ROWS, &[("N", 4), ("K", 33)], steps));
    assert!(loops.contains("C[i] = sum of A[i, k] over k"), "{loops}");
    // A single thread has no other thread to combine with.
    let loops = print::nest(&agrees(ROWS, &[("N", 4), ("K", 1)], steps));
    assert!(loops.contains("C[i] = A[i, 0]"), "{loops}");
}

#[test]
fn a_total_is_added_to_what_is_there() {
    let source = "def f(float(N, K) A) -> (C) { C(i) = 2.5 where i in 0:N\nC(i) += A(i, k) }";
    let steps =
        "bind C.i -> block.x\nsplit C[2].k -> ko, ki:8\nbind C[2].i -> block.x\nrfactor C[2].ki -> part
        bind part.ki -> thread.x\nbind C[2].ki -> thread.x";
    let loops = print::nest(&agrees(source, &[("N", 4), ("K", 30)], steps));
    assert!(loops.contains("C[i] += sum of part[ki] over ki"), "{loops}");
}

#[test]
fn rows_of_two_axes() {
    let source = "def f(float(N, M, K) A) -> (C) { C(i, j) max=! A(i, j, k) }";
    let steps =
        "split C.k -> ko, ki:8\nsplit C.i -> ib, ir:2\nsplit C.j -> jb, jr:4\nreorder C.ib, C.jb, C.ir, C.jr
        bind C.ib -> block.y\nbind C.jb -> block.x\nbind C.ir -> thread.z\nbind C.jr -> thread.y
        rfactor C.ki -> part\nbind part.ki -> thread.x\nbind C.ki -> thread.x";
    agrees(source, &[("N", 3), ("M", 6), ("K", 20)], steps);
}

#[test]
fn parts_of_one_sum_are_added_up_by_a_second_kernel() {
    let source = "def f(float(K) x) -> (s) { s +=! x(k) }";
    let steps = "split s.k -> kb, ko:4, ki:32\nrfactor s.kb -> blocks\nbind blocks.kb -> block.x
        rfactor blocks.ki -> part\nreorder part.ki, part.ko\nbind part.ki -> thread.x
        bind blocks.ki -> thread.x\nbind s.kb -> thread.x";
    let loops = print::nest(&agrees(source, &[("K", 1000)], steps));
    assert!(loops.contains("s[] = sum of blocks[kb] over kb"), "{loops}");
}

#[test]
fn all_of_softmax_is_one_kernel() {
    let nest = agrees(SOFTMAX, &[("N", 6), ("D", 70)], SOFTMAX_WARPS);
    assert!(nest.buffers.iter().all(|buffer| buffer.scope != Scope::Shared), "{}", print::nest(&nest));
    // A block for each row.
    let blocks = SOFTMAX_WARPS
        .replace("split O.n -> nb, nr:4", "")
        .replace("reorder O.nb, O.nr, O.dt, O.do", "reorder O.dt, O.do")
        .replace("bind O.nb -> block.x", "bind O.n -> block.x")
        .replace("bind O.nr -> thread.y", "")
        .replace("O.nr", "O.n");
    agrees(SOFTMAX, &[("N", 3), ("D", 70)], &blocks);
}

#[test]
fn other_threads_get_a_total_through_memory() {
    // Only the threads with y = 0 compute the total, and all threads use it.
    let source = "def f(float(N, K) A) -> (O) { t(i) +=! A(i, k)\nO(i, k) = A(i, k) - t(i) }";
    let steps =
        "split O.k -> ko, ky:4, kx:8\nreorder O.ky, O.kx, O.ko\nbind O.i -> block.x\nbind O.ky -> thread.y
        bind O.kx -> thread.x\ncompute_at t, O.i\nbind t.k -> thread.x";
    let loops = print::nest(&agrees(source, &[("N", 3), ("K", 40)], steps));
    assert!(loops.contains("shared float32 t[1]") && loops.contains("barrier"), "{loops}");
    // 16-bit totals must be rounded, so they go through memory.
    let half = source.replace("float(", "half(");
    agrees(&half, &[("N", 3), ("K", 40)], steps);
}

#[test]
fn one_thread_of_a_row_can_add_up_what_the_others_have() {
    let steps = WARPS.replace("bind C.ki -> thread.x", "");
    let loops = print::nest(&agrees(ROWS, &[("N", 19), ("K", 70)], &steps));
    assert!(loops.contains("shared float32 part[8, 32]") && loops.contains("barrier"), "{loops}");
}

#[test]
fn a_total_that_threads_do_not_have_is_an_error() {
    for (source, sizes, steps) in
        [(ROWS, &[("N", 19), ("K", 70)], WARPS), (SOFTMAX, &[("N", 6), ("D", 70)], SOFTMAX_WARPS)]
    {
        let mut nest = agrees(source, sizes, steps);
        without_combining(&mut nest.body);
        assert!(verify_nest(&nest).is_err());
        let error = run_of(&nest, source, sizes).unwrap_err();
        assert!(matches!(error, RunError::Race(_)), "{error}");
    }
}

#[test]
fn what_cannot_be_combined_is_refused() {
    let sizes = &[("N", 8), ("K", 64)];
    let says = |steps: &str, what: &str| {
        let reason = refused(ROWS, sizes, steps);
        assert!(reason.contains(what), "{reason}");
    };
    says("bind C.k -> block.x", "carries a dependence");
    says("bind C.k -> thread.y", "along x, and not along y");
    says("split C.k -> ko, ki:8\nbind C.ki -> thread.x", "`C.ko` is reduced too: `rfactor C.ki`");
    says("reorder C.k, C.i\nbind C.k -> thread.x", "not the innermost loop");
    says("bind C.k -> thread.x\npromote C at C.i -> total registers", "the result is promoted");
    let long = refused(ROWS, &[("N", 8), ("K", 2000)], "bind C.k -> thread.x");
    assert!(long.contains("takes at most 1024"), "{long}");
    let scatter = "def f(int32(K) at, float(K) x) -> (h) { h(b) +=! x(k) where b = at(k), b in 0:4 }";
    assert!(refused(scatter, &[("K", 8)], "bind h.k -> thread.x").contains("data chooses the elements"));
}

#[test]
fn combining_takes_shared_memory() {
    let source = "def f(double(K) A, double(L) x) -> (C) { C(i) +=! A(k) * x(i + k) where i in 0:4 }";
    let steps = "bind C.i -> block.x\npromote x at C.i -> xs shared\nbind C.k -> thread.x";
    let refused_with = |block_shared: usize| {
        let (program, gpu) =
            (program(source, &[("K", 1024), ("L", 1027)]), Gpu { block_shared, ..Gpu::h200() });
        apply(&program, &schedule(steps), &gpu).err().map(|refusal| refusal.reason)
    };
    // Shared memory holds the copy of `x` and one value for each thread.
    assert_eq!(refused_with(16 << 10), None);
    let reason = refused_with((16 << 10) - 1).unwrap();
    assert!(matches!(reason, Illegal::GpuLimit { what: GpuResource::SharedBytes, .. }), "{reason}");
}

/// Returns the default schedule, after checking that its loops compute the same as the program.
#[track_caller]
fn by_default(source: &str, sizes: &[(&str, i64)]) -> String {
    let (program, gpu) = (program(source, sizes), Gpu::h200());
    let schedule = schedule_by_rules(&program, &gpu);
    let nest = apply(&program, &schedule, &gpu).unwrap_or_else(|refusal| panic!("{refusal}\n{schedule}"));
    expect_agreement(&program, &nest, 1);
    schedule.to_string()
}

#[track_caller]
fn has(steps: &str, parts: &[&str]) {
    let missing = parts.iter().find(|part| !steps.contains(**part));
    assert!(missing.is_none(), "no {missing:?}:\n{steps}");
}

#[test]
fn few_results_are_shared_by_default() {
    let warps = ["bind C.row_thread -> thread.y", "lane:32", "bind C.lane -> thread.x"];
    has(&by_default(ROWS, &[("N", 33), ("K", 1000)]), &warps);
    has(&by_default(ROWS, &[("N", 3), ("K", 1100)]), &["bind C.i -> block.x", "lane:256"]);
    has(&by_default(ROWS, &[("N", 2), ("K", 9000)]), &["rfactor C.part -> C_parts", "lane:256"]);
    let gemv = "def gemv(float(M, K) A, float(K) x) -> (y) { y(i) +=! A(i, k) * x(k) }";
    has(&by_default(gemv, &[("M", 50), ("K", 300)]), &["bind y.lane -> thread.x"]);
    has(
        &by_default(SOFTMAX, &[("N", 5), ("D", 100)]),
        &["bind top.lane -> thread.x", "bind total.lane2 -> thread.x"],
    );
    // Short reductions, and reductions that get tiles, are not combined.
    assert!(!by_default(ROWS, &[("N", 33), ("K", 20)]).contains("lane"));
    let gemm = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
    assert!(!by_default(gemm, &[("M", 20), ("N", 20), ("K", 40)]).contains("lane"));
}

#[test]
fn sums_of_everything_are_shared_by_default() {
    let sum = "def sum(float(N) x) -> (s) { s +=! x(i) }";
    has(&by_default(sum, &[("N", 20000)]), &["rfactor s.part -> s_parts", "bind s.part -> thread.x"]);
    for length in [33, 256, 700] {
        has(&by_default(sum, &[("N", length)]), &["bind s.lane -> thread.x"]);
    }
    let moments = "def both(int32(N, M) x) -> (s, t) { s +=! x(i, j)\nt max=! x(i, j) * x(i, j) }";
    by_default(moments, &[("N", 90), ("M", 70)]);
}

#[test]
fn neighbours_in_memory_are_side_by_side_by_default() {
    // Sums of columns: each thread has a part of one column, and neighbouring threads have
    // neighbouring columns.
    let columns = "def columns(float(N, M) A) -> (s) { s(j) +=! A(i, j) }";
    let steps = by_default(columns, &[("N", 100), ("M", 70)]);
    has(&steps, &["rfactor s.part -> s_parts"]);
    assert!(!steps.contains("lane"), "{steps}");
    let channels = "def channels(float(N, C, H, W) I) -> (m) { m(c) max=! I(n, c, h, w) }";
    has(&by_default(channels, &[("N", 3), ("C", 5), ("H", 6), ("W", 7)]), &["fuse m.n, m.h, m.w -> along"]);
    by_default(
        "def cube(half(A, B, K) I) -> (s) { s(a, b) +=! I(a, b, k) }",
        &[("A", 20), ("B", 20), ("K", 50)],
    );
}

#[test]
fn operands_that_are_reduced_along_rows_are_staged_transposed() {
    let product = "def f(float(N, D) x, float(F, D) w) -> (y) { y(n, f) +=! x(n, d) * w(f, d) }";
    let steps = by_default(product, &[("N", 66), ("F", 70), ("D", 130)]);
    has(&steps, &["x_shared shared (d1, d0) pad 4", "w_shared shared (d1, d0) pad 4"]);
    // An operand whose results are neighbours anyway is copied as it is.
    let product = "def f(float(N, D) x, float(D, F) w) -> (y) { y(n, f) +=! x(n, d) * w(d, f) }";
    let steps = by_default(product, &[("N", 66), ("F", 70), ("D", 130)]);
    has(&steps, &["x_shared shared (d1, d0) pad 4"]);
    assert!(steps.lines().any(|line| line.ends_with("w_shared shared")), "{steps}");
}
