//! Values of programs with preconditions.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_interp::{Inputs, run};
use tilewright_ir::{DType, Number, Tensor};
use tilewright_syntax::{check, parse};

#[test]
fn groups_are_separate() {
    let source = "def f(int(C) x, int G) -> (y) requires C % G == 0
        { y(g) +=! x(g*(C/G) + c) where g in 0:G, c in 0:C/G }";
    let sizes = [("C", 6), ("G", 3)].into_iter().collect();
    let program = check(&parse(source).ast, "f", &sizes).program.unwrap();
    let mut x = Tensor::zeros(DType::Int32, &[6]).unwrap();
    (0..6).for_each(|at| x.set(at, Number::Int(at as i128)));
    let tensors = [("x".to_owned(), x)].into_iter().collect();
    let scalars = [("G".to_owned(), Number::Int(3))].into_iter().collect();
    let y = &run(&program, Inputs { tensors, scalars }).unwrap()["y"];
    assert_eq!((0..3).map(|at| y.get(at).as_i128()).collect::<Vec<_>>(), [1, 5, 9]);
}
