#[path = "../../../../../tests/example_lines.rs"]
mod example_lines;
#[path = "../../../../../tests/examples.rs"]
mod examples;

use example_lines::{Line, own_lines};
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use tilewright_ir::Program;
use tilewright_schedule::{apply, schedule_by_rules, text};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::VectorInstructions;

use super::*;
use crate::knob::Point;
use crate::space::Space;

const GEMM: &str = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
const COPY: &str = "def copy(float(N, M) A) -> (B) { B(i, j) = A(i, j) }";
const TRANSPOSE: &str = "def transpose(float(N, M) A) -> (B) { B(j, i) = A(i, j) where i in 0:N, j in 0:M }";

fn cpu(cores: usize) -> Cpu {
    Cpu { cores, vectors: VectorInstructions::Avx512, caches: vec![48 << 10, 2 << 20, 32 << 20] }
}

fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    let bindings: Bindings = sizes.iter().copied().collect();
    let name = &parsed.ast.functions[0].name.text;
    check(&parsed.ast, name, &bindings).program.expect("the test's program is right")
}

fn nest(program: &Program, steps: &str, cpu: &Cpu) -> LoopNest {
    let parsed = text::parse(steps);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    apply(program, &parsed.schedule, cpu).expect("the test's schedule is legal")
}

fn estimated(source: &str, sizes: &[(&str, i64)], steps: &str, cpu: &Cpu) -> Estimate {
    estimate(&nest(&program(source, sizes), steps, cpu), cpu, &Machine::typical(cpu))
}

fn gemm(size: i64, steps: &str) -> f64 {
    estimated(GEMM, &[("M", size), ("K", size), ("N", size)], steps, &cpu(1)).seconds
}

/// The schedule of a matrix product with register tiles of `rows` by two vectors.
fn tiled(rows: i64) -> String {
    format!(
        "split C.i -> io, ii:{rows}\nsplit C.j -> jo, jm:2, ji:16\nreorder C.jo, C.io, C.k, C.ii, C.jm, C.ji\n\
         unroll C.ii\nunroll C.jm\nvectorize C.ji\npromote C at C.io -> acc registers\n"
    )
}

#[test]
fn a_vector_is_faster_than_its_elements_one_by_one() {
    let scalar = gemm(256, "reorder C.i, C.k, C.j");
    let vector = gemm(256, "split C.j -> jo, ji:16\nreorder C.i, C.k, C.jo, C.ji\nvectorize C.ji");
    assert!(vector < scalar / 3.0, "{vector} {scalar}");
}

#[test]
fn results_in_registers_are_faster_than_in_memory() {
    let memory = gemm(256, "split C.j -> jo, ji:16\nreorder C.i, C.k, C.jo, C.ji\nvectorize C.ji");
    assert!(gemm(256, &tiled(8)) < memory / 2.0);
}

#[test]
fn few_accumulators_wait_for_each_other() {
    // Four rows of two vectors keep both vector units busy; one row does not.
    assert!(gemm(256, &tiled(1)) > 2.0 * gemm(256, &tiled(4)));
}

#[test]
fn recurrences_along_rows_wait_unless_several_rows_take_turns() {
    let source = "def f(float(N, T) x) -> (s) {
        s(n, 0) = x(n, 0)
        for t in 1:T { s(n, t) = 0.5 * s(n, t - 1) + x(n, t) }
    }";
    let sizes = [("N", 1024), ("T", 1000)];
    let seconds = |steps: &str| estimated(source, &sizes, steps, &cpu(1)).seconds;
    let alone = seconds("reorder s[2].n, s[2].t");
    let together = "split s[2].n -> no, ni:8\nreorder s[2].no, s[2].t, s[2].ni\nunroll s[2].ni";
    assert!(seconds(together) < 0.4 * alone, "{} {alone}", seconds(together));
}

#[test]
fn a_tile_larger_than_the_registers_is_spilled() {
    let sizes = [("M", 480), ("K", 256), ("N", 256)];
    let spills = |rows| estimated(GEMM, &sizes, &tiled(rows), &cpu(1)).parts.spills;
    assert_eq!(spills(12), 0.0);
    assert!(spills(15) > 0.0);
}

#[test]
fn a_product_of_half_the_peak_takes_about_twice_the_operations() {
    let machine = Machine::typical(&cpu(1));
    let peak = 2.0 * 512f64.powi(3) / (machine.hertz * machine.vector_ports * 32.0);
    let found = gemm(512, &tiled(12));
    assert!(peak <= found && found < 2.0 * peak, "{found} {peak}");
}

#[test]
fn packing_pays_where_rows_are_far_apart() {
    let pack = "promote B at C.jo -> Bp packed\nvectorize Bp.l1\n";
    let pack = pack.replace("vectorize Bp.l1", "split Bp.l1 -> lo, lv:16\nvectorize Bp.lv");
    let (plain, packed) = (gemm(2048, &tiled(12)), gemm(2048, &(tiled(12) + &pack)));
    assert!(packed < plain, "{packed} {plain}");
}

#[test]
fn a_long_reduction_is_better_in_blocks_that_fit_the_cache() {
    let sizes = [("M", 256), ("K", 65536), ("N", 32)];
    let blocked = "split C.k -> ko, ki:128\nsplit C.i -> io, ii:8\nsplit C.j -> jo, jm:2, ji:16\n\
                   reorder C.ko, C.jo, C.io, C.ki, C.ii, C.jm, C.ji\nunroll C.ii\nunroll C.jm\nvectorize C.ji\n\
                   promote C at C.io -> acc registers\n";
    let first_level = |steps: &str| estimated(GEMM, &sizes, steps, &cpu(1)).parts.transfers[0];
    assert!(first_level(blocked) < first_level(&tiled(8)));
}

#[test]
fn strided_access_moves_a_line_for_every_element() {
    let sizes = [("N", 4096), ("M", 4096)];
    let along = estimated(COPY, &sizes, "", &cpu(1));
    let across = estimated(COPY, &sizes, "reorder B.j, B.i", &cpu(1));
    assert!(across.parts.transfers[0] > 8.0 * along.parts.transfers[0]);
    assert!(across.seconds > 2.0 * along.seconds);
}

#[test]
fn tiles_keep_the_lines_of_a_transposition() {
    let sizes = [("N", 4000), ("M", 4000)];
    let plain = estimated(TRANSPOSE, &sizes, "", &cpu(1));
    let tiles = "split B.i -> io, ii:16\nsplit B.j -> jo, ji:16\nreorder B.io, B.jo, B.ii, B.ji";
    assert!(estimated(TRANSPOSE, &sizes, tiles, &cpu(1)).parts.transfers[0] < plain.parts.transfers[0] / 4.0);
}

#[test]
fn threads_pay_for_much_work_only() {
    let time = |size, cores, steps: &str| {
        estimated(GEMM, &[("M", size), ("K", size), ("N", size)], steps, &cpu(cores)).seconds
    };
    assert!(time(512, 4, "parallel C.i") < time(512, 4, "") / 3.0);
    assert!(time(4, 4, "parallel C.i") > 2.0 * time(4, 4, ""));
    assert_eq!(time(512, 1, "parallel C.i"), time(512, 1, ""));
}

#[test]
fn iterations_that_do_not_divide_among_cores_leave_some_idle() {
    let sizes = |rows| [("M", rows), ("K", 64), ("N", 64)];
    let parts = |rows| estimated(GEMM, &sizes(rows), "parallel C.i", &cpu(4)).parts;
    assert_eq!(parts(4).idle_cores, 0.0);
    assert_eq!(parts(5).idle_cores, 1.0 - 5.0 / 8.0);
    assert_eq!(parts(8).compute, parts(5).compute);
}

#[test]
fn lanes_of_a_remainder_are_wasted() {
    let steps = "split C.j -> jo, ji:16\nreorder C.i, C.jo, C.k, C.ji\nvectorize C.ji\npromote C at C.jo -> acc registers";
    let found = |columns| estimated(GEMM, &[("M", 64), ("K", 64), ("N", columns)], steps, &cpu(1));
    assert_eq!(found(32).parts.masked_lanes, 0.0);
    assert!(found(17).parts.masked_lanes > 0.3);
    assert!((found(17).parts.compute / found(32).parts.compute - 1.0).abs() < 0.2);
}

#[test]
fn more_work_is_never_cheaper() {
    for steps in ["", "parallel C.i", &tiled(8)] {
        let times: Vec<f64> = [64, 128, 256, 512].map(|size| gemm(size, steps)).to_vec();
        assert!(times.is_sorted(), "{steps}: {times:?}");
    }
}

#[test]
fn packing_in_setup_is_free() {
    let constant = GEMM.replace("float(K, N) B", "const float(K, N) B");
    let sizes = [("M", 64), ("K", 64), ("N", 64)];
    let steps = "promote B at root -> Bp packed (d1/16, d0, d1%16)";
    assert!(
        estimated(&constant, &sizes, steps, &cpu(1)).seconds
            < estimated(GEMM, &sizes, steps, &cpu(1)).seconds
    );
}

#[test]
fn copies_of_a_stencil_share_what_they_load() {
    let blur = "def blur(float(N) A) -> (B) { B(i) = A(i) + A(i + 1) + A(i + 2) + A(i + 3) }";
    let sizes = [("N", 4099)];
    let plain = estimated(blur, &sizes, "", &cpu(1));
    let copies = estimated(blur, &sizes, "split B.i -> io, ii:8\nunroll B.ii", &cpu(1));
    assert!(copies.parts.memory_instructions < 0.6 * plain.parts.memory_instructions);
}

#[test]
fn pixels_that_are_read_twice_are_few_loads_and_shuffles() {
    let steps = "split y.i -> io, iv:32\nvectorize y.iv";
    let sizes = [("N", 4096)];
    let copied = estimated("def copy(float(N) x) -> (y) { y(i) = x(i) }", &sizes, steps, &cpu(1));
    let up = "def up(float(N) x) -> (y) { y(i) = x(i / 2) + x((i + 1) / 2) where i in 0:N }";
    let enlarged = estimated(up, &sizes, steps, &cpu(1));
    assert!(
        enlarged.parts.memory_instructions < 2.0 * copied.parts.memory_instructions,
        "{enlarged:?} {copied:?}"
    );
    let chosen = "def chosen(float(N) x, int32(N) p) -> (y) { y(i) = x(p(i)) }";
    let gathered = estimated(chosen, &sizes, steps, &cpu(1));
    assert!(gathered.parts.memory_instructions > 4.0 * copied.parts.memory_instructions, "{gathered:?}");
}

#[test]
fn a_division_by_a_power_of_two_is_a_product() {
    let steps = "split y.i -> io, iv:32\nvectorize y.iv";
    let by = |divisor: &str| {
        let source = format!("def scale(float(N) x) -> (y) {{ y(i) = x(i) / {divisor} }}");
        estimated(&source, &[("N", 1024)], steps, &cpu(1)).parts.compute
    };
    assert!(by("4.0") < 0.5 * by("3.0"), "{} {}", by("4.0"), by("3.0"));
}

#[test]
fn values_that_are_used_once_need_few_registers() {
    let terms = (0..48).map(|at| format!("x({at}, i)")).collect::<Vec<_>>().join(" + ");
    let source = format!("def sum(float(48, N) x) -> (y) {{ y(i) = {terms} }}");
    let found = estimated(&source, &[("N", 1024)], "split y.i -> io, iv:16\nvectorize y.iv", &cpu(1));
    assert_eq!(found.parts.spills, 0.0);
}

#[test]
fn updates_of_elements_that_data_chooses_wait_for_each_other() {
    let source =
        "def counts(int32(N) x) -> (h) { h(b) +=! 1 where b = clamp(x(i), 0, 15), b in 0:16, i in 0:N }";
    let found = estimated(source, &[("N", 1 << 16)], "", &cpu(1));
    let each = found.seconds * Machine::typical(&cpu(1)).hertz / f64::from(1 << 16);
    assert!(each > 8.0, "{each} cycles for each update");
}

/// Random schedules of every example, on machines of every kind, have a finite time that is the
/// same in every estimate.
#[test]
fn every_schedule_has_a_time() {
    let mut rng = Pcg64Mcg::seed_from_u64(7);
    let (mut tried, lines) = (0, own_lines());
    for line in &lines {
        let line = Line::new(line);
        // Use larger sizes where the program allows them, so that tiling matters.
        let program = line.program(5).or_else(|_| line.program(1)).unwrap_or_else(|why| panic!("{why}"));
        for (vectors, caches) in
            VectorInstructions::ALL.into_iter().zip([vec![], vec![32 << 10], vec![48 << 10, 2 << 20]])
        {
            let cpu = Cpu { cores: 1 + tried % 3, vectors, caches };
            let machine = Machine::typical(&cpu);
            let space = Space::new(&program, &cpu);
            let drawn: Vec<Point> = (0..6).filter_map(|_| space.knobs().sample(&mut rng)).collect();
            let drawn = drawn.iter().filter_map(|point| space.decode(point).ok());
            for schedule in drawn.chain([schedule_by_rules(&program, &cpu)]) {
                let Ok(nest) = apply(&program, &schedule, &cpu) else { continue };
                let found = estimate(&nest, &cpu, &machine);
                assert!(
                    found.seconds.is_finite() && found.seconds > 0.0,
                    "{}\n{schedule}",
                    line.path.display()
                );
                assert_eq!(found, estimate(&nest, &cpu, &machine));
                tried += 1;
            }
        }
    }
    assert!(tried > 6 * lines.len(), "only {tried} schedules were accepted");
}
