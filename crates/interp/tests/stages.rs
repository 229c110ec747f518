//! Tests of notation that stands for several statements or functions: lists of tensors with loops
//! over stages, generic functions, and reductions of several values.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_interp::{Inputs, run};
use tilewright_ir::{DType, Number, Program, Tensor, print};
use tilewright_syntax::{Bindings, Code, check, diagnose, parse};

#[track_caller]
fn program_at(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let name = &parsed.ast.functions.last().unwrap().name.text;
    let checked = check(&parsed.ast, name, &sizes.iter().copied().collect());
    assert!(checked.diagnostics.is_empty(), "{source}\n{:?}", checked.diagnostics);
    checked.program.unwrap()
}

#[track_caller]
fn program(source: &str) -> Program {
    program_at(source, &[])
}

/// Checks that a program is the same as one in which everything is written out. The functions that
/// it calls are correct by themselves too.
#[track_caller]
fn means(source: &str, written_out: &str) {
    assert_eq!(codes(source), []);
    assert_eq!(print::source(&program(source)), print::source(&program(written_out)));
}

fn codes(source: &str) -> Vec<Code> {
    diagnose(&parse(source), &Bindings::default()).iter().map(|found| found.code).collect()
}

#[test]
fn a_loop_over_stages_is_written_out() {
    means(
        "def f(float(N) x) -> (y) {
           g[0](i) = 2 * x(i)
           for k in 0:2 { g[k + 1](i) = g[k](i) + k }
           y(i) = g[2](i)
         }",
        "def f(float(N) x) -> (y) {
           g_0(i) = 2 * x(i)
           g_1(i) = g_0(i) + 0
           g_2(i) = g_1(i) + 1
           y(i) = g_2(i)
         }",
    );
    // Shapes may differ, and `g[k].0` is an extent.
    means(
        "def halve(float(N) x) -> (y) { y(i) = x(2*i) }
         def f(float(N) x) -> (y) {
           g[0](i) = x(i)
           for k in 1:3 { g[k] = halve(g[k - 1]) }
           y(i) = g[2](i / 4) where i in 0:4*g[2].0
         }",
        "def f(float(N) x) -> (y) {
           g_0(i) = x(i)
           g_1(i) = g_0(2*i)
           g_2(i) = g_1(2*i)
           y(i) = g_2(i / 4) where i in 0:4*g_2.0
         }",
    );
}

#[test]
fn a_static_parameter_is_a_number() {
    let source = "def f(float(N) x, static int n = 3) -> (y) {
        g[0](i) = x(i)
        for k in 0:n - 1 { g[k + 1](i) = g[k](i) * n }
        y(i) = g[n - 1](i)
    }";
    let wanted = |n: i64| {
        let stages: String = (1..n).map(|k| format!("g_{k}(i) = g_{}(i) * {n} ", k - 1)).collect();
        format!("def f(float(N) x) -> (y) {{ g_0(i) = x(i) {stages} y(i) = g_{}(i) }}", n - 1)
    };
    means(source, &wanted(3));
    for n in [1, 2, 5] {
        let given = print::source(&program_at(source, &[("n", n)]));
        assert_eq!(given, print::source(&program(&wanted(n))), "n = {n}");
    }
    // A call gives the number, or leaves it out.
    for (call, n) in [("f(a)", 3), ("f(a, 2)", 2), ("f(a, m)", 4), ("f(a, m * 2 - 3)", 5)] {
        let source = format!("{source} def g(float(N) a, static int m = 4) -> (b) {{ b = {call} }}");
        let stages: String =
            (1..n).map(|k| format!("float(N) f_g_{k} f_g_{k}(i) = f_g_{}(i) * {n} ", k - 1)).collect();
        let wanted = format!(
            "def g(float(N) a) -> (b) {{ float(N) f_g_0 f_g_0(i) = a(i) {stages} b(i) = f_g_{}(i) }}",
            n - 1
        );
        means(&source, &wanted);
    }
}

#[test]
fn a_function_returns_a_list() {
    means(
        "def powers(float(N) x, static int n) -> (p[n], last) {
           p[0](i) = x(i)
           for k in 1:n { p[k](i) = p[k - 1](i) * x(i) }
           last(i) = p[n - 1](i)
         }
         def f(float(N) x) -> (y) { p, l = powers(x, 3) y(i) = p[0](i) + p[2](i) + l(i) }",
        "def f(float(N) x) -> (y) {
           p_0(i) = x(i)
           p_1(i) = p_0(i) * x(i)
           p_2(i) = p_1(i) * x(i)
           l(i) = p_2(i)
           y(i) = p_0(i) + p_2(i) + l(i)
         }",
    );
}

#[test]
fn a_list_is_returned_to_a_caller_without_lists() {
    let source = "def two(float(N) x) -> (p[2]) { p[0](i) = x(i) p[1](i) = 2 * x(i) }
        def f(float(N) x) -> (y) { p = two(x) y(i) = x(i) }";
    let parsed = parse(source);
    let checked = check(&parsed.ast, "f", &Bindings::default());
    assert!(checked.program.is_some(), "{:?}", checked.diagnostics);
    // The user's own result keeps its name.
    let own =
        program("def f(float(N) x) -> (g[2], g_1) { for k in 0:2 { g[k](i) = k * x(i) } g_1(i) = 7 * x(i) }");
    let names: Vec<&str> = own.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    assert_eq!(names, ["x", "g_0", "g_1_", "g_1"]);
}

#[test]
fn tensors_of_an_iteration_are_its_own() {
    means(
        "def f(float(N) x) -> (y) {
           y(i) = 0 * x(i)
           g[0](i) = x(i)
           for k in 0:2 {
             t(i) = g[k](2*i)
             g[k + 1](i) = t(i) + 1
             y(i) += g[k](0)
           }
           y(i) += g[2](0)
         }",
        "def f(float(N) x) -> (y) {
           y(i) = 0 * x(i)
           g_0(i) = x(i)
           t_0(i) = g_0(2*i)
           g_1(i) = t_0(i) + 1
           y(i) += g_0(0)
           t_1(i) = g_1(2*i)
           g_2(i) = t_1(i) + 1
           y(i) += g_1(0)
           y(i) += g_2(0)
         }",
    );
    // Loops over stages in one another, and in an ordered loop.
    means(
        "def f(float(T, N) x) -> (float(T, N) y) {
           h[0](0, i) = x(0, i)
           h[1](0, i) = x(0, i)
           y(0, i) = 0
           for t in 1:T {
             for k in 0:2 { h[k](t, i) = h[k](t - 1, i) + x(t, i) }
             y(t, i) = h[0](t, i) * h[1](t, i)
           }
         }",
        "def f(float(T, N) x) -> (float(T, N) y) {
           h_0(0, i) = x(0, i)
           h_1(0, i) = x(0, i)
           y(0, i) = 0
           for t in 1:T {
             h_0(t, i) = h_0(t - 1, i) + x(t, i)
             h_1(t, i) = h_1(t - 1, i) + x(t, i)
             y(t, i) = h_0(t, i) * h_1(t, i)
           }
         }",
    );
    means(
        "def f(float(N) x) -> (y) {
           for a in 0:2 { for b in 0:2 { t(i) = x(i) * (a + 2*b) g[2*a + b](i) = x(i) + t(i) } }
           y(i) = g[0](i) + g[1](i) + g[2](i) + g[3](i)
         }",
        "def f(float(N) x) -> (y) {
           t_0_0(i) = x(i) * (0 + 2*0) g_0(i) = x(i) + t_0_0(i)
           t_0_1(i) = x(i) * (0 + 2*1) g_1(i) = x(i) + t_0_1(i)
           t_1_0(i) = x(i) * (1 + 2*0) g_2(i) = x(i) + t_1_0(i)
           t_1_1(i) = x(i) * (1 + 2*1) g_3(i) = x(i) + t_1_1(i)
           y(i) = g_0(i) + g_1(i) + g_2(i) + g_3(i)
         }",
    );
}

#[test]
fn a_choice_by_a_stage_leaves_the_other_branch_out() {
    means(
        "def f(float(N) x) -> (y) { for k in 0:2 { g[k](i) = k == 0 ? x(i) : g[k - 1](i) } y(i) = g[1](i) }",
        "def f(float(N) x) -> (y) { g_0(i) = x(i) g_1(i) = g_0(i) y(i) = g_1(i) }",
    );
}

#[test]
fn names_of_elements_are_free() {
    let source = "def f(float(N) x, float(N) g_0) -> (y) {
        g[0](i) = x(i)
        g_1(i) = g_0(i)
        g[1](i) = g[0](i) + g_1(i)
        y(i) = g[1](i)
    }";
    let program = program(source);
    let mut names: Vec<&str> = program.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
    names.sort_unstable();
    let mut unique = names.clone();
    unique.dedup();
    assert_eq!(names, unique);
    assert!(names.contains(&"g_0") && names.contains(&"g_1"), "{names:?}");
}

#[test]
fn mistakes_in_stages_are_explained() {
    let body = |body: &str| format!("def f(float(N) x, int n) -> (y) {{ {body} }}");
    for (text, wanted) in [
        ("y[i] = x[i]", Code::InvalidRange),
        ("y(i) = x[i, 0]", Code::Syntax),
        ("y(i) = x[0](i)", Code::UndefinedName),
        ("for k in 0:n { g[k](i) = x(i) } y(i) = g[0](i)", Code::InvalidRange),
        ("for k in 0:N { g[k](i) = x(i) } y(i) = g[0](i)", Code::InvalidRange),
        ("g[n](i) = x(i) y(i) = g[n](i)", Code::InvalidRange),
        ("for k in 0:2 { g[k](i) = x(i) } y(i) = g[2](i)", Code::UndefinedName),
        ("for k in 0:2 { g[k](i) = x(k) where k in 0:3 } y(i) = g[0](i)", Code::NameCollision),
        ("for k in 0:2 { for k in 0:2 { g[k](i) = x(i) } } y(i) = g[0](i)", Code::NameCollision),
        ("for k in 0:2 { g[k](i) = x(i) t(i) = x(i) } y(i) = g[0](i) + t(i)", Code::UndefinedName),
        ("for k in 0:100000 { g[k](i) = x(i) } y(i) = g[0](i)", Code::TooComplex),
        ("for k in 0:9000000000000000000 { g[k](i) = x(i) } y(i) = g[0](i)", Code::TooComplex),
        ("for k in 0:3 { g[k](i) = x(i + 1 - k) } y(i) = g[0](i)", Code::OutOfBounds),
    ] {
        assert_eq!(codes(&body(text)).first(), Some(&wanted), "{text}");
    }
    // Names that mean two things.
    for text in [
        "t[0](i) = x(i) for k in 0:2 { t(i) = x(i) + k g[k](i) = t(i) } y(i) = t[0](i) + g[1](i)",
        "x[0](i) = x(i) y(i) = x[0](i)",
        "y[0](i) = x(i) y(i) = y[0](i)",
    ] {
        assert_eq!(codes(&body(text)).first(), Some(&Code::NameCollision), "{text}");
    }
    let captured = "def f(float(N) x, static int n = 2) -> (y) { y(i) = x(i) for n in 0:4 { y(n) = x(n) } }";
    assert_eq!(codes(captured).first(), Some(&Code::NameCollision));
    let input = "for k in 0:2 { x(i) = 1.0 * k where i in 0:N g[k](i) = x(i) } y(i) = g[1](i)";
    assert_eq!(codes(&body(input)).first(), Some(&Code::InvalidTarget));
    let endless = "for k in 0:1000000000000 { for j in 0:0 { g[k + j](i) = x(i) } } y(i) = x(i)";
    assert_eq!(codes(&body(endless)).first(), Some(&Code::TooComplex));
    // A mistake in a stage is reported once.
    assert_eq!(codes(&body("for k in 0:9 { g[k](i) = z(i) } y(i) = g[0](i)")).len(), 1);
    for (source, wanted) in [
        ("def f(static float n = 2) -> (y) { y = n }", Code::Syntax),
        ("def f(float(N) x, static int n = clz(26)) -> (y) { y(i) = x(i) + n }", Code::InvalidRange),
        (
            "def f(float(N) x, static int n) -> (y) { y(i) = x(i) } def g(float(N) x, int m) -> (y) { y = f(x, m) }",
            Code::InvalidRange,
        ),
        (
            "def f(float(N) x, static int n) -> (y) { y(i) = x(i) } def g(float(N) x) -> (y) { y = f(x) }",
            Code::RankMismatch,
        ),
        ("def f(float(N) x, static int n = 0) -> (p[n]) { p[0](i) = x(i) }", Code::InvalidSize),
    ] {
        assert_eq!(codes(source).first(), Some(&wanted), "{source}");
    }
    let open = "def f(float(N) x, static int n) -> (y) { y(i) = x(i) * n }";
    assert_eq!(codes(open), []);
    let checked = check(&parse(open).ast, "f", &Bindings::default());
    assert_eq!(checked.diagnostics[0].code, Code::InvalidSize);
}

#[test]
fn a_generic_function_takes_any_type_and_rank() {
    let generic = "def down<T>(T(.., N) x) -> (y) { y(.., i) = (x(.., 2*i) + x(.., 2*i + 1)) / T(2) }";
    for ty in ["float", "uint8", "int64", "double"] {
        means(
            &format!("{generic} def f({ty}(N) a) -> (b) {{ b = down(a) }}"),
            &format!("def f({ty}(N) a) -> (b) {{ b(i) = (a(2*i) + a(2*i + 1)) / {ty}(2) }}"),
        );
        means(
            &format!("{generic} def f({ty}(C, H, W) a) -> (b) {{ b = down(a) }}"),
            &format!(
                "def f({ty}(C, H, W) a) -> (b) {{
                   b(d0, d1, i) = (a(d0, d1, 2*i) + a(d0, d1, 2*i + 1)) / {ty}(2)
                 }}"
            ),
        );
    }
    // The type of a temporary is inferred, and several type parameters are independent.
    means(
        "def mix<A, B>(A(N) x, B(N) y) -> (z) { z(i) = A(y(i)) + x(i) }
         def f(float(N) a, int(N) b) -> (c, d) { t(i) = 2 * b(i) c = mix(a, t) d = mix(t, b) }",
        "def f(float(N) a, int(N) b) -> (c, d) {
           t(i) = 2 * b(i)
           c(i) = float(t(i)) + a(i)
           d(i) = int(b(i)) + t(i)
         }",
    );
    // Variables of the function do not meet those of the leading dimensions.
    means(
        "def twice(float(.., N) x) -> (y) { y(.., d0) = 2 * x(.., d0) }
         def f(float(M, N) a) -> (b) { b = twice(a) }",
        "def f(float(M, N) a) -> (b) { b(dd0, d0) = 2 * a(dd0, d0) }",
    );
    means(
        "def f<T>(T(.., N) x) -> (y) {
           T(.., N) t
           t(.., i) = x(.., i)
           for d0 in 1:3 { t(.., i) = t(.., i) + 1 where i in 0:N }
           y(.., i) = t(.., i)
         }
         def main(float(M, N) x) -> (z) { z = f(x) }",
        "def main(float(M, N) x) -> (z) {
           float(M, N) f_t
           f_t(dd0, i) = x(dd0, i)
           for d0 in 1:3 { f_t(dd0, i) = f_t(dd0, i) + 1 where i in 0:N }
           z(dd0, i) = f_t(dd0, i)
         }",
    );
    // A generic function calls another one, and takes a view.
    means(
        "def twice(float(.., N) x) -> (y) { y(.., i) = 2 * x(.., i) }
         def sums<T>(T(.., H, W) x) -> (y) { t = twice(x) v = repeat(t) y(.., i, j) = v(.., i, j - 1) }
         def f(float(C, H, W) a) -> (b) { b = sums(a) }",
        "def f(float(C, H, W) a) -> (b) {
           float(C, H, W) sums_t
           sums_t(d0, d1, i) = 2 * a(d0, d1, i)
           b(d0, i, j) = sums_t(d0, i, max(j - 1, 0)) where d0 in 0:C, i in 0:H, j in 0:W
         }",
    );
}

#[test]
fn mistakes_in_generic_functions_are_explained() {
    let caller = "def g(float(N) a, int(N) b) -> (c)";
    for (source, wanted) in [
        ("def f<T>(T(N) x) -> (y) { y(i) = x(i + 1) + x(i - 1) }".to_owned(), Code::OutOfBounds),
        (
            format!("def f<T>(T(N) x, T(N) y) -> (z) {{ z(i) = x(i) + y(i) }} {caller} {{ c = f(a, b) }}"),
            Code::TypeMismatch,
        ),
        (
            format!(
                "def f(float(.., H, W) x) -> (y) {{ y(.., i, j) = x(.., i, j) }} {caller} {{ c = f(a) }}"
            ),
            Code::RankMismatch,
        ),
        ("def f(float(N) x) -> (y) { y(.., i) = x(.., i) }".to_owned(), Code::Syntax),
        ("def f(float(.., N) x) -> (y) { y(.., i) = x(.. + 1, i) }".to_owned(), Code::Syntax),
        ("def f<T(T(N) x) -> (y) { y(i) = x(i) }".to_owned(), Code::Syntax),
    ] {
        assert_eq!(codes(&source).first(), Some(&wanted), "{source}");
    }
    let generic = parse("def f<T>(T(N) x) -> (y) { y(i) = x(i) }");
    let checked = check(&generic.ast, "f", &Bindings::default());
    assert_eq!(checked.diagnostics[0].code, Code::TypeMismatch);
}

/// Runs `f` on an int32 tensor `x` of one or two dimensions, and returns a result.
#[track_caller]
fn result(source: &str, shape: &[usize], values: &[i64], name: &str) -> Vec<i64> {
    let sizes: Vec<(&str, i64)> = ["M", "N"].into_iter().zip(shape.iter().map(|size| *size as i64)).collect();
    let mut x = Tensor::zeros(DType::Int32, shape).unwrap();
    values.iter().enumerate().for_each(|(at, value)| x.set(at, Number::Int((*value).into())));
    let mut inputs = Inputs::default();
    inputs.tensors.insert("x".to_owned(), x);
    let results = run(&program_at(source, &sizes), inputs).unwrap();
    let number = |at| match results[name].get(at) {
        Number::Int(number) => number as i64,
        Number::Float(number) => number as i64,
    };
    (0..results[name].len()).map(number).collect()
}

#[test]
fn several_values_are_reduced_in_order() {
    let values = [3, 1, 2, 1, 5, 5, 0, 5];
    let source = |op: &str, value: &str, by: &str| {
        format!("def f(int(M, N) x) -> (best, at) {{ (best(i), at(i)) {op} ({value}, {by}) }}")
    };
    let run = |op, value, by, name| result(&source(op, value, by), &[2, 4], &values, name);
    assert_eq!(run("min=!", "x(i, j)", "j", "best"), [1, 0]);
    assert_eq!(run("min=!", "x(i, j)", "j", "at"), [1, 2]);
    assert_eq!(run("min=!", "x(i, j)", "-j", "at"), [-3, -2]);
    assert_eq!(run("max=!", "x(i, j)", "j", "at"), [0, 3]);
    assert_eq!(run("max=!", "x(i, j)", "-j", "at"), [0, 0]);
    // Sums are independent of each other.
    assert_eq!(run("+=!", "x(i, j)", "1", "best"), [7, 15]);
    assert_eq!(run("+=!", "x(i, j)", "1", "at"), [4, 4]);
    // Every value takes part in the ranges of all.
    let short = "def f(int(M) x) -> (a, b) { (a, b) min=! (x(i), x(i + 2)) }";
    assert_eq!(result(short, &[5], &[4, 3, 2, 1, 0], "a"), [2]);
    // A value that is rounded where it is stored, and a reduction to one pair.
    let half = "def f(int(M) x) -> (float16 best, at) {
        (best, at) min=! (float16(x(i)) / 3, i)
    }";
    assert_eq!(result(half, &[4], &[10, 8, 7, 9], "at"), [2]);
    let three = "def f(int(M) x) -> (a, b, c) { (a, b, c) max=! (x(i) / 4, x(i) % 2, -i) }";
    let values = [4, 7, 5, 2];
    assert_eq!(result(three, &[4], &values, "a"), [1]);
    assert_eq!(result(three, &[4], &values, "b"), [1]);
    assert_eq!(result(three, &[4], &values, "c"), [-1]);
    // Into elements that data chooses.
    let scatter = "def f(int(M) x) -> (int(4) best, int(4) at) {
        (best(b), at(b)) min=! (x(i), i) where b = x(i) % 4, b in 0:4
    }";
    assert_eq!(
        result(scatter, &[5], &[9, 2, 5, 6, 5], "at"),
        [i64::from(i32::MAX), 2, 1, i64::from(i32::MAX)]
    );
}

#[test]
fn mistakes_in_reductions_of_several_values_are_explained() {
    let body = |body: &str| format!("def f(float(N) x) -> (a, b) {{ {body} }}");
    for (text, wanted) in [
        ("(a, b) min= (x(i), i)", Code::Syntax),
        ("(a(i), b(i)) = (x(i), i)", Code::Syntax),
        ("(a, b) min=! x(i)", Code::Syntax),
        ("(a, b) min=! (x(i), i, 2)", Code::RankMismatch),
        ("(a, b) min=! (y(i), i)", Code::UndefinedName),
        ("(a, x) min=! (x(i), i) b = 1", Code::InPlace),
        ("(a, b) += (b, a)", Code::InPlace),
        ("(a, b) max=! (exp(x(i)), i)", Code::TypeMismatch),
    ] {
        assert_eq!(codes(&body(text)).first(), Some(&wanted), "{text}");
    }
}
