//! Every step: cases that it accepts, whose loops must compute the same as the program, cases that
//! it refuses with the expected reason, and its composition with other steps.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{agrees, cpu, program, refused, schedule};
use tilewright_interp::{Order, run, run_nest};
use tilewright_ir::{Number, print};
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::{Illegal, apply, blame};

const GEMM: &str = "def gemm(float(M, K) A, const float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
const SIZES: &[(&str, i64)] = &[("M", 13), ("N", 37), ("K", 11)];
const BLUR: &str = "def blur(float(H, W) I) -> (O) {
    rows(y, x) = I(y, x) + I(y, x + 1) + I(y, x + 2) where x in 0:W-2
    O(y, x) = rows(y, x) + rows(y + 1, x) + rows(y + 2, x) where y in 0:H-2
}";
const IMAGE: &[(&str, i64)] = &[("H", 19), ("W", 23)];
const SOFTMAX: &str = "def softmax(float(N, D) I) -> (O) {
    top(n) max=! I(n, d)
    total(n) +=! I(n, d) - top(n)
    O(n, d) = I(n, d) - top(n) + total(n)
}";

const LUT: &str = "def lut(const float(E, D) LUT, int32(B, L) I) -> (O) { O(b, d) +=! LUT(I(b, l), d) }";
const ROWS: &[(&str, i64)] = &[("E", 9), ("D", 6), ("B", 10), ("L", 7)];

fn gemm(steps: &str) -> String {
    print::nest(&agrees(GEMM, SIZES, steps))
}

fn gemm_refused(steps: &str) -> Illegal {
    refused(GEMM, SIZES, steps).reason
}

#[test]
fn split_need_not_divide() {
    let loops = gemm("split C.i -> io, ii:4");
    assert!(loops.contains("for ii in min(4, 13 - 4*io)"), "{loops}");
    gemm("split C.i -> io, im:2, ii:3\nsplit C.k -> ko, ki:4");
    gemm("split C.i -> io, ii:100");
    gemm("split C.i -> io, ii:1\nsplit C.io -> ioo, ioi:5");
}

#[test]
fn split_refuses_loops_that_are_gone_and_bad_factors() {
    let gone = gemm_refused("split C.i -> io, ii:4\nsplit C.i -> a, b:2");
    assert!(matches!(gone, Illegal::ReplacedLoop { .. }), "{gone}");
    let unknown = gemm_refused("split C.z -> io, ii:4");
    assert!(unknown.to_string().contains("`i`, `j` and `k`"), "{unknown}");
    assert!(matches!(gemm_refused("split D.z -> io, ii:4"), Illegal::UnknownStatement { .. }));
    assert_eq!(gemm_refused("split C.i -> j, ii:4"), Illegal::NameTaken("j".to_string()));
    assert!(matches!(gemm_refused("unroll C.k\nsplit C.k -> a, b:2"), Illegal::LoopKind(_)));
}

#[test]
fn fuse_makes_one_loop_of_several() {
    let loops = gemm("fuse C.i, C.j -> t");
    assert!(loops.contains("t in 481"), "{loops}");
    gemm("fuse C.i, C.j, C.k -> t");
    gemm("fuse C.j, C.k -> t\nsplit C.t -> to, ti:6");
    gemm("split C.i -> io, ii:4\nreorder C.io, C.j, C.ii\nfuse C.io, C.j -> t\nparallel C.t");
}

#[test]
fn fuse_refuses_what_is_not_nested() {
    assert!(matches!(gemm_refused("fuse C.i, C.k -> t"), Illegal::NotNested { .. }));
    let dependent = gemm_refused("split C.i -> io, ii:4\nfuse C.io, C.ii -> t");
    assert!(matches!(dependent, Illegal::DependentExtent { .. }), "{dependent}");
    assert!(matches!(gemm_refused("fuse C.j, C.i -> t"), Illegal::NotNested { .. }));
}

#[test]
fn reorder_changes_places() {
    let loops = gemm("reorder C.k, C.i");
    let place = |name: &str| loops.rfind(&format!("for {name} in")).unwrap();
    assert!(place("k") < place("j") && place("j") < place("i"), "{loops}");
    // The parts of a split that does not divide can change places: the remaining iterations are
    // distributed over the tiles.
    let dealt = gemm("split C.i -> io, ii:4\nreorder C.ii, C.io");
    assert!(dealt.contains("for ii in 4\n    for io in (-ii)/4 + 4"), "{dealt}");
    let dependent = gemm_refused("split C.i -> io, im:3, ii:2\nreorder C.ii, C.io, C.im");
    assert!(matches!(dependent, Illegal::DependentExtent { .. }), "{dependent}");
}

#[test]
fn vectors_have_whole_lanes_and_masks() {
    let loops = gemm("split C.j -> jo, jv:16\nvectorize C.jv");
    assert!(loops.contains("vector jv in 16"), "{loops}");
    gemm("vectorize C.i");
    gemm("vectorize C.k");
    gemm("split C.j -> jo, j1:2, jv:8\nvectorize C.jv\nunroll C.j1");
    assert!(matches!(
        refused(GEMM, &[("M", 1), ("N", 99), ("K", 1)], "vectorize C.j").reason,
        Illegal::TooLong { .. }
    ));
    assert!(matches!(gemm_refused("vectorize C.i\nvectorize C.k"), Illegal::LoopKind(_)));
    let unknown = apply(&support::open_program(GEMM), &schedule("vectorize C.j"), &cpu()).unwrap_err();
    assert_eq!(unknown.to_string(), "the size `M` is not known");
}

#[test]
fn numbers_and_loops_have_limits() {
    let large = 9_223_372_036_854_775_807i64;
    assert!(matches!(gemm_refused(&format!("split C.i -> io, ii:{large}")), Illegal::BadLoopList(_)));
    let layout = format!("promote B at root -> Bp packed (d1/{large}, d0, d1%{large})");
    assert!(matches!(gemm_refused(&layout), Illegal::Layout { part: Some(0), .. }));
    let parts: Vec<String> = (0..100).map(|at| format!("q{at}:1")).collect();
    let many = format!("split C.i -> io, {}", parts.join(", "));
    assert!(matches!(gemm_refused(&many), Illegal::BadLoopList(_)));
}

#[test]
fn totals_stay_with_the_statement_that_adds_them_up() {
    let reason = gemm_refused("rfactor C.k -> p\ncompute_at p, C.k");
    assert!(matches!(reason, Illegal::ComputeAt { .. }), "{reason}");
}

#[test]
fn code_has_a_limit() {
    let sizes = &[("M", 100), ("N", 100), ("K", 100)];
    let reason = refused(GEMM, sizes, "unroll C.i\nunroll C.j\nunroll C.k").reason;
    assert!(matches!(reason, Illegal::TooMuchCode { .. }), "{reason}");
    // The lanes of a vector count as registers, whether the tile divides or not.
    let tile = |rows: i64, lanes: i64| {
        format!(
            "split C.i -> io, ii:{rows}\nsplit C.j -> jo, jv:{lanes}\nsplit C.k -> ko, ki:8
             reorder C.io, C.jo, C.ko, C.ki, C.ii, C.jv\nvectorize C.jv\nunroll C.ii\nunroll C.ki"
        )
    };
    for size in [128, 131] {
        let sizes = &[("M", size), ("N", size), ("K", 37)];
        let accepted = |steps: &str| apply(&program(GEMM, sizes), &schedule(steps), &cpu()).is_ok();
        assert!(accepted(&tile(64, 32)) && accepted(&tile(100, 16)) && !accepted(&tile(100, 64)), "{size}");
    }
    // The loops of the text are never too long to compile, but they can be once they are unrolled.
    let terms: Vec<String> = (0..250).map(|at| format!("exp(I(n) * {at}.5)")).collect();
    let long = format!("def long(float(N) I) -> (O) {{ O(n) = {} }}", terms.join(" + "));
    agrees(&long, &[("N", 5)], "");
    let reason = refused(&long, &[("N", 5)], "unroll O.n").reason;
    assert!(matches!(reason, Illegal::TooMuchCode { .. }), "{reason}");
}

/// The step that `blame` finds at fault, counted from 1.
fn culprit(source: &str, sizes: &[(&str, i64)], steps: &str) -> usize {
    let refusal = refused(source, sizes, steps);
    assert_eq!(refusal.step, None, "{refusal}");
    let blamed = blame(&program(source, sizes), &schedule(steps), &cpu(), refusal.clone());
    assert_eq!(blamed.reason, refusal.reason);
    blamed.step.unwrap_or_else(|| panic!("no step is at fault\n{refusal}")) + 1
}

#[test]
fn what_only_lowering_refuses_is_put_down_to_a_step() {
    let sizes = &[("M", 20), ("N", 20), ("K", 20)];
    assert_eq!(culprit(GEMM, sizes, "unroll C.i\nunroll C.j\nunroll C.k\npromote A at root -> Ap packed"), 3);
    assert_eq!(culprit(GEMM, SIZES, "parallel C.i\npromote C at C.i -> acc registers\nunroll C.k"), 2);
    assert_eq!(
        culprit(GEMM, SIZES, "vectorize C.i\nunroll C.k\npromote A at C.j -> Ap packed\nunroll C.j"),
        3
    );
    // The buffer is at fault, not the kinds that its loops get later.
    let tile =
        "split C.i -> io, ii:12\nsplit C.j -> jo, ju:3, jv:16\nreorder C.io, C.jo, C.k, C.ii, C.ju, C.jv\n";
    let kinds = "unroll C.ii\nunroll C.ju\nvectorize C.jv\n";
    let promoted = "promote C at C.jo -> acc registers\n";
    assert_eq!(culprit(GEMM, SIZES, &format!("{tile}{promoted}{kinds}parallel C.io")), 4);
    assert_eq!(culprit(GEMM, SIZES, &format!("{tile}{kinds}{promoted}parallel C.io")), 7);
    // A step that is at fault by itself stays so, and no step is at fault where the program itself
    // is refused.
    let own = refused(GEMM, SIZES, "parallel C.i\nparallel C.k");
    assert_eq!(
        blame(&program(GEMM, SIZES), &schedule("parallel C.i\nparallel C.k"), &cpu(), own.clone()),
        own
    );
    let open = support::open_program(GEMM);
    let unknown = apply(&open, &schedule("parallel C.i"), &cpu()).unwrap_err();
    assert_eq!(blame(&open, &schedule("parallel C.i"), &cpu(), unknown.clone()), unknown);
}

#[test]
fn parallel_needs_independent_iterations() {
    gemm("parallel C.i");
    gemm("parallel C.j");
    let carried = gemm_refused("parallel C.k");
    assert!(carried.to_string().contains("rfactor"), "{carried}");
    assert!(matches!(gemm_refused("parallel C.i\nparallel C.j"), Illegal::LoopKind(_)));
    let fused = gemm_refused("fuse C.j, C.k -> t\nparallel C.t");
    assert!(matches!(fused, Illegal::CarriedDependence { .. }), "{fused}");
}

#[test]
fn inline_repeats_what_is_pointwise() {
    let loops = print::nest(&agrees(BLUR, IMAGE, "inline rows"));
    assert!(!loops.contains("rows"), "{loops}");
    let result = refused(BLUR, IMAGE, "inline O").reason;
    assert!(matches!(result, Illegal::Inline { .. }), "{result}");
    assert!(matches!(refused(SOFTMAX, &[("N", 3), ("D", 4)], "inline top").reason, Illegal::Inline { .. }));
}

#[test]
fn compute_at_computes_what_an_iteration_needs() {
    let loops = print::nest(&agrees(BLUR, IMAGE, "split O.y -> yo, yi:4\ncompute_at rows, O.yo"));
    assert!(loops.contains("scratch float32 rows[6, 21]"), "{loops}");
    agrees(BLUR, IMAGE, "compute_at rows, O.y");
    agrees(BLUR, IMAGE, "compute_at rows, O.x");
    agrees(
        BLUR,
        IMAGE,
        "split O.x -> xo, xv:8\nreorder O.xo, O.y, O.xv\nvectorize O.xv\ncompute_at rows, O.xo\nparallel O.xo",
    );
    agrees(SOFTMAX, &[("N", 5), ("D", 7)], "compute_at total, O.n\ncompute_at top, O.n\nparallel O.n");
}

/// The caller also receives the intermediate results.
const NORM: &str = "def norm(float(N, G, D) I) -> (O, mean, var) {
    mean(n, g) +=! I(n, g, d)
    var(n, g) +=! I(n, g, d) * I(n, g, d)
    var(n, g) = var(n, g) - mean(n, g)
    O(n, g, d) = I(n, g, d) * mean(n, g) + var(n, g)
}";

#[test]
fn a_part_of_a_part_ends_where_it_did_when_it_changes_places() {
    let source = "def f(float(N, M) I) -> (T) { T(i, j) = I(i, j) + 1 }";
    let steps = "split T.j -> j3, j2:2\nsplit T.j3 -> j6, j4:1, j5:1\nreorder T.i, T.j2, T.j5\nunroll T.j4";
    for size in [3, 4, 5] {
        agrees(source, &[("N", 2), ("M", size)], steps);
    }
    let sums = "def f(float(N, M) I) -> (T) { T(i) +=! I(i, j) }";
    let steps = "split T.j -> j3, j2:2\nsplit T.j3 -> j6, j4:1, j5:1\nreorder T.i, T.j2, T.j5";
    agrees(sums, &[("N", 2), ("M", 3)], steps);
}

#[test]
fn a_result_is_not_computed_at_a_loop_that_is_only_in_part_about_it() {
    let source = "def f(float(N) I) -> (T, O) { T(i) = I(i) + 1
        O(i, j) = T(i) where j in 0:4 }";
    let steps = "fuse O.i, O.j -> t\ncompute_at T, O.t";
    let reason = refused(source, &[("N", 8)], steps);
    assert!(matches!(reason.reason, Illegal::ComputeAt { .. }), "{reason}");
}

#[test]
fn a_result_that_is_used_several_times_is_computed_where_each_element_is_needed_once() {
    let sizes = &[("N", 3), ("G", 5), ("D", 7)];
    agrees(NORM, sizes, "compute_at var, O.g\ncompute_at mean, O.g\nparallel O.n");
    agrees(NORM, sizes, "compute_at var, O.n\ncompute_at mean, O.n");
    agrees(NORM, sizes, "split O.g -> go, gi:2\ncompute_at var, O.go\ncompute_at mean, O.go");
    let twice = refused(NORM, sizes, "compute_at var, O.g\ncompute_at mean, O.d").reason;
    assert!(twice.to_string().contains("is not inside that loop"), "{twice}");
    let twice =
        refused(NORM, sizes, "reorder O.d, O.n, O.g\ncompute_at var, O.g\ncompute_at mean, O.g").reason;
    assert!(twice.to_string().contains("just once"), "{twice}");
    const SHIFTED: &str = "def shifted(float(N) I) -> (O, sum) {
        sum(i) = I(i) + 1
        O(i) = sum(i) + sum(i + 1) where i in 0:N-1
    }";
    let more = refused(SHIFTED, &[("N", 9)], "compute_at sum, O.i").reason;
    assert!(more.to_string().contains("just once"), "{more}");
}

/// The loops of `X[2]` end at a product of variables, and for some of its values nothing runs.
#[test]
fn a_result_is_not_computed_where_the_iterations_are_not_known() {
    let source = "def f(float(12,2,2) x) -> (R, Y) {
        R(i,p,q) = x(i,p,q) * 2
        float(16,2,2) X
        X(i,p,q) = 0
        X(i+4,p,q) = R(i,p,q) + 1
        Y(a,b,c) = X(a*b + c, a, b) where a in 0:2, b in 0:2, c in 0:8
    }";
    let reason = refused(source, &[], "compute_at X, Y.b\ncompute_at R, X[2].q").reason.to_string();
    assert!(reason.contains("it is a result, and these loops would not compute"), "{reason}");
    assert!(reason.contains("just once"), "{reason}");
    agrees(source, &[], "compute_at X, Y.b");
    // Each subscript of `R` takes all of its values, but not all combinations: where `a` is 0, the
    // last elements are left out.
    let source = "def f(float(8,3,2) x) -> (R, Y) {
        R(i,p,q) = x(i,p,q) * 2
        float(12,3,2) X
        X(i,p,q) = 0
        X(i+4,p,q) = R(i,p,q) + 1
        Y(a,b,c) = X(2*a + c, a, b) where a in 0:3, b in 0:2, c in 0:8
    }";
    let reason = refused(source, &[], "compute_at X, Y.b\ncompute_at R, X[2].q").reason.to_string();
    assert!(reason.contains("just once"), "{reason}");
}

/// Down each column and up again, and transposed.
const SCANS: &str = "def scans(float(H, W) I) -> (T) {
    b(0, x) = I(0, x)
    for y in 1:H { b(y, x) = 2 * b(y - 1, x) + I(y, x) }
    for t in 1:H { b(H - 1 - t, x) = b(H - t, x) + 3 * b(H - 1 - t, x) }
    T(x, y) = b(y, x)
}";

#[test]
fn compute_at_takes_ordered_loops_along() {
    let sizes = &[("H", 7), ("W", 11)];
    let strips = "split T.x -> xo, xi:4\ncompute_at b, T.xo\nparallel T.xo\n";
    let nest = agrees(SCANS, sizes, &format!("{strips}vectorize b.x\nvectorize b[2].x\nvectorize b[3].x"));
    assert!(print::nest(&nest).contains("scratch float32 b[7, 4]"), "{}", print::nest(&nest));
    assert_eq!(prove(&program(SCANS, sizes), &nest), Verdict::Proved);
    // The loops keep their names and their order.
    for step in ["reorder b[2].x, b[2].y", "vectorize b[2].y"] {
        let moved = refused(SCANS, sizes, &format!("{strips}{step}")).reason.to_string();
        assert!(moved.contains("computed at a loop of their consumer"), "{step}: {moved}");
    }
    // Every column needs its neighbours in the row before: strips compute all columns.
    let slanted = "def f(float(H, W) I) -> (T) {
        b(0, x) = I(0, x)
        for y in 1:H { b(y, x) = b(y - 1, min(x + 1, W - 1)) + I(y, x) }
        T(x, y) = b(y, x)
    }";
    let whole = agrees(slanted, sizes, "split T.x -> xo, xi:4\ncompute_at b, T.xo");
    assert!(print::nest(&whole).contains("scratch float32 b[7, 11]"), "{}", print::nest(&whole));
    // Two tensors of one ordered loop cannot be torn apart.
    let coupled = "def f(float(H, W) I) -> (T) {
        b(0, x) = I(0, x)
        c(0, x) = I(0, x)
        for y in 1:H {
            b(y, x) = c(y - 1, x) + I(y, x)
            c(y, x) = b(y - 1, x)
        }
        T(x, y) = b(y, x) + c(y, x)
    }";
    let torn = refused(coupled, sizes, "compute_at b, T.x").reason.to_string();
    assert!(torn.contains("another statement is inside its loops"), "{torn}");
    let touched = refused(SCANS, sizes, "reorder b[2].x, b[2].y\ncompute_at b, T.x").reason.to_string();
    assert!(touched.contains("earlier steps have changed its own loops"), "{touched}");
}

#[test]
fn compute_at_refuses_what_would_change_the_meaning() {
    let itself = refused(BLUR, IMAGE, "compute_at rows, rows.y").reason;
    assert!(matches!(itself, Illegal::ComputeAt { .. }), "{itself}");
    let early = refused(SOFTMAX, &[("N", 5), ("D", 7)], "compute_at top, O.n").reason;
    assert!(early.to_string().contains("`total` uses it too"), "{early}");
    assert!(matches!(refused(BLUR, IMAGE, "compute_at I, O.y").reason, Illegal::ComputeAt { .. }));
    let touched = refused(BLUR, IMAGE, "vectorize rows.x\ncompute_at rows, O.y");
    assert!(touched.reason.to_string().contains("first"), "{touched}");
    assert_eq!(touched.step, Some(1));
}

/// Layers whose results are set, added to and changed again.
const LAYERS: &str = "def layers(float(B, N) I, float(O, N) W, float(O) bias, float(P, O) V) -> (X, Y) {
    X(b, o) = bias(o)
    X(b, o) += I(b, n) * W(o, n)
    X(b, o) = fmax(X(b, o), 0)
    Y(b, p) = 1
    Y(b, p) += X(b, o) * V(p, o)
    Y(b, p) = fmax(Y(b, p), 0)
}";
const LAYER_SIZES: &[(&str, i64)] = &[("B", 7), ("N", 5), ("O", 6), ("P", 3)];

#[test]
fn statements_of_a_tensor_are_computed_where_a_later_one_changes_it() {
    for steps in [
        "compute_at X, X[3].b",
        "compute_at X, X[3].o",
        "compute_at X, X[2].b",
        "compute_at X, X[2].o\npromote X at X[2].o -> total registers",
        "split X[3].b -> bo, bi:4\ncompute_at X, X[3].bo\nparallel X[3].bo",
        "split X[3].b -> bo, bm:2, bi:2\ncompute_at X, X[3].bo\nvectorize X[3].o",
        "split X[3].b -> bo, bi:2\nreorder X[3].o, X[3].bo, X[3].bi\ncompute_at X, X[3].bo",
        "fuse X[3].b, X[3].o -> t\nreorder X[2].n, X[2].b",
        "split Y[3].b -> bo, bi:4\ncompute_at Y, Y[3].bo\ncompute_at X, Y[3].bo\nparallel Y[3].bo",
        "compute_at Y, Y[3].b\ncompute_at X, Y[3].b\nreorder X[2].n, X[2].o\nvectorize X[2].o",
        "compute_at X, Y[2].b\nparallel Y[2].b",
    ] {
        agrees(LAYERS, LAYER_SIZES, steps);
    }
    // Later uses of the tensor do not prevent the move.
    let after = "def f(float(N, M) I) -> (U) {
        T(i, j) = I(i, j) + 1
        T(i, j) = T(i, j) * T(i, j)
        U(i, j) = T(i, M - 1 - j) + T(N - 1 - i, j)
    }";
    agrees(after, &[("N", 7), ("M", 5)], "compute_at T, T[2].i\nparallel T[2].i\nvectorize T.j");
}

#[test]
fn statements_of_a_tensor_stay_where_a_later_one_would_miss_or_undo_them() {
    for (steps, why) in [
        ("compute_at X, X[2].n", "just once"),
        ("reorder X[2].n, X[2].b\ncompute_at X, X[2].b", "just once"),
        ("fuse X[3].b, X[3].o -> t\ncompute_at X, X[3].t", "just once"),
        (
            "split X[3].b -> bo, bm:2, bi:2\nreorder X[3].bo, X[3].bi, X[3].bm\ncompute_at X, X[3].bi",
            "just once",
        ),
        ("split X[3].b -> bo, bi:4\nsplit X[3].bi -> bj, bk:3\ncompute_at X, X[3].bj", "just once"),
        ("promote X at X[2].b -> all packed\ncompute_at X, X[2].o", "promoted outside"),
        ("vectorize X[2].o\ncompute_at X, X[3].b", "move it first"),
        ("compute_at X, X[3].b\ncompute_at X, X[3].b", "is inside its loops"),
        ("compute_at X, X.b", "belongs to its own statement"),
    ] {
        let reason = refused(LAYERS, LAYER_SIZES, steps).reason;
        assert!(matches!(reason, Illegal::ComputeAt { .. }), "{steps}: {reason}");
        assert!(reason.to_string().contains(why), "{steps}: {reason}");
    }
    // A reduction with one iteration has a reset, too.
    let one = "def f(float(N) I) -> (T) { T() = 1 T() += I(i) where i in 0:1 }";
    assert!(matches!(refused(one, &[("N", 1)], "compute_at T, T[2].i").reason, Illegal::ComputeAt { .. }));
    let sizes = &[("N", 8)];
    for (source, why) in [
        ("def f(float(N) I) -> (T) { T(i, j) = I(i) where j in 0:2 T(i, 0) = T(i, 1) }", "other elements"),
        ("def f(float(N) I) -> (T) { T(i) = I(i) T(i) += 1 where i in 1:N }", "just once"),
        ("def f(float(N) I) -> (T) { T(i) = I(i) T(i/2) += I(i) }", "just once"),
        (
            "def f(float(N) I) -> (T) { T(i) = I(i) X(i) = T(i) T(i) += X(i) }",
            "`X` uses it before `T[2]` does",
        ),
    ] {
        let reason = refused(source, sizes, "compute_at T, T[2].i").reason.to_string();
        assert!(reason.contains(why), "{source}: {reason}");
    }
}

#[test]
fn promote_stages_operands() {
    let loops = gemm(
        "split C.j -> jo, ji:8\nreorder C.jo, C.i, C.k, C.ji\npromote B at C.jo -> Bp packed (d1, d0)\npromote A at C.i -> Ap packed",
    );
    assert!(
        loops.contains("scratch float32 Bp[8, 11]") && loops.contains("scratch float32 Ap[1, 11]"),
        "{loops}"
    );
    let setup = gemm("promote B at root -> Bp packed (d1/8, d0, d1%8)\nvectorize Bp.l2");
    assert!(setup.contains("setup"), "{setup}");
    gemm("promote B at root -> Bp packed (d1%8, d1%16/8, d1/16, d0%4, d0/4)");
    gemm("promote A at root -> Ap packed (d1, d0)");
}

#[test]
fn gathered_rows_have_a_place_for_each_iteration() {
    let tile = "split O.b -> bo, bi:4\nsplit O.l -> lo, li:3\nreorder O.bo, O.lo, O.bi, O.d, O.li\n";
    let gather = "promote LUT at O.lo -> rows packed gathered";
    let loops = print::nest(&agrees(LUT, ROWS, &format!("{tile}{gather}")));
    for part in [
        "scratch float32 rows[4, 3, 6]",
        "rows[l0, l1, l2] = LUT[I[4*bo + l0, 3*lo + l1], l2]",
        "+= rows[bi, li, d]",
    ] {
        assert!(loops.contains(part), "no {part}:\n{loops}");
    }
    // A key that the loops inside do not change has one element in the buffer.
    let row = print::nest(&agrees(LUT, ROWS, "reorder O.l, O.d\npromote LUT at O.l -> row packed gathered"));
    assert!(
        row.contains("scratch float32 row[1, 1, 6]") && row.contains("row[0, 0, l2] = LUT[I[b, l], l2]"),
        "{row}"
    );
    let all =
        print::nest(&agrees(LUT, ROWS, "promote LUT at root -> rows packed gathered\nvectorize rows.l2"));
    assert!(all.contains("scratch float32 rows[10, 7, 6]") && !all.contains("setup"), "{all}");
    agrees(LUT, ROWS, &format!("{tile}{gather} (d2/4, d1, d0, d2%4)\nvectorize rows.l3"));
    agrees(
        LUT,
        ROWS,
        "fuse O.b, O.d -> t\nsplit O.t -> to, ti:7\npromote LUT at O.to -> rows packed gathered",
    );
}

#[test]
fn the_documented_gather_does_what_it_says() {
    let text = include_str!("../../../docs/schedules.md");
    let (_, section) = text.split_once("**Rows that data chooses.**").unwrap();
    let block = |fence: &str| section.split_once(fence).unwrap().1.split_once("```").unwrap().0;
    let (source, steps) = (block("```tw\n"), block("```sched\n"));
    let sizes = &[("E", 50), ("D", 16), ("B", 40), ("L", 20)];
    let loops = print::nest(&agrees(source, sizes, &format!("{steps}promote I at O.lo -> Is packed")));
    assert!(loops.contains("rows[l0, l1, l2] = LUT[Is[l0, l1], l2]"), "{loops}");
}

#[test]
fn the_indices_of_gathered_rows_are_promoted_too() {
    let tile = "split O.b -> bo, bi:5\nreorder O.bo, O.l, O.bi, O.d\n";
    let (rows, indices) =
        ("promote LUT at O.bo -> rows packed gathered\n", "promote I at O.bo -> Is packed\n");
    for steps in [[rows, indices], [indices, rows]] {
        let loops = print::nest(&agrees(LUT, ROWS, &format!("{tile}{}", steps.concat())));
        assert!(loops.contains("rows[l0, l1, l2] = LUT[Is[l0, l1], l2]"), "{loops}");
    }
    // A buffer that is clipped at the end may hold nothing where rows would be looked up.
    let ragged = refused(LUT, ROWS, &format!("split O.b -> bo, bi:4\n{indices}{rows}"));
    assert!(ragged.to_string().contains("`Is`, which chooses elements, is a buffer"), "{ragged}");
    let twice = "def f(float(E, D) T, int32(E) J, int32(B) I) -> (O) { O(b, d) = T(J(I(b)), d) }";
    let sizes = &[("E", 9), ("D", 6), ("B", 7)];
    agrees(twice, sizes, "promote T at O.b -> rows packed gathered\npromote J at O.b -> Js packed gathered");
    agrees(
        twice,
        sizes,
        "promote T at root -> rows packed gathered\npromote J at rows.l0 -> Js packed gathered",
    );
}

#[test]
fn indices_of_indices_are_replaced_once() {
    // Lowering renumbers the buffers of a nest when some are unused, and must renumber the reads
    // inside subscripts too.
    let source = "def f(float(N, N) A, uint8(4) I) -> (O) {
        T(i) = A(I(i + 2), i + 2) + A(i + 2, i + 1) where i in 0:2
        O() = 1
        for t in 0:4 { U() max=! T(clamp(I(t), 0, 1)); O() = U() + O() } }";
    agrees(source, &[("N", 4)], "inline T\npromote I at O[2].t -> Is packed");
}

#[test]
fn nothing_is_gathered_that_no_iteration_reads() {
    // Every second index, and those past the last one, name rows that do not exist.
    let source =
        "def f(float(E, D) T, int32(N) I) -> (O) { O(b, d) +=! T(I(2*b + k), d) where b in 0:5, k in 0:1 }";
    let sizes = [("E", 9), ("D", 6), ("N", 16)];
    let program = program(source, &sizes);
    let mut inputs = support::inputs(&program, 1);
    let indices = inputs.tensors.get_mut("I").unwrap();
    for at in (0..16).filter(|at| at % 2 == 1 || *at >= 10) {
        indices.set(at, Number::Int(1000));
    }
    let wanted = run(&program, inputs.clone()).unwrap();
    for steps in [
        "promote T at root -> rows packed gathered",
        "split O.b -> bo, bi:3\npromote T at O.bo -> rows packed gathered",
        "split O.b -> bo, bi:2\nreorder O.bo, O.d, O.bi\npromote T at O.bo -> rows packed gathered (d1, d2, d0)",
    ] {
        let nest = apply(&program, &schedule(steps), &cpu()).unwrap();
        let found = run_nest(&nest, &program, inputs.clone(), Order::Ascending).unwrap();
        support::compare(&wanted, &found, steps);
    }
}

#[test]
fn a_gather_reports_what_the_program_would() {
    let program = program(LUT, ROWS);
    let mut inputs = support::inputs(&program, 1);
    inputs.tensors.get_mut("I").unwrap().set(13, Number::Int(9));
    let wanted = run(&program, inputs.clone()).unwrap_err().to_string();
    let nest = apply(&program, &schedule("promote LUT at O.b -> rows packed gathered"), &cpu()).unwrap();
    let found = run_nest(&nest, &program, inputs, Order::Ascending).unwrap_err().to_string();
    assert_eq!(found, wanted);
    assert!(wanted.contains("LUT"), "{wanted}");
}

#[test]
fn what_a_condition_leaves_out_is_not_gathered() {
    let source = "def f(float(E, D) T, int32(B, L) I) -> (O) {
        O(b, d) +=! (I(b, l) >= 0 && (I(b, l) >= E || l < 1)) ? 0.5 : T(I(b, l) < 0 ? 0 : I(b, l), d) }";
    let program = program(source, &[("E", 6), ("D", 5), ("B", 10), ("L", 3)]);
    let mut inputs = support::inputs(&program, 1);
    for (at, index) in [(3, -7), (7, 1000), (20, 6)] {
        inputs.tensors.get_mut("I").unwrap().set(at, Number::Int(index));
    }
    let wanted = run(&program, inputs.clone()).unwrap();
    let steps = "split O.b -> bo, bi:4\npromote T at O.bo -> rows packed gathered";
    let nest = apply(&program, &schedule(steps), &cpu()).unwrap();
    assert!(print::nest(&nest).contains("rows[bi, l, d]"), "{}", print::nest(&nest));
    let found = run_nest(&nest, &program, inputs, Order::Ascending).unwrap();
    support::compare(&wanted, &found, steps);
}

#[test]
fn padding_is_gathered_with_rows() {
    let source = "def f(float(E, D) T, int32(B) I) -> (O) {
        O(b, d) +=! (d + k >= 1 && d + k - 1 < D) ? T(clamp(I(b), 0, E - 1), d + k - 1) : 0 where d in 0:D, k in 0:3 }";
    let steps = "split O.b -> bo, bi:4\npromote T at O.bo -> rows packed gathered";
    let loops = print::nest(&agrees(source, &[("E", 6), ("D", 5), ("B", 10)], steps));
    assert!(loops.contains("O[4*bo + bi, d] += rows[bi, d + k]"), "{loops}");
}

#[test]
fn gathers_that_cannot_be_are_refused() {
    let two = "def f(float(E, D) T, int32(B) I, int32(B) J) -> (O, P) { O(b, d) = T(I(b), d) * T(J(b), d)
        P(b, d) = T(I(b), d) + O(b, d) }";
    let given =
        "def f(float(E, D) T, int32(B) I) -> (O) { O(b, d) = T(I(b), d) + (I(b) < 3 ? T(I(b), d) : 0) }";
    let made = "def f(float(E, D) T, int32(B) I) -> (O) { K(b) = I(b) + 0
        O(b, d) = T(K(b), d) }";
    let sizes: &[(&str, i64)] = &[("E", 9), ("D", 6), ("B", 5)];
    let at = |place: &str| format!("promote T at {place} -> rows packed gathered");
    for (source, steps, why) in [
        (two, at("O.b"), "different subscripts"),
        (two, at("root"), "`O` and `P` both read it there"),
        (given, at("O.b"), "different conditions"),
        (made, format!("compute_at K, O.d\n{}", at("O.b")), "`K`, which chooses elements, is written"),
        (made, "promote K at O.b -> Ks packed gathered".to_string(), "no read of it depends on data"),
        (made, "promote O at O.b -> Os packed gathered".to_string(), "only operands can be gathered"),
        (made, format!("{} (d0, d1, d2, d3)", at("root")), "it has no dimension d2"),
    ] {
        let reason = refused(source, sizes, &steps).reason.to_string();
        assert!(reason.contains(why), "{source}\n{steps}: {reason}");
    }
    agrees(made, sizes, &format!("compute_at K, O.b\n{}", at("O.b")));
    agrees(two, sizes, "promote T at P.b -> rows packed gathered");
}

#[test]
fn promote_refuses_a_result_along_a_loop_without_a_known_end() {
    // The part of `T` that exists may be empty, and a remainder by its extent then has no bounds.
    let source = "def f(float(N) A) -> (O) {
        T(i, j) = A(i) * A(j) where i in 0:3, j in 0:10
        O(i, 10*j + k) = (0 <= i + j - 1 && i + j - 1 < 3 ? T(i + j - 1, k) : 0) * T(j, (i + j) % 10)
            where i in 0:3, j in 0:3, k in 0:10
    }";
    let sizes = &[("N", 10)];
    let steps = "promote T at O.k -> P packed (d1, d0/6, d0%6)\npromote P at P.l1 -> Q packed";
    agrees(source, sizes, steps);
    let reason = refused(source, sizes, &format!("{steps}\nfuse P.l0, P.l1 -> t")).reason.to_string();
    assert!(reason.contains("number of iterations of `P.l2` is not known"), "{reason}");
}

#[test]
fn promote_refuses_layouts_that_lose_elements() {
    let table = [
        ("(d0)", None, "the layout leaves out dimension d1"),
        ("(d0, d1/8)", Some(1), "the layout does not keep the elements of dimension d1 apart"),
        ("(d0, d1%8)", Some(1), "the layout does not keep the elements of dimension d1 apart"),
        ("(d0, d1, d1)", Some(1), "the layout does not keep the elements of dimension d1 apart"),
        ("(d0, d1/8, d1%4)", Some(1), "the layout does not keep the elements of dimension d1 apart"),
        ("(d0, d1, d2)", Some(2), "it has no dimension d2: the last is d1"),
        ("(d1/1, d0, d1%1)", Some(2), "`d1%1` in the layout is always 0: leave it out"),
        ("(d1/8, d0, d1%8/8, d1%8)", Some(2), "`d1%8/8` in the layout is always 0: leave it out"),
    ];
    for (layout, wrong, message) in table {
        let Illegal::Layout { part, why, .. } =
            gemm_refused(&format!("promote B at root -> Bp packed {layout}"))
        else {
            panic!("{layout}");
        };
        assert_eq!((part, why.as_str()), (wrong, message), "{layout}");
    }
    gemm("promote B at root -> Bp packed (d1/1, d0)");
    let result = gemm_refused("promote C at C.i -> Cp packed (d1, d0)");
    assert!(matches!(result, Illegal::Layout { part: None, .. }), "{result}");
    assert!(matches!(gemm_refused("promote C at C.i -> A packed"), Illegal::NameTaken(_)));
    let computed = refused(BLUR, IMAGE, "promote rows at root -> r packed").reason;
    assert!(matches!(computed, Illegal::Promote { .. }), "{computed}");
}

#[test]
fn what_a_promote_makes_stays_where_it_says() {
    let table = [
        ("promote A at C.i -> p packed", "it is a staged copy"),
        ("promote B at root -> p packed", "it is a staged copy"),
        ("promote C at C.j -> p registers", "it is the buffer of a result"),
    ];
    for (promote, what) in table {
        let moved = gemm_refused(&format!("{promote}\ncompute_at p, C.j")).to_string();
        let wanted =
            format!("`p` cannot be computed at `C.j`: {what}; the `promote` that makes it decides the loop");
        assert_eq!(moved, wanted, "{promote}");
        let inlined = gemm_refused(&format!("{promote}\ninline p")).to_string();
        let wanted = format!("`p` cannot be inlined: {what}; leave out the `promote` that makes it instead");
        assert_eq!(inlined, wanted, "{promote}");
    }
}

#[test]
fn results_are_gathered_in_registers() {
    gemm(
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
    gemm("promote C at C.j -> acc registers");
    gemm("promote C at C.i -> row packed\nreorder C.k, C.j");
    let serial = gemm_refused("promote C at C.i -> acc registers");
    assert!(matches!(serial, Illegal::RegisterIndex { .. }), "{serial}");
    let large = gemm_refused(
        "split C.i -> io, ii:12\nsplit C.j -> jo, ju:3, jv:16\nreorder C.io, C.jo, C.k, C.ii, C.ju, C.jv\nunroll C.ii\nunroll C.ju\nvectorize C.jv\npromote C at C.jo -> acc registers",
    );
    assert_eq!(
        large,
        Illegal::RegisterTile { name: "acc".to_string(), needed: 36, lanes: 16, available: 32 }
    );
}

#[test]
fn rfactor_gives_each_iteration_a_total() {
    gemm("split C.k -> ko, ki:4\nrfactor C.ki -> Cp\nreorder Cp.ko, Cp.ki\nvectorize Cp.ki\nunroll C.ki");
    gemm("reorder C.k, C.i, C.j\nrfactor C.k -> Cp\nparallel Cp.k");
    let sum = "def sum(float(N) I) -> (s) { s +=! I(n) }";
    agrees(
        sum,
        &[("N", 37)],
        "split s.n -> no, nv:16\nrfactor s.nv -> p\nvectorize p.nv\nvectorize s.nv\npromote p at p.no -> q packed",
    );
    agrees(sum, &[("N", 37)], "split s.n -> no, nv:16\nrfactor s.no -> p\nparallel p.no");
    assert!(matches!(gemm_refused("rfactor C.i -> Cp"), Illegal::Rfactor { .. }));
    assert!(matches!(gemm_refused("rfactor C.k -> B"), Illegal::NameTaken(_)));
}

#[test]
fn prefetch_asks_for_what_comes_later() {
    let tiles = "split C.j -> jo, jv:16\nreorder C.i, C.jo, C.k, C.jv\nvectorize C.jv\n";
    let nest = gemm(&format!("{tiles}prefetch B at C.k ahead 4"));
    assert!(nest.contains("prefetch B[k + 4, 16*jo]"), "{nest}");
    // A later split changes the elements that an iteration uses, but not how far ahead it looks.
    let nest = gemm("prefetch A at C.k ahead 3 of C.i\nsplit C.i -> io, ii:4");
    assert!(nest.contains("prefetch A[4*io + ii + 3, k]"), "{nest}");
    // Written elements are prefetched too, and rows that follow each other are one run of cache
    // lines.
    let copy = "def copy(float(N, 24) I) -> (O) { O(n, m) = I(n, m) }";
    let nest = print::nest(&agrees(
        copy,
        &[("N", 40)],
        "split O.n -> no, ni:4\nprefetch O at O.no ahead 1\nprefetch I at O.no ahead 1",
    ));
    assert!(nest.contains("unroll line in 6\n      prefetch O[4*no + 4, 16*line]"), "{nest}");
}

#[test]
fn prefetch_is_refused_with_its_reason() {
    for (steps, why) in [
        ("prefetch A at C.i ahead 1 of C.k", "`C.k` is not a loop around it"),
        ("vectorize C.j\nprefetch A at C.k ahead 1", "`C.j` is vectorised"),
        ("prefetch A at C.k ahead 1\nvectorize C.j", "`C.j` is vectorised"),
        ("prefetch A at C.k ahead 9999999", "not between 1 and"),
        (
            "promote B at C.k -> Bp packed\nprefetch B at Bp.l1 ahead 1\nprefetch Bp at C.j ahead 1",
            "allocated inside",
        ),
        ("promote B at C.j -> Bp packed\nprefetch B at C.k ahead 1", "no statement there uses it"),
    ] {
        let reason = gemm_refused(steps);
        assert!(matches!(reason, Illegal::Prefetch { .. }), "{steps}: {reason}");
        assert!(reason.to_string().contains(why), "{steps}: {reason}");
    }
    let much = refused(
        "def f(float(N, M) I) -> (s) { s(n) +=! I(n, m) }",
        &[("N", 4), ("M", 9000)],
        "prefetch I at s.n ahead 1",
    );
    assert!(much.to_string().contains("563 cache lines"), "{much}");
    let rows = "def rows(float(E, D) T, int32(N) I) -> (O) { O(n, d) = T(I(n), d) }";
    let gathered = refused(rows, &[("E", 9), ("D", 8), ("N", 5)], "prefetch T at O.n ahead 1");
    assert!(gathered.to_string().contains("depends on data"), "{gathered}");
    assert!(matches!(gemm_refused("prefetch A at C.i ahead 1\nfuse C.i, C.j -> t"), Illegal::LoopKind(_)));
}

#[test]
fn ordered_loops_keep_their_order() {
    let scan = "def scan(float(N, M) I) -> (O) {
        O(0, m) = I(0, m)
        for n in 1:N { O(n, m) = O(n - 1, m) + I(n, m) }
    }";
    let sizes = &[("N", 6), ("M", 21)];
    agrees(scan, sizes, "split O[2].m -> mo, mv:8\nvectorize O[2].mv\nunroll O[2].n\nparallel O.m");
    agrees(scan, sizes, "split O[2].n -> no, ni:2");
    // Every column is a separate scan.
    agrees(scan, sizes, "reorder O[2].m, O[2].n\nparallel O[2].m");
    agrees(scan, sizes, "split O[2].m -> mo, mv:8\nreorder O[2].mo, O[2].mv, O[2].n\nvectorize O[2].mv");
    for step in [
        "parallel O[2].n",
        "vectorize O[2].n",
        "fuse O[2].n, O[2].m -> t",
        "split O[2].n -> no, ni:2\nreorder O[2].ni, O[2].no",
    ] {
        let reason = refused(scan, sizes, step).reason;
        assert!(matches!(reason, Illegal::CarriedDependence { .. }), "{step}: {reason}");
    }
}

/// Dependences between instances, not the kind of a loop, decide which order must be kept.
#[test]
fn ordered_loops_that_carry_nothing_are_free() {
    let apart = "def apart(float(T, N) I) -> (O) { for t in 0:T { O(t, i) = 2 * I(t, i) } }";
    let sizes = &[("T", 5), ("N", 13)];
    agrees(apart, sizes, "parallel O.t");
    agrees(apart, sizes, "reorder O.i, O.t\nparallel O.i\nunroll O.t");
    agrees(apart, sizes, "reorder O.i, O.t\nvectorize O.t");
    let diagonal = "def diagonal(float(T, N) I) -> (O) {
        O(0, i) = I(0, i)
        O(t, 0) = I(t, 0) where t in 1:T
        for t in 1:T { O(t, i) = O(t - 1, i - 1) + I(t, i) where i in 1:N }
    }";
    agrees(diagonal, sizes, "reorder O[3].i, O[3].t");
    let reason = refused(diagonal, sizes, "reorder O[3].i, O[3].t\nparallel O[3].i").reason.to_string();
    assert!(reason.contains("`O[3]` at (t=") && reason.contains("must read `O` after"), "{reason}");
    let back = "def back(float(T, N) I) -> (O) {
        O(0, i) = I(0, i)
        O(t, N - 1) = I(t, 0) where t in 1:T
        for t in 1:T { O(t, i) = O(t - 1, i + 1) + I(t, i) where i in 0:N-1 }
    }";
    let reason = refused(back, sizes, "reorder O[3].i, O[3].t").reason.to_string();
    assert!(reason.contains("must read `O` after `O[3]` at (t="), "{reason}");
    let sums = "def sums(float(T, N) I) -> (O) { for t in 0:T { O(t) +=! I(t, k) } }";
    let reason = refused(sums, sizes, "reorder O.k, O.t").reason.to_string();
    assert!(reason.contains("must be reduced again"), "{reason}");
}

#[test]
fn what_an_ordered_loop_changes_is_not_read_later() {
    let inlined = "def f(float(N) a) -> (y) {
        x(i) = a(i)
        p(i) = 2 * x(i)
        y(i) = a(i)
        for t in 0:3 { y(i) = y(i) + p(i)
          x(i) = x(i) + 1 }
    }";
    for steps in ["inline p", "compute_at p, y[2].i"] {
        let reason = refused(inlined, &[("N", 7)], steps).reason.to_string();
        assert!(reason.contains("must change `x` after `p` at (i="), "{reason}");
    }
    // The loop changes other elements of the tensor than the statement reads.
    let apart = "def f(float(N) a) -> (y) {
        x(i) = a(i % N) where i in 0:2*N
        p(i) = 2 * x(i) where i in 0:N
        y(i) = a(i)
        for t in 0:3 { y(i) = y(i) + p(i)
          x(i + N) = x(i + N) + 1 where i in 0:N }
    }";
    agrees(apart, &[("N", 7)], "inline p");
    agrees(apart, &[("N", 7)], "compute_at p, y[2].i");
}

/// A statement that was moved or inlined into the loop of a later statement reads elements that
/// this loop changes. In the original order it reads the old values.
#[test]
fn loops_around_moved_statements_keep_what_these_read() {
    let source = "def f(float(N) a) -> (w) {
        w(i) = a(i)
        t(i) = w(N - 1) where i in 0:N
        w(i) = t(i) * 2
    }";
    let sizes = &[("N", 5)];
    for moved in ["inline t", "compute_at t, w[2].i"] {
        agrees(source, sizes, moved);
        for kind in ["parallel w[2].i", "vectorize w[2].i"] {
            let reason = refused(source, sizes, &format!("{moved}\n{kind}")).reason.to_string();
            assert!(reason.contains("must change `w` after `t` at (i="), "{reason}");
        }
    }
    let reversed = "inline t\nsplit w[2].i -> o, j:2\nreorder w[2].j, w[2].o";
    // The last element is still the last of 4, but not of 5.
    agrees(source, &[("N", 4)], reversed);
    assert!(refused(source, sizes, reversed).reason.to_string().contains("must change `w` after"));
    // A reduction resets its element before it computes anything.
    let reduced = source.replace("w(i) = t(i) * 2", "w(i) +=! t(i) * a(k)");
    assert!(refused(&reduced, sizes, "inline t").reason.to_string().contains("must change `w` after"));
}

#[test]
fn results_of_ordered_loops_are_gathered_inside() {
    let source = "def f(float(N) a) -> (x) { for t in 0:4 { x(i) = a(i) + t } }";
    let sizes = &[("N", 6)];
    agrees(source, sizes, "promote x at x.t -> r packed");
    for steps in [
        "split x.t -> o, j:2\npromote x at x.o -> r packed",
        "promote x at x.t -> r packed\nsplit x.t -> o, j:2\nreorder x.j, x.o",
    ] {
        let reason = refused(source, sizes, steps).reason;
        assert!(matches!(reason, Illegal::Promote { .. } | Illegal::CarriedDependence { .. }), "{reason}");
    }
}

#[test]
fn results_that_would_be_computed_again_stay_outside() {
    let narrowed = "def f(int8(2) b) -> (x0, x2) {
        x0(i) = b(i)
        x1(i) +=! x0(i)
        x2(i, j) = x1(0) where i in 0:3, j in 0:2
    }";
    let reason = refused(narrowed, &[], "compute_at x1, x2.i\ncompute_at x0, x1.i").reason.to_string();
    assert!(reason.contains("it is a result"), "{reason}");
}

#[test]
fn lanes_of_a_vector_run_the_same_loops() {
    let plain = "def f(float(N) x) -> (y) { y(i) = x(i) + 1 }";
    let steps = "split y.i -> o, v:32\nvectorize y.v\nreorder y.v, y.o";
    let reason = refused(plain, &[("N", 104)], steps).reason;
    assert!(matches!(reason, Illegal::DependentExtent { .. }), "{reason}");
    agrees(plain, &[("N", 96)], steps);
    // Unrolled loops have a condition before each iteration, in whichever order the steps come.
    agrees(plain, &[("N", 104)], &format!("{steps}\nunroll y.o"));
    agrees(plain, &[("N", 104)], "split y.i -> o, v:32\nunroll y.o\nreorder y.v, y.o\nvectorize y.v");
    let part = "def f(float(8) x) -> (float(8) y) {
        y(i) = x(i)
        y(i) = y(i) * 3 where i in 2:7
        y(i) = y(i) * 2
    }";
    let (vector, moved) = ("vectorize y[3].i", "compute_at y, y[3].i");
    for (steps, culprit) in [([vector, moved], 1), ([moved, vector], 1)] {
        let steps = steps.join("\n");
        let program = program(part, &[]);
        let refusal = blame(&program, &schedule(&steps), &cpu(), refused(part, &[], &steps));
        assert!(matches!(refusal.reason, Illegal::DependentExtent { .. }), "{refusal}");
        assert!(refusal.to_string().contains("iterations of `y[2].i` depends on `y[3].i`"), "{refusal}");
        assert_eq!(refusal.step, Some(culprit), "{steps}");
        agrees(part, &[], &format!("{steps}\nunroll y[2].i"));
    }
    agrees(part, &[], &format!("{moved}\nunroll y[2].i\n{vector}"));
    let both = "def f(float(N,M) x) -> (float(N,M) R, float(N,M,3) Q, C) {
        R(i,j) = x(i,j)
        R(i,j) = R(i,j) * 3 where i in 0:N, j in 2:M-1
        Q(i,j,k) = x(i,j) + k
        Q(i,j,k) = Q(i,j,k) * 7 where i in 0:N, j in 2:M-1, k in 0:3
        C(i,j,k) = R(i,j) + Q(i,j,k)
    }";
    let steps = "split C.j -> jo, jv:16\nvectorize C.jv\nunroll C.k\ncompute_at R, C.jv\nunroll R[2].j\ncompute_at Q, C.k\nunroll Q[2].j\npromote C at C.jo -> acc registers";
    agrees(both, &[("N", 3), ("M", 37)], steps);
}

#[test]
fn whole_tiles_and_the_rest_ask_the_same_over_different_numbers_of_iterations() {
    let mask = "def mask(float(N, M) x) -> (S) { S(i, j) = j <= i ? x(i, j) : -1 }";
    for (sizes, steps) in [
        ([("N", 31), ("M", 33)], "split S.j -> j0, j1:6, j2:3\nunroll S.j2"),
        ([("N", 64), ("M", 64)], "split S.j -> j0, j1:6, j2:3\nvectorize S.j2"),
        ([("N", 33), ("M", 33)], "split S.j -> j0, j1:3, j2:3\nunroll S.j2"),
    ] {
        agrees(mask, &sizes, steps);
    }
    let sum = "def lower(float(N, N) A, float(N) x) -> (y) { y(i) +=! k <= i ? A(i, k) * x(k) : 0 }";
    agrees(sum, &[("N", 33)], "split y.k -> k0, k1:6, k2:3\nunroll y.k2");
    agrees(sum, &[("N", 64)], "split y.k -> k0, k1:6, k2:2\nunroll y.k2");
}

#[test]
fn conditions_of_padding_leave_the_inner_loops() {
    let conv = "def conv(float(W) I, float(3) F) -> (O) {
        O(x) +=! (0 <= x + k - 1 && x + k - 1 < W ? I(x + k - 1) : 0) * F(k) where x in 0:W, k in 0:3
    }";
    let loops = print::nest(&agrees(conv, &[("W", 40)], "promote O at O.x -> acc registers"));
    assert!(loops.contains("if x <= 38 && x >= 1"), "{loops}");
    let unrolled = print::nest(&agrees(
        conv,
        &[("W", 40)],
        "split O.x -> xo, xi:8\nunroll O.xi\nunroll O.k\npromote O at O.xo -> acc registers",
    ));
    assert!(!unrolled.contains("I[8*xo + 3] : 0"), "the middle of a tile asks nothing:\n{unrolled}");
}

#[test]
fn borders_of_views_leave_the_inner_loops() {
    for rule in ["repeat(I)", "mirror(I)", "reflect(I)", "wrap(I)", "constant(I, 0)"] {
        let source = format!(
            "def blur(float(H, W) I) -> (O) {{ v = {rule} O(y, x) = v(y - 1, x - 2) + v(y, x) + v(y + 1, x + 2) }}"
        );
        let sizes = [("H", 70), ("W", 200)];
        let text = print::nest(&agrees(&source, &sizes, "split O.x -> xo, xi:16\nvectorize O.xi"));
        let interior =
            "O[y, 16*xo + xi] = I[y - 1, 16*xo + xi - 2] + I[y, 16*xo + xi] + I[y + 1, 16*xo + xi + 2]";
        assert!(text.contains(interior), "{rule}:\n{text}");
        // Dimensions that are smaller than a vector, or than the distance beyond the edge.
        for sizes in [[("H", 1), ("W", 1)], [("H", 2), ("W", 3)], [("H", 5), ("W", 17)]] {
            agrees(&source, &sizes, "split O.x -> xo, xi:16\nvectorize O.xi");
        }
    }
}

/// A convolution turns its filter around, so the subscript of the image falls with the taps.
#[test]
fn borders_of_convolutions_leave_the_inner_loops() {
    for rule in ["repeat", "mirror", "reflect", "wrap"] {
        let source = format!(
            "def conv(float(W) I, float(5) F) -> (O) {{ v = {rule}(I) O(x) +=! v(x + 2 - k) * F(k) }}"
        );
        let text = print::nest(&agrees(&source, &[("W", 200)], "promote O at O.x -> acc registers"));
        assert!(text.contains("+= I[x - k + 2] * F[k]"), "{rule}:\n{text}");
        for width in [1, 2, 3, 17] {
            agrees(&source, &[("W", width)], "promote O at O.x -> acc registers");
        }
    }
}

#[test]
fn sixteen_bit_floats_are_summed_wide() {
    let sum = "def sum(float16(N, M) I) -> (s) { s(m) +=! I(n, m) }";
    let nest = apply(&program(sum, &[("N", 40), ("M", 3)]), &schedule("reorder s.n, s.m"), &cpu()).unwrap();
    assert!(print::nest(&nest).contains("scratch float32 s_wide[3]"), "{}", print::nest(&nest));
    agrees(sum, &[("N", 40), ("M", 3)], "reorder s.n, s.m\nvectorize s.m");
    // The buffer has no name that the user could know.
    let reason = refused(sum, &[("N", 40), ("M", 3)], "vectorize s.m").reason.to_string();
    assert!(reason.starts_with("`s.m` is vectorised outside of the reduced loop `s.n`"), "{reason}");
    assert!(reason.ends_with("`reorder` `s.m` inside of `s.n`") && !reason.contains("wide`"), "{reason}");
}

/// A strided scatter, written as a gather over its results: only the taps of one parity meet an
/// input.
#[test]
fn what_a_condition_leaves_out_of_a_sum_is_not_computed() {
    let source = "def up(float(N) a, float(K) w) -> (o) {\n  o(i) +=! ((i - k) % 2 == 0 && 0 <= x && x < N) ? a(x) * w(k) : 0\n    where i in 0:2*N, x = (i - k)/2\n}";
    let steps = "split o.i -> io, ii:2\nreorder o.io, o.k, o.ii\nunroll o.k\nunroll o.ii";
    let text = print::nest(&agrees(source, &[("N", 16), ("K", 4)], steps));
    assert!(!text.contains("% 2"), "the parities of written-out loops are known:\n{text}");
    let [_, interior] = text.split("if").collect::<Vec<_>>()[..2] else { panic!("no interior:\n{text}") };
    let interior = interior.split("else").next().unwrap_or_default();
    assert_eq!(interior.matches("+=").count(), 4, "half of the eight products are left out:\n{text}");
}

/// As above, with the loop of the results outside the loop of the taps: the taps of the other
/// parity are skipped.
#[test]
fn iterations_that_add_nothing_are_passed_over() {
    let up = |apart: i64| {
        format!(
            "def up(float(N) a, float(K) w) -> (o) {{\n  o(i) +=! (i + 1 - k) % {apart} == 0 ? (0 <= x && x < N ? a(x) : 0) * w(k) : 0\n    where i in 0:{apart}*N, x = (i + 1 - k)/{apart}\n}}"
        )
    };
    let text = print::nest(&agrees(&up(2), &[("N", 16), ("K", 4)], ""));
    assert!(text.contains("for k in 2") && text.contains("w[2*k + (i + 1) % 2]"), "{text}");
    assert!(text.contains("a[(i + 1)/2 - k]"), "the quotient takes the remainder away:\n{text}");
    // Five taps in three residue classes: some results have two taps, some one.
    let text = print::nest(&agrees(&up(3), &[("N", 7), ("K", 5)], ""));
    assert!(text.contains("for k in 2") && text.contains("if 3*k + (i + 1) % 3 <= 4"), "{text}");
    // Two classes have one tap each, and the third has none.
    agrees(&up(3), &[("N", 7), ("K", 2)], "unroll o.k");
    // The condition is known only inside the loop.
    agrees(&up(2), &[("N", 16), ("K", 4)], "reorder o.k, o.i");
    agrees(&up(2), &[("N", 16), ("K", 4)], "split o.i -> io, ii:4\nreorder o.io, o.k, o.ii\nvectorize o.ii");
}

#[test]
fn a_reduction_that_begins_anew_changes_its_elements_before_its_loops() {
    // The scatter sets all of `x` to zero, so `t` must read it before.
    let source = "def f(int32(1) q) -> (y) { x(i) = 1 where i in 0:2
        t(j) +=! x(0) where j in 0:1
        x((q(0) + 1) % 2) +=! t(j)
        y(i) = x(i) }";
    agrees(source, &[], "");
    let reason = refused(source, &[], "compute_at t, x[2].j").reason.to_string();
    assert!(reason.contains("must change `x` after `t` at (j=0)"), "{reason}");
    // The same for a reduction whose elements are known, where it has only one iteration.
    let source =
        "def f(float(N) a) -> (x) { x(i) = a(i)  t(k) = x(k) * 2  x(i) +=! t(k) where i in 0:N, k in 0:N }";
    agrees(source, &[("N", 1)], "");
    for steps in ["compute_at t, x[2].k", "inline t"] {
        let reason = refused(source, &[("N", 1)], steps).reason.to_string();
        assert!(reason.contains("must change `x` after `t` at"), "{steps}: {reason}");
    }
}

#[test]
fn registers_are_not_shared_by_threads() {
    let source =
        "def f(float(2, 2) a) -> (x) { x(i, j) = (j + 1 < 2 ? a(i, j + 1) : 0) where i in 0:2, j in 0:2 }";
    let steps = "promote a at x.j -> p packed\npromote p at p.l0 -> r registers\nparallel p.l1";
    let reason = refused(source, &[], steps).reason.to_string();
    assert!(reason.contains("`r` is in registers"), "{reason}");
}

/// A region may drop a clamp only where the subscript grows with the clamp, which is not so inside
/// a remainder.
#[test]
fn regions_keep_clamps_inside_of_remainders() {
    let source = "def f(float(2, M) a) -> (y) {
        x(i, j) = a(i, j) + i
        y(i) = x((i + 1) % 2, 0) + x((clamp(i, 0, M - 1) + 1) % 2, 0) where i in 0:2
      }";
    agrees(source, &[("M", 1)], "promote x at y.i -> part packed (d0, d1)");
    let negative = "def f(float(N) a) -> (y) { y(i) = a((N - 1 - min(i, 2))/2) + a((N - 1 - i)/2) }";
    agrees(negative, &[("N", 9)], "promote a at y.i -> part packed (d0)");
}

#[test]
fn a_promoted_result_that_later_steps_bring_its_other_statements_to_is_refused() {
    let source = "def f(float(N, M) a) -> (x) {
        x(i, j) = a(i, j)
        x(i, j) max= 1
        x(i, j) max= 2
    }";
    let sizes = &[("N", 3), ("M", 4)];
    let steps = "compute_at x, x[3].j\npromote x at x[3].j -> kept registers";
    agrees(source, sizes, steps);
    // Now the buffer would hold a column while the other statements still write it.
    let moved = format!("{steps}\nunroll x[3].i\nreorder x[3].j, x[3].i");
    let reason = refused(source, sizes, &moved).to_string();
    assert!(reason.contains("it is used again before the statement is done"), "{reason}");
}
