//! Tests of storage orders: a program with `stored` is the program with permuted subscripts, and
//! messages keep the order of the text.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_ir::{TensorId, print};
use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::sizes::Sizes;
use tilewright_syntax::{Bindings, Code, check, diagnose, parse};

/// The text of the last function's program.
fn program(source: &str) -> String {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let name = &parsed.ast.functions.last().unwrap().name.text;
    let checked = check(&parsed.ast, name, &Bindings::default());
    assert!(checked.diagnostics.is_empty(), "{source}\n{:#?}", checked.diagnostics);
    let program = checked.program.unwrap();
    let types = (0..program.tensors.len()).map(|at| print::tensor_type(&program, TensorId(at as u32)));
    format!("{:?}\n{}", types.collect::<Vec<_>>(), print::program(&program))
}

#[test]
fn stored_permutes_subscripts_and_extents() {
    for (stored, permuted) in [
        (
            "def f(uint8(3, H, W) x(c, y, z) stored (y, z, c)) -> (o) { o(i, j) +=! int(x(c, i, j)) }",
            "def f(uint8(H, W, 3) x) -> (o) { o(i, j) +=! int(x(i, j, c)) }",
        ),
        (
            "def f(float(M, N) x) -> (o(i, j) stored (j, i)) { o(i, j) = x(i, j) }",
            "def f(float(M, N) x) -> (o) { o(j, i) = x(i, j) }",
        ),
        (
            "def f(float(M, N) x) -> (float(M, N) o(i, j) stored (j, i)) { o(i, j) = x(i, j) + o.0 }",
            "def f(float(M, N) x) -> (float(N, M) o) { o(j, i) = x(i, j) + o.1 }",
        ),
        (
            "def f(float(M, N) x) -> (o(i, j) stored (j, i)) { float(M, N) o\n o(i, j) = x(i, j) }",
            "def f(float(M, N) x) -> (o) { float(N, M) o\n o(j, i) = x(i, j) }",
        ),
        (
            "def f(float(M, N) x) -> (o) { float(M, N) t(a, b) stored (b, a)\n t(i, j) = x(i, j) + 1\n o(i) +=! t(i, j) }",
            "def f(float(M, N) x) -> (o) { float(N, M) t\n t(j, i) = x(i, j) + 1\n o(i) +=! t(j, i) }",
        ),
    ] {
        assert_eq!(program(stored), program(permuted), "{stored}");
    }
}

#[test]
fn a_call_passes_a_tensor_by_its_subscripts() {
    let grey = "def grey(float(3, H, W) x(c, y, z) stored (y, z, c)) -> (float(H, W) o(y, z) stored (z, y))
        { o(i, j) +=! x(c, i, j) }\n";
    let planar = format!("{grey}def f(float(3, A, B) p) -> (g) {{ g = grey(p) }}");
    let wanted = "def f(float(3, A, B) p) -> (float(A, B) g) { g(i, j) +=! p(c, i, j) }";
    assert_eq!(program(&planar), program(wanted));
    let interleaved =
        format!("{grey}def f(float(3, A, B) p(c, y, z) stored (y, z, c)) -> (g) {{ g = grey(p) }}");
    let wanted = "def f(float(A, B, 3) p) -> (float(A, B) g) { g(i, j) +=! p(i, j, c) }";
    assert_eq!(program(&interleaved), program(wanted));
}

#[test]
fn sizes_come_from_the_shape_in_memory() {
    let parsed = parse("def f(uint8(3, H, W) x(c, y, z) stored (y, z, c)) -> (o) { o(i) = x(0, i, 0) }");
    let param = &parsed.ast.functions[0].params[0];
    let mut sizes = Sizes::default();
    sizes.infer_from_shape(&param.name, &param.ty, &[10, 20, 3], "x").unwrap();
    assert_eq!(sizes.bindings.iter().collect::<Vec<_>>(), [("H", 10), ("W", 20)]);
    assert!(sizes.infer_from_shape(&param.name, &param.ty, &[3, 10, 20], "x").is_err());
}

/// The first error and its text.
fn refused(source: &str) -> (Code, String) {
    let found = diagnose(&parse(source), &Bindings::default());
    let first = found.iter().find(|found| found.is_error()).unwrap_or_else(|| panic!("{source} is accepted"));
    (first.code, first.render("f.tw", source, Style::default()))
}

#[test]
fn messages_keep_the_order_of_the_text() {
    let signature = "def f(uint8(3, H, W) x(c, y, z) stored (y, z, c)) -> (o(i, j) stored (j, i))";
    for (body, code, part) in [
        ("o(i, j) = x(0, i, j + 1) where j in 0:W", Code::OutOfBounds, "`x(0, i, j + 1)` reads outside"),
        ("o(i, j) = x(0, i, j + 1) where j in 0:W", Code::OutOfBounds, "in dimension 2"),
        ("o(i, j) = x(0, i, j) where j in 1:W", Code::UndefinedElement, "`o(0, 0)` is never defined"),
        ("o(i, j) = x(0, i, j) where j in 1:W", Code::UndefinedElement, "the shape (H, W)"),
        ("o(i) = x(0, i, 0)", Code::RankMismatch, "stored in the order of 2 subscripts, but 1"),
        ("o(i, j) = x(0, i, j) + x.3", Code::RankMismatch, "there is no dimension 3"),
    ] {
        let (found, text) = refused(&format!("{signature} {{ {body} }}"));
        assert_eq!(found, code, "{body}\n{text}");
        assert!(text.contains(part), "{body}\n{text}");
    }
}

#[test]
fn orders_that_are_refused() {
    for (param, part) in [
        ("float(M, N) x(a, b) stored (b)", "must list each of a, b once"),
        ("float(M, N) x(a, b) stored (b, b)", "must list each of a, b once"),
        ("float(M, N) x(a, b) stored (b, c)", "must list each of a, b once"),
        ("float(M, N) x(a) stored (a)", "extents of `x`: 2; number of named subscripts: 1"),
        ("float x(a) stored (a)", "extents of `x`: 0"),
        ("float(M, N) x(a, b)", "expected `stored`"),
        ("float(M, N) x(a, b) stored", "expected `(`"),
    ] {
        let (code, text) = refused(&format!("def f({param}) -> (o) {{ o = 1 }}"));
        assert_eq!(code, Code::Syntax, "{text}");
        assert!(text.contains(part), "{param}\n{text}");
    }
    let twice = "def f(float(M, N) x) -> (o(i, j) stored (j, i))
        { float(M, N) o(i, j) stored (j, i)\n o(i, j) = x(i, j) }";
    assert_eq!(refused(twice).0, Code::NameCollision);
}
