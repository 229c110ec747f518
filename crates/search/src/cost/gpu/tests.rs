use tilewright_ir::Program;
use tilewright_schedule::{apply, schedule_by_rules, text};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::Gpu;

use super::*;

const GEMM: &str = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
const COPY: &str = "def copy(float(N, M) A) -> (B) { B(i, j) = A(i, j) }";
const TURNED: &str = "def f(float(N, M) A) -> (B) { B(j, i) = A(i, j) }";

fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    let bindings: Bindings = sizes.iter().copied().collect();
    let name = parsed.ast.functions[0].name.text.clone();
    check(&parsed.ast, &name, &bindings).program.expect("the program is correct")
}

fn expected(source: &str, sizes: &[(&str, i64)], steps: &str) -> Estimate {
    let (program, gpu) = (program(source, sizes), Gpu::h200());
    let schedule = match steps {
        "" => schedule_by_rules(&program, &gpu),
        steps => text::parse(steps).schedule,
    };
    let nest = apply(&program, &schedule, &gpu).unwrap_or_else(|refusal| panic!("{refusal}\n{steps}"));
    estimate(&nest, &gpu)
}

#[test]
fn neighbouring_threads_should_touch_neighbouring_memory() {
    let sizes = [("N", 4096), ("M", 4096)];
    let along = |last: &str, first: &str| {
        let steps = format!(
            "split B.{last} -> o, t:256\nreorder B.{first}, B.o, B.t\nbind B.{first} -> block.y\nbind B.o -> block.x\nbind B.t -> thread.x"
        );
        expected(COPY, &sizes, &steps)
    };
    let (rows, columns) = (along("j", "i"), along("i", "j"));
    assert!(rows.seconds * 1.5 < columns.seconds, "{rows:?} {columns:?}");
    assert!((rows.kernels[0].sectors * 7.0) < columns.kernels[0].sectors);
}

#[test]
fn tiles_in_shared_memory_beat_one_result_a_thread() {
    let sizes = [("M", 1024), ("N", 1024), ("K", 1024)];
    let plain = "split C.j -> jo, jt:256\nreorder C.i, C.jo, C.jt, C.k\nbind C.i -> block.y\nbind C.jo -> block.x\n\
        bind C.jt -> thread.x\npromote C at C.jt -> own registers";
    let (tiles, plain) = (expected(GEMM, &sizes, ""), expected(GEMM, &sizes, plain));
    assert!(tiles.seconds * 2.0 < plain.seconds, "{tiles:?} {plain:?}");
}

#[test]
fn few_blocks_leave_multiprocessors_idle() {
    let sizes = [("N", 4096), ("M", 256)];
    let per_block = |rows: i64| {
        let steps = format!(
            "split B.i -> o, r:{rows}\nreorder B.o, B.j, B.r\nbind B.o -> block.x\nbind B.j -> thread.x"
        );
        expected(COPY, &sizes, &steps).seconds
    };
    assert!(per_block(2) * 4.0 < per_block(1024), "{} {}", per_block(2), per_block(1024));
}

#[test]
fn rows_that_begin_in_one_bank_conflict() {
    let turned = |pad: &str| {
        let steps = format!(
            "split B.i -> ib, it:32\nsplit B.j -> jb, jt:32\nreorder B.ib, B.jb, B.jt, B.it\nbind B.ib -> block.y\n\
             bind B.jb -> block.x\nbind B.jt -> thread.y\nbind B.it -> thread.x\n\
             promote A at B.jb -> As shared{pad}\nbind As.l0 -> thread.y\nbind As.l1 -> thread.x"
        );
        expected(TURNED, &[("N", 1024), ("M", 1024)], &steps).kernels[0].shared
    };
    assert!(turned("") > 3.0 * turned(" pad 1"), "{} {}", turned(""), turned(" pad 1"));
}

#[test]
fn few_threads_wait_for_each_round_of_loads() {
    // One thread adds up a column. A block of few threads takes as long for its loads as one of
    // many, up to the rate at which they arrive.
    let sectors = |columns: i64| {
        let steps = format!(
            "split S.j -> o, t:{}\nreorder S.o, S.t, S.i\nbind S.o -> block.x\nbind S.t -> thread.x",
            columns.min(256)
        );
        let sums = "def sums(float(N, M) A) -> (S) { S(j) +=! A(i, j) }";
        expected(sums, &[("N", 4096), ("M", columns)], &steps).kernels[0].sectors
    };
    let (few, many) = (sectors(32), sectors(256));
    assert!(few > 0.8 * many, "{few} {many}");
    assert!(sectors(1 << 20) > 4.0 * many);
}

#[test]
fn waves_of_blocks_do_not_cost_a_launch_each() {
    let steps = "split B.i -> o, t:256\nbind B.o -> block.x\nbind B.t -> thread.x";
    let copy = "def copy(float(N) A) -> (B) { B(i) = A(i) }";
    let waiting = |elements: i64| expected(copy, &[("N", elements)], steps).kernels[0].latency;
    let (one, many) = (waiting(1 << 16), waiting(1 << 26));
    let waves = f64::from(1 << 10) / 4.0;
    assert!(many > 10.0 * one && many < 0.5 * waves * one, "{one} {many}");
}

#[test]
fn what_subscripts_compute_counts() {
    let steps = "split B.i -> o, t:256\nbind B.o -> block.x\nbind B.t -> thread.x";
    let instructions = |place: &str| {
        let source =
            format!("def look_up(int32(N) A, float(256) T) -> (B) {{ B(i) = T({place}) where i in 0:N }}");
        expected(&source, &[("N", 1 << 22)], steps).kernels[0].issue
    };
    let (plain, computed) =
        (instructions("A(i) & 255"), instructions("(A(i) / 7 + A(i) / 9 + A(i) / 11) & 255"));
    assert!(computed > 1.5 * plain, "{plain} {computed}");
}

#[test]
fn a_wide_access_is_one_instruction() {
    let issue = |value: &str, last: &str| {
        let source = format!("def f(float(N) A) -> (B) {{ B(i) = {value} where i in 0:4194304 }}");
        let steps =
            format!("split B.i -> o, t:256, v:4\nbind B.o -> block.x\nbind B.t -> thread.x\n{last} B.v");
        expected(&source, &[("N", 4_194_308)], &steps).kernels[0].issue
    };
    let wide = issue("A(i)", "vectorize");
    // The addresses of unrolled iterations differ by constants, so they are computed once.
    assert!(wide * 1.5 < issue("A(i)", "unroll"));
    // Shifted or conditional elements are loaded one by one; the store stays as wide as before.
    for apart in ["A(i + 1)", "A(i) + A(i + 1)", "i > 5 ? A(i) : 0"] {
        assert!(issue(apart, "vectorize") > 1.3 * wide, "{apart}");
        assert!(issue(apart, "vectorize") < 0.9 * issue(apart, "unroll"), "{apart}");
    }
}

#[test]
fn repeated_reads_of_a_block_hit_the_cache_if_they_fit() {
    let window = "def conv(float(N) I, float(K) w) -> (O) { O(x) +=! I(x + k) * w(k) }";
    let steps =
        "split O.x -> o, t:256\nbind O.o -> block.x\nbind O.t -> thread.x\npromote O at O.t -> own registers";
    let sectors = |width: i64| {
        expected(window, &[("N", 1 << 20), ("K", width)], steps).kernels[0].sectors / width as f64
    };
    // A window of 64 elements is fetched once together with its surroundings; a window of half a
    // million does not stay in the cache.
    assert!(sectors(64) * 4.0 < sectors(1 << 19), "{} {}", sectors(64), sectors(1 << 19));
}

#[test]
fn registers_count_for_each_thread_wherever_they_are_allocated() {
    let resident = |size: i64, at: &str| {
        let steps = format!(
            "split C.i -> ib, it:16, ii:8\nsplit C.j -> jb, jt:16, jj:8\n\
             reorder C.ib, C.jb, C.it, C.jt, C.k, C.ii, C.jj\nbind C.ib -> block.y\nbind C.jb -> block.x\n\
             bind C.it -> thread.y\nbind C.jt -> thread.x\nunroll C.ii\nunroll C.jj\n\
             promote C at C.{at} -> acc registers"
        );
        let sizes = [("M", size), ("N", size), ("K", 64)];
        expected(GEMM, &sizes, &steps).kernels[0].resident
    };
    let of_block = resident(1024, "jb");
    assert!(of_block < 4.0, "{of_block}");
    assert_eq!(resident(1024, "jt"), of_block);
    assert_eq!(resident(1024, "it"), of_block);
    // Whole and partial tiles have versions of their own, of which a thread runs one.
    assert_eq!(resident(1020, "jt"), of_block);
}

const BLOCKS_OF_256: &str = "split B.i -> o, t:256\nbind B.o -> block.x\nbind B.t -> thread.x";

/// The first kernel of a statement on a million elements, in blocks of 256 threads.
fn kernel(parameters: &str, value: &str) -> Parts {
    let source = format!("def f({parameters}) -> (B) {{ B(i) = {value} where i in 0:1048576 }}");
    expected(&source, &[], BLOCKS_OF_256).kernels[0].clone()
}

#[test]
fn constants_are_folded() {
    let plain = kernel("float(1048576) A", "A(i) * 0.25");
    let folded = kernel("float(1048576) A", "A(i) * (exp(-0.5) / sqrt(2.0))");
    assert_eq!(plain.compute, folded.compute);
    assert!(kernel("float(1048576) A", "exp(A(i))").compute > 3.0 * plain.compute);
}

#[test]
fn loads_of_neighbours_share_sectors() {
    let one = kernel("float(1048580) A", "A(i)");
    let three = kernel("float(1048580) A", "A(i) + A(i + 1) + A(i + 2)");
    assert!(three.sectors < 1.2 * one.sectors, "{three:?} {one:?}");
    let apart = kernel("float(3145728) A", "A(i) + A(i + 1048576) + A(i + 2097152)");
    assert!(apart.sectors > 1.5 * one.sectors, "{apart:?} {one:?}");
}

#[test]
fn tables_of_few_elements_stay_in_the_cache() {
    let table = |size: i64| {
        let parameters = format!("int32(1048576) A, float({size}) T");
        kernel(&parameters, &format!("T(A(i) & {})", size - 1)).sectors
    };
    assert!(table(64) * 3.0 < table(1 << 22), "{} {}", table(64), table(1 << 22));
}

#[test]
fn a_kernel_reads_what_it_touches_of_a_tensor() {
    let all = kernel("float(1048576) A", "A(i)");
    let part = kernel("float(104857600) A", "A(i)");
    assert_eq!(all.memory, part.memory);
}

#[test]
fn a_choice_by_unrolled_loops_keeps_one_side() {
    let issue = |last: &str| {
        let source = "def f(float(4194304) A) -> (B) { \
            B(i) = i % 4 == 3 ? exp(A(i)) * sqrt(A(i)) : A(i) where i in 0:4194304 }";
        let steps = format!("split B.i -> o, t:256, v:4\nbind B.o -> block.x\nbind B.t -> thread.x{last}");
        expected(source, &[], &steps).kernels[0].compute
    };
    assert!(2.0 * issue("\nunroll B.v") < issue("\nreorder B.o, B.v, B.t"), "{}", issue("\nunroll B.v"));
}
