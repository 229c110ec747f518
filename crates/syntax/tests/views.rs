//! Tests of views: an access through a view means the same as the subscripts that its rule gives.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_interp::{run, seed};
use tilewright_ir::Number;
use tilewright_syntax::{Bindings, check, parse};

/// The elements of `y` at a size, for inputs that depend on their names only.
fn elements(signature: &str, body: &str, size: i64) -> Vec<Number> {
    let source = format!("def f({signature}) -> (y) {{ {body} }}");
    let parsed = parse(&source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let checked = check(&parsed.ast, "f", &[("N", size)].into_iter().collect::<Bindings>());
    assert!(checked.diagnostics.is_empty(), "{source}\n{:?}", checked.diagnostics);
    let program = checked.program.unwrap();
    let results = run(&program, seed::inputs(&program, 1).unwrap()).unwrap();
    (0..results["y"].len()).map(|at| results["y"].get(at)).collect()
}

/// The signature, the view, a statement that reads it, and the statement without a view.
const TRIANGLES: &[[&str; 4]] = &[
    [
        "float(N) x",
        "v = repeat(x)",
        "y(i) +=! v(i - j + 1) where i in 0:N, j in 0:i + 1",
        "y(i) +=! j < i + 1 ? x(min(i - j + 1, N - 1)) : 0 where i in 0:N, j in 0:N",
    ],
    // The view gives `i` its range, and `j` waits for it.
    [
        "float(N) x",
        "v = constant(x, 0)",
        "y(i) +=! v(i) * v(j - 1) where j in 0:i + 1",
        "y(i) +=! j < i + 1 && j >= 1 ? x(i) * x(max(j - 1, 0)) : 0 where i in 0:N, j in 0:N",
    ],
    [
        "float(N, N) x",
        "v = repeat(x)",
        "y(i) +=! v(i, j - 2) where j in i:i + 4",
        "y(i) +=! x(i, clamp(i + j - 2, 0, N - 1)) where j in 0:4",
    ],
    [
        "float(N, N) x",
        "v = wrap(x)",
        "y(i) +=! v(i, 2*j) where j in 0:i + 1",
        "y(i) +=! j < i + 1 ? x(i, (2*j) % N) : 0 where i in 0:N, j in 0:N",
    ],
];

#[test]
fn a_triangle_reads_through_a_view() {
    for [signature, view, statement, plain] in TRIANGLES {
        for size in 1..7 {
            let own = elements(signature, &format!("{view}\n {statement}"), size);
            assert_eq!(own.len(), size as usize, "{statement}");
            assert_eq!(own, elements(signature, plain, size), "{statement} at N = {size}");
        }
    }
}

#[test]
fn a_mirrored_dimension_may_be_a_quotient() {
    for rule in ["reflect", "mirror", "wrap", "repeat", "constant"] {
        let rest = if rule == "constant" { ", 0" } else { "" };
        let body = format!(
            "h(i) = x(2*i) where i in 0:(N + 1)/2\n v = {rule}(h{rest})\n y(i) = v(i - 1) + v(i + 1)"
        );
        // No access is left to be checked at run time, at any size.
        let source = format!("def f(float(N) x) -> (y) {{ {body} }}");
        let checked = check(&parse(&source).ast, "f", &Bindings::default());
        assert!(checked.diagnostics.is_empty(), "{source}\n{:?}", checked.diagnostics);
    }
    let body = "h(i) = x(2*i) where i in 0:(N + 1)/2\n v = reflect(h)\n y(i) = v(i - 1)";
    let plain = "h(i) = x(2*i) where i in 0:(N + 1)/2\n y(i) = h(min(abs(i - 1), h.0 - 1)) where i in 0:h.0";
    for size in 1..9 {
        assert_eq!(elements("float(N) x", body, size), elements("float(N) x", plain, size), "N = {size}");
    }
}
