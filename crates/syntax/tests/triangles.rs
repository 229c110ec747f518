//! Tests of ranges whose bounds depend on other variables: they mean the same as a condition.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_ir::{Program, print};
use tilewright_syntax::{Bindings, Code, check, parse};

fn checked(signature: &str, body: &str) -> Result<Program, Vec<Code>> {
    let source = format!("def f({signature}) -> (y) {{ {body} }}");
    let parsed = parse(&source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let checked = check(&parsed.ast, "f", &Bindings::default());
    let codes: Vec<Code> = checked.diagnostics.iter().map(|found| found.code).collect();
    if codes.is_empty() { Ok(checked.program.unwrap()) } else { Err(codes) }
}

#[test]
fn a_triangle_is_a_condition() {
    let square = "float(N, N) x";
    for (signature, triangle, condition) in [
        (square, "y(i) +=! x(i, j) where j in 0:i + 1", "y(i) +=! j < i + 1 ? x(i, j) : 0 where j in 0:N"),
        (square, "y(i) *=! x(i, j) where j in 0:i + 1", "y(i) *=! j < i + 1 ? x(i, j) : 1 where j in 0:N"),
        (square, "y(i) max=! x(i, j) where j in i:N", "y(i) max=! j >= i ? x(i, j) : -inf where j in 0:N"),
        (square, "y(i) min=! x(i, j) where j in i:N", "y(i) min=! j >= i ? x(i, j) : inf where j in 0:N"),
        (
            "uint8(N, N) x",
            "y(i) min=! x(i, j) where j in i:N",
            "y(i) min=! j >= i ? x(i, j) : 255 where j in 0:N",
        ),
        (
            "float(N) x",
            "y(i) +=! x(i - j) where i in 0:N, j in 0:i + 1",
            "y(i) +=! j < i + 1 ? x(i - j) : 0 where i in 0:N, j in 0:N",
        ),
        (
            "float(N, N, N) x",
            "y(i) +=! x(i, j, k) where j in 0:i + 1, k in j:i + 1",
            "y(i) +=! j < i + 1 && k >= j && k < i + 1 ? x(i, j, k) : 0 where j in 0:N, k in 0:N",
        ),
        (
            "float(N, N) x, float(M) b",
            "y(i) +=! x(i, j) where i in 0:min(M, N), j in 0:min(i, N - i)",
            "y(i) +=! j < min(i, N - i) ? x(i, j) : 0 where i in 0:min(M, N), j in 0:max(1, min(min(M, N) - 1, N))",
        ),
        (
            square,
            "y(i, j) = 0 where i in 0:N, j in 0:N\n y(i, j) = x(i, j) where j in 0:i + 1",
            "y(i, j) = 0 where i in 0:N, j in 0:N\n y(i, j) = j < i + 1 ? x(i, j) : y(i, j) where j in 0:N",
        ),
        (
            square,
            "float(N, N) y\n y(i, j) = y(i, j) + x(i, j) where j in 0:i + 1",
            "float(N, N) y\n y(i, j) = j < i + 1 ? y(i, j) + x(i, j) : y(i, j) where j in 0:N",
        ),
    ] {
        let (own, wanted) = (checked(signature, triangle), checked(signature, condition));
        let text = |program: &Result<Program, _>| program.as_ref().map(print::program).map_err(Clone::clone);
        assert_eq!(text(&own), text(&wanted), "{triangle}");
    }
}

#[test]
fn a_bound_may_depend_on_a_loop() {
    let solve =
        "float(N) y\n for t in 0:N { r = b(t)\n r += -x(t, j) * y(j) where j in 0:t\n y(t) = r / x(t, t) }";
    let program = checked("float(N, N) x, float(N) b", solve).unwrap();
    let var = program.vars.iter().find(|var| var.name == "j").unwrap();
    // A single equation has nothing to subtract, and is accepted.
    assert_eq!(print::range(&var.range, &program), "0:max(1, N - 1)");
}

#[test]
fn triangles_that_are_refused() {
    for (body, code) in [
        ("y(i, j) = x(i, j) where j in 0:i + 1", Code::UndefinedElement),
        ("y(i, j) = x(i, j) where j in 0:i + 1\n y(i, j) = 0 where j in i + 1:N", Code::UndefinedElement),
        ("y(i, 0) = x(i, 0)\n y(i, j) = x(i, j) where j in 1:i + 1", Code::ReadBeforeWrite),
        ("t(i, j) = x(i, j) where j in 0:i + 1\n y(i) = t(i, 0)", Code::UndefinedElement),
        ("y(i) +=! x(i, j) where j in 0:i + 2", Code::OutOfBounds),
        ("y(i - j) +=! x(i, j) where j in 0:i + 1", Code::OutOfBounds),
        ("y(i) +=! x(i, j) where j in 0:j + 1", Code::InvalidRange),
        ("y(i) +=! x(j, k) where j in 0:k, k in 0:j, i in 0:N", Code::InvalidRange),
        ("y(i) +=! x(i, j) where j in 0:x(i, 0)", Code::TypeMismatch),
        ("y(i) +=! x(i, j) where j in 0:M", Code::UndefinedName),
    ] {
        assert_eq!(checked("float(N, N) x", body), Err(vec![code]), "{body}");
    }
}
