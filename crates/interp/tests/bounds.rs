//! Tests of the bounds for single elements: correct results keep the bounds, and wrong results do
//! not.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

use std::collections::BTreeMap;

use tilewright_interp::{Expected, Inputs, expect, run, seed};
use tilewright_ir::{DType, Number, Program, Tensor};
use tilewright_syntax::{Bindings, check, parse};

fn program(text: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(text);
    let name = parsed.ast.functions.last().unwrap().name.text.clone();
    let sizes: Bindings = sizes.iter().copied().collect();
    check(&parsed.ast, &name, &sizes).program.unwrap()
}

/// The expected results of a program. Their numbers must be those of the plain interpreter.
fn expected(program: &Program, inputs: Inputs) -> BTreeMap<String, Expected> {
    let expected = expect(program, inputs.clone()).unwrap();
    for (name, tensor) in run(program, inputs).unwrap() {
        assert!(expected[&name].tensor.bytes() == tensor.bytes(), "{name}");
    }
    expected
}

fn of_seed(text: &str, sizes: &[(&str, i64)]) -> (Program, BTreeMap<String, Expected>) {
    let program = program(text, sizes);
    let inputs = seed::inputs(&program, 7).unwrap();
    let expected = expected(&program, inputs);
    (program, expected)
}

fn floats(shape: &[usize], values: &[f64]) -> Tensor {
    let mut tensor = Tensor::zeros(DType::Float32, shape).unwrap();
    values.iter().enumerate().for_each(|(at, value)| tensor.set(at, Number::Float(*value)));
    tensor
}

fn given(name: &str, tensor: Tensor) -> Inputs {
    Inputs { tensors: [(name.to_owned(), tensor)].into(), ..Inputs::default() }
}

/// The number of elements of a result that are not compared.
fn undecided(expected: &Expected) -> usize {
    expected.not_compared("").map_or(0, |doubt| doubt.undecided)
}

const GEMM: &str = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
const CONV: &str =
    "def conv(float(C, W) x, float(O, C, K) w) -> (y) { y(o, i) +=! x(c, i + k) * w(o, c, k) }";
const BLUR: &str =
    "def blur(float(H, W) x) -> (y) { y(i, j) = (x(i, j) + x(i, j + 1) + x(i, j + 2)) / 3 where j in 0:W-2 }";
const SOFTMAX: &str = "def softmax(float(M, N) x) -> (y) {
  m(i) max=! x(i, j)
  e(i, j) = exp(x(i, j) - m(i))
  s(i) +=! e(i, j)
  y(i, j) = e(i, j) / s(i)
}";

/// Typical programs at typical sizes, with their expected results.
fn typical() -> Vec<(Program, BTreeMap<String, Expected>)> {
    vec![
        of_seed(GEMM, &[("M", 9), ("N", 33), ("K", 400)]),
        of_seed(CONV, &[("C", 16), ("W", 60), ("O", 5), ("K", 3)]),
        of_seed(BLUR, &[("H", 12), ("W", 40)]),
        of_seed(SOFTMAX, &[("M", 8), ("N", 300)]),
    ]
}

#[test]
fn a_shifted_element_is_found() {
    for (program, results) in typical() {
        for (name, expected) in results {
            let wanted = &expected.tensor;
            assert!(expected.not_compared(&name).is_none(), "{}", program.name);
            assert!(expected.compare(&name, wanted).is_ok());
            let mut found = 0;
            for at in 1..wanted.len() {
                let mut shifted = wanted.clone();
                shifted.set(at, wanted.get(at - 1));
                found += usize::from(expected.compare(&name, &shifted).is_err());
            }
            // Two neighbouring elements may be equal by chance.
            assert!(found + 2 >= wanted.len() - 1, "{}: {found} of {}", program.name, wanted.len());
        }
    }
}

/// The results of the same program with a loop that ends one iteration too early. To simulate this,
/// the last slice of an input is 0.
fn with_a_term_missing(
    text: &str,
    sizes: &[(&str, i64)],
    input: &str,
    dimension: usize,
) -> (Tensor, Expected) {
    let program = program(text, sizes);
    let inputs = seed::inputs(&program, 7).unwrap();
    let expected = expect(&program, inputs.clone()).unwrap();
    let mut without = inputs;
    let tensor = without.tensors.get_mut(input).unwrap();
    let shape = tensor.shape().to_vec();
    let inner: usize = shape[dimension + 1..].iter().product();
    for at in 0..tensor.len() {
        if at / inner % shape[dimension] == shape[dimension] - 1 {
            tensor.set(at, Number::Float(0.0));
        }
    }
    let found = run(&program, without).unwrap().into_values().next().unwrap();
    (found, expected.into_values().next().unwrap())
}

#[test]
fn a_missing_term_is_found() {
    let cases = [
        with_a_term_missing(GEMM, &[("M", 9), ("N", 33), ("K", 400)], "A", 1),
        with_a_term_missing(CONV, &[("C", 16), ("W", 60), ("O", 5), ("K", 3)], "w", 2),
    ];
    for (found, expected) in cases {
        let difference = expected.compare("y", &found).unwrap_err();
        assert!(difference.wrong * 100 > 97 * difference.elements, "{difference}");
    }
}

/// Simulates kernels that add up in another order, in single precision.
#[test]
fn another_order_is_fine() {
    let (program, results) = of_seed(GEMM, &[("M", 9), ("N", 33), ("K", 400)]);
    let inputs = seed::inputs(&program, 7).unwrap();
    let (a, b, wanted) = (&inputs.tensors["A"], &inputs.tensors["B"], &results["C"]);
    let single = |tensor: &Tensor, at: usize| tensor.get(at).as_f64() as f32;
    let ascending: Vec<usize> = (0..400).collect();
    let descending: Vec<usize> = (0..400).rev().collect();
    // 7 and 400 have no common divisor, so the stride visits every term.
    let strided: Vec<usize> = (0..400).map(|k| 7 * k % 400).collect();
    for order in [ascending, descending, strided] {
        let mut found = wanted.tensor.clone();
        for (i, j) in (0..9).flat_map(|i| (0..33).map(move |j| (i, j))) {
            let term = |k: usize| [single(a, i * 400 + k), single(b, k * 33 + j)];
            let terms = order.iter().map(|k| term(*k));
            let sum = match i % 2 {
                0 => terms.fold(0.0f32, |sum, [a, b]| sum + a * b),
                _ => terms.fold(0.0f32, |sum, [a, b]| a.mul_add(b, sum)),
            };
            found.set(i * 33 + j, Number::Float(sum.into()));
        }
        wanted.compare("C", &found).unwrap();
    }
}

#[test]
fn bounds_are_near_what_matters() {
    let program = program("def dot(float(N) x, float(N) y) -> (d) { d +=! x(i) * y(i) }", &[("N", 1000)]);
    let ramp: Vec<f64> = (0..1000).map(|at| 0.1 + f64::from(at) / 997.0).collect();
    let mut inputs = given("x", floats(&[1000], &ramp));
    inputs.tensors.insert("y".to_owned(), floats(&[1000], &ramp));
    let expected = &expected(&program, inputs)["d"];
    let value = expected.tensor.get(0).as_f64();
    assert!(expected.tolerance_at(0) > 0.0 && expected.tolerance_at(0) < 1e-3 * value);
}

#[test]
fn a_nearly_empty_divisor_widens_the_bound_of_its_element_alone() {
    let text = "def ratio(float(N) a, float(N) b) -> (r) { r(i) = 1 / (a(i) * a(i) + b(i)) }";
    let program = program(text, &[("N", 3)]);
    let a = floats(&[3], &[0.3, 0.3, 2.0]);
    let nearly = f64::from(-(0.3f32 * 0.3f32));
    let mut inputs = given("a", a);
    // The first divisor has ordinary size. Rounding decides the sign of the second. The third is
    // computed from whole numbers and is exactly 0.
    inputs.tensors.insert("b".to_owned(), floats(&[3], &[1.0, nearly, -4.0]));
    let expected = &expected(&program, inputs)["r"];
    assert!(
        expected.tolerance_at(0) < 1e-6
            && expected.tolerance_at(1) == f64::INFINITY
            && expected.tolerance_at(2) == 0.0
    );
}

#[test]
fn conditions_depend_on_rounding_only_near_their_boundary() {
    let text = "def f(float(N) x) -> (relu, sign) {
      z(i) = x(i) * x(i) - 0.09
      relu(i) = z(i) > 0 ? z(i) : 0
      sign(i) = z(i) > 0 ? 1.0 : 0.0
    }";
    let program = program(text, &[("N", 3)]);
    let expected = expected(&program, given("x", floats(&[3], &[0.3, 0.5, 0.1])));
    assert_eq!(undecided(&expected["relu"]), 0);
    assert!(expected["relu"].tolerance_at(0) < 1e-6);
    assert_eq!(undecided(&expected["sign"]), 1);
    assert_eq!([0, 1, 2].map(|at| expected["sign"].tolerance_at(at)), [f64::INFINITY, 0.0, 0.0]);
}

#[test]
fn a_scatter_to_an_uncertain_index_marks_its_tensor_undecided() {
    let text = "def f(float(N) x) -> (int(200) h, g) {
      h(int(floor(x(i) * x(i) * 100))) +=! 1
      g(i) = x(int(floor(x(i) * x(i) * 2)))
    }";
    let program = program(text, &[("N", 4)]);
    let certain = expected(&program, given("x", floats(&[4], &[0.5, 0.61, 0.72, 0.83])));
    assert_eq!((undecided(&certain["h"]), undecided(&certain["g"])), (0, 0));
    let uncertain = expected(&program, given("x", floats(&[4], &[0.5, 0.3, 0.72, 0.83])));
    // The product 0.3 * 0.3 * 100 is 9 or slightly less.
    assert!(uncertain["h"].not_compared("h").unwrap().is_whole_tensor());
    assert_eq!(undecided(&uncertain["g"]), 0);
}

#[test]
fn half_precision_is_rounded_when_it_is_stored() {
    let text = "def f(half(M, K) A, half(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
    let (_, results) = of_seed(text, &[("M", 5), ("N", 6), ("K", 64)]);
    let expected = &results["C"];
    // The limit is at most one unit in the last place, and 0 where all kernels round in the same
    // way.
    let limits: Vec<f64> = (0..30).map(|at| expected.tolerance_at(at)).collect();
    assert!(limits.contains(&0.0) && limits.iter().all(|limit| *limit < 2.0 * 2f64.powi(-8)), "{limits:?}");
}

#[test]
fn infinities_and_nan_must_match() {
    let program = program("def f(float(N) x) -> (y) { y(i) = log(x(i)) }", &[("N", 3)]);
    let expected = &expected(&program, given("x", floats(&[3], &[0.0, -1.0, 2.0])))["y"];
    let judge = |values: [f64; 3]| expected.compare("y", &floats(&[3], &values)).is_ok();
    assert!(judge([f64::NEG_INFINITY, f64::NAN, 2f64.ln()]));
    assert!(!judge([f64::INFINITY, f64::NAN, 2f64.ln()]));
    assert!(!judge([f64::NEG_INFINITY, 0.0, 2f64.ln()]));
    assert!(!judge([f64::NEG_INFINITY, f64::NAN, f64::NAN]));
}

/// Kernels may compute the totals of parts of a recurrence first, in any order.
#[test]
fn recurrences_may_be_computed_in_parts() {
    let text = "def f(float(N) x) -> (sum, decay, count) {
      sum(0) = x(0)
      for t in 1:N { sum(t) = sum(t - 1) + x(t) }
      decay(0) = x(0)
      for t in 1:N { decay(t) = x(t) - 0.75 * decay(t - 1) }
      count(0) = 1
      for t in 1:N { count(t) = count(t - 1) + (x(t) > 0 ? 1 : 0) }
    }";
    let program = program(text, &[("N", 1000)]);
    let inputs = seed::inputs(&program, 3).unwrap();
    let x = inputs.tensors["x"].clone();
    let x: Vec<f32> = (0..1000).map(|at| x.get(at).as_f64() as f32).collect();
    let expected = expected(&program, inputs);
    for length in [1, 7, 64, 500] {
        for (name, factor, mistake) in [("sum", 1.0f32, 0.5), ("decay", -0.75, 1e-3)] {
            let mut found = in_parts(&x, factor, length);
            let judge = |values: &[f64]| expected[name].compare(name, &floats(&[1000], values)).is_ok();
            assert!(judge(&found), "{name} in parts of {length}");
            found[900] += mistake;
            assert!(!judge(&found), "{name} in parts of {length}");
        }
    }
    let limits = |name: &str| (0..1000).map(|at| expected[name].tolerance_at(at)).fold(0.0, f64::max);
    assert_eq!(limits("count"), 0.0);
    assert!(limits("decay") < 1e-4 && limits("sum") < 0.5, "{} {}", limits("decay"), limits("sum"));
}

/// `y(t) = factor * y(t - 1) + x(t)` in single precision and in parts of so many iterations, whose
/// totals are computed backwards.
fn in_parts(x: &[f32], factor: f32, length: usize) -> Vec<f64> {
    let (mut found, mut start) = (vec![x[0]], x[0]);
    for part in x[1..].chunks(length) {
        let mut value = start;
        for own in part {
            value = factor * value + own;
            found.push(value);
        }
        let powers = (0..part.len()).map(|at| factor.powi(at as i32));
        let total: f32 = part.iter().rev().zip(powers).map(|(own, power)| own * power).sum();
        start = factor.powi(part.len() as i32) * start + total;
    }
    found.into_iter().map(f64::from).collect()
}
