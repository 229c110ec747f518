//! Points of the space of every example decode to schedules that are legal and compute the program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;

use std::collections::BTreeMap;

use examples::examples;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use tilewright_interp::{Expected, Inputs, Order, count_points, expect, run_nest, seed};
use tilewright_ir::nest::Stmt;
use tilewright_ir::{Program, print, verify_nest};
use tilewright_schedule::{Schedule, apply};
use tilewright_search::space::Space;
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Cpu, Gpu, Target, VectorInstructions};

fn cpu() -> Cpu {
    Cpu { cores: 2, vectors: VectorInstructions::Avx2, caches: vec![32 << 10, 1 << 20] }
}

fn at_sizes(source: &str, name: &str, choose: &dyn Fn(usize) -> i64) -> Option<Program> {
    let parsed = parse(source);
    let open = check(&parsed.ast, name, &Bindings::default()).program?;
    let mut bindings = Bindings::default();
    for (at, symbol) in open.symbols.iter().enumerate() {
        bindings.set(&symbol.name, choose(at));
    }
    check(&parsed.ast, name, &bindings).program.filter(Program::is_concrete)
}

/// A program with inputs and the results that the interpreter computes from them. There are no
/// results if the program refuses these inputs.
struct Reference<'a> {
    program: &'a Program,
    inputs: Inputs,
    wanted: Option<BTreeMap<String, Expected>>,
}

impl Reference<'_> {
    fn new(program: &Program) -> Reference<'_> {
        let inputs = seed::inputs(program, 5).unwrap();
        let wanted = expect(program, inputs.clone()).ok();
        Reference { program, inputs, wanted }
    }

    /// Runs the loop nest of a schedule and compares the results with those of the program.
    #[track_caller]
    fn expect_agreement(&self, schedule: &Schedule, target: Target<'_>, what: &str) {
        let nest = apply(self.program, schedule, target)
            .unwrap_or_else(|refusal| panic!("{what}: {refusal}\n{schedule}"));
        verify_nest(&nest).unwrap_or_else(|invalid| panic!("{what}: {invalid}\n{}", print::nest(&nest)));
        let Some(wanted) = &self.wanted else { return };
        let found = run_nest(&nest, self.program, self.inputs.clone(), Order::Descending)
            .unwrap_or_else(|error| panic!("{what}: {error}\n{schedule}{}", print::nest(&nest)));
        for (name, wanted) in wanted {
            wanted.compare(name, &found[name]).unwrap_or_else(|difference| {
                panic!("{what}: {difference}\n{schedule}{}", print::nest(&nest))
            });
        }
    }
}

/// Decodes the starting points of a search and some others, for every example at several sizes.
/// Returns the number of accepted points and the reasons for the rejections.
fn decode_all(target: Target<'_>, most_points: u64) -> (usize, BTreeMap<String, usize>) {
    const POINTS: usize = 6;
    const MOST_STATEMENTS: usize = 24;
    let rounds: [&dyn Fn(usize) -> i64; 2] = [&|at| 9 + at as i64, &|at| [17, 3, 16, 4, 3, 2, 2][at % 7]];
    let mut rng = Pcg64Mcg::seed_from_u64(11);
    let (mut accepted, mut rejected) = (0, BTreeMap::new());
    for path in examples() {
        let source = std::fs::read_to_string(&path).unwrap();
        for function in &parse(&source).ast.functions {
            for choose in rounds {
                let Some(program) = at_sizes(&source, &function.name.text, choose) else { continue };
                if count_points(&program) > most_points {
                    continue;
                }
                let what = format!("{}:{}", path.display(), function.name.text);
                let space = Space::new(&program, target);
                let reference = Reference::new(&program);
                let mut tried = space.starting_points();
                tried.extend((0..POINTS).filter_map(|_| space.knobs().sample(&mut rng)));
                // A pipeline has so many statements that a few points try many kinds of schedules.
                tried.truncate((MOST_STATEMENTS / program.statements().len().max(1)).max(2));
                for point in &tried {
                    match space.decode(point) {
                        Ok(schedule) => {
                            accepted += 1;
                            reference.expect_agreement(&schedule, target, &what);
                        }
                        Err(rejection) => *rejected.entry(rejection.to_string()).or_insert(0) += 1,
                    }
                }
            }
        }
    }
    (accepted, rejected)
}

#[test]
fn points_decode_to_schedules_that_compute_what_the_program_does() {
    let (accepted, rejected) = decode_all(Target::Cpu(&cpu()), 20_000);
    println!("accepted {accepted}, rejected {rejected:?}");
    assert!(accepted > 400, "only {accepted} were accepted: {rejected:?}");
}

#[test]
fn points_for_a_gpu_compute_what_the_program_does() {
    // The sizes are small, so the GPU has few multiprocessors and narrow warps.
    let gpu = Gpu { processors: 4, warp: 4, ..Gpu::h200() };
    let (accepted, rejected) = decode_all(Target::Gpu(&gpu), 20_000);
    println!("accepted {accepted}, rejected {rejected:?}");
    assert!(accepted > 400, "only {accepted} were accepted: {rejected:?}");
}

#[test]
fn rows_that_data_chooses_can_go_through_shared_memory() {
    let source = std::fs::read_to_string(
        examples().into_iter().find(|path| path.ends_with("benchmarks/1LUT.tw")).unwrap(),
    );
    let gpu = Gpu { processors: 4, warp: 4, ..Gpu::h200() };
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    let mut gathers = 0;
    for size in [16, 17] {
        let program = at_sizes(source.as_ref().unwrap(), "1LUT", &|_| size).unwrap();
        let space = Space::new(&program, &gpu);
        let points = (0..60).filter_map(|_| space.knobs().sample(&mut rng));
        for schedule in points.filter_map(|point| space.decode(&point).ok()) {
            let gathered = schedule.to_string().contains("gathered");
            gathers += usize::from(gathered);
            if gathered {
                Reference::new(&program).expect_agreement(&schedule, Target::Gpu(&gpu), "1LUT");
            }
        }
    }
    assert!(gathers > 10, "only {gathers} schedules gather rows");
}

/// Checks random points whose schedules contain `part` against the program. Returns the number of
/// such points, at most `most`.
fn agreeing(program: &Program, gpu: &Gpu, part: &str, most: usize) -> usize {
    let mut rng = Pcg64Mcg::seed_from_u64(3);
    let space = Space::new(program, gpu);
    let drawn = (0..4000).filter_map(|_| space.knobs().sample(&mut rng));
    let schedules = drawn.filter_map(|point| space.decode(&point).ok());
    let with_part = schedules.filter(|schedule| schedule.to_string().contains(part)).take(most);
    let reference = Reference::new(program);
    with_part.map(|schedule| reference.expect_agreement(&schedule, Target::Gpu(gpu), part)).count()
}

#[test]
fn lanes_of_a_warp_can_be_a_rectangle() {
    let gpu = Gpu { processors: 2, warp: 16, ..Gpu::h200() };
    let gemm = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
    let program = at_sizes(gemm, "gemm", &|at| [48, 6, 32][at]).unwrap();
    assert_eq!(agreeing(&program, &gpu, "fuse C.i_v, C.j_v, C.i_t, C.j_t -> C_thread", 5), 5);
    // Of the 32 threads along the last loop, 8 belong to one warp. The rows of the warp fill its
    // remaining lanes.
    let begins =
        starting_schedules_on(gemm, &[("M", 2048), ("N", 2048), ("K", 2048)], Target::Gpu(&Gpu::h200()));
    assert!(begins.contains("split C.j -> j_b, j_w:2, j_v:4, j_t:8, j_i:4"), "{begins}");
    assert!(begins.contains("split C.i -> i_b, i_w:2, i_v:2, i_t:4, i_i:4"), "{begins}");
}

#[test]
fn windows_are_copied_in_groups_where_tiles_begin_at_a_group() {
    let gpu = Gpu { processors: 2, warp: 4, ..Gpu::h200() };
    let conv = "def conv(float(C, W) I, float(K, C, X) F) -> (O) {
        O(k, w) +=! (0 <= x && x < W ? I(c, x) : 0) * F(k, c, dx) where w in 0:W, x = w + dx - 1 }";
    let sizes = |width: i64| move |at: usize| [3, width, 5, 3][at];
    let in_groups =
        |width: i64, part: &str| agreeing(&at_sizes(conv, "conv", &sizes(width)).unwrap(), &gpu, part, 3);
    assert_eq!(in_groups(24, "O_Is shared (d0, d1/4, d1%4)"), 3);
    assert_eq!(in_groups(22, "O_Is shared (d0, d1/2, d1%2)"), 3);
    assert_eq!(in_groups(21, "O_Is shared (d0, d1/"), 0);
}

const TRANSPOSED: &str = "def up(float(C, W) I, const float(C, K, X) F) -> (O) {
    O(k, w) +=! (w + 1 - x) % 2 == 0 ? (0 <= y && y < W ? I(c, y) : 0) * F(c, k, x) : 0
      where w in 0:2*W - 4 + X, y = (w + 1 - x)/2 }";

#[test]
fn results_that_differ_in_a_remainder_have_a_loop_for_it() {
    let gpu = Gpu { processors: 2, warp: 4, ..Gpu::h200() };
    // An even number of results, and an odd one.
    for taps in [4, 3] {
        let program = at_sizes(TRANSPOSED, "up", &|at| [3, 12, 5, taps][at]).unwrap();
        assert_eq!(agreeing(&program, &gpu, "split O.w -> w_q, w_r:2\n", 20), 20);
        assert!(agreeing(&program, &gpu, "O_Is shared (d0, d1/", 3) > 0);
    }
    // With two taps and a stride of 2, every tap belongs to one remainder, and the windows are no
    // larger than the tiles.
    let sizes = [("C", 64), ("W", 512), ("K", 128), ("X", 2)];
    let begins = starting_schedules_on(
        &TRANSPOSED.replace("+ 1", "").replace("- 4", "- 2"),
        &sizes,
        Target::Gpu(&Gpu::h200()),
    );
    assert!(begins.contains("O_Is shared\n") && begins.contains("vectorize O_Is.O_Is_v"), "{begins}");
}

/// The number of statements outside of all loops, each of which is a kernel.
fn launches(stmts: &[Stmt]) -> usize {
    let launches = |stmt: &Stmt| match stmt {
        Stmt::Allocate(own) => launches(&own.body),
        _ => 1,
    };
    stmts.iter().map(launches).sum()
}

/// The starting schedules of a program that consist of one kernel.
fn in_one_kernel(source: &str, name: &str, sizes: &[i64], gpu: &Gpu) -> Vec<Schedule> {
    let program = at_sizes(source, name, &|at| sizes[at]).unwrap();
    let space = Space::new(&program, gpu);
    let schedules = space.starting_points().into_iter().filter_map(|point| space.decode(&point).ok());
    let one = schedules.filter(|schedule| launches(&apply(&program, schedule, gpu).unwrap().body) == 1);
    let one: Vec<Schedule> = one.collect();
    if count_points(&program) < 20_000 {
        let reference = Reference::new(&program);
        one.iter().for_each(|schedule| reference.expect_agreement(schedule, Target::Gpu(gpu), name));
    }
    one
}

#[test]
fn layers_one_after_the_other_can_be_one_kernel() {
    let source = std::fs::read_to_string("../../examples/benchmarks/mlp3.tw").unwrap();
    let small = Gpu { processors: 4, warp: 4, ..Gpu::h200() };
    assert!(!in_one_kernel(&source, "mlp3", &[128, 128, 64, 32, 2], &Gpu::h200()).is_empty());
    assert!(!in_one_kernel(&source, "mlp3", &[8, 5, 6, 4, 2], &small).is_empty());
    // The bias is stored in the same kernel that adds the product to it.
    let layer = "def layer(float(M, K) A, const float(K, N) B, float(N) bias) -> (C) {
        C(i, j) = bias(j)
        C(i, j) += A(i, k) * B(k, j)
    }";
    assert!(!in_one_kernel(layer, "layer", &[512, 256, 512], &Gpu::h200()).is_empty());
    assert!(!in_one_kernel(layer, "layer", &[16, 8, 24], &small).is_empty());
}

/// The starting schedules of a program, as one text.
fn starting_schedules(source: &str, sizes: &[(&str, i64)]) -> String {
    starting_schedules_on(source, sizes, Target::Cpu(&cpu()))
}

fn starting_schedules_on(source: &str, sizes: &[(&str, i64)], target: Target<'_>) -> String {
    let parsed = parse(source);
    let bindings = sizes.iter().fold(Bindings::default(), |mut bindings, (name, value)| {
        bindings.set(*name, *value);
        bindings
    });
    let name = parsed.ast.functions[0].name.text.clone();
    let program = check(&parsed.ast, &name, &bindings).program.unwrap();
    let space = Space::new(&program, target);
    let schedules = space.starting_points().into_iter().filter_map(|point| space.decode(&point).ok());
    schedules.map(|schedule| format!("{schedule}\n")).collect()
}

#[test]
fn starting_points_compute_producers_before_and_inside_consumers() {
    let norm = "def norm(float(N, D) I) -> (O, mean) {
        mean(n) +=! I(n, d)
        O(n, d) = I(n, d) - mean(n)
    }";
    let schedules = starting_schedules(norm, &[("N", 64), ("D", 4096)]);
    assert!(schedules.contains("compute_at mean, O.n"), "{schedules}");
    assert!(schedules.contains("rfactor mean.d"), "{schedules}");
}

#[test]
fn constants_larger_than_the_near_caches_are_prefetched() {
    let product = "def product(float(M, K) A, const float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
    let ahead = |size: i64| {
        starting_schedules(product, &[("M", 64), ("N", size), ("K", size)]).contains("prefetch C_B")
    };
    assert!(ahead(1024) && !ahead(128));
}

#[test]
fn packing_gathers_the_elements_of_a_strided_vector() {
    let halves = "def halves(float(H, W) I, float(K, S) weight) -> (O) {
        O(k, y, x) +=! I(y, 2*x + s) * weight(k, s) where x in 0:64
    }";
    let schedules = starting_schedules(halves, &[("H", 32), ("W", 130), ("K", 32), ("S", 4)]);
    assert!(schedules.contains("d1%2, d1/2"), "{schedules}");
}

#[test]
fn loops_that_walk_memory_as_one_are_one() {
    let layer = "def layer(float(C, H, W) I, float(C) scale) -> (O) { O(c, h, w) = I(c, h, w) * scale(c) }";
    let schedules = starting_schedules(layer, &[("C", 64), ("H", 12), ("W", 12)]);
    assert!(schedules.contains("fuse O.h, O.w -> h_w"), "{schedules}");
    // Loops are not fused if a condition uses one of them.
    let masked = "def layer(float(C, H, W) I) -> (O) { O(c, h, w) = h < 3 ? I(c, h, w) : 0.0 }";
    let schedules = starting_schedules(masked, &[("C", 64), ("H", 12), ("W", 12)]);
    assert!(!schedules.contains("fuse O.h, O.w"), "{schedules}");
    assert!(!schedules.contains("fuse O.c, O.h ->"), "{schedules}");
    // A condition that always holds does not prevent fusion.
    let padded = "def layer(float(C, H, W) I) -> (O) { O(c, h, w) = h < H ? I(c, h, w) : 0.0 }";
    let schedules = starting_schedules(padded, &[("C", 64), ("H", 12), ("W", 12)]);
    assert!(schedules.contains("fuse O.c, O.h, O.w -> "), "{schedules}");
}

#[test]
fn threads_of_a_gpu_begin_with_results_side_by_side() {
    let gpu = Gpu::h200();
    let begins = |source: &str| starting_schedules_on(source, &[("N", 4096), ("M", 4096)], Target::Gpu(&gpu));
    // The loops are fused to one, of which a block has 256 times four results.
    let schedules = begins("def f(float(N, M) A) -> (B) { B(i, j) = A(i, j) * 2 }");
    assert!(
        schedules.contains("_t:256, i_j_i:4\n") && schedules.contains("vectorize B.i_j_i"),
        "{schedules}"
    );
    let schedules = begins("def f(float(N, M) A, float(M) b) -> (B) { B(i, j) = A(i, j) * b(j) }");
    assert!(schedules.contains("vectorize B.j_i"), "{schedules}");
    assert!(!schedules.contains("vectorize B.i_i"), "{schedules}");
}
