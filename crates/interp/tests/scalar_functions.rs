//! Tests of functions on numbers: those of the file (`fn`), and the standard ones.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_interp::{Inputs, run};
use tilewright_ir::{DType, Number, Program, Tensor, print};
use tilewright_syntax::{Bindings, Code, check, diagnose, parse};

fn integer_types() -> impl Iterator<Item = DType> + Clone {
    DType::ALL.into_iter().filter(|dtype| dtype.is_integer() && *dtype != DType::Bool)
}

fn codes(source: &str) -> Vec<Code> {
    diagnose(&parse(source), &Bindings::default()).iter().map(|found| found.code).collect()
}

#[track_caller]
fn program(source: &str) -> Program {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let name = &parsed.ast.functions.last().unwrap().name.text;
    let checked = check(&parsed.ast, name, &Bindings::default());
    checked.program.unwrap_or_else(|| panic!("{source}\n{:?}", checked.diagnostics))
}

/// Checks that a program is the same as one in which its calls are written out.
#[track_caller]
fn means(source: &str, written_out: &str) {
    assert_eq!(print::source(&program(source)), print::source(&program(written_out)));
}

#[test]
fn a_call_is_the_expression_with_its_arguments() {
    for (ty, value) in [("uint8", "uint8"), ("float", "float"), ("int64", "int64")] {
        means(
            &format!(
                "fn avg(a, b) = (a + b + 1) / 2 def f({ty}(N) x, {value}(N) y) -> (z) {{ z(i) = avg(x(i), y(i)) * 3 }}"
            ),
            &format!("def f({ty}(N) x, {value}(N) y) -> (z) {{ z(i) = (x(i) + y(i) + 1) / 2 * 3 }}"),
        );
    }
    means(
        "def f(float(N) x) -> (z) { z(i) = g(h(x(i)), 2) }
         fn g(a, b) = a - b * h(a)
         fn h(x) = x * x",
        "def f(float(N) x) -> (z) { z(i) = x(i) * x(i) - 2 * ((x(i) * x(i)) * (x(i) * x(i))) }",
    );
    means(
        "fn unit(float x) = t * (1 - t) where n = 4, t = x / n def f(int(N) x) -> (z) { z(i) = unit(x(i)) }",
        "fn unit(float x) = x / 4 * (1 - x / 4) def f(int(N) x) -> (z) { z(i) = unit(x(i)) }",
    );
    means(
        "fn flip(n, i) = n - 1 - i def f(float(N) x) -> (z) { z(i) = x(flip(N, i)) }",
        "def f(float(N) x) -> (z) { z(i) = x(N - 1 - i) }",
    );
    means(
        "fn two() = 2 def f(float(N) x) -> (z) { z = two() * x(0) }",
        "def f(float(N) x) -> (z) { z = 2 * x(0) }",
    );
    means("fn two() = 2 def f() -> (int8 z) { z = two() }", "def f() -> (int8 z) { z() = 2 }");
}

#[test]
fn a_file_may_define_functions_with_standard_names() {
    means(
        "fn relu(x) = x < 0 ? x / 8 : x def f(float(N) x) -> (z) { z(i) = relu(x(i)) }",
        "def f(float(N) x) -> (z) { z(i) = x(i) < 0 ? x(i) / 8 : x(i) }",
    );
    means(
        "def step(float(N) x) -> (z) { z(i) = 2 * x(i) } def f(float(N) x) -> (y) { y = step(x) }",
        "def f(float(N) x) -> (y) { y(i) = 2 * x(i) }",
    );
    // A tensor comes first, and `fn` is an ordinary name.
    program("def f(float(N) lerp, float(N) fn) -> (y) { y(i) = lerp(i) + fn(i) }");
}

#[test]
fn mistakes_are_reported_once_and_where_they_are() {
    let call = "def f(float(N) x) -> (y, z) { y(i) = g(x(i)) z(i) = g(x(i)) }";
    for (function, wanted) in [
        ("fn g(x) = q * x", Code::UndefinedName),
        ("fn g(x) = A(x)", Code::UndefinedName),
        ("fn g(x, y) = x", Code::RankMismatch),
        ("fn g(x) = exp(x, x)", Code::RankMismatch),
        ("fn g(x) = 1 + g(x)", Code::Recursion),
        ("fn g(x) = h(x) fn h(x) = g(x)", Code::Recursion),
        ("fn g(x, x) = x", Code::NameCollision),
        ("fn g(x) = x fn g(y) = y", Code::NameCollision),
        ("fn exp(x) = x fn g(x) = x", Code::NameCollision),
        ("fn g(int8 x) = x", Code::TypeMismatch),
        ("fn g(x) = h(-1) fn h(uint8 x) = x", Code::TypeMismatch),
        ("fn g(x) = x + uint8_sat(h() + h()) fn h() = uint8(200)", Code::TypeMismatch),
        ("fn g x = x", Code::Syntax),
        ("fn g(x) = bool_sat(x)", Code::UndefinedName),
        ("fn g(x) = t where t in 0:3", Code::Syntax),
        ("fn g(float(3) x) = x", Code::Syntax),
    ] {
        let found = codes(&format!("{function}\n{call}"));
        assert!(found.contains(&wanted), "{function}: {found:?}");
    }
    assert_eq!(codes(&format!("fn g(x) = q * x\n{call}")), [Code::UndefinedName]);
    // A function that nobody calls is checked too.
    assert_eq!(codes("fn g(x) = q * x"), [Code::UndefinedName]);
}

#[test]
fn parameters_have_no_value_of_their_own() {
    assert_eq!(codes("fn g(x) = h(-x) fn h(uint8 a) = a"), []);
    assert_eq!(codes("fn g(float x) = h(x) fn h(int a) = a"), [Code::TypeMismatch]);
}

#[test]
fn a_value_that_grows_without_limit_is_refused() {
    let doubling: String =
        (1..40).map(|at| format!("fn f{at}(x) = f{}(x) + f{}(x)\n", at - 1, at - 1)).collect();
    let source = format!("fn f0(x) = x\n{doubling}def f(float(N) x) -> (y) {{ y(i) = f39(x(i)) }}");
    assert!(codes(&source).contains(&Code::TooComplex));
}

#[test]
fn no_text_takes_long_or_exhausts_the_stack() {
    let call = "def f(int(N) x) -> (y) { y(i) = g0(x(i)) }";
    let deep: String =
        (0..30).map(|at| format!("fn g{at}(x) = {}g{}(x)\n", "-".repeat(290), at + 1)).collect();
    let hidden: String =
        (0..60).map(|at| format!("fn g{at}(x) = z(g{next}(x) + g{next}(x))\n", next = at + 1)).collect();
    let bound: String = (0..60)
        .map(|at| format!("fn g{at}(x) = a where a = g{next}(x), b = g{next}(x)\n", next = at + 1))
        .collect();
    for functions in [deep + "fn g30(x) = x", hidden + "fn z(a) = 1 fn g60(x) = 1", bound + "fn g60(x) = x"] {
        let found = codes(&format!("{functions}\n{call}"));
        assert!(found.contains(&Code::TooComplex), "{found:?}");
    }
    let choices: String = (0..300).map(|at| format!(", {at}")).collect();
    let chosen = codes(&format!("def f(int(N) x) -> (y) {{ y(i) = mux(x(i){choices}) }}"));
    assert_eq!(chosen, [Code::RankMismatch]);
    let choices = ", 1".repeat(200);
    let nested = (0..200).fold("0".to_owned(), |inner, _| format!("mux(x(i){choices}, {inner})"));
    assert!(codes(&format!("def f(int(N) x) -> (y) {{ y(i) = {nested} }}")).contains(&Code::TooComplex));
}

#[test]
fn integers_are_arguments_of_functions_with_fractions() {
    let source = "def f(uint8(N) x) -> (a, b, c) {
        a(i) = smoothstep(10, 20, x(i))
        b(i) = gaussian(x(i), 2)
        c(i) = gaussian(i - 1, 1) where i in 0:N
    }";
    let mut inputs = Inputs::default();
    inputs.tensors.insert("x".into(), integers(DType::UInt8, &[5, 15, 2]));
    let found = run(&program(source).at_sizes(&[3]).unwrap(), inputs).unwrap();
    let values = |name: &str| (0..3).map(|at| found[name].get(at).as_f64()).collect::<Vec<_>>();
    assert_eq!(values("a"), [0.0, 0.5, 0.0]);
    let expect = |name: &str, wanted: [f64; 3]| {
        let close = values(name).iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 1e-6);
        assert!(close, "{name}: {:?}, not {wanted:?}", values(name));
    };
    expect("b", [-3.125f64, -28.125, -0.5].map(f64::exp));
    expect("c", [-0.5f64, 0.0, -0.5].map(f64::exp));
}

fn integers(dtype: DType, values: &[i128]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, &[values.len()]).unwrap();
    for (at, value) in values.iter().enumerate() {
        tensor.set(at, Number::Int(*value));
    }
    tensor
}

#[test]
fn saturation_gives_the_nearest_number_of_a_type() {
    for from in integer_types() {
        let (least, most) = from.integer_bounds().unwrap();
        let mut values: Vec<i128> =
            integer_types().flat_map(|to| <[i128; 2]>::from(to.integer_bounds().unwrap())).collect();
        values.extend(values.clone().iter().flat_map(|value| [value - 1, value + 1]));
        values.retain(|value| (least..=most).contains(value));
        for to in integer_types() {
            let source = format!("def f({from}({n}) x) -> (y) {{ y(i) = {to}_sat(x(i)) }}", n = values.len());
            let mut inputs = Inputs::default();
            inputs.tensors.insert("x".into(), integers(from, &values));
            let found = run(&program(&source), inputs).unwrap();
            let (low, high) = to.integer_bounds().unwrap();
            for (at, value) in values.iter().enumerate() {
                assert_eq!(
                    found["y"].get(at),
                    Number::Int(*value.max(&low).min(&high)),
                    "{source} at {value}"
                );
            }
        }
    }
}

#[test]
fn standard_functions_have_their_values() {
    let source = "def f(float(N) x, uint8(N) m) -> (a, b, c, d, e, g, h) {
        a(i) = lerp(x(i), 10, 0.25)
        b(i) = absd(m(i), 2)
        c(i) = mux(m(i), 1.5, x(i), 7)
        d(i) = smoothstep(1, 3, x(i))
        e(i) = step(1, x(i)) * x(i)
        g(i) = relu(x(i)) + gaussian(x(i) - x(i), 2)
        h(i) = gelu(x(i) - x(i))
    }";
    let program = program(source).at_sizes(&[3]).unwrap();
    let mut inputs = Inputs::default();
    let mut x = Tensor::zeros(DType::Float32, &[3]).unwrap();
    for (at, value) in [-2.0, 2.0, 5.0].into_iter().enumerate() {
        x.set(at, Number::Float(value));
    }
    inputs.tensors.insert("x".into(), x);
    inputs.tensors.insert("m".into(), integers(DType::UInt8, &[0, 1, 9]));
    let found = run(&program, inputs).unwrap();
    let values = |name: &str| (0..3).map(|at| found[name].get(at).as_f64()).collect::<Vec<_>>();
    assert_eq!(values("a"), [1.0, 4.0, 6.25]);
    assert_eq!(values("b"), [2.0, 1.0, 7.0]);
    assert_eq!(values("c"), [1.5, 2.0, 7.0]);
    assert_eq!(values("d"), [0.0, 0.5, 1.0]);
    assert_eq!(values("e"), [0.0, 2.0, 5.0]);
    assert_eq!(values("g"), [1.0, 3.0, 6.0]);
    assert_eq!(values("h"), [0.0; 3]);
}
