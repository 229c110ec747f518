//! Schedules whose vectors need masks inside, from the text of a program to compiled code.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_interp::{Inputs, run};
use tilewright_ir::{DType, Number, Tensor};
use tilewright_runtime::{Executable, Pool, View, ViewMut};
use tilewright_schedule::{apply, text};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::Cpu;

/// Compiles a program of `float(N) x` to `y`, and compares it with the interpreter.
fn agrees(source: &str, size: i64, steps: &str) {
    let parsed = parse(source);
    let bindings: Bindings = [("N", size)].into_iter().collect();
    let program = check(&parsed.ast, "f", &bindings).program.unwrap();
    let schedule = text::parse(steps).schedule;
    let cpu = Cpu::host();
    let nest = apply(&program, &schedule, &cpu).unwrap_or_else(|refusal| panic!("{refusal}\n{steps}"));
    let executable = Executable::new(&program, &nest, &cpu).unwrap();
    let x: Vec<f32> = (0..size).map(|at| (at * 7 % 17 - 8) as f32).collect();
    let mut input = Tensor::zeros(DType::Float32, &[x.len()]).unwrap();
    x.iter().enumerate().for_each(|(at, value)| input.set(at, Number::Float(f64::from(*value))));
    let mut inputs = Inputs::default();
    inputs.tensors.insert("x".to_string(), input);
    let wanted = run(&program, inputs).unwrap();
    let mut y = vec![0.0f32; x.len()];
    let results = &mut [ViewMut::from_slice(&mut y, &[x.len()]).unwrap()];
    let given = [View::from_slice(&x, &[x.len()]).unwrap()];
    let pool = Pool::new(1);
    executable.bind(&pool, &[]).unwrap().run(&pool, &given, results, &[]).unwrap();
    for (at, found) in y.iter().enumerate() {
        assert_eq!(Number::Float(f64::from(*found)), wanted["y"].get(at), "{at}\n{steps}");
    }
}

/// Lanes may run an unrolled loop differently often, in whichever order the steps come.
#[test]
fn unrolled_loops_mask_the_lanes_that_have_ended() {
    let part = "def f(float(N) x) -> (float(N) y) {
        y(i) = x(i)
        y(i) = y(i) * 3 where i in 2:N-1
        y(i) = y(i) * 2
    }";
    let (vector, moved, unroll) = ("vectorize y[3].i", "compute_at y, y[3].i", "unroll y[2].i");
    for steps in [[vector, moved, unroll], [moved, vector, unroll], [moved, unroll, vector]] {
        agrees(part, 8, &steps.join("\n"));
    }
    let plain = "def f(float(N) x) -> (y) { y(i) = x(i) + 1 }";
    for kinds in
        ["vectorize y.v\nreorder y.v, y.o\nunroll y.o", "unroll y.o\nreorder y.v, y.o\nvectorize y.v"]
    {
        agrees(plain, 104, &format!("split y.i -> o, v:32\n{kinds}"));
    }
}
