//! Values of statements whose ranges depend on other variables.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_interp::{Inputs, run};
use tilewright_ir::{DType, Number, Tensor};
use tilewright_syntax::{check, parse};

/// The result `y` of a body with `x(i, j) = 10*i + j`, of three rows and columns.
fn values(body: &str) -> Vec<i128> {
    let source = format!("def f(int(N, N) x) -> (y) {{ {body} }}");
    let checked = check(&parse(&source).ast, "f", &[("N", 3)].into_iter().collect());
    let program = checked.program.unwrap_or_else(|| panic!("{source}\n{:?}", checked.diagnostics));
    let mut x = Tensor::zeros(DType::Int32, &[3, 3]).unwrap();
    (0..9).for_each(|at| x.set(at, Number::Int((at / 3 * 10 + at % 3) as i128)));
    let tensors = [("x".to_owned(), x)].into_iter().collect();
    let y = &run(&program, Inputs { tensors, ..Inputs::default() }).unwrap()["y"];
    (0..y.len()).map(|at| y.get(at).as_i128()).collect()
}

#[test]
fn reductions_over_triangles() {
    assert_eq!(values("y(i) +=! x(i, j) where j in 0:i + 1"), [0, 21, 63]);
    assert_eq!(values("y(i) +=! x(i, j) where j in 0:i"), [0, 10, 41]);
    assert_eq!(values("y(i) min=! x(i, j) where j in i:N"), [0, 11, 22]);
    assert_eq!(values("y(i) *=! 2 where i in 0:N, j in 0:i"), [1, 2, 4]);
    assert_eq!(values("y(i) +=! 1 where i in 0:N, j in 0:i + 1, k in j:i + 1"), [1, 3, 6]);
    // An empty triangle leaves the neutral element.
    assert_eq!(values("y(i) max=! x(i, j) where j in 0:i")[0], i128::from(i32::MIN));
}

#[test]
fn assignments_to_triangles_keep_the_other_elements() {
    let body = "y(i, j) = -1 where i in 0:N, j in 0:N\n y(i, j) = x(i, j) where j in 0:i + 1";
    assert_eq!(values(body), [0, -1, -1, 10, 11, -1, 20, 21, 22]);
}

#[test]
fn bounds_with_the_variable_of_a_loop() {
    let body = "y(i) = 0 where i in 0:N\n for t in 0:N { y(i) = y(i) + 1 where i in t:N }";
    assert_eq!(values(body), [1, 2, 3]);
}
