//! Tests of sizes that scalars determine: they have the value that the interpreter computes, and a
//! program at one size runs with no scalars of another.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_interp::{Inputs, RunError, run};
use tilewright_ir::{DType, Number, Program, Tensor};
use tilewright_syntax::{Bindings, check, parse};

const SCALARS: &str = "float a, float b, double d, half h, int n, int8 k";

/// The values of the scalars, each rounded to its type.
type Values = [(&'static str, f64); 6];

fn program(source: &str, scalars: &Values) -> Option<Program> {
    let parsed = parse(source);
    assert_eq!(parsed.diagnostics, [], "{source}");
    let mut bindings: Bindings = [("N", 10)].into_iter().collect();
    for (name, value) in scalars {
        match *name {
            "n" | "k" => bindings.set(*name, *value as i64),
            _ => bindings.set_scalar(*name, Number::Float(*value)),
        }
    }
    check(&parsed.ast, "f", &bindings).program
}

fn inputs(scalars: &Values) -> Inputs {
    let mut inputs = Inputs::default();
    inputs.tensors.insert("x".to_owned(), Tensor::zeros(DType::Float32, &[10]).unwrap());
    for (name, value) in scalars {
        let number = match *name {
            "n" | "k" => Number::Int(*value as i128),
            _ => Number::Float(*value),
        };
        inputs.scalars.insert((*name).to_owned(), number);
    }
    inputs
}

/// The size of an expression as the checker computes it, and its value as the interpreter does.
fn both(expression: &str, scalars: &Values) -> (Option<i64>, i128) {
    let size = format!("def f(float(N) x, {SCALARS}) -> (y) {{ int m = {expression}\n y() = x(0) + m }}");
    let size = program(&size, scalars);
    let size = size.map(|program| program.symbols.iter().find(|own| own.name == "m").unwrap().value.unwrap());
    let value = format!("def f(float(N) x, {SCALARS}) -> (int(1) y) {{ y(0) = {expression} }}");
    let value = run(&program(&value, scalars).unwrap(), inputs(scalars)).unwrap();
    (size, value["y"].get(0).as_i128())
}

#[test]
fn sizes_have_the_value_of_the_interpreter() {
    let expressions = [
        "int(1 / a) + 3",
        "int(a / b)",
        "int(ceil(b / a))",
        "int(floor(a * 10 + b)) * 2 - 1",
        "int(sqrt(abs(a)) * N)",
        "int(max(a, b) * 3.7) + int(min(a, b))",
        "int(float(N) / a)",
        "int(d / 3) + int(a * 0.1)",
        "int(h * 100) - int(h * 99)",
        "int(a * n) + n % 3",
        "int(a + k) * (n / 2 + N)",
        "a > b ? int(a / b) : int(b / a)",
        "int(exp(a)) + int(log(b + 2)) + int(pow(2.0, a))",
        "(n & 6) + int(round(b)) + (n << 1) + popcount(n)",
        "int(a * a - b) + int(double(a) * double(b))",
        "isfinite(1 / a) ? int(1 / a) : 7",
        "int(uint8(k)) + int(rint(a * 5))",
    ];
    let numbers: [f64; 9] = [0.1, 0.7, 1.0 / 3.0, 3.0, 2.4999999, 7.5, 0.01, 1e-3, 25.0];
    let mut compared = 0;
    for expression in expressions {
        for (at, a) in numbers.iter().enumerate() {
            let (b, d) = (numbers[(at + 4) % numbers.len()], numbers[(at + 7) % numbers.len()] * 10.0);
            let scalars = [("a", *a), ("b", b), ("d", d), ("h", *a), ("n", 5.0 + b.floor()), ("k", 3.0)];
            let (size, value) = both(expression, &scalars);
            match size {
                Some(size) => {
                    assert_eq!(i128::from(size), value, "{expression} {scalars:?}");
                    compared += 1;
                }
                None => assert!(value < 0, "{expression} {scalars:?} is refused, and is {value}"),
            }
        }
    }
    assert!(compared > 140, "{compared}");
}

#[test]
fn a_tenth_goes_ten_times_into_one() {
    let scalars = [("a", 0.1), ("b", 0.0), ("d", 0.1), ("h", 0.1), ("n", 1.0), ("k", 1.0)];
    // In float32, 1/0.1 is 10; in float16, 0.1 is a little less, and 1/0.1 is 10.004 in float32.
    assert_eq!(both("int(1 / a)", &scalars), (Some(10), 10));
    assert_eq!(both("int(1 / h)", &scalars), (Some(10), 10));
    assert_eq!(both("int(0.3 / a)", &scalars).0, Some((0.3f32 / 0.1f32) as i64));
    assert_eq!(both("int(0.3 / d)", &scalars).0, Some((0.3f64 / 0.1f64) as i64));
}

#[test]
fn values_that_would_saturate_or_wrap_are_refused() {
    let at = |a: f64, n: f64| [("a", a), ("b", 1.0), ("d", 1e30), ("h", 1.0), ("n", n), ("k", 1.0)];
    for (expression, a, n) in [
        ("int(1 / a)", 0.0, 1.0),
        ("int(-1 / a)", 0.0, 1.0),
        ("int(a)", f64::NAN, 1.0),
        ("int(a)", f64::INFINITY, 1.0),
        ("int(a)", 3e9, 1.0),
        ("int(a)", -1.0, 1.0),
        ("int(d)", 1.0, 1.0),
        ("int(a) + n", 2e9, 2e9),
        ("int(a) * n", 1e6, 1e6),
        ("-int(a) - n", 2e9, 2e9),
        ("int(int64(a) * 4294967296)", 1.0, 1.0),
    ] {
        assert_eq!(both(expression, &at(a, n)).0, None, "{expression} {a} {n}");
    }
    assert_eq!(both("int(a)", &at(-0.5, 1.0)).0, Some(0));
    assert_eq!(both("int(a)", &at(2e9, 1.0)).0, Some(2_000_000_000));
}

#[test]
fn scalars_of_another_size_are_refused() {
    let source = "def f(float(N) x, float a) -> (y) { int m = int(N * a)\n y(i) = x(0) + a where i in 0:m }";
    let parsed = parse(source);
    let mut bindings: Bindings = [("N", 10)].into_iter().collect();
    bindings.set_scalar("a", Number::Float(0.5));
    let program = check(&parsed.ast, "f", &bindings).program.unwrap();
    let with = |a: f64| {
        let mut inputs = Inputs::default();
        inputs.tensors.insert("x".to_owned(), Tensor::zeros(DType::Float32, &[10]).unwrap());
        inputs.scalars.insert("a".to_owned(), Number::Float(a));
        run(&program, inputs)
    };
    assert_eq!(with(0.5).unwrap()["y"].len(), 5);
    // Another scalar that gives the same size is fine.
    assert_eq!(with(0.55).unwrap()["y"].len(), 5);
    let error = with(0.25).unwrap_err();
    assert!(matches!(error, RunError::Derived(_)), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("the program is specialised for `m` = 5, but with a = 0.25 `"), "{text}");
    assert!(text.ends_with("` is 2"), "{text}");
    assert!(with(f64::NAN).unwrap_err().to_string().contains("has no value: it converts NaN"));
}
