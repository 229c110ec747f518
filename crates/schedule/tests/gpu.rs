//! Schedules for GPUs: loops over blocks and threads, shared memory, barriers and limits. The
//! interpreter runs every nest thread by thread, so a missing barrier is an error.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;
mod support;

use examples::examples;
use support::{agrees_on_gpu as agrees, at_sizes, cpu, expect_agreement, program, refused_on_gpu, schedule};
use tilewright_interp::{Order, RunError, run_nest};
use tilewright_ir::nest::{Stmt, Sync};
use tilewright_ir::print;
use tilewright_schedule::{GpuResource, Illegal, StatementName, apply, blame, complete, schedule_by_rules};
use tilewright_syntax::parse;
use tilewright_target::{Gpu, Target};

const GEMM: &str = "def gemm(float(M, K) A, const float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
const SIZES: &[(&str, i64)] = &[("M", 21), ("N", 37), ("K", 11)];

/// Tiles with operands in shared memory and results in registers.
const TILES: &str = "
    split C.i -> ib, it:4, ii:2
    split C.j -> jb, jt:8, ji:2
    split C.k -> ko, ki:4
    reorder C.ib, C.jb, C.ko, C.it, C.jt, C.ki, C.ii, C.ji
    bind C.ib -> block.y
    bind C.jb -> block.x
    fuse C.it, C.jt -> t
    bind C.t -> thread.x
    unroll C.ii
    unroll C.ji
    promote C at C.jb -> tile registers
    promote A at C.ko -> As shared (d1, d0) pad 1
    promote B at C.ko -> Bs shared
    fuse As.l0, As.l1 -> l
    split As.l -> lo, lt:32
    reorder As.lt, As.lo
    bind As.lt -> thread.x
    bind Bs.l1 -> thread.x";

#[track_caller]
fn refused(source: &str, sizes: &[(&str, i64)], steps: &str) -> Illegal {
    refused_on_gpu(source, sizes, steps).reason
}

fn without_barriers(stmts: &mut Vec<Stmt>) {
    stmts.retain(|stmt| *stmt != Stmt::Sync(Sync::Barrier));
    for stmt in stmts {
        match stmt {
            Stmt::For(own) => without_barriers(&mut own.body),
            Stmt::If(own) => {
                without_barriers(&mut own.then);
                without_barriers(&mut own.otherwise);
            }
            Stmt::Allocate(own) => without_barriers(&mut own.body),
            _ => {}
        }
    }
}

#[test]
fn threads_share_tiles_of_operands() {
    let loops = print::nest(&agrees(GEMM, SIZES, TILES));
    for part in
        ["block.y ib in 3", "block.x jb in 3", "thread.x t in 32", "shared float32 As[4, 9]", "barrier"]
    {
        assert!(loops.contains(part), "no {part}:\n{loops}");
    }
    agrees(GEMM, &[("M", 16), ("N", 32), ("K", 8)], TILES);
}

#[test]
fn every_barrier_is_needed_and_none_is_missing() {
    let mut nest = agrees(GEMM, &[("M", 16), ("N", 32), ("K", 8)], TILES);
    let barriers = print::nest(&nest).matches("barrier").count();
    // One barrier after the copies, and one before the next copies.
    assert_eq!(barriers, 2, "{}", print::nest(&nest));
    without_barriers(&mut nest.body);
    let program = program(GEMM, &[("M", 16), ("N", 32), ("K", 8)]);
    let error = run_nest(&nest, &program, support::inputs(&program, 1), Order::Ascending).unwrap_err();
    assert!(matches!(error, RunError::Race(_)), "{error}");
}

#[test]
fn threads_share_gathered_rows() {
    let source = "def lut(const float(E, D) LUT, int32(B, L) I) -> (O) { O(b, d) +=! LUT(I(b, l), d) }";
    let tiles = "split O.b -> bb, bt:4, bi:2
        split O.d -> db, dt:8
        split O.l -> lo, lk:3
        reorder O.bb, O.db, O.lo, O.bt, O.dt, O.lk, O.bi
        fuse O.bb, O.db -> block
        fuse O.bt, O.dt -> t
        bind O.block -> block.x
        bind O.t -> thread.x
        unroll O.bi
        promote O at O.block -> tile registers
        promote LUT at O.lo -> rows shared gathered pad 1
        fuse rows.l0, rows.l1, rows.l2 -> l
        split rows.l -> lr, lt:32
        reorder rows.lt, rows.lr
        bind rows.lt -> thread.x";
    let indices = "
        promote I at O.lo -> Is shared
        fuse Is.l0, Is.l1 -> l
        split Is.l -> lr, lt:32
        reorder Is.lt, Is.lr
        bind Is.lt -> thread.x";
    let ahead = "\npipeline O.lo stages 2";
    for sizes in [[("E", 9), ("B", 13), ("D", 11), ("L", 7)], [("E", 9), ("B", 16), ("D", 16), ("L", 6)]] {
        let loops = print::nest(&agrees(source, &sizes, tiles));
        assert!(loops.contains("shared float32 rows[8, 3, 9]"), "{loops}");
        agrees(source, &sizes, &format!("{tiles}{ahead}"));
        agrees(source, &sizes, &format!("{tiles}{indices}"));
        agrees(source, &sizes, &format!("{tiles}{indices}{ahead}"));
    }
}

#[test]
fn a_tiled_product_and_what_follows_it_are_one_kernel() {
    let source = "def layer(float(M, K) A, float(K, N) B, float(N) b) -> (E) {
        T(i, j) +=! A(i, k) * B(k, j)
        E(i, j) = max(T(i, j) + b(j), 0) }";
    let tiles = "split E.i -> ib, ii:8
        split E.j -> jb, ji:16
        reorder E.ib, E.jb, E.ii, E.ji
        bind E.ib -> block.y
        bind E.jb -> block.x
        compute_at T, E.jb
        split T.i -> it, ir:2
        split T.j -> jt, jr:2
        split T.k -> ko, kk:4
        reorder T.ko, T.it, T.jt, T.kk, T.ir, T.jr
        fuse T.it, T.jt -> t
        bind T.t -> thread.x
        unroll T.ir
        unroll T.jr
        promote T at T.jb -> tile registers
        promote A at T.ko -> As shared (d1, d0)
        promote B at T.ko -> Bs shared
        bind As.l1 -> thread.x
        bind Bs.l1 -> thread.x
        fuse E.ii, E.ji -> e
        split E.e -> eo, et:32
        reorder E.et, E.eo
        bind E.et -> thread.x";
    let loops = print::nest(&agrees(source, &[("M", 16), ("N", 32), ("K", 12)], tiles));
    for part in ["shared float32 T[8, 16]", "register float32 tile[32, 2, 2]", "tile[t, ir, jr] += As["] {
        assert!(loops.contains(part), "no {part}:\n{loops}");
    }
    agrees(source, &[("M", 13), ("N", 21), ("K", 7)], tiles);
}

#[test]
fn a_thread_has_operands_in_registers() {
    let own = format!("{TILES}\npromote As at C.ki -> a registers\npromote Bs at C.ki -> b registers");
    for sizes in [SIZES, &[("M", 16), ("N", 32), ("K", 8)]] {
        let loops = print::nest(&agrees(GEMM, sizes, &own));
        for part in
            ["register float32 a[1, 2]", "register float32 b[1, 2]", "unroll l1 in 2", "a[0, ii] * b[0, ji]"]
        {
            assert!(loops.contains(part), "no {part}:\n{loops}");
        }
    }
    // Registers filled directly from memory, where tiles extend past the end.
    let (tiles, _) = TILES.split_once("\n    promote A").unwrap();
    agrees(
        GEMM,
        SIZES,
        &format!("{tiles}\npromote A at C.ki -> a registers\npromote B at C.ki -> b registers"),
    );
}

#[test]
fn registers_are_a_threads_own_without_addresses_and_few() {
    let (tiles, _) = TILES.split_once("\n    promote A").unwrap();
    let outside = refused(GEMM, SIZES, &format!("{tiles}\npromote B at C.ko -> b registers"));
    assert!(outside.to_string().contains("outside of the loops over threads"), "{outside}");
    let (serial, _) = tiles.split_once("\n    unroll C.ji").unwrap();
    let serial = refused(GEMM, SIZES, &format!("{serial}\npromote B at C.ki -> b registers"));
    assert!(
        matches!(&serial, Illegal::RegisterIndex { name, loop_name } if name == "b" && loop_name == "ji"),
        "{serial}"
    );
    let rows = "split C.j -> jb, jt:8
        bind C.i -> block.x
        bind C.jb -> block.y
        bind C.jt -> thread.x
        promote A at C.jt -> a registers";
    let many = refused(GEMM, &[("M", 4), ("N", 16), ("K", 300)], rows);
    assert!(matches!(many, Illegal::ThreadRegisters { needed: 300, .. }), "{many}");
}

#[test]
fn registers_in_subscripts_of_a_result_have_known_subscripts_too() {
    let source = "def f(int32(4) x) -> (y) { y(i, clamp(x(j), 0, 2)) max=! 1 where i in 0:8 }";
    let steps = "bind y.i -> thread.x\npromote x at y.i -> p registers";
    let found = refused(source, &[], steps);
    let Illegal::RegisterIndex { name, loop_name } = &found else { panic!("{found}") };
    assert_eq!((name.as_str(), loop_name.as_str()), ("p", "j"));
    agrees(source, &[], &format!("{steps}\nunroll y.j"));
}

#[test]
fn a_thread_may_use_all_of_its_registers() {
    let registers = Gpu::h200().thread_registers as i64;
    assert_eq!(registers, 15 * 17);
    let tile = |columns: i64| {
        format!(
            "split C.i -> ib, ii:15\nsplit C.j -> jb, jt:2, jj:{columns}
             reorder C.ib, C.jb, C.jt, C.k, C.ii, C.jj
             bind C.ib -> block.y\nbind C.jb -> block.x\nbind C.jt -> thread.x
             unroll C.ii\nunroll C.jj\npromote C at C.jt -> acc registers"
        )
    };
    let sizes = &[("M", 15), ("N", 36), ("K", 5)];
    agrees(GEMM, sizes, &tile(17));
    let many = refused(GEMM, sizes, &tile(18));
    assert!(matches!(many, Illegal::ThreadRegisters { needed: 270, available: 255, .. }), "{many}");
    let row = |count: i64| {
        format!(
            "bind C.i -> block.y\nbind C.j -> thread.x
             split C.k -> ko, kio:5, kii:{count}\nunroll C.kio\nunroll C.kii\npromote A at C.ko -> a registers"
        )
    };
    let sizes = &[("M", 2), ("N", 3), ("K", 520)];
    agrees(GEMM, sizes, &row(51));
    let many = refused(GEMM, sizes, &row(52));
    assert!(matches!(many, Illegal::ThreadRegisters { needed: 260, available: 255, .. }), "{many}");
}

/// The step that `blame` finds at fault, counted from 1.
fn culprit(source: &str, sizes: &[(&str, i64)], steps: &str) -> usize {
    let refusal = refused_on_gpu(source, sizes, steps);
    assert_eq!(refusal.step, None, "{refusal}");
    let blamed = blame(&program(source, sizes), &schedule(steps), &Gpu::h200(), refusal.clone());
    assert_eq!(blamed.reason, refusal.reason);
    blamed.step.unwrap_or_else(|| panic!("no step is at fault\n{refusal}")) + 1
}

#[test]
fn what_only_passes_for_gpus_refuse_is_put_down_to_a_step() {
    let sizes = &[("M", 256), ("N", 256), ("K", 4096)];
    let tiles = "split C.i -> ib, it:64\nsplit C.j -> jb, jt:32\nreorder C.ib, C.jb, C.it, C.jt
        bind C.ib -> block.y\nbind C.jb -> block.x\n";
    let threads = format!("{tiles}bind C.it -> thread.y\nbind C.jt -> thread.x\nsplit C.k -> ko, ki:8");
    assert_eq!(culprit(GEMM, sizes, &threads), 7);
    let columns = "split C.j -> jb, jt:32\nreorder C.i, C.jb, C.k, C.jt
        bind C.i -> block.y\nbind C.jb -> block.x\n";
    let shared = format!("{columns}promote B at C.jb -> Bs shared\nbind C.jt -> thread.x");
    assert_eq!(culprit(GEMM, sizes, &shared), 5);
    let parts = "split C.j -> jb, jt:32\nsplit C.k -> ko, ki:8\nreorder C.i, C.jb, C.ko, C.jt, C.ki
        bind C.i -> block.y\nbind C.jb -> block.x\nbind C.jt -> thread.x\nunroll C.ki\n";
    let outside = format!("{parts}promote A at C.ko -> a registers\npromote B at C.ko -> Bs shared");
    assert_eq!(culprit(GEMM, sizes, &outside), 8);
    // Of two buffers at fault, the step is that of the one that the message names.
    let both = format!("{parts}promote A at C.ko -> a registers\npromote B at C.ko -> b registers");
    let is_first = refused(GEMM, sizes, &both).to_string().starts_with("`a`");
    assert_eq!(culprit(GEMM, sizes, &both), if is_first { 8 } else { 9 });
    // The buffer is at fault, not the kinds that its loops get later.
    let many = "bind C.i -> block.y\nsplit C.j -> jb, jt:32\nsplit C.k -> ko, ki:260
        reorder C.jb, C.jt, C.ko, C.ki\nbind C.jb -> block.x\nbind C.jt -> thread.x
        promote A at C.ko -> a registers\nsplit C.ki -> kio, kii:52\nunroll C.kio\nunroll C.kii";
    assert_eq!(culprit(GEMM, sizes, many), 7);
    let sums = "def two(float(M, N) A) -> (S, C) { S(i) +=! A(i, j)\n C(i, j) = A(i, j) / S(i) }";
    let beside = "bind C.i -> block.y\nbind C.j -> block.x\ncompute_at S, C.i\nsplit S.j -> jo, ji:4";
    assert_eq!(culprit(sums, &[("M", 8), ("N", 16)], beside), 3);
}

/// Rows of a window with padding in shared memory, in groups of four elements.
const GROUPS: &str = "
    split O.x -> xb, xt:TILE
    bind O.y -> block.y
    bind O.xb -> block.x
    bind O.xt -> thread.x
    promote O at O.xb -> total registers
    promote I at O.xb -> Is shared (d0, d1/4, d1%4)
    bind Is.l1 -> thread.x
    vectorize Is.l2";

#[test]
fn shared_memory_has_whole_groups_of_elements() {
    let blur = "def blur(float(H, W) I, int pad) -> (O) {
        O(y, x) +=! (0 <= u && u < H && 0 <= v && v < W) ? I(u, v) : 0
          where y in 0:H, x in 0:W, dy in 0:3, dx in 0:3, u = y + dy - 1, v = x + dx - pad }";
    // The tile's 18 columns begin one element before a group. The columns of the first and the last
    // tile are partly outside the tensor.
    let sizes = |width| [("H", 5), ("W", width), ("pad", 1)];
    let loops = print::nest(&agrees(blur, &sizes(48), &GROUPS.replace("TILE", "16")));
    for part in ["shared float32 Is[3, 6, 4]", "16*xb + 4*l1 - 4 >= 0", "48 - 16*xb - 4*l1 >= 0"] {
        assert!(loops.contains(part), "no {part}:\n{loops}");
    }
    // Regions that begin at a group, tiles that begin anywhere, rows that do not consist of whole
    // groups, and tiles that do not divide.
    agrees(blur, &[("H", 5), ("W", 48), ("pad", 0)], &GROUPS.replace("TILE", "16"));
    agrees(blur, &sizes(48), &GROUPS.replace("TILE", "6"));
    agrees(blur, &sizes(46), &GROUPS.replace("TILE", "16"));
    agrees(blur, &sizes(52), &GROUPS.replace("TILE", "16"));
    agrees(blur, &sizes(48), &format!("{}\nreorder O.dy, O.xt", GROUPS.replace("TILE", "16")));
}

#[test]
fn groups_that_are_partly_outside_are_asked_about_one_by_one() {
    let clipped = "def f(float(H, W) I) -> (O) {
        O(y, x) +=! (0 <= v && v < W - 1) ? I(y, v) : 0
          where y in 0:H, x in 0:W, dy in 0:1, dx in 0:3, v = x + dx - 1 }";
    let loops = print::nest(&agrees(clipped, &[("H", 3), ("W", 48)], &GROUPS.replace("TILE", "16")));
    assert!(!loops.contains("Is[1, 6, 4]"), "{loops}");
}

/// A transposed convolution of stride 2 along one axis, padded by one.
const TRANSPOSED: &str = "def up(float(C, W) I, float(C, K, X) F) -> (O) {
    O(k, w) +=! (w + 1 - x) % 2 == 0 ? (0 <= y && y < W ? I(c, y) : 0) * F(c, k, x) : 0
      where w in 0:2*W - 4 + X, y = (w + 1 - x)/2 }";

#[test]
fn windows_behind_a_remainder_are_as_large_as_what_is_read_of_them() {
    let steps = "split O.w -> wb, wt:16
        split O.c -> co, ci:2
        reorder O.k, O.wb, O.co, O.wt, O.ci, O.x
        fuse O.k, O.wb -> b
        bind O.b -> block.x
        bind O.wt -> thread.x
        promote O at O.b -> own registers
        promote I at O.co -> Is shared
        bind Is.l1 -> thread.x";
    // Sixteen results use eight inputs, and one more on each side. Threads past the end compute
    // unused values.
    for (taps, width) in [(4, "10"), (3, "9"), (2, "9")] {
        let sizes = [("C", 4), ("W", 13), ("K", 3), ("X", taps)];
        let nest = agrees(TRANSPOSED, &sizes, steps);
        let loops = print::nest(&nest);
        assert!(loops.contains(&format!("shared float32 Is[2, {width}]")), "{taps} taps:\n{loops}");
    }
    // A condition that reads the tensor gives no bound, because it reads before the remainder is
    // checked.
    let asked = TRANSPOSED.replace("(w + 1 - x) % 2 == 0 ?", "I(c, 0) < 2 && (w + 1 - x) % 2 == 0 ?");
    agrees(&asked, &[("C", 4), ("W", 13), ("K", 3), ("X", 4)], steps);
}

#[test]
fn vectors_that_are_whole_or_not_at_all_are_asked_once() {
    let steps = |lanes: i64| {
        format!(
            "split C.i -> ib, it:4
            split C.j -> jb, jt:8
            reorder C.ib, C.jb, C.it, C.jt, C.k
            bind C.ib -> block.y
            bind C.jb -> block.x
            fuse C.it, C.jt -> t
            bind C.t -> thread.x
            promote B at C.jb -> Bs shared
            fuse Bs.l0, Bs.l1 -> l
            split Bs.l -> lo, lt:32, lv:{lanes}
            reorder Bs.lt, Bs.lo, Bs.lv
            bind Bs.lt -> thread.x
            vectorize Bs.lv"
        )
    };
    // Of 80 elements, the first 20 of 32 threads copy 20 groups of four.
    let loops = print::nest(&agrees(GEMM, &[("M", 5), ("N", 24), ("K", 10)], &steps(4)));
    let whole = loops
        .split_once("vector lv in 4")
        .is_some_and(|(before, _)| before.ends_with("if 4*lt <= 79\n          "));
    assert!(whole, "{loops}");
    // Of 88 elements, the last group of sixteen has eight.
    agrees(GEMM, &[("M", 5), ("N", 24), ("K", 11)], &steps(16));
}

#[test]
fn results_are_stored_only_where_they_are_with_a_reduced_loop_innermost() {
    // The guards for threads past the end are at the innermost loop, which the stores have no copy
    // of.
    let steps = "split C.i -> ib, it:4
        split C.j -> jb, jt:16
        split C.k -> ko, ki:4
        reorder C.ib, C.jb, C.ko, C.it, C.jt, C.ki
        fuse C.ib, C.jb -> b
        fuse C.it, C.jt -> t
        bind C.b -> block.x
        bind C.t -> thread.x
        unroll C.ki
        promote C at C.b -> own registers";
    agrees(GEMM, SIZES, steps);
}

#[test]
fn what_threads_of_a_thread_give_it_is_waited_for() {
    let source = "def f(float(N, 2) I) -> (T) { T(i, j) = 1 where i in 0:N, j in 0:2
        T(i, j) += I(i, k) where j in 0:2 }";
    let steps = "compute_at T, T[2].i\nbind T[2].i -> thread.y\nfuse T.i, T.j -> t\nbind T.t -> thread.z";
    let loops = print::nest(&agrees(source, &[("N", 3)], steps));
    assert_eq!(loops.matches("thread.y i in 3").count(), 2, "{loops}");
}

#[test]
fn statements_of_one_thread_need_no_barrier() {
    let source = "def twice(float(N) I) -> (O) { T(i) = I(i) + 1
        O(i) = T(i) * 2 }";
    let steps = "split O.i -> ib, it:8\nbind O.ib -> block.x\nbind O.it -> thread.x\ncompute_at T, O.ib\nbind T.i -> thread.x";
    let loops = print::nest(&agrees(source, &[("N", 32)], steps));
    assert!(!loops.contains("barrier"), "{loops}");
}

/// A schedule that runs a whole ordered loop over `t` in one block, with the threads inside it.
fn in_one_block(source: &str, statement: &str) -> String {
    let steps = format!(
        "split {statement}.t -> to, ti:9\nbind {statement}.to -> block.x\nbind {statement}.i -> thread.x"
    );
    print::nest(&agrees(source, &[], &steps))
}

#[test]
fn threads_wait_for_an_element_that_another_thread_changed_in_an_earlier_iteration() {
    let moved = "def f(float(12) a) -> (y) { y(i) = a(i) where i in 0:12
        for t in 0:4 { y(i + t) = y(i + t) * 2 + 1 where i in 0:8 } }";
    let loops = in_one_block(moved, "y[2]");
    assert!(loops.contains("barrier"), "{loops}");
    let buffers = "def f(float(8) a) -> (w) { w(b, i) = a(i) where b in 0:2, i in 0:8
        for t in 0:5 { w((t + 1) % 2, i) = w(t % 2, (i + 3) % 8) + 1 where i in 0:8 } }";
    let loops = in_one_block(buffers, "w[2]");
    assert!(loops.contains("barrier"), "{loops}");
}

#[test]
fn threads_wait_for_each_other_where_their_remainders_differ() {
    let source = "def f(float(4) a) -> (y, w) { w(i) = a(i) where i in 0:4
        for t in 0:3 {
            y(i) = w((i + 1) % 4) + 1 where i in 0:4
            w(i) = y(i % 4) where i in 0:4
            y((i + 1) % 4) = w(i % 4) where i in 0:4
        } }";
    let steps = "split w[2].t -> to, ti:9\nbind w[2].to -> block.x
        bind y[1].i -> thread.x\nbind w[2].i -> thread.x\nbind y[2].i -> thread.x";
    agrees(source, &[], steps);
}

#[test]
fn elements_of_one_thread_in_all_iterations_need_no_barrier() {
    let rows = "def f(float(5, 8) a) -> (y) { y(t, i) = a(t, i) where t in 0:5, i in 0:8
        for t in 0:4 { y(t + 1, i) = y(t, i) + 1 where i in 0:8 } }";
    let digits = "def f(float(40) a) -> (y) { y(i) = a(i) where i in 0:40
        for t in 0:5 { y(8*t + i) = y(8*t + i) * 2 where i in 0:8 } }";
    for source in [rows, digits] {
        let loops = in_one_block(source, "y[2]");
        assert!(!loops.contains("barrier"), "{loops}");
    }
}

#[test]
fn a_vector_loop_runs_along_the_last_dimension_of_registers() {
    let source = "def f(float(3) a) -> (y) { y(i, j) = a(min(j, 2)) where i in 0:4, j in 0:4 }";
    let steps = "bind y.i -> thread.x\nvectorize y.j\npromote a at y.i -> own registers";
    let refusal = refused(source, &[], steps);
    assert!(matches!(&refusal, Illegal::RegisterLane { loop_name, .. } if loop_name == "j"), "{refusal}");
    agrees(source, &[], &steps.replace("vectorize", "unroll"));
}

#[test]
fn layers_are_one_kernel() {
    let source = "def layers(float(B, N) I, float(O, N) W, float(O) bias, float(P, O) V) -> (X, Y) {
        X(b, o) = bias(o)
        X(b, o) += I(b, n) * W(o, n)
        X(b, o) = fmax(X(b, o), 0)
        Y(b, p) = 1
        Y(b, p) += X(b, o) * V(p, o)
        Y(b, p) = fmax(Y(b, p), 0)
    }";
    let steps = "split Y[3].b -> bb, bi:3
        bind Y[3].bb -> block.x
        bind Y[3].p -> thread.x
        compute_at Y, Y[3].bb
        compute_at X, Y[3].bb
        bind Y.p -> thread.x
        bind Y[2].p -> thread.x
        bind X.o -> thread.x
        bind X[2].o -> thread.x
        bind X[3].o -> thread.x";
    let nest = agrees(source, &[("B", 7), ("N", 5), ("O", 6), ("P", 3)], steps);
    assert_eq!(nest.body.len(), 1, "{}", print::nest(&nest));
}

#[test]
fn limits_of_the_gpu_are_told() {
    let threads = "split C.i -> io, ii:16\nsplit C.j -> jo, ji:128\nreorder C.io, C.jo, C.ii, C.ji, C.k\nbind C.io -> block.x\n\
        bind C.ii -> thread.y\nbind C.ji -> thread.x";
    let large = &[("M", 64), ("N", 256), ("K", 300)];
    let reason = refused(GEMM, large, threads);
    assert!(matches!(reason, Illegal::GpuLimit { needed: 2048, available: 1024, .. }), "{reason}");
    let reason = refused(GEMM, &[("M", 2000), ("N", 4), ("K", 4)], "bind C.i -> thread.x");
    assert!(matches!(reason, Illegal::TooLong { .. }), "{reason}");
    let shared = "bind C.i -> block.x\npromote B at C.i -> Bs shared";
    let reason = refused(GEMM, large, shared);
    assert!(matches!(reason, Illegal::GpuLimit { what: GpuResource::SharedBytes, .. }), "{reason}");
    // Loops without blocks and threads are a kernel of one thread, and its shared buffers count as
    // its own memory.
    let reason = refused(GEMM, large, "promote B at C.i -> Bs shared");
    assert!(matches!(reason, Illegal::GpuLimit { what: GpuResource::ThreadBytes, .. }), "{reason}");
}

#[test]
fn data_chooses_no_register() {
    let source = "def f(int(N) x, int(2) q) -> (y) { y(i) = q(x(i) % 2) }";
    let reason = refused(source, &[("N", 8)], "bind y.i -> thread.x\npromote q at y.i -> own registers");
    assert!(matches!(reason, Illegal::RegisterData { .. }), "{reason}");
    assert_eq!(
        reason.to_string(),
        "`own` is in registers, and its subscripts depend on data: registers cannot be indexed at run time"
    );
}

#[test]
fn what_is_not_there_is_refused() {
    let on_cpu =
        |steps: &str| apply(&program(GEMM, SIZES), &schedule(steps), &cpu()).unwrap_err().reason.to_string();
    assert!(on_cpu("bind C.i -> block.x").contains("`parallel C.i`"));
    assert!(on_cpu("promote A at C.i -> As shared").contains("packed"));
    assert!(refused(GEMM, SIZES, "parallel C.i").to_string().contains("`bind C.i -> block.x`"));
    let reduced = refused(GEMM, SIZES, "bind C.k -> block.x");
    assert!(matches!(reduced, Illegal::CarriedDependence { .. }), "{reduced}");
    let inside = refused(GEMM, SIZES, "bind C.i -> thread.x\nbind C.j -> block.x");
    assert!(matches!(inside, Illegal::LoopKind(_)), "{inside}");
}

#[test]
fn every_example_runs_as_its_default_schedule_for_a_gpu_says() {
    let rounds: [&dyn Fn(usize) -> i64; 3] =
        [&|_| 1, &|at| 4 + at as i64, &|at| [17, 18, 16, 4, 3, 2, 2][at % 7]];
    let mut ran = 0;
    for path in examples() {
        let source = std::fs::read_to_string(&path).unwrap();
        for function in &parse(&source).ast.functions {
            for choose in rounds {
                let Some(program) = at_sizes(&source, &function.name.text, choose) else { continue };
                if tilewright_interp::count_points(&program) > 200_000 {
                    continue;
                }
                let gpu = Gpu::h200();
                let schedule = schedule_by_rules(&program, &gpu);
                let nest = apply(&program, &schedule, &gpu)
                    .unwrap_or_else(|refusal| panic!("{}: {refusal}\n{schedule}", path.display()));
                expect_agreement(&program, &nest, 3);
                ran += 1;
            }
        }
    }
    assert!(ran > 100, "only {ran} ran");
}

/// A row of a small image has too few pixels for the threads of a tile, so a tile takes pixels of
/// several rows.
#[test]
fn small_images_are_tiles_of_pixels_by_default() {
    let source = "def conv(float(C, H, W) I, const float(K, C, 3, 3) F) -> (O) {
        O(k, y, x) +=! I(c, y + dy, x + dx) * F(k, c, dy, dx)
    }";
    let program = program(source, &[("C", 24), ("H", 9), ("W", 9), ("K", 16)]);
    let gpu = Gpu::h200();
    let schedule = schedule_by_rules(&program, &gpu);
    let text = schedule.to_string();
    assert!(text.contains("fuse O.y, O.x -> pixels"), "{text}");
    assert!(text.contains("-> I_shared shared") && text.contains("-> F_shared shared"), "{text}");
    let nest = apply(&program, &schedule, &gpu).unwrap();
    let loops = print::nest(&nest);
    assert!(loops.contains("shared float32 I_shared[2, "), "two channels at a time:\n{loops}");
    expect_agreement(&program, &nest, 3);
}

/// A thread takes several rows where a tile would be small and enough threads remain to keep the
/// GPU busy.
#[test]
fn a_thread_has_rows_by_default_where_tiles_would_be_small() {
    let source = "def group(float(N, G, C, W) I, float(G, K, C, X) F) -> (O) {
        O(n, g, k, w) +=! I(n, g, c, w + x) * F(g, k, c, x) where w in 0:W - 8 }";
    let sizes = [("N", 64), ("G", 32), ("C", 3), ("W", 1000), ("K", 4), ("X", 9)];
    let program = program(source, &sizes);
    let own = schedule_by_rules(&program, Target::Gpu(&Gpu::h200())).to_string();
    assert!(own.contains("split O.k -> rows, row:4") && own.contains("unroll O.row"), "{own}");
    let small = [("N", 2), ("G", 2), ("C", 3), ("W", 19), ("K", 4), ("X", 9)];
    agrees(source, &small, &own);
}

/// A GPU that few threads keep busy, so that programs that are quick to interpret have enough
/// threads.
fn small_gpu() -> Gpu {
    Gpu { processors: 1, processor_threads: 16, ..Gpu::h200() }
}

/// The number of adjacent results of a thread in the default schedule, after checking that its
/// loops agree with the program.
#[track_caller]
fn lanes_by_default(source: &str, sizes: &[(&str, i64)]) -> i64 {
    let (program, gpu) = (program(source, sizes), small_gpu());
    let steps = schedule_by_rules(&program, &gpu);
    expect_agreement(&program, &apply(&program, &steps, &gpu).unwrap(), 1);
    let steps = steps.to_string();
    let count = [2, 4].into_iter().find(|lanes| steps.contains(&format!(", lane:{lanes}\n")));
    assert_eq!(count.is_some(), steps.contains("vectorize"), "{steps}");
    count.unwrap_or(1)
}

#[test]
fn threads_have_results_side_by_side_where_all_moves_along() {
    let scaled = "def f(float(N, M) A, float(M) b, float(N) c) -> (C) { C(i, j) = A(i, j) * b(j) + c(i) }";
    assert_eq!(lanes_by_default(scaled, &[("N", 6), ("M", 8)]), 4);
    assert_eq!(lanes_by_default(scaled, &[("N", 6), ("M", 10)]), 2);
    assert_eq!(lanes_by_default(scaled, &[("N", 8), ("M", 7)]), 1);
    // Consecutive results may continue over the ends of rows, whatever the length of rows.
    let whole = "def f(float(N, M) A) -> (C) { C(i, j) = A(i, j) > 0 ? A(i, j) : 0 }";
    assert_eq!(lanes_by_default(whole, &[("N", 8), ("M", 7)]), 4);
    assert_eq!(lanes_by_default(whole, &[("N", 9), ("M", 7)]), 1);
    let doubles = "def f(double(N, M) A) -> (C) { C(i, j) = A(i, j) * 2 }";
    assert_eq!(lanes_by_default(doubles, &[("N", 6), ("M", 8)]), 2);
}

#[test]
fn threads_have_one_result_where_something_is_read_one_by_one() {
    let sizes = [("N", 8), ("M", 8)];
    for value in ["A(j, i)", "A(i, j) + A(i, (j + 1) % M)", "j > 3 ? A(i, j) : 0", "A(i, 2 * (j / 2))"] {
        let source = format!("def f(float(N, M) A) -> (C) {{ C(i, j) = {value} where i in 0:N, j in 0:M }}");
        assert_eq!(lanes_by_default(&source, &sizes), 1, "{source}");
    }
    let shifted = "def f(float(N) A) -> (C) { C(i) = A(i) + A(i + 1) }";
    assert_eq!(lanes_by_default(shifted, &[("N", 65)]), 1);
    // There are too few results for threads to have several.
    let few = "def f(float(N) A) -> (C) { C(i) = A(i) + 1 }";
    assert_eq!(lanes_by_default(few, &[("N", 12)]), 1);
}

/// A single thread for each result of a small layer would wait for memory again and again.
#[test]
fn threads_of_a_block_share_the_reductions_of_what_is_computed_there() {
    let source = "def mlp(float(B, N) I, const float(O, N) W, const float(P, O) V) -> (h, out) {
        h(b, o) +=! I(b, n) * W(o, n)
        out(b, p) +=! h(b, o) * V(p, o)
    }";
    let program = program(source, &[("B", 3), ("N", 24), ("O", 16), ("P", 8)]);
    let gpu = Gpu::h200();
    let host = schedule("bind out.b -> block.x\nbind out.p -> thread.x\ncompute_at h, out.b");
    let steps = complete(&program, host, &[StatementName::first("out")], &gpu).unwrap();
    let text = steps.to_string();
    assert!(text.contains("-> h_parts") && text.contains("-> W_transposed packed (d1, d0)"), "{text}");
    let nest = apply(&program, &steps, &gpu).unwrap();
    let loops = print::nest(&nest);
    assert!(loops.contains("shared float32 h_parts[6, 16]"), "six parts of four steps:\n{loops}");
    expect_agreement(&program, &nest, 3);
}

/// A few tiles with a long reduction would leave most of a GPU idle.
#[test]
fn long_reductions_of_few_results_are_tiles_of_parts_by_default() {
    let source =
        "def conv(float(C, H, W) I, const float(K, C) F) -> (O) { O(k, y, x) +=! I(c, y, x) * F(k, c) }";
    let program = program(source, &[("C", 256), ("H", 4), ("W", 5), ("K", 16)]);
    let gpu = Gpu::h200();
    let schedule = schedule_by_rules(&program, &gpu);
    let text = schedule.to_string();
    assert!(text.contains("rfactor O.part -> O_parts"), "{text}");
    assert!(text.contains("-> I_shared shared") && text.contains("-> F_shared shared"), "{text}");
    let nest = apply(&program, &schedule, &gpu).unwrap();
    let loops = print::nest(&nest);
    assert!(loops.contains("scratch float32 O_parts[8, "), "eight parts of 32 steps:\n{loops}");
    expect_agreement(&program, &nest, 3);
}

/// The end of a tile makes a clamp superfluous, but not for the threads past the end. They keep
/// their condition, because nothing writes the padding of a tile in shared memory.
#[test]
fn threads_past_the_end_do_not_read_the_padding_of_a_tile() {
    let source = "def f(int32(B) b) -> (x) { x(i) max=! b(clamp(i, 0, B)) where i in 0:B, l in 0:2 }";
    let steps = "split x.i -> ib, it:9\nbind x.ib -> block.x\nbind x.it -> thread.x\npromote x at x.ib -> tile registers\npromote b at x.ib -> bs shared pad 4";
    agrees(source, &[("B", 4)], steps);
}

#[test]
fn blocks_have_elements_of_their_own() {
    // Only one iteration of `b` does anything, and still all iterations would write the same
    // elements.
    let source = "def f(float(N) a) -> (x, y) { y(0) = a(0)
        for t in 1:N { x(i) = a(i)  y(t) = a(t) } }";
    let steps =
        "split y[2].t -> o, i:2\nfuse y[2].o, y[2].i -> t\nsplit y[2].t -> b, s:3\nbind y[2].b -> block.x";
    let reason = refused(source, &[("N", 4)], steps).to_string();
    assert!(reason.contains("all its iterations write the same elements of `x`"), "{reason}");
}

#[test]
fn ordered_loops_inside_of_a_thread_order_no_other_threads() {
    let source = "def f(float(M, N) b) -> (x) { x(0, i, j) = b(i, j)
        for t in 1:3 { x(t, i, j) = x(t - 1, i, 0) + b(i, j) } }";
    let sizes = &[("M", 2), ("N", 2)];
    let outer = "bind x[2].i -> thread.y\nreorder x[2].i, x[2].t, x[2].j";
    for steps in [format!("{outer}\nbind x[2].j -> thread.z"), format!("bind x[2].j -> thread.z\n{outer}")] {
        let reason = refused(source, sizes, &steps).to_string();
        assert!(reason.contains("must read `x` after `x[2]` at (t="), "{reason}");
    }
    // Each thread reads only elements that it has written itself.
    let own = source.replace("x(t - 1, i, 0)", "x(t - 1, i, j)");
    agrees(&own, sizes, &format!("{outer}\nbind x[2].j -> thread.z"));
    agrees(source, sizes, "bind x[2].i -> thread.y\nbind x[2].j -> thread.z");
}

#[test]
fn ordered_loops_inside_of_a_block_order_no_other_blocks() {
    let source = "def f(float(N) a) -> (x1) {
        x1(0, i, j) = a(j) where i in 0:3
        for t in 1:3 { x1(t, i, j) = x1(t - 1, 1, j) where i in 0:3, j in 0:N }
    }";
    let split = "split x1[2].t -> to, ti:2";
    let [outer, inner] = ["bind x1[2].to -> block.x", "bind x1[2].i -> block.y"];
    for steps in [[outer, inner], [inner, outer]] {
        let steps = format!("{split}\n{}", steps.join("\n"));
        let why = refused(source, &[("N", 2)], &steps);
        assert!(matches!(why, Illegal::CarriedDependence { .. }), "{steps}: {why}");
    }
    // Blocks with elements of their own need not wait for each other.
    let own = source.replace("x1(t - 1, 1, j)", "x1(t - 1, i, j)");
    agrees(&own, &[("N", 2)], &format!("{split}\n{outer}\n{inner}"));
}

#[test]
fn subscripts_that_may_need_more_than_64_bits_are_computed_only_where_the_program_does() {
    let source = "def f(float(N, 4) a) -> (x) {
        uint64() far
        far() = uint64(0) - uint64(1)
        x(i, j) = (j % 2 == 0) ? 1 : (0 <= j - 2 && j - 2 < 4 ? a(min(max(far() + j, 0), N - 1), j - 2) : 1)
            where i in 0:4, j in 0:3
    }";
    let steps = "split x.i -> ib, it:1
        split x.j -> jb, jt:3
        reorder x.ib, x.jb, x.jt, x.it
        fuse x.ib, x.jb -> block
        promote a at x.block -> rows shared gathered";
    // The program reads nothing, so nothing may fail.
    agrees(source, &[("N", 3)], steps);
}

/// The loops of a program's default schedule, once they are shown to compute the program and are
/// proved to.
fn by_default(source: &str, sizes: &[(&str, i64)]) -> String {
    let program = program(source, sizes);
    let schedule = schedule_by_rules(&program, &Gpu::h200());
    let nest = apply(&program, &schedule, &Gpu::h200()).unwrap();
    expect_agreement(&program, &nest, 1);
    assert_eq!(tilewright_polyhedral::prove(&program, &nest), tilewright_polyhedral::Verdict::Proved);
    print::nest(&nest)
}

/// The number of kernels that are launched inside a loop of the host.
fn launched_in_loops(stmts: &[Stmt]) -> usize {
    let is_kernel = |stmt: &Stmt| matches!(stmt, Stmt::For(own) if own.is_block_or_thread_loop());
    let inside = |stmt: &Stmt| match stmt {
        Stmt::For(own) if !is_kernel(stmt) => own.body.iter().filter(|stmt| is_kernel(stmt)).count(),
        _ => 0,
    };
    let nested = |stmt: &Stmt| match is_kernel(stmt) {
        true => 0,
        false => stmt.bodies().map(launched_in_loops).sum::<usize>(),
    };
    stmts.iter().map(|stmt| inside(stmt) + nested(stmt)).sum()
}

#[test]
fn a_thread_runs_a_whole_recurrence_by_default() {
    let scan = "def scan(float(C, H, W) I) -> (b) {
        b(c, 0, x) = I(c, 0, x)
        for y in 1:H { b(c, y, x) = 2 * b(c, y - 1, x) + I(c, y, x) } }";
    let loops = by_default(scan, &[("C", 3), ("H", 21), ("W", 13)]);
    assert!(!loops.contains("barrier"), "{loops}");
    let program = program(scan, &[("C", 3), ("H", 21), ("W", 13)]);
    let schedule = schedule_by_rules(&program, &Gpu::h200());
    let nest = apply(&program, &schedule, &Gpu::h200()).unwrap();
    assert_eq!(launched_in_loops(&nest.body), 0, "{loops}");
    let steps = schedule.to_string();
    assert!(steps.contains("reorder b[2].c, b[2].x, b[2].y"), "{steps}");
}

/// A reduction of each iteration stays inside its thread.
#[test]
fn recurrences_may_reduce() {
    let source = "def f(float(T, N, 3) I) -> (b) {
        b(0, i) +=! I(0, i, k) where i in 0:N
        for t in 1:T { b(t, i) +=! I(t, i, k) * b(t - 1, i) } }";
    let loops = by_default(source, &[("T", 6), ("N", 40)]);
    assert!(!loops.contains("barrier"), "{loops}");
}

#[test]
fn a_block_runs_an_ordered_loop_whose_threads_need_each_other() {
    let ring = "def ring(float(C, T, N) I) -> (b) {
        b(c, 0, i) = I(c, 0, i)
        for t in 1:T { b(c, t, i) = b(c, t - 1, (i + 1) % N) + I(c, t, i) } }";
    let loops = by_default(ring, &[("C", 3), ("T", 6), ("N", 40)]);
    assert!(loops.contains("barrier"), "{loops}");
    // The planes are independent, and become blocks.
    assert!(loops.contains("block.x c in 3"), "{loops}");
    let alternate = "def alternate(float(N) a) -> (x, y) {
        x(i) = a(i)
        for t in 0:5 {
            y(i) = x((i + 1) % N) + t where i in 0:N
            x(i) = y((i + 2) % N) * 2 where i in 0:N
        } }";
    let loops = by_default(alternate, &[("N", 40)]);
    assert!(loops.contains("barrier"), "{loops}");
}

/// One block would take longer than a kernel for each iteration.
#[test]
fn large_iterations_of_an_ordered_loop_stay_kernels() {
    let source = "def f(float(N) a) -> (b) {
        b(0, i) = a(i)
        for t in 1:3 { b(t, i) = b(t - 1, (i + 1) % N) + 1 where i in 0:N } }";
    let program = program(source, &[("N", 5000)]);
    let nest = apply(&program, &schedule_by_rules(&program, &Gpu::h200()), &Gpu::h200()).unwrap();
    assert_eq!(launched_in_loops(&nest.body), 1);
}

/// A flat index is split into rounds and threads, and its quotient and remainder are subscripts.
#[test]
fn rounds_that_write_different_rows_need_no_barrier() {
    let source = "def f(float(N, N) a) -> (O) {
        T(y, x) = a(y, x) + 1
        O(y, x) = T(y, x) + T(y, x + 1) + T(y + 1, x) }";
    let steps = "split O.y -> yb, yt:4
        split O.x -> xb, xt:8
        reorder O.yb, O.xb, O.yt, O.xt
        bind O.yb -> block.y
        bind O.xb -> block.x
        compute_at T, O.xb
        fuse O.yt, O.xt -> t
        bind O.t -> thread.x
        fuse T.y, T.x -> t
        split T.t -> round, thread:32
        bind T.thread -> thread.x";
    let nest = agrees(source, &[("N", 21)], steps);
    let loops = print::nest(&nest);
    assert_eq!(loops.matches("barrier").count(), 1, "{loops}");
    let program = program(source, &[("N", 21)]);
    assert_eq!(tilewright_polyhedral::prove(&program, &nest), tilewright_polyhedral::Verdict::Proved);
}
