//! Schedules of scatters: reductions into elements that data chooses. Every accepted schedule
//! computes the program, and is proved.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{agrees, agrees_on_gpu, expect_agreement, program, refused, refused_on_gpu};
use tilewright_ir::{LoopNest, print};
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_target::Gpu;

/// Checks that a schedule computes the program, and that the prover shows it.
#[track_caller]
fn holds(source: &str, sizes: &[(&str, i64)], steps: &str) -> LoopNest {
    let nest = agrees(source, sizes, steps);
    let verdict = prove(&program(source, sizes), &nest);
    assert_eq!(verdict, Verdict::Proved, "{steps}\n{}", print::nest(&nest));
    nest
}

const COUNT: &str = "def count(uint8(H, W) x) -> (h) { h(x(y, i) % 4) +=! 1 }";
const SIZES: &[(&str, i64)] = &[("H", 7), ("W", 10)];

/// A table for each row, which a later statement adds up.
const ROWS: &str = "def rows(uint8(H, W) x) -> (total) {
    table(y, x(y, i) % 4) +=! i + 1
    total(b) +=! table(y, b)
}";

/// A table for each cell of 3 by 2 elements, with a maximum and a count.
const GRID: &str = "def grid(float(H, W) v, uint8(H, W) at) -> (g) {
    cells(y, x, at(3*y + i, 2*x + j) % 5, c) max=! mux(c, v(3*y + i, 2*x + j), 1)
      where y in 0:H/3, x in 0:W/2, c in 0:2, i in 0:3, j in 0:2
    g(y, x, z, c) = cells(y, x, z, c) + cells(y, x, min(z + 1, 4), c)
}";
const GRID_SIZES: &[(&str, i64)] = &[("H", 12), ("W", 10)];

#[test]
fn each_iteration_has_its_own_table() {
    for steps in [
        "rfactor h.y -> part",
        "rfactor h.y -> part\nparallel part.y",
        "rfactor h.y -> part\nparallel part.y\nreorder h.y, h.d0\nvectorize h.d0",
        "rfactor h.y -> part\nparallel h.d0",
        "split h.y -> yo, yi:2\nrfactor h.yo -> part\nparallel part.yo",
        "split h.i -> io, ii:4\nrfactor h.ii -> part\nunroll part.ii",
        "reorder h.i, h.y\nrfactor h.i -> part\nparallel part.i",
        "rfactor h.y -> part\nsplit h.y -> yo, yi:2\nrfactor h.yo -> sums\nparallel sums.yo",
        "rfactor h.y -> part\nrfactor part.i -> each",
    ] {
        holds(COUNT, SIZES, steps);
        holds(COUNT, &[("H", 1), ("W", 1)], steps);
    }
}

#[test]
fn the_table_of_an_iteration_is_filled_inside() {
    let nest = holds(COUNT, SIZES, "rfactor h.y -> part\nparallel part.y");
    let text = print::nest(&nest);
    let (parallel, fill) = (text.find("parallel y in 7").unwrap(), text.find("part[y, lane] = 0").unwrap());
    assert!(parallel < fill, "{text}");
}

#[test]
fn tables_of_rows_are_private_to_iterations() {
    for steps in [
        "parallel table.y",
        "parallel table.y\nsplit table.i -> io, iv:4\nvectorize table.iv",
        "split table.i -> io, ii:4\nrfactor table.ii -> part\nparallel part.y",
        "reorder total.y, total.b\ncompute_at table, total.y",
        "reorder total.y, total.b\nsplit total.y -> yo, yi:2\nrfactor total.yo -> part\ncompute_at table, part.yi\nparallel part.yo",
    ] {
        holds(ROWS, SIZES, steps);
    }
}

#[test]
fn cells_are_computed_where_they_are_used() {
    for steps in [
        "parallel cells.y",
        "reorder cells.i, cells.j, cells.c\nparallel cells.y",
        "reorder cells.i, cells.j, cells.c\nunroll cells.c\nparallel cells.y",
        "compute_at cells, g.y\nparallel g.y",
        "compute_at cells, g.x\nparallel g.y",
        "split g.y -> yo, yi:3\ncompute_at cells, g.yo\nparallel g.yo",
        "split g.x -> xo, xi:2\nreorder g.xo, g.y\ncompute_at cells, g.y\nreorder cells.i, cells.j, cells.c",
        "reorder cells.i, cells.c\nrfactor cells.i -> part",
        "fuse cells.y, cells.x -> t\nparallel cells.t",
    ] {
        holds(GRID, GRID_SIZES, steps);
    }
}

/// A result can be computed in parts, too, if each part has the rows of one iteration.
#[test]
fn rows_of_a_result_are_computed_at_their_use() {
    let source = "def f(float(B, N) v, int32(N) at) -> (h, s) {
        h(b, k) +=! v(b, n) where k = at(n), k in 0:16
        s(b) +=! h(b, j)
    }";
    let sizes = &[("B", 6), ("N", 5)];
    holds(source, sizes, "compute_at h, s.b\nparallel s.b");
    holds(source, sizes, "split s.b -> bo, bi:2\ncompute_at h, s.bo\nparallel s.bo");
}

#[test]
fn tables_that_set_other_rows_stay_whole() {
    let shifted = "def f(float(B, N) v, int32(N) at) -> (float(B + 1, 4) h, s) {
        h(b + 1, at(n)) +=! v(b, n)
        s(b) +=! h(b + 1, j)
    }";
    let sizes = &[("B", 3), ("N", 5)];
    let reason = refused(shifted, sizes, "compute_at h, s.b").reason.to_string();
    assert!(reason.contains("sets all of it to the neutral element"), "{reason}");
    let reason = refused(shifted, sizes, "reorder h.n, h.b\nrfactor h.n -> part").reason.to_string();
    assert!(reason.contains("do not reach all elements"), "{reason}");
    // The proofs know no version of the row that no instance writes.
    let nest = agrees(shifted, sizes, "parallel s.b");
    let verdict = prove(&program(shifted, sizes), &nest);
    assert!(matches!(verdict, Verdict::Undecided(_)), "{verdict:?}");
}

/// Names that a step gives to loops must be free.
#[test]
fn loops_over_tables_need_a_name() {
    let source = "def f(uint8(N, M) x) -> (h) { h(x(d0, i) % 4) +=! 1 where d0 in 0:N, i in 0:M }";
    let reason = refused(source, &[("N", 4), ("M", 4)], "rfactor h.i -> part").reason.to_string();
    assert!(reason.contains("`d0`"), "{reason}");
}

/// Threads that share a reduced loop update the elements atomically.
#[test]
fn threads_share_tables_of_integers() {
    let text = print::nest(&holds(COUNT, SIZES, "parallel h.y"));
    assert!(text.contains("atomic h[x[y, i] % 4] += 1"), "{text}");
    holds(COUNT, SIZES, "split h.i -> io, iv:4\nvectorize h.iv\nparallel h.y");
    holds(ROWS, SIZES, "reorder table.i, table.y\nparallel table.i");
    let text = print::nest(&holds(ROWS, SIZES, "parallel table.y"));
    assert!(!text.contains("atomic"), "{text}");
    let least = "def f(int16(N) v, uint8(N) at) -> (h) { h(at(n) % 5) min=! v(n) }";
    holds(least, &[("N", 9)], "parallel h.n");
}

/// The bits of a result must be the same in every run, so the order of float sums must be, too.
#[test]
fn threads_do_not_share_tables_of_floats() {
    let sum = "def f(float(N) v, uint8(N) at) -> (h) { h(at(n) % 5) +=! v(n) }";
    let reason = refused(sum, &[("N", 9)], "parallel h.n").reason.to_string();
    assert!(reason.contains("depends on the order") && reason.contains("rfactor"), "{reason}");
    let product = "def f(int32(N) v, uint8(N) at) -> (h) { h(at(n) % 5) *=! v(n) }";
    let reason = refused(product, &[("N", 9)], "parallel h.n").reason.to_string();
    assert!(reason.contains("no atomic operation"), "{reason}");
}

/// Checks that a schedule for a GPU computes the program thread by thread, and is proved.
#[track_caller]
fn holds_on_gpu(source: &str, sizes: &[(&str, i64)], steps: &str) -> String {
    let nest = agrees_on_gpu(source, sizes, steps);
    let verdict = prove(&program(source, sizes), &nest);
    assert_eq!(verdict, Verdict::Proved, "{steps}\n{}", print::nest(&nest));
    print::nest(&nest)
}

#[test]
fn blocks_and_threads_share_tables() {
    let blocks = "bind h.y -> block.x\nsplit h.i -> io, it:4\nreorder h.it, h.io\nbind h.it -> thread.x";
    let text = holds_on_gpu(COUNT, SIZES, blocks);
    assert!(text.contains("atomic h"), "{text}");
    holds_on_gpu(COUNT, SIZES, "bind h.y -> block.x");
    holds_on_gpu(COUNT, SIZES, "bind h.i -> thread.x");
    holds_on_gpu(COUNT, SIZES, "bind h.i -> thread.y\nbind h.y -> block.x");
    holds_on_gpu(ROWS, SIZES, "bind table.y -> block.x\nbind table.i -> thread.x");
    holds_on_gpu(ROWS, SIZES, "bind table.y -> thread.y\nbind table.i -> thread.x");
    holds_on_gpu(ROWS, SIZES, "bind table.y -> block.x");
    holds_on_gpu(ROWS, SIZES, "reorder table.i, table.y\nbind table.i -> block.x\nbind table.y -> thread.x");
    holds_on_gpu(ROWS, SIZES, "bind table.y -> block.y\nbind table.i -> block.x");
}

/// The table of a block is in shared memory, and a part of the sum adds it up.
#[test]
fn tables_of_blocks_are_in_shared_memory() {
    let parts = "reorder total.y, total.b\nsplit total.y -> yo, yi:2\nrfactor total.yo -> part\nreorder part.b, part.yi\ncompute_at table, part.yo\nbind part.yo -> block.x\nbind part.b -> thread.x";
    let text = holds_on_gpu(ROWS, &[("H", 8), ("W", 10)], &format!("{parts}\nbind table.i -> thread.x"));
    assert!(text.contains("shared int32 table[2, 4]"), "{text}");
    let warps = format!("{parts}\nbind table.y -> thread.y\nbind table.i -> thread.x");
    for sizes in [[("H", 8), ("W", 10)], [("H", 7), ("W", 3)]] {
        holds_on_gpu(ROWS, &sizes, &warps);
    }
}

/// Rows that begin below zero are the loops' own too, also in a last block that has fewer of them.
/// Each thread fills the rows that it then reduces into.
#[test]
fn rows_of_negative_coordinates_are_filled_by_their_threads() {
    let source = "def f(uint8(H, W) at, float(H, W) v) -> (s) {
        h(x, at(y, x + 1) % 4, c) +=! c * v(y, x + 1) where x in -1:W - 1, y in 0:H, c in 0:2
        s(x) = h(x - 1, 0, 1) + h(x - 1, 3, 1) - h(x - 1, 2, 0) where x in 0:W
    }";
    let steps = "split s.x -> xb, xt:4\nbind s.xb -> block.x\nbind s.xt -> thread.x\ncompute_at h, s.xb
        fuse h.x, h.c -> t\nreorder h.t, h.y\nbind h.t -> thread.x";
    for width in [6, 8] {
        let text = holds_on_gpu(source, &[("H", 5), ("W", width)], steps);
        let (fill, threads) = (text.find("= 0.0").unwrap(), text.find("thread.x t in").unwrap());
        assert!(threads < fill && text.matches("barrier").count() == 1, "{text}");
    }
}

/// A histogram of one statement: the totals of an inner loop are made inside the block.
#[test]
fn a_reduction_in_parts_of_parts_has_tables_in_shared_memory() {
    let sizes = &[("H", 13), ("W", 11)];
    let parts = "split h.y -> yo, yi:4\nrfactor h.yo -> part\nrfactor part.yi -> warp\nbind part.yo -> block.x\nbind part.d1 -> thread.x\nsplit warp.i -> io, it:4\nbind warp.it -> thread.x\nbind h.d0 -> thread.x";
    let text = holds_on_gpu(COUNT, sizes, &format!("{parts}\nbind warp.yi -> thread.y"));
    assert!(text.contains("shared int32 warp[4, 4]"), "{text}");
    // Atomic updates need no barrier between them.
    let text = holds_on_gpu(COUNT, sizes, parts);
    assert_eq!(text.matches("barrier").count(), 2, "{text}");
}

#[test]
fn tables_of_guarded_loops_are_filled() {
    let source = "def f(uint8(K, K) I, float(K) v) -> (t) { t(I(i, i) % 6) +=! v(j) * k where i in 0:K, j in 0:1, k in 0:2 }";
    holds_on_gpu(source, &[("K", 3)], "fuse t.i, t.j -> n\nsplit t.n -> no, ni:2\nrfactor t.ni -> part");
}

#[test]
fn threads_that_cannot_wait_do_not_share_a_table() {
    let steps = "reorder total.y, total.b\ncompute_at table, total.y\nbind table.i -> thread.x";
    let source = ROWS.replace("total(b) +=! table(y, b)", "total(y) +=! table(y, b)");
    let steps = steps.replace("reorder total.y, total.b\n", "") + "\nbind total.y -> thread.y";
    let reason = refused_on_gpu(&source, SIZES, &steps).reason.to_string();
    assert!(reason.contains("cannot wait inside"), "{reason}");
    let small = "def f(uint8(N) at) -> (h) { h(at(n) % 5) +=! at(n) }";
    let reason = refused_on_gpu(small, &[("N", 9)], "bind h.n -> thread.x").reason.to_string();
    assert!(reason.contains("no atomic operations on uint8"), "{reason}");
}

#[test]
fn a_table_is_filled_by_one_kernel() {
    let steps = "fuse table.y, table.i -> t\nsplit table.t -> o, n:32\nbind table.o -> block.x\n\
                 bind table.n -> thread.x";
    for sizes in [SIZES, &[("H", 300), ("W", 10)], &[("H", 1), ("W", 1)]] {
        let text = holds_on_gpu(ROWS, sizes, steps);
        let fill = text.lines().take_while(|line| !line.contains("= 0")).collect::<Vec<_>>();
        assert!(!fill.iter().any(|line| line.trim_start().starts_with("for ")), "{text}");
        assert!(fill.iter().any(|line| line.contains("block.x")), "{text}");
    }
    // Rows that no point writes are filled too. The proofs know no version of them.
    let nest = agrees_on_gpu(ODD_ROWS, &[("H", 9), ("W", 10)], "bind table.i -> thread.x");
    let text = print::nest(&nest);
    assert!(text.contains("block.x element"), "{text}");
}

/// A table of which the points of the program reach every second row.
const ODD_ROWS: &str = "def rows(uint8(H, W) x) -> (table) {
    int32(2*H, 4) table
    table(2*y + 1, x(y, i) % 4) +=! i + 1 where y in 0:H, i in 0:W
}";

#[test]
fn default_schedules_for_gpus_divide_scatters_of_few_rows() {
    let gpu = Gpu::h200();
    let loops = |source: &str, sizes: &[(&str, i64)]| {
        let program = program(source, sizes);
        let nest = apply(&program, &schedule_by_rules(&program, &gpu), &gpu).unwrap();
        expect_agreement(&program, &nest, 1);
        assert_eq!(prove(&program, &nest), Verdict::Proved, "{}", print::nest(&nest));
        print::nest(&nest)
    };
    // Threads of all blocks count into one table.
    let histogram = loops(COUNT, &[("H", 200), ("W", 100)]);
    assert!(histogram.contains("block.x block in 79") && histogram.contains("atomic h["), "{histogram}");
    // The order of a float's sums stays, within each part.
    let floats = "def floats(int32(E) to, float(E, D) x) -> (sum) {
        float(50, D) sum
        sum(to(e) % 50, d) +=! x(e, d)
    }";
    let floats = loops(floats, &[("E", 3000), ("D", 8)]);
    assert!(floats.contains("sum_parts[") && !floats.contains("atomic"), "{floats}");
    // Rows that keep the GPU busy by themselves need no tables of parts.
    let rows = "def rows(int32(E, 4) to, float(E, 4) x) -> (sum) { float(E, 8) sum sum(e, to(e, k) % 8) +=! x(e, k) }";
    assert!(!loops(rows, &[("E", 70_000)]).contains("sum_parts"));
    // Few terms are not worth it.
    assert!(!loops(COUNT, SIZES).contains("atomic"));
}
