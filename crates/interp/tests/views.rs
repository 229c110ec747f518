//! Tests of views: reading beyond the edges of a tensor, and temporaries with negative coordinates.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_interp::{Inputs, run};
use tilewright_ir::{DType, Number, Program, Tensor, print};
use tilewright_syntax::{Bindings, Code, check, diagnose, parse};

#[track_caller]
fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let name = &parsed.ast.functions.last().unwrap().name.text;
    let checked = check(&parsed.ast, name, &sizes.iter().copied().collect());
    assert!(checked.diagnostics.is_empty(), "{source}\n{:?}", checked.diagnostics);
    checked.program.unwrap()
}

/// Checks that a program is the same as one without views, for all sizes and without a warning.
#[track_caller]
fn means(source: &str, written_out: &str) {
    let shown = |source: &str| print::source(&program(source, &[]));
    assert_eq!(shown(source), shown(written_out));
}

fn codes(source: &str) -> Vec<Code> {
    diagnose(&parse(source), &Bindings::default()).iter().map(|found| found.code).collect()
}

/// Runs a program whose only input is `int32(N) x` with the elements 10, 11, 12 and so on.
#[track_caller]
fn results(source: &str, size: usize) -> Vec<i64> {
    let program = program(source, &[("N", size as i64)]);
    let mut x = Tensor::zeros(DType::Int32, &[size]).unwrap();
    (0..size).for_each(|at| x.set(at, Number::Int(10 + at as i128)));
    let mut inputs = Inputs::default();
    inputs.tensors.insert("x".to_owned(), x);
    let y = &run(&program, inputs).unwrap()["y"];
    let number = |at| match y.get(at) {
        Number::Int(number) => number as i64,
        Number::Float(_) => panic!("the result is of integers"),
    };
    (0..y.len()).map(number).collect()
}

/// The subscript inside 0..size that a rule gives, by counting one step at a time.
fn stepped(rule: &str, index: i64, size: i64) -> i64 {
    let (mut at, mut direction) = (0, 1);
    for _ in 0..index.abs() {
        let next = at + direction * index.signum();
        let is_inside = (0..size).contains(&next);
        match rule {
            _ if is_inside => at = next,
            "repeat" => {}
            "wrap" => at = if next < 0 { size - 1 } else { 0 },
            // The element at the edge comes again, and then the others backwards.
            "mirror" => direction = -direction,
            "reflect" if size == 1 => {}
            "reflect" => {
                direction = -direction;
                at += direction * index.signum();
            }
            _ => panic!("no rule {rule}"),
        }
    }
    at
}

#[test]
fn rules_hold_at_any_distance() {
    for rule in ["repeat", "mirror", "reflect", "wrap"] {
        for size in [1usize, 2, 3, 7] {
            let source = format!(
                "def f(int32(N) x) -> (y) {{ v = {rule}(x) t(i) = v(i) where i in -20:21 y(i) = t(i - 20) }}"
            );
            let wanted: Vec<i64> = (-20..21).map(|index| 10 + stepped(rule, index, size as i64)).collect();
            assert_eq!(results(&source, size), wanted, "{rule} of {size} elements");
        }
    }
    let source = "def f(int32(N) x) -> (y) { v = constant(x, -1) y(i) = v(i - 2) where i in 0:7 }";
    assert_eq!(results(source, 3), [-1, -1, 10, 11, 12, -1, -1]);
    let shifted = "def f(int32(N) x) -> (y) { s = shift(x, 2) r = repeat(s) y(i) = r(i - 4) where i in 0:7 }";
    // s(-2) is x(0), so r repeats the edges at -2 and at N - 3.
    assert_eq!(results(shifted, 4), [10, 10, 10, 11, 12, 13, 13]);
    let again =
        "def f(int32(N) x) -> (y) { r = wrap(x) s = shift(r, 1) t = shift(s, 1) y(i) = t(i) where i in 0:N }";
    assert_eq!(results(again, 4), [12, 13, 10, 11]);
}

#[test]
fn a_view_takes_its_variables_over_the_tensor() {
    means(
        "def f(float(H, W) a) -> (y) { v = repeat(a) y(i, j) = v(i, j - 1) + v(i, j + 1) }",
        "def f(float(H, W) a) -> (y) {
           y(i, j) = a(i, max(j - 1, 0)) + a(i, min(j + 1, W - 1)) where i in 0:H, j in 0:W
         }",
    );
    means(
        "def f(float(N) a) -> (y) { v = repeat(a) y(i) = v(2*i - 1) + v(2*i) + v(2*i + 1) }",
        "def f(float(N) a) -> (y) {
           y(i) = a(max(2*i - 1, 0)) + a(2*i) + a(min(2*i + 1, N - 1)) where i in 0:(N + 1)/2
         }",
    );
    means(
        "def f(float(N) a) -> (y) { v = repeat(a) y(i) = v(i/2) + v((i + 1)/2) }",
        "def f(float(N) a) -> (y) { y(i) = a(i/2) + a(min((i + 1)/2, N - 1)) where i in 0:2*N }",
    );
    means(
        "def f(float(N) a, float(5) w) -> (y) { v = constant(a, 0) y(i) +=! v(i + k - 2) * w(k) }",
        "def f(float(N) a, float(5) w) -> (y) {
           y(i) +=! (0 <= i + k - 2 && i + k - 2 < N ? a(i + k - 2) : 0) * w(k) where i in 0:N
         }",
    );
    // A tensor that has the variable decides its range alone.
    means(
        "def f(float(N) a, float(M) b) -> (y) { v = repeat(a) y(i) = v(i - 1) + b(i) }",
        "def f(float(N) a, float(M) b) -> (y) { y(i) = a(max(min(i - 1, N - 1), 0)) + b(i) }",
    );
}

#[test]
fn rules_hold_in_the_dimensions_that_are_named() {
    means(
        "def f(float(H, W) a) -> (y) {
           rows = wrap(a, 0)
           v = constant(rows, 1, 1)
           y(i, j) = v(i + 1, j + 1)
         }",
        "def f(float(H, W) a) -> (y) {
           y(i, j) = j + 1 < W ? a((i + 1) % H, j + 1) : 1 where i in 0:H, j in 0:W
         }",
    );
}

#[test]
fn functions_take_views() {
    means(
        "def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }
         def f(float(N) a) -> (y) { v = mirror(a) y = twice(v) }",
        "def f(float(N) a) -> (y) { y(i) = 2 * a(i) }",
    );
    means(
        "def rest(float(N) x) -> (y) { y(i) = x(i) where i in 0:N }
         def f(float(N) a) -> (y) { v = shift(a, 3) y = rest(v) }",
        "def f(float(N) a) -> (y) { y(i) = a(i + 3) where i in 0:N - 3 }",
    );
}

#[test]
fn a_function_sees_the_part_of_a_view_from_zero_on() {
    let edge = |argument: &str| {
        format!(
            "def edge(int(N) x) -> (y) {{ v = repeat(x) y(i) = v(i - 1) }}
             def f(int(N) x) -> (y) {{ s = shift(x, 2) t(i) = s(i) y = edge({argument}) }}"
        )
    };
    let source = edge("s").replace("t(i) = s(i)", "");
    assert_eq!(results(&source, 5), [12, 12, 13]);
    assert_eq!(results(&edge("t"), 5), [12, 12, 13]);
}

#[test]
fn a_view_may_be_of_a_tensor_that_changes() {
    means(
        "def f(float(N) x) -> (y) {
           y(i) = x(i)
           v = repeat(y)
           z(i) = v(i - 1) + v(i + 1) where i in 0:N
           y(i) = z(i)
         }",
        "def f(float(N) x) -> (y) {
           y(i) = x(i)
           z(i) = y(max(i - 1, 0)) + y(min(i + 1, N - 1)) where i in 0:N
           y(i) = z(i)
         }",
    );
}

#[test]
fn mirrors_of_quotients_are_proved() {
    for rule in ["mirror", "wrap", "repeat"] {
        program(
            &format!(
                "def f(float(H) x) -> (y) {{
                   t(i) = x(i) where i in 0:(H + 1)/2
                   v = {rule}(t)
                   y(i) +=! v(2*i + a - 1) where i in 0:(t.0 + 1)/2, a in 0:3
                 }}"
            ),
            &[],
        );
    }
}

#[test]
fn integer_scalars_in_views_keep_their_meaning() {
    let source = "def f(float(N) x, int d, int e) -> (y, z) {
        v = shift(x, d)
        w = repeat(v)
        y(i) = w(i - d)
        z(i) = 2.0 where i in 0:e
    }";
    let program = program(source, &[("N", 8), ("d", 2), ("e", 5)]);
    let y = program.tensors.iter().find(|tensor| tensor.name == "y").unwrap();
    assert_eq!(print::index(&y.shape[0], &program), "6");
}

#[test]
fn views_leave_the_conditions_of_the_program_alone() {
    let source = |view: &str, read: &str| {
        format!("def f(int(N) x) -> (y) {{ {view} y(i) = 0 <= int8(i) ? {read}(i) : 0 where i in 0:N }}")
    };
    assert_eq!(results(&source("v = repeat(x)", "v"), 300), results(&source("", "x"), 300));
}

#[test]
fn views_of_views_have_a_limit() {
    for (rule, most) in [("repeat", 12), ("reflect", 3)] {
        let chain = |count: usize| {
            let steps: String = (0..count).map(|at| format!("v{} = {rule}(v{at}) ", at + 1)).collect();
            format!("def f(float(N) v0) -> (y) {{ {steps} y(i) = v{count}(i - 3) where i in 0:N }}")
        };
        assert_eq!(codes(&chain(most)), [], "{most} times {rule}");
        assert_eq!(codes(&chain(most + 1)), [Code::TooComplex], "{} times {rule}", most + 1);
    }
}

#[test]
fn temporaries_may_begin_below_zero() {
    means(
        "def f(float(N) a) -> (y) { t(i) = 2 * i where i in -3:N + 3 y(i) = a(i) + t(i - 3) + t(i + 3) }",
        "def f(float(N) a) -> (y) { t(i + 3) = 2 * i where i in -3:N + 3 y(i) = a(i) + t(i) + t(i + 6) where i in 0:N }",
    );
    // The extent of such a temporary is one past its last index, and a function sees what is from 0
    // on.
    means(
        "def sum(float(N) x) -> (s) { s +=! x(i) }
         def f(float(N) a) -> (y) { t(i) = a(i + 2) where i in -2:N - 2 y = sum(t) }",
        "def f(float(N) a) -> (y) {
           t(i + 2) = a(i + 2) where i in -2:N - 2
           y +=! t(i + 2) where i in 0:N - 2
         }",
    );
    // Two temporaries with margins of different widths are no mistake.
    program(
        "def f(float(N) x) -> (y) {
           m(i) = x(i + 1) where i in -1:N - 1
           s(i) = m(i - 1) + m(i + 1)
           y(i) = m(i) - s(i)
         }",
        &[],
    );
    // Results begin at 0.
    assert_eq!(codes("def f(float(N) a) -> (y) { y(i - 1) = a(i) }"), [Code::OutOfBounds]);
}

#[test]
fn mistakes_are_explained() {
    let body = |body: &str| format!("def f(float(H, W) a, float s) -> (y) {{ {body} }}");
    for (text, wanted) in [
        ("v = repeat(a) v(i, j) = 1 y(i, j) = v(i, j)", Code::InvalidTarget),
        ("y(i, j) = v(i, j) v = repeat(a)", Code::UndefinedName),
        ("v(i, j) = a(i, j) v = repeat(a) y(i, j) = v(i, j)", Code::NameCollision),
        ("v = repeat(a) v = wrap(a) y(i, j) = v(i, j)", Code::NameCollision),
        ("v = repeat(b) y(i, j) = v(i, j)", Code::UndefinedName),
        ("v = repat(a) y(i, j) = v(i, j)", Code::UndefinedName),
        ("v = repeat(2) y(i, j) = a(i, j)", Code::TypeMismatch),
        ("v = repeat() y(i, j) = a(i, j)", Code::TypeMismatch),
        ("v = repeat(a, 2) y(i, j) = v(i, j)", Code::RankMismatch),
        ("v = repeat(a) y(i) = v(i)", Code::RankMismatch),
        ("v = repeat(a) y(i, j) = v + a(i, j)", Code::RankMismatch),
        ("v = constant(a) y(i, j) = v(i, j)", Code::RankMismatch),
        ("v = shift(a, 1) y(i, j) = v(i, j)", Code::RankMismatch),
        ("v = shift(a, 1, s) y(i, j) = v(i, j)", Code::TypeMismatch),
        ("v, w = repeat(a) y(i, j) = a(i, j)", Code::RankMismatch),
        ("y = repeat(a)", Code::NameCollision),
        ("t() = 1 v = repeat(t) y(i, j) = a(i, j) + t()", Code::RankMismatch),
        ("v = repeat(a) y(i, j) = v(i + k, j)", Code::AmbiguousRange),
        ("v = repeat(a) y(i, j) = a(v, j) where i in 0:3", Code::RankMismatch),
    ] {
        assert_eq!(codes(&body(text)).first(), Some(&wanted), "{text}");
        assert_eq!(codes(&body(text)).len(), 1, "{text}: {:?}", codes(&body(text)));
    }
}

#[test]
fn names_of_view_functions_stay_free() {
    means(
        "def wrap(float(N) x) -> (y) { y(i) = 3 * x(i) } def f(float(N) a) -> (y) { y = wrap(a) }",
        "def f(float(N) a) -> (y) { y(i) = 3 * a(i) }",
    );
    program("def f(float(N) repeat) -> (y) { y(i) = repeat(i) }", &[]);
    program("def f(float(N) shift) -> (y) { s = shift(0) y(i) = shift(i) + s }", &[]);
}
