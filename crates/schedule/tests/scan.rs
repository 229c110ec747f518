//! `scan`: recurrences are computed in parts. Each accepted schedule is run against the program
//! and proved.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{agrees, agrees_on_gpu, program, refused};
use tilewright_ir::{LoopNest, print};
use tilewright_polyhedral::{Verdict, prove};

/// Parts of 8 iterations.
const SCAN: &str = "split y[2].t -> part, t:8\nscan y[2].part -> carry\n";
/// One part; whole parts; a last part of one iteration, and of seven.
const LENGTHS: [i64; 8] = [1, 2, 5, 8, 9, 17, 18, 32];

fn recurrence(dtype: &str, value: &str) -> String {
    format!(
        "def f({dtype}(N) x, {dtype}(N) a) -> (y) {{
            y(0) = x(0)
            for t in 1:N {{ y(t) = {value} }}
        }}"
    )
}

fn columns(value: &str) -> String {
    format!(
        "def f(float(N, C) x, float(N) a) -> (y) {{
            y(0, i) = x(0, i)
            for t in 1:N {{ y(t, i) = {value} }}
        }}"
    )
}

fn checked(source: &str, sizes: &[(&str, i64)], nest: &LoopNest, steps: &str) -> String {
    let text = print::nest(nest);
    let verdict = prove(&program(source, sizes), nest);
    assert_eq!(verdict, Verdict::Proved, "{steps}\n{text}");
    text
}

#[track_caller]
fn loops(source: &str, sizes: &[(&str, i64)], steps: &str) -> String {
    checked(source, sizes, &agrees(source, sizes, steps), steps)
}

#[track_caller]
fn loops_on_gpu(source: &str, sizes: &[(&str, i64)], steps: &str) -> String {
    checked(source, sizes, &agrees_on_gpu(source, sizes, steps), steps)
}

fn reason(source: &str, steps: &str) -> String {
    reason_at(source, &[("N", 30), ("C", 5), ("K", 3)], steps)
}

fn reason_at(source: &str, sizes: &[(&str, i64)], steps: &str) -> String {
    refused(source, sizes, steps).reason.to_string()
}

/// Every operator, and every affine form, in parts of all lengths.
#[test]
fn every_operator() {
    for (dtype, value) in [
        ("float", "y(t - 1) + x(t)"),
        ("float", "x(t) + a(t) + y(t - 1)"),
        ("float", "y(t - 1) - x(t)"),
        ("float", "y(t - 1) * x(t)"),
        ("double", "max(y(t - 1), x(t))"),
        ("float", "min(x(t), min(y(t - 1), a(t)))"),
        ("float", "a(t) * y(t - 1) + x(t)"),
        ("float", "x(t) - (0.5 * y(t - 1) + a(t)) / 2"),
        ("float", "-y(t - 1) + x(t) + 2 * y(t - 1)"),
        ("float", "y(t - 1)"),
        ("float", "a(t) > 0 ? y(t - 1) + x(t) : x(t) - y(t - 1)"),
        ("int32", "y(t - 1) + x(t)"),
        ("int32", "y(t - 1) * 3 - x(t)"),
        ("int64", "y(t - 1) & (x(t) | 1)"),
        ("uint32", "y(t - 1) | x(t)"),
        ("uint32", "x(t) ^ y(t - 1)"),
        ("uint8", "y(t - 1) * 77 + x(t) * 100"),
        ("int32", "x(t) == 0 ? a(t) : y(t - 1) + x(t)"),
    ] {
        let source = recurrence(dtype, value);
        for n in LENGTHS {
            let sizes = &[("N", n)];
            loops(&source, sizes, &format!("{SCAN}parallel y[2].part\nparallel carry_parts.part"));
        }
    }
}

#[test]
fn the_sketch_of_the_documentation() {
    let source = recurrence("float", "y(t - 1) + x(t)");
    let text = loops(&source, &[("N", 30)], &format!("{SCAN}parallel y[2].part"));
    insta::assert_snapshot!(text);
    let affine = loops(&columns("a(t) * y(t - 1, i) + x(t, i)"), &[("N", 30), ("C", 5)], SCAN);
    insta::assert_snapshot!(affine);
}

#[test]
fn backwards() {
    let source = "def f(float(N) x) -> (y) {
        y(N - 1) = x(N - 1)
        for t in 1:N { y(N - 1 - t) = 2 * y(N - t) - x(N - 1 - t) }
    }";
    for n in LENGTHS {
        loops(source, &[("N", n)], &format!("{SCAN}parallel y[2].part\nparallel carry_parts.part"));
    }
}

/// The totals are scheduled like any reduction.
/// The condition on the first iteration of a part stays inside the value where another choice is
/// around it, and where the parts are lanes.
#[test]
fn first_iterations_inside_of_values() {
    let source = recurrence("int32", "t % 2 == 0 ? y(t - 1) - 1 : y(t - 1) + x(t)");
    let plain = recurrence("int32", "y(t - 1) + x(t)");
    for length in LENGTHS {
        loops(&source, &[("N", length)], &format!("{SCAN}parallel y[2].part"));
    }
    // All lanes run the same iterations.
    for length in [9, 17, 33] {
        loops(&plain, &[("N", length)], &format!("{SCAN}vectorize y[2].part"));
    }
}

#[test]
fn totals_are_reductions() {
    let source = recurrence("float", "y(t - 1) + x(t)");
    for n in LENGTHS {
        let lanes = "split carry_parts.t -> t, lane:4\nrfactor carry_parts.lane -> lanes\n\
                     vectorize lanes.lane\nparallel carry_parts.part\nparallel y[2].part";
        loops(&source, &[("N", n)], &format!("{SCAN}{lanes}"));
    }
}

#[test]
fn several_dimensions() {
    let source = columns("a(t) * y(t - 1, i) + 2 * x(t, i)");
    for (n, c) in [(30, 5), (9, 8), (33, 1), (8, 17)] {
        let sizes = &[("N", n), ("C", c)];
        let all = "parallel y[2].part\nparallel carry_parts.part\nparallel carry_factors.part\n";
        loops(&source, sizes, &format!("{SCAN}{all}"));
        let vectors = "vectorize y[2].i4\nvectorize carry_parts.i4\nvectorize carry_factors.i4";
        loops(&source, sizes, &format!("split y[2].i -> i, i4:4\n{SCAN}{all}{vectors}"));
        // The value before a part is one vector for all columns.
        loops(
            &source,
            sizes,
            &format!("{SCAN}{all}split carry.i -> i, v:4\nvectorize carry.v\nparallel carry.i"),
        );
        loops(
            &source,
            sizes,
            &format!(
                "{SCAN}reorder carry_parts.i, carry_parts.t\nfuse carry_parts.part, carry_parts.i -> j\nparallel carry_parts.j"
            ),
        );
        loops(&source, sizes, &format!("reorder y[2].i, y[2].t\n{SCAN}parallel y[2].i"));
        loops(&source, sizes, &format!("{SCAN}reorder y[2].i, y[2].part, y[2].t\nparallel y[2].i"));
        loops(&source, sizes, &format!("{SCAN}unroll carry.part\nunroll y[2].t"));
    }
    // In other dimensions the recurrence may read anything, and lie anywhere.
    let slanted = "def f(float(A, N, B) x) -> (y) {
        y(a, 0, b) = x(a, 0, b)
        for t in 1:N { y(a, t, b) = max(y(a, t - 1, b), x(a, t, B - 1 - b) - x(A - 1 - a, N - 1 - t, b)) }
    }";
    let sizes = &[("A", 3), ("N", 21), ("B", 4)];
    loops(slanted, sizes, &format!("{SCAN}parallel y[2].part\nparallel carry_parts.part\nvectorize y[2].b"));
}

#[test]
fn the_position_in_a_part_may_have_several_loops() {
    let source = recurrence("float", "y(t - 1) + x(t)");
    for n in LENGTHS {
        let sizes = &[("N", n)];
        loops(
            &source,
            sizes,
            "split y[2].t -> part, t:12\nsplit y[2].t -> t, u:5\nscan y[2].part -> c\nparallel y[2].part",
        );
        loops(
            &source,
            sizes,
            &format!(
                "{SCAN}split y[2].t -> t, u:3\nsplit y[2].part -> p, q:2\nparallel y[2].p\nunroll y[2].t\nunroll y[2].u\nvectorize y[2].q"
            ),
        );
    }
    // Where all parts are whole, the lanes of a vector may be parts.
    loops(&source, &[("N", 33)], &format!("{SCAN}reorder y[2].t, y[2].part\nvectorize y[2].part"));
}

/// The totals of the parts and the values before them, in one loop. Few parts put some of the
/// stores into one iteration of that loop.
#[test]
fn totals_are_computed_with_the_values_before() {
    for value in ["y(t - 1) ^ x(t)", "y(t - 1) * 3 + x(t)", "y(t - 1) + x(t)"] {
        let source = recurrence("int32", value);
        for n in [2, 3, 4, 5, 6, 9, 10] {
            let sizes = &[("N", n)];
            let parts = "split y[2].t -> part, t:2\nscan y[2].part -> carry\n";
            loops(&source, sizes, &format!("{parts}compute_with carry_parts.part, carry.part"));
            loops(&source, sizes, &format!("{parts}compute_with carry.part, carry_parts.part"));
        }
    }
}

/// A scan of the parts of a part, as the threads of a block compute it.
#[test]
fn parts_of_parts() {
    for value in ["y(t - 1) + x(t)", "a(t) * y(t - 1) + x(t)"] {
        let source = recurrence("float", value);
        for n in [1, 2, 16, 17, 50, 64, 65, 66] {
            let sizes = &[("N", n)];
            let split = "split y[2].t -> p, q:4, t:4\n";
            let both = format!("{split}scan y[2].p -> outer\nscan y[2].q -> inner\n");
            loops(&source, sizes, &format!("{both}parallel y[2].p"));
            loops(&source, sizes, &format!("{both}unroll y[2].t\nvectorize y[2].q"));
        }
    }
}

/// The parts of an ordered loop of parts begin with the value of the iteration before.
#[test]
fn parts_inside_ordered_parts() {
    for value in ["y(t - 1) + x(t)", "a(t) * y(t - 1) + x(t)"] {
        let source = recurrence("int32", value);
        for n in [2, 9, 20, 25] {
            let sizes = &[("N", n)];
            let inner = "split y[2].t -> p, q:4, t:4\nscan y[2].q -> inner\n";
            loops(&source, sizes, &format!("{inner}parallel y[2].q"));
            let why = refused(&source, sizes, &format!("{inner}parallel y[2].p")).reason.to_string();
            assert!(why.contains("its iterations stay in order"), "{why}");
            // An ordered loop between the parts of two scans: only the first inner part of an outer
            // part begins with the value before that.
            let split = "split y[2].t -> p, q:2, r:2, t:2\n";
            let both = format!("{split}scan y[2].p -> outer\nscan y[2].r -> inner\n");
            loops(&source, sizes, &format!("{both}parallel y[2].p"));
            loops(&source, sizes, &format!("{both}parallel y[2].r"));
            let why = refused(&source, sizes, &format!("{both}parallel y[2].q")).reason.to_string();
            assert!(why.contains("its iterations stay in order"), "{why}");
            let nested = format!("{split}scan y[2].q -> outer\nscan y[2].r -> inner\n");
            loops(&source, sizes, &format!("{nested}parallel y[2].q"));
        }
    }
    let source = columns("y(t - 1, i) + x(t, i)");
    let inner = "split y[2].t -> p, q:4, t:4\nscan y[2].q -> inner\nparallel y[2].q\n";
    loops(&source, &[("N", 37), ("C", 5)], inner);
    loops(&source, &[("N", 37), ("C", 5)], &format!("reorder y[2].i, y[2].t\n{inner}"));
}

/// Ordered loops around the recurrence stay in order, and run it again.
#[test]
fn inside_another_ordered_loop() {
    let source = "def f(float(R, N) x) -> (y) {
        y(s, 0) = x(s, 0)
        for s in 0:R {
            for t in 1:N { y(s, t) = y(s, t - 1) + x(s, t) }
        }
    }";
    loops(source, &[("R", 3), ("N", 20)], &format!("{SCAN}parallel y[2].part"));
    let why = reason_at(source, &[("R", 3), ("N", 20)], &format!("{SCAN}parallel y[2].s"));
    assert!(why.contains("its iterations stay in order"), "{why}");
    let rounds = "def f(float(N) x) -> (y, z) {
        z(t) = 0 where t in 0:N
        y(t) = x(t)
        for s in 0:3 {
            z(t) = z(t) + y(t)
            for t in 1:N { y(t) = y(t - 1) + z(t) }
        }
    }";
    loops(rounds, &[("N", 20)], &format!("{SCAN}parallel y[2].part\nparallel carry_parts.part"));
    let why = reason(rounds, &format!("{SCAN}parallel y[2].s"));
    assert!(why.contains("its iterations stay in order"), "{why}");
}

#[test]
fn in_kernels() {
    let source = recurrence("float", "y(t - 1) + x(t)");
    let spread = |name: &str| {
        format!("split {name}.part -> b, part:4\nbind {name}.b -> block.x\nbind {name}.part -> thread.x\n")
    };
    for n in [2, 9, 18, 100] {
        let text =
            loops_on_gpu(&source, &[("N", n)], &format!("{SCAN}{}{}", spread("carry_parts"), spread("y[2]")));
        assert!(text.contains("thread.x part in 4"), "{text}");
    }
    // One kernel: the threads of a block have parts of the block's part.
    let blocks = "split y[2].t -> p, q:8, t:4\nscan y[2].p -> outer\nscan y[2].q -> inner\n\
                  bind y[2].p -> block.x\nbind inner_parts.q -> thread.x\nbind y[2].q -> thread.x\n\
                  bind outer_parts.p -> block.x\n";
    for n in [2, 33, 34, 100] {
        let text = loops_on_gpu(&source, &[("N", n)], blocks);
        assert!(text.contains("shared float32 inner[8]"), "{text}");
    }
    let columns = columns("a(t) * y(t - 1, i) + x(t, i)");
    let threads = |name: &str| {
        format!(
            "reorder {name}.part, {name}.i, {name}.t\nbind {name}.part -> block.x\nbind {name}.i -> thread.x\n"
        )
    };
    let all = ["y[2]", "carry_parts", "carry_factors"].map(threads).concat();
    loops_on_gpu(&columns, &[("N", 30), ("C", 5)], &format!("{SCAN}{all}bind carry.i -> thread.x"));
}

/// The default schedule of a GPU cuts long recurrences, where there are few of them.
#[test]
fn default_schedules_of_a_gpu() {
    let gpu = tilewright_target::Gpu::h200();
    let sum = recurrence("float", "y(t - 1) + x(t)");
    let columns = columns("0.5 * y(t - 1, i) + x(t, i)");
    let steps = |source: &str, sizes: &[(&str, i64)]| {
        let program = program(source, sizes);
        let schedule = tilewright_schedule::schedule_by_rules(&program, &gpu);
        if sizes.iter().map(|(_, extent)| extent).product::<i64>() < 200_000 {
            let nest = tilewright_schedule::apply(&program, &schedule, &gpu).unwrap();
            support::expect_agreement(&program, &nest, 1);
            let verdict = prove(&program, &nest);
            assert_eq!(verdict, Verdict::Proved, "{schedule}\n{}", print::nest(&nest));
        }
        schedule.to_string()
    };
    insta::assert_snapshot!(steps(&sum, &[("N", 10_000)]));
    insta::assert_snapshot!(steps(&columns, &[("N", 5000), ("C", 3)]));
    insta::assert_snapshot!(steps(&columns, &[("N", 5000), ("C", 32)]));
    assert!(steps(&sum, &[("N", 10_000_000)]).contains("scan y[2].block"));
    assert!(!steps(&sum, &[("N", 2000)]).contains("scan"));
    assert!(!steps(&columns, &[("N", 100_000), ("C", 10_000)]).contains("scan"));
    // The threads of a block share a row, however many rows there are.
    let rows = "def f(float(M, N) x) -> (y) {
        y(i, 0) = x(i, 0)
        for t in 1:N { y(i, t) = 0.5 * y(i, t - 1) + x(i, t) }
    }";
    for (rows_count, length) in [(5, 300), (7, 1025), (2, 5000)] {
        let text = steps(rows, &[("M", rows_count), ("N", length)]);
        assert!(text.contains("scan y[2].thread"), "{text}");
    }
    assert!(!steps(rows, &[("M", 300), ("N", 100)]).contains("scan"));
    // The product of many factors may overflow where the recurrence does not.
    for value in ["y(t - 1) * x(t)", "a(t) * y(t - 1) + x(t)", "1.5 * y(t - 1) + x(t)"] {
        assert!(!steps(&recurrence("float", value), &[("N", 10_000)]).contains("scan"), "{value}");
    }
    assert!(steps(&recurrence("int32", "a(t) * y(t - 1) + x(t)"), &[("N", 10_000)]).contains("scan"));
}

#[test]
fn later_steps_keep_the_order() {
    let source = recurrence("float", "a(t) * y(t - 1) + x(t)");
    let why = |steps: &str| reason(&source, &format!("{SCAN}{steps}"));
    for steps in ["parallel y[2].t", "vectorize y[2].t", "parallel carry_parts.t", "vectorize carry_parts.t"]
    {
        let why = why(steps);
        assert!(
            why.contains("`y[2]` at (t=") && why.contains("must read `y` after `y[2]`"),
            "{steps}: {why}"
        );
    }
    for name in ["y[2]", "carry_parts"] {
        let why = why(&format!("split {name}.t -> t, u:2\nreorder {name}.u, {name}.t"));
        assert!(why.contains("must read `y` after `y[2]`"), "{why}");
    }
    for steps in [
        "parallel carry.part",
        "vectorize carry.part",
        "split carry.part -> p, q:2\nreorder carry.q, carry.p",
    ] {
        let why = why(steps);
        assert!(why.contains("later iterations use what earlier iterations have computed"), "{steps}: {why}");
    }
    assert!(why("fuse y[2].part, y[2].t -> t").contains("ordered"));
    assert!(why("inline carry").contains("its own loops"));
    for tensor in ["carry", "carry_parts", "carry_factors"] {
        assert!(
            why(&format!("compute_at {tensor}, y[2].part")).contains("cannot be computed at"),
            "{tensor}"
        );
        assert!(why(&format!("compute_at {tensor}, y[2].t")).contains("cannot be computed at"), "{tensor}");
    }
    assert!(why("compute_at y, carry.part").contains("cannot be computed at"));
    assert!(why("compute_with y[2].part, carry_parts.part").contains("`carry`"));
    assert!(why("compute_with carry_parts.part, y[2].part").contains("`carry`"));
    // The values before the parts may be computed together with their totals, or their uses.
    let joined = "compute_with carry.part, y[2].part\n";
    loops(&source, &[("N", 30)], &format!("{SCAN}{joined}"));
    assert!(why(&format!("{joined}parallel y[2].part")).contains("later iterations use"));
    loops(&source, &[("N", 30)], &format!("{SCAN}compute_with carry_parts.part, carry.part ahead 1"));
    loops(&source, &[("N", 30)], &format!("{SCAN}compute_with carry.part, carry_parts.part"));
}

/// Operands of the recurrence are inlined, staged and computed for all its statements.
#[test]
fn operands_are_shared() {
    let source = "def f(float(N) x) -> (y) {
        w(t) = 2 * x(t)
        y(0) = w(0)
        for t in 1:N { y(t) = y(t - 1) + w(t) }
    }";
    let sizes = &[("N", 30)];
    loops(source, sizes, &format!("{SCAN}inline w\nparallel y[2].part"));
    loops(source, sizes, &format!("inline w\n{SCAN}parallel y[2].part"));
    loops(source, sizes, &format!("{SCAN}promote w at y[2].part -> wp packed\nparallel y[2].part"));
    let why = reason(source, &format!("{SCAN}compute_at w, y[2].part"));
    assert!(why.contains("uses it too, and is not inside that loop"), "{why}");
    let changed = "def f(float(N) x) -> (y, w) {
        v(t) = 2 * w(t) where t in 0:N
        y(0) = x(0)
        for t in 1:N { y(t) = y(t - 1) + v(t) }
        w(t) = x(t)
    }";
    loops(changed, sizes, &format!("{SCAN}inline v\nparallel y[2].part\nparallel carry_parts.part"));
}

#[test]
fn loops_that_cannot_be_scanned() {
    let sum = recurrence("float", "y(t - 1) + x(t)");
    let why = |source: &str| reason(source, SCAN);
    let outer = "it is not the outer part of an ordered loop: `split` that loop first";
    assert_eq!(reason(&sum, "scan y[2].t -> carry"), format!("`y[2].t` cannot be scanned: {outer}"));
    assert!(reason(&sum, "split y[2].t -> part, t:8\nscan y[2].t -> carry").contains(outer));
    let of_program = "it is not the outer part of an ordered loop of the program";
    let rows = columns("y(t - 1, i) + x(t, i)");
    assert!(reason(&rows, "split y[2].i -> i, j:2\nscan y[2].i -> carry").contains(of_program));
    assert!(reason(&sum, &format!("{SCAN}scan y[2].part -> again")).contains(of_program));
    assert!(
        reason(&sum, &format!("{SCAN}split carry.part -> p, q:2\nscan carry.p -> again"))
            .contains(of_program)
    );
    let unrolled = reason(&sum, "split y[2].t -> part, t:8\nunroll y[2].part\nscan y[2].part -> carry");
    assert!(unrolled.contains("it is already unrolled: apply `scan` before that step"), "{unrolled}");

    for value in [
        "y(t - 1) * y(t - 1)",
        "sqrt(y(t - 1))",
        "x(t) / y(t - 1)",
        "y(t - 1) > 0 ? x(t) : y(t - 1)",
        "max(y(t - 1), x(t)) + 1",
        "a(t) > 0 ? x(t) : y(t - 1) + x(t)",
        "y(t - 1) + y(t - 1) * y(t - 1)",
    ] {
        let why = why(&recurrence("float", value));
        assert!(why.contains("its value is not `before op e`"), "{value}: {why}");
    }
    for value in ["y(t - 1) / 2", "y(t - 1) >> 1", "y(t - 1) % 7"] {
        let why = why(&recurrence("int32", value));
        assert!(why.contains("its value is not `before op e`"), "{value}: {why}");
    }
    let elsewhere = "its value reads `y` elsewhere than just one iteration before";
    assert!(why(&recurrence("float", "y(t - 1) + y(0)")).contains(elsewhere));
    assert!(why(&columns("y(t - 1, i) + y(t - 1, 0)")).contains(elsewhere));
    let two = "def f(float(N) x) -> (y) {
        y(0) = x(0)
        y(1) = x(1)
        for t in 2:N { y(t) = y(t - 1) + y(t - 2) }
    }";
    let three = SCAN.replace("y[2]", "y[3]");
    assert!(reason(two, &three).contains(elsewhere));
    assert!(why(&recurrence("float", "x(t)")).contains("does not read `y` of the iteration before"));
    let narrow = why(&recurrence("half", "y(t - 1) + x(t)"));
    assert!(narrow.contains("rounded in every iteration"), "{narrow}");

    let pair = "def f(float(N) x) -> (y, z) {
        y(0) = x(0)
        z(0) = x(0)
        for t in 1:N {
            y(t) = y(t - 1) + x(t)
            z(t) = z(t - 1) + y(t)
        }
    }";
    assert!(why(pair).contains("`y[2]` and `z[2]` are both computed in it"), "{}", why(pair));
    let reduction = "def f(float(N, K) x) -> (y) {
        y(0) = 1
        for t in 1:N { y(t) +=! x(t, k) * y(t - 1) }
    }";
    assert!(reason(reduction, SCAN).contains("`y[2]` is a reduction"));
    let state = "def f(float(N) x) -> (y) {
        y(i) = x(i) where i in 0:1
        for t in 1:N { y(0) = y(0) + x(t) }
    }";
    assert!(why(state).contains("one subscript of `y[2]` must be the loop's variable"), "{}", why(state));
    let used = "def f(float(N) x) -> (z) {
        y(0) = x(0)
        for t in 1:N { y(t) = y(t - 1) + x(t) }
        z(i) = y(i)
    }";
    let moved = reason(used, &format!("split z.i -> i, j:4\ncompute_at y, z.i\n{SCAN}"));
    assert!(moved.contains("already computed at a loop of its consumer"), "{moved}");
}

#[test]
fn names_that_are_taken() {
    let source = recurrence("float", "a(t) * y(t - 1) + x(t)");
    let split = "split y[2].t -> part, t:8\n";
    assert_eq!(
        reason(&source, &format!("{split}scan y[2].part -> x")),
        "the name `x` is taken: choose another name"
    );
    for taken in ["carry_parts", "carry_factors"] {
        let source = source.replace("x(", &format!("{taken}(")).replace(" x,", &format!(" {taken},"));
        let why = reason(&source, SCAN);
        assert!(why.contains(&format!("`{taken}` is taken")), "{why}");
    }
    // There are no factors in a sum.
    let sum = recurrence("float", "y(t - 1) + carry_factors(t)").replace(" a)", " carry_factors)");
    loops(&sum, &[("N", 20)], SCAN);
}
