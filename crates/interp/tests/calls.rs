//! Tests of calls: everything that a called function says about its sizes and scalars is translated
//! to the caller's sizes and scalars.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_interp::{Inputs, RunError, run};
use tilewright_ir::{DType, Number, Program, Tensor};
use tilewright_syntax::{Bindings, Code, check, parse};

/// Compiles the last function of a source, for all sizes and for the given ones.
fn compile(source: &str, sizes: &[(&str, i64)]) -> Result<Program, Vec<Code>> {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let name = &parsed.ast.functions.last().unwrap().name.text;
    let refused = |checked: tilewright_syntax::Checked| {
        checked.program.ok_or_else(|| checked.diagnostics.iter().map(|found| found.code).collect::<Vec<_>>())
    };
    refused(check(&parsed.ast, name, &Bindings::default()))?;
    refused(check(&parsed.ast, name, &sizes.iter().copied().collect()))
}

fn tensor(dtype: DType, shape: &[usize], values: &[f64]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, shape).unwrap();
    values.iter().enumerate().for_each(|(at, value)| tensor.set(at, Number::Float(*value).convert(dtype)));
    tensor
}

fn result(source: &str, sizes: &[(&str, i64)], tensors: &[(&str, Tensor)]) -> Result<Vec<f64>, RunError> {
    let program = compile(source, sizes).unwrap_or_else(|codes| panic!("{source}\nis refused: {codes:?}"));
    let tensors = tensors.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
    let results = run(&program, Inputs { tensors, ..Inputs::default() })?;
    let out = &results["out"];
    Ok((0..out.len()).map(|at| out.get(at).as_f64()).collect())
}

fn matrix() -> Tensor {
    tensor(DType::Float32, &[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
}

fn index(values: &[f64]) -> Tensor {
    tensor(DType::Int32, &[values.len()], values)
}

const PICK: &str = "def pick(float(K, N) l, int(N) v) -> (o) { o(y) = l(i, y) where i = v(y), i in 0:K }\n";

#[test]
fn the_range_of_a_binding_names_a_size_of_the_function() {
    let sizes = [("P", 3), ("Q", 2)];
    let direct = format!("{PICK}def f(float(P, Q) l, int(Q) v) -> (out) {{ out = pick(l, v) }}");
    let through = format!(
        "{PICK}def middle(float(A, B) m, int(B) w) -> (o) {{ t(a, b) = m(a, b) + 0\n o = pick(t, w) }}
        def f(float(P, Q) l, int(Q) v) -> (out) {{ out = middle(l, v) }}"
    );
    for source in [direct, through] {
        let picked = result(&source, &sizes, &[("l", matrix()), ("v", index(&[2.0, 0.0]))]);
        assert_eq!(picked, Ok(vec![5.0, 2.0]), "{source}");
        // The declared range is still checked.
        let outside = result(&source, &sizes, &[("l", matrix()), ("v", index(&[3.0, 0.0]))]);
        assert!(matches!(outside, Err(RunError::OutOfBounds(_))), "{source}\n{outside:?}");
    }
}

#[test]
fn calls_inside_ordered_loops() {
    let source = format!(
        "{PICK}def f(float(P, Q) l, int(Q) v) -> (out) {{
          float(Q) out
          out(i) = 0
          for t in 0:2 {{ p = pick(l, v)\n out(i) = out(i) + p(i) }} }}"
    );
    let inputs = [("l", matrix()), ("v", index(&[1.0, 2.0]))];
    assert_eq!(result(&source, &[("P", 3), ("Q", 2)], &inputs), Ok(vec![6.0, 12.0]));
}

/// The source has ranges, a scatter, a declared temporary, loop bounds, conditions, extents and
/// values, two calls deep.
#[test]
fn everything_that_names_sizes_and_scalars_is_translated() {
    let source = "
        def inner(float(K, N) l, int(N) v, int s) -> (o) {
          int32(K) hits
          float(K + s) longer
          hits(h) +=! 1 where h = v(y), h in 0:K
          longer(a) = a < K ? l(a, N - 1) + l.0 : s where a in 0:K + s
          for r in 1:s + 1 { longer(a) = longer(a) + r where a in 0:K }
          o(a) = longer(a) + 100 * (b < hits.0 ? hits(b) : 0) where a in 0:K + s, b = a
        }
        def middle(float(A, B) m, int(B) w, int8 k) -> (o) { o = inner(m, w, 2*k - 2) }
        def f(float(P, Q) l, int(Q) v) -> (out) { out = middle(l, v, 1 + 1) }";
    // hits = (1, 0, 1); longer = 2 + 3, 4 + 3, 6 + 3 and 1 + 2 more, then 2, 2.
    let inputs = [("l", matrix()), ("v", index(&[2.0, 0.0]))];
    let found = result(source, &[("P", 3), ("Q", 2)], &inputs);
    assert_eq!(found, Ok(vec![108.0, 10.0, 112.0, 2.0, 2.0]));
}

/// The variables of loops around a call are not visible in the called function.
#[test]
fn a_loop_around_a_call_has_no_name_inside() {
    let sources = [
        "def inner(float(N) x) -> (y) { y(t) = x(N - 1 - t) }
        def f(float(N) x) -> (out) { for t in 0:1 { out = inner(x) } }",
        "def inner(float(N) x) -> (y) { y(i) = x(N - 1 - i)\n for t in 0:N { y(t) = y(t) + 0 } }
        def f(float(N) x) -> (out) { for t in 0:1 { out = inner(x) } }",
        "def inner(float(N) x) -> (t) { t(i) = x(j) where j = N - 1 - i }
        def middle(float(N) x) -> (y) { for i in 0:1 { y = inner(x) } }
        def f(float(N) x) -> (out) { for t in 0:1 { for j in 0:1 { out = middle(x) } } }",
    ];
    for source in sources {
        let x = tensor(DType::Float32, &[3], &[1.0, 2.0, 3.0]);
        let found = result(source, &[("N", 3)], &[("x", x)]);
        assert_eq!(found, Ok(vec![3.0, 2.0, 1.0]), "{source}");
    }
}

/// A range must be known before the program runs, even if it bounds a binding inside a function.
#[test]
fn ranges_of_bindings_do_not_depend_on_data_or_variables() {
    let inner = "def inner(float(N) x, int(N) v, int n) -> (y) { y(i) = x(j) where j = v(i), j in 0:n }\n";
    let by_data = "def f(float(N) x, int(N) v) -> (y) { y = inner(x, v, v(0)) }";
    let by_loop = "def f(float(N) x, int(N) v) -> (y) { for t in 1:N { y = inner(x, v, t) } }";
    for outer in [by_data, by_loop] {
        let refused = compile(&format!("{inner}{outer}"), &[("N", 3)]);
        assert_eq!(refused.map(|_| ()), Err(vec![Code::InvalidRange]), "{outer}");
    }
}
