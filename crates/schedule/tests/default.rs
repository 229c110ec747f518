//! The default schedule of every example, at small and odd sizes: its loops compute the same as the
//! program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;
mod support;

use examples::examples;
use support::{at_sizes, cpu, expect_agreement};
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_syntax::parse;

#[test]
fn every_example_runs_as_its_default_schedule_says() {
    let rounds: [&dyn Fn(usize) -> i64; 4] =
        [&|_| 1, &|at| 4 + at as i64, &|_| 5, &|at| [17, 3, 6, 4, 3, 2, 2][at % 7]];
    let mut ran = 0;
    for path in examples() {
        let source = std::fs::read_to_string(&path).unwrap();
        for function in &parse(&source).ast.functions {
            for choose in rounds {
                let Some(program) = at_sizes(&source, &function.name.text, choose) else { continue };
                if tilewright_interp::count_points(&program) > 200_000 {
                    continue;
                }
                let schedule = schedule_by_rules(&program, &cpu());
                let nest = apply(&program, &schedule, &cpu())
                    .unwrap_or_else(|refusal| panic!("{}: {refusal}\n{schedule}", path.display()));
                expect_agreement(&program, &nest, 3);
                ran += 1;
            }
        }
    }
    assert!(ran > 120, "only {ran} ran");
}

#[test]
fn long_values_are_vectors_but_not_tiles() {
    let terms: Vec<String> = (0..140).map(|at| format!("exp(-x(i, k) * z(k, j) * {at}.5)")).collect();
    let source =
        format!("def f(float(N, K) x, float(K, M) z) -> (y) {{ y(i, j) +=! {} }}", terms.join(" + "));
    let program = at_sizes(&source, "f", &|_| 40).unwrap();
    let schedule = schedule_by_rules(&program, &cpu());
    assert!(apply(&program, &schedule, &cpu()).is_ok());
    let steps = schedule.to_string();
    assert!(steps.contains("vectorize y.jv") && steps.contains("jv:16"), "{steps}");
    assert!(!steps.contains("ju:") && !steps.contains("ii:"), "{steps}");
}

/// Four registers of a narrow type have more lanes than a vector may have.
#[test]
fn narrow_integers_are_vectors() {
    for (dtype, lanes) in [("uint8", 64), ("int16", 64), ("int32", 64), ("int64", 32)] {
        let source =
            format!("def f({dtype}(N) a, {dtype}(N) b) -> (y) {{ y(i) = (a(i) & b(i)) + (a(i) >> 1) }}");
        let program = at_sizes(&source, "f", &|_| 1 << 20).unwrap();
        let steps = schedule_by_rules(&program, &cpu()).to_string();
        assert!(steps.contains(&format!("iv:{lanes}\nvectorize y.iv")), "{dtype}: {steps}");
    }
}

/// Data chooses the elements of a histogram, so a loop over its rows would compute all of it again
/// for each row.
#[test]
fn scatters_are_computed_once() {
    let source = "def rows(uint8(H, W) x) -> (y) { hist(i, x(i, j)) +=! 1  y(i, b) = 2 * hist(i, b) }";
    let program = support::program(source, &[("H", 64), ("W", 64)]);
    let schedule = schedule_by_rules(&program, &cpu()).to_string();
    assert!(!schedule.contains("compute_at"), "{schedule}");
    // Nor does each lane get a table of its own: 64 of them do not stay in the cache.
    let rows = "def rows(uint8(H, W) x) -> (h) { h(i, x(i, j)) +=! 1 }";
    let schedule = schedule_by_rules(&support::program(rows, &[("H", 64), ("W", 640)]), &cpu()).to_string();
    assert!(!schedule.contains("rfactor"), "{schedule}");
}

/// A recurrence runs in loops of its own, outermost and innermost, and not inside a consumer.
#[test]
fn recurrences_keep_their_loops() {
    let source = "def table(float(C, N) x) -> (y) {
        t(0, c, i) = x(c, i)
        for s in 1:4 { t(s, c, i) = max(t(s-1, c, i), t(s-1, c, min(i + s, N - 1))) }
        y(c, i) max=! t(k, c, i)
    }";
    let text = schedule_by_rules(&support::program(source, &[("C", 3), ("N", 4096)]), &cpu()).to_string();
    assert!(!text.contains("compute_at t,") && text.contains("vectorize t[2]"), "{text}");
}

/// Each column of a scan is a recurrence of its own, so threads run strips of columns.
#[test]
fn threads_run_whole_recurrences() {
    let scan = "def scan(float(H, W) x) -> (y) {
        y(0, i) = x(0, i)
        for t in 1:H { y(t, i) = y(t-1, i) + x(t, i) }
    }";
    let text = schedule_by_rules(&support::program(scan, &[("H", 512), ("W", 3000)]), &cpu()).to_string();
    let wanted = "split y[2].i -> is, i:752\nreorder y[2].is, y[2].t, y[2].i\n\
        split y[2].i -> io, iv:64\nvectorize y[2].iv\nparallel y[2].is";
    assert!(text.contains(wanted), "{text}");
    // Many images need no strips.
    let images = scan.replace("(H, W)", "(B, H, W)").replace("(0, i)", "(b, 0, i)").replace("(t", "(b, t");
    let text = schedule_by_rules(&support::program(&images, &[("B", 8), ("H", 64), ("W", 500)]), &cpu());
    let text = text.to_string();
    assert!(text.contains("reorder y[2].b, y[2].t, y[2].i") && text.contains("parallel y[2].b"), "{text}");
    support::agrees(&images, &[("B", 8), ("H", 64), ("W", 500)], &text);
}

/// The rows of a scan along rows are recurrences without vectors: several of them take turns, so
/// that no sum waits for the one before.
#[test]
fn rows_of_a_scan_take_turns() {
    let source = "def scan(float(H, W) x) -> (y) {
        y(i, 0) = x(i, 0)
        for t in 1:W { y(i, t) = y(i, t-1) + x(i, t) }
    }";
    let steps = |rows| schedule_by_rules(&support::program(source, &[("H", rows), ("W", 1000)]), &cpu());
    let wanted = "split y[2].i -> io, ii:8\nunroll y[2].ii\nreorder y[2].io, y[2].t, y[2].ii\n\
        parallel y[2].io";
    let text = steps(1021).to_string();
    assert!(text.contains(wanted), "{text}");
    support::agrees(source, &[("H", 37), ("W", 50)], &text);
    // Too few rows for that are still outside of the recurrence.
    let text = steps(9).to_string();
    assert!(text.contains("reorder y[2].i, y[2].t") && !text.contains("unroll"), "{text}");
}

/// Many elements of a histogram are computed at once, and updated one by one.
#[test]
fn scatters_compute_their_elements_in_vectors() {
    let source = "def f(float(H, W) x) -> (h) {
        h(b) +=! 1 where b = int(clamp(x(i, j) * 3 + 7.5, 0, 14)), b in 0:15, i in 0:H, j in 0:W
    }";
    let text = schedule_by_rules(&support::program(source, &[("H", 40), ("W", 200)]), &cpu()).to_string();
    assert!(text.contains("split h.j -> jo, jv:64\nvectorize h.jv"), "{text}");
    support::agrees(source, &[("H", 40), ("W", 200)], &text);
    // A short loop over results is unrolled inside: its iterations share the element.
    let cells = "def f(float(H, W) x) -> (h) {
        h(i, b, c) +=! c == 0 ? x(i, j) : 1.0
            where b = int(clamp(x(i, j) * 3 + 7.5, 0, 14)), b in 0:15, c in 0:2, i in 0:H, j in 0:W
    }";
    let text = schedule_by_rules(&support::program(cells, &[("H", 40), ("W", 24)]), &cpu()).to_string();
    assert!(text.contains("unroll h.c\nvectorize h.j"), "{text}");
    support::agrees(cells, &[("H", 40), ("W", 24)], &text);
}

/// Elements that data chooses are loaded one by one, with vectors and without. So the arithmetic
/// decides.
#[test]
fn lookups_with_much_arithmetic_are_vectors() {
    let steps = |value: &str| {
        let source = format!(
            "def f(float(N) x, float(16, 16) table) -> (y) {{
                y(i) = {value} where k = int(clamp(x(i) * 3 + 7.5, 0, 14)), k in 0:15
            }}"
        );
        let text = schedule_by_rules(&support::program(&source, &[("N", 999)]), &cpu()).to_string();
        support::agrees(&source, &[("N", 99)], &text);
        text
    };
    let interpolated = steps("(1 - x(i)) * table(k, k) * x(i) * x(i) + x(i) * table(k + 1, k) * x(i)");
    assert!(interpolated.contains("vectorize"), "{interpolated}");
}

/// Each step of a simulation needs its neighbours' last step. Its points are computed in parallel
/// where there are enough of them.
#[test]
fn threads_share_the_steps_of_a_simulation() {
    let source = "def heat(float(N, M) x) -> (u) {
        u(0, i, j) = x(i, j)
        for t in 1:5 { u(t, i, j) = u(t-1, clamp(i - 1, 0, N - 1), j) + u(t-1, i, M - 1 - j) }
    }";
    let schedule = |size| {
        let sizes = [("N", size), ("M", size)];
        schedule_by_rules(&support::program(source, &sizes), &cpu()).to_string()
    };
    assert!(schedule(256).contains("parallel u[2].i"), "{}", schedule(256));
    assert!(!schedule(64).contains("parallel u[2].i"), "{}", schedule(64));
    support::agrees(source, &[("N", 200), ("M", 190)], &schedule(256));
}

/// Samples of a pixel's colours, and stretched images, are vectors that a few loads and a shuffle
/// bring. A step of five elements takes a load for each lane.
#[test]
fn vectors_take_every_second_element() {
    let vectors = |value: &str, size: i64| {
        let source = format!("def f(float(N) x) -> (y) {{ y(i) = {value} where i in 0:N/{} }}", 4096 / size);
        let text = schedule_by_rules(&support::program(&source, &[("N", 4096)]), &cpu()).to_string();
        support::agrees(&source, &[("N", 4096)], &text);
        text.contains("vectorize")
    };
    assert!(vectors("x(2*i) + x(2*i + 1)", 2048));
    assert!(vectors("x(i/2) + x((i + 1)/2)", 4096));
    assert!(vectors("x(clamp(2*i - 1, 0, N - 1)) + x(clamp(2*i, 0, N - 1))", 2048));
    assert!(!vectors("x(5*i)", 512));
}

/// The rows of a matrix product use one packed operand. Beside a consumer or a producer of single
/// rows, the operand would be read from memory again for each row.
#[test]
fn matrix_products_among_other_statements_keep_their_tiles() {
    let tiles = |body: &str| {
        let source = format!("def f(float(N, D) x, float(D, F) W) -> (y) {{ {body} }}");
        let sizes = [("N", 70), ("D", 60), ("F", 90)];
        let text = schedule_by_rules(&support::program(&source, &sizes), &cpu()).to_string();
        support::agrees(&source, &sizes, &text);
        assert!(text.contains("promote W at") && text.contains("unroll g.ni"), "{text}");
        text
    };
    let activated = tiles("g(n, f) +=! x(n, d) * W(d, f)  y(n, f) = max(g(n, f), 0)");
    assert!(!activated.contains("compute_at"), "{activated}");
    let normalised = tiles(
        "s(n) +=! x(n, d) * x(n, d)  h(n, d) = x(n, d) * rsqrt(s(n))
         g(n, f) +=! h(n, d) * W(d, f)  y(n, f) = g(n, f) / 2",
    );
    assert!(normalised.contains("compute_at s, h.n") && !normalised.contains("compute_at h"), "{normalised}");
}

#[test]
fn transpositions_are_tiled() {
    let source = "def rotate(float(C, N, M) a) -> (t) { t(c, j, i) = 2 * a(c, i, j) }";
    let sizes = [("C", 3), ("N", 100), ("M", 70)];
    let text = schedule_by_rules(&support::program(source, &sizes), &cpu()).to_string();
    assert!(text.contains("reorder t.io, t.ji, t.ii\nvectorize t.ii"), "{text}");
    support::agrees(source, &sizes, &text);
    let small = [("C", 1), ("N", 40), ("M", 40)];
    let text = schedule_by_rules(&support::program(source, &small), &cpu()).to_string();
    assert!(!text.contains("split"), "{text}");
    // A recurrence reads its transposed input along rows, so the transposition is stored.
    let scan = "def scan(float(W, H) x) -> (y) {
        r(t, i) = x(i, t)
        y(0, i) = r(0, i)
        for t in 1:H { y(t, i) = y(t-1, i) + r(t, i) }
    }";
    let text = schedule_by_rules(&support::program(scan, &[("H", 300), ("W", 300)]), &cpu()).to_string();
    assert!(!text.contains("inline") && text.contains("vectorize r.ii"), "{text}");
}

#[test]
fn transpositions_that_read_along_both_loops_are_tiled_too() {
    let source = "def scaled(float(M, N) x, float(N) top) -> (y) { y(j, i) = x(i, j) / top(j) }";
    let sizes = [("M", 200), ("N", 100)];
    let text = schedule_by_rules(&support::program(source, &sizes), &cpu()).to_string();
    assert!(text.contains("reorder y.io, y.ji, y.ii\nvectorize y.ii"), "{text}");
    support::agrees(source, &sizes, &text);
}

/// Points have three coordinates each, so neighbouring points are three elements apart.
#[test]
fn elements_a_few_places_apart_make_vectors() {
    let source = "def distances(float(N, D) x, float(M, D) y) -> (s) {
        s(i, j) +=! (x(i, d) - y(j, d)) * (x(i, d) - y(j, d))
    }";
    let sizes = [("N", 20), ("M", 96), ("D", 3)];
    let text = schedule_by_rules(&support::program(source, &sizes), &cpu()).to_string();
    assert!(text.contains("vectorize s.jv"), "{text}");
    support::agrees(source, &sizes, &text);
}

/// The strip loop of the second stencil has the first one inside. It stays outermost, and both
/// stencils still get vectors.
#[test]
fn stages_with_producers_in_their_strips_are_vectors_too() {
    let source = "def chain(uint16(H, W) input) -> (output) {
        f = repeat(input)
        first(y, x) +=! uint16(uint16(dx + dy) * f(y + dy, x + dx))
            where dy in 0:3, dx in 0:3, y in 0:H+2, x in 0:W+2
        output(y, x) +=! uint16(uint16(dx + dy) * first(y + dy, x + dx))
            where dy in 0:3, dx in 0:3, y in 0:H, x in 0:W
    }";
    let text = schedule_by_rules(&support::program(source, &[("H", 256), ("W", 256)]), &cpu()).to_string();
    assert!(text.contains("compute_at first, output.y_strip"), "{text}");
    assert!(text.contains("vectorize first.xv") && text.contains("vectorize output.xv"), "{text}");
}
