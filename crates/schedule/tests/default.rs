//! The default schedule of every example, at small and odd sizes: its loops compute the same as the
//! program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;
mod support;

use examples::examples;
use support::{at_sizes, cpu, expect_agreement};
use tilewright_schedule::{apply, default_schedule};
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
                let schedule = default_schedule(&program, &cpu());
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
    let schedule = default_schedule(&program, &cpu());
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
        let steps = default_schedule(&program, &cpu()).to_string();
        assert!(steps.contains(&format!("iv:{lanes}\nvectorize y.iv")), "{dtype}: {steps}");
    }
}

/// Data chooses the elements of a histogram, so a loop over its rows would compute all of it again
/// for each row.
#[test]
fn scatters_are_computed_once() {
    let source = "def rows(uint8(H, W) x) -> (y) { hist(i, x(i, j)) +=! 1  y(i, b) = 2 * hist(i, b) }";
    let program = support::program(source, &[("H", 64), ("W", 64)]);
    let schedule = default_schedule(&program, &cpu()).to_string();
    assert!(!schedule.contains("compute_at"), "{schedule}");
    // Nor does each lane get a table of its own: 64 of them do not stay in the cache.
    let rows = "def rows(uint8(H, W) x) -> (h) { h(i, x(i, j)) +=! 1 }";
    let schedule = default_schedule(&support::program(rows, &[("H", 64), ("W", 640)]), &cpu()).to_string();
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
    let text = default_schedule(&support::program(source, &[("C", 3), ("N", 4096)]), &cpu()).to_string();
    assert!(!text.contains("compute_at t,") && text.contains("vectorize t[2]"), "{text}");
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
    let text = default_schedule(&support::program(source, &[("H", 256), ("W", 256)]), &cpu()).to_string();
    assert!(text.contains("compute_at first, output.y_strip"), "{text}");
    assert!(text.contains("vectorize first.xv") && text.contains("vectorize output.xv"), "{text}");
}
