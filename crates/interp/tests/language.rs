//! Tests of the language's semantics: small programs run through the whole front end, and are
//! compared with results that were worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use DType::*;
use tilewright_interp::{
    Inputs, OutOfBounds, RunError, Undefined, run as interpret, run_with_progress, seed,
};
use tilewright_ir::{DType, Number, Program, Tensor};
use tilewright_syntax::{Bindings, Code, check, parse};

type Results = BTreeMap<String, Tensor>;

const INTEGERS: [DType; 8] = [Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64];
const FLOATS: [DType; 4] = [Float16, BFloat16, Float32, Float64];

/// Compiles the last function of a source. Integer scalars also count as sizes, as on the command
/// line.
fn compile(source: &str, sizes: &[(&str, i64)], scalars: &[(&str, Number)]) -> Result<Program, Vec<Code>> {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let mut bindings: Bindings = sizes.iter().copied().collect();
    for (name, value) in scalars {
        if let Number::Int(value) = value {
            bindings.set(*name, *value as i64);
        }
    }
    let checked = check(&parsed.ast, &parsed.ast.functions.last().unwrap().name.text, &bindings);
    checked.program.ok_or_else(|| checked.diagnostics.iter().map(|found| found.code).collect())
}

fn run(
    source: &str,
    sizes: &[(&str, i64)],
    tensors: &[(&str, Tensor)],
    scalars: &[(&str, Number)],
) -> Result<Results, RunError> {
    let program =
        compile(source, sizes, scalars).unwrap_or_else(|codes| panic!("{source}\nis refused: {codes:?}"));
    let inputs = Inputs {
        tensors: tensors.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect(),
        scalars: scalars.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
    };
    interpret(&program, inputs)
}

/// Runs a program and compares every result: names, types, shapes and bits.
#[track_caller]
fn expect(
    source: &str,
    sizes: &[(&str, i64)],
    tensors: &[(&str, Tensor)],
    scalars: &[(&str, Number)],
    results: &[(&str, Tensor)],
) {
    let found = run(source, sizes, tensors, scalars).unwrap_or_else(|error| panic!("{source}\n{error}"));
    let names: Vec<&str> = found.keys().map(String::as_str).collect();
    let mut wanted: Vec<&str> = results.iter().map(|(name, _)| *name).collect();
    wanted.sort_unstable();
    assert_eq!(names, wanted, "{source}");
    for (name, result) in results {
        same(&format!("{source}\n{name}"), &found[*name], result);
    }
}

/// Compares two tensors, with readable numbers in the message.
#[track_caller]
fn same(what: &str, found: &Tensor, wanted: &Tensor) {
    let numbers = |tensor: &Tensor| (0..tensor.len()).map(|at| tensor.get(at)).collect::<Vec<_>>();
    assert_eq!(
        (found.dtype(), found.shape(), numbers(found)),
        (wanted.dtype(), wanted.shape(), numbers(wanted)),
        "{what}"
    );
    assert_eq!(found.bytes(), wanted.bytes(), "{what}");
}

/// Runs `y(i) = EXPRESSION` over vectors of the same length.
fn apply(tensors: &[(&str, Tensor)], expression: &str) -> Tensor {
    let params: Vec<String> =
        tensors.iter().map(|(name, tensor)| format!("{}(N) {name}", tensor.dtype())).collect();
    let source = format!("def f({}) -> (y) {{ y(i) = {expression} }}", params.join(", "));
    let results = run(&source, &[("N", tensors[0].1.len() as i64)], tensors, &[]);
    results.unwrap_or_else(|error| panic!("{source}\n{error}")).remove("y").unwrap()
}

#[track_caller]
fn expect_applied(tensors: &[(&str, Tensor)], expression: &str, wanted: &Tensor) {
    same(expression, &apply(tensors, expression), wanted);
}

fn ints(dtype: DType, values: &[i128]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, &[values.len()]).unwrap();
    values.iter().enumerate().for_each(|(at, value)| tensor.set(at, Number::Int(*value)));
    tensor
}

fn floats(dtype: DType, values: &[f64]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, &[values.len()]).unwrap();
    values.iter().enumerate().for_each(|(at, value)| tensor.set(at, Number::Float(*value)));
    tensor
}

fn f32s(values: &[f64]) -> Tensor {
    floats(Float32, values)
}

fn i32s(values: &[i128]) -> Tensor {
    ints(Int32, values)
}

fn bools(values: &[i128]) -> Tensor {
    ints(Bool, values)
}

/// A tensor of numbers that every type can represent.
fn small(dtype: DType, values: &[i128]) -> Tensor {
    if dtype.is_float() {
        floats(dtype, &values.iter().map(|value| *value as f64).collect::<Vec<_>>())
    } else {
        ints(dtype, values)
    }
}

fn shaped(tensor: &Tensor, shape: &[usize]) -> Tensor {
    Tensor::from_bytes(tensor.dtype(), shape, tensor.bytes().to_vec()).unwrap()
}

fn zero_dim(tensor: &Tensor) -> Tensor {
    shaped(tensor, &[])
}

fn power(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

fn limits(dtype: DType) -> (i128, i128) {
    dtype.integer_bounds().unwrap()
}

#[test]
fn every_assignment_operator_with_and_without_reset() {
    let table: [(&str, [i128; 2]); 9] = [
        ("+=", [15, 19]),
        ("*=", [60, 200]),
        ("min=", [2, 4]),
        ("max=", [10, 10]),
        ("+=!", [5, 9]),
        ("*=!", [6, 20]),
        ("min=!", [2, 4]),
        ("max=!", [3, 5]),
        ("=", [5, 9]),
    ];
    for dtype in INTEGERS.into_iter().filter(|dtype| *dtype != Int8).chain(FLOATS) {
        let x = shaped(&small(dtype, &[2, 3, 4, 5]), &[2, 2]);
        for (operator, wanted) in table {
            let value = if operator == "=" { "x(i, 0) + x(i, 1)" } else { "x(i, k)" };
            let source = format!("def f({dtype}(N, K) x) -> (y) {{ y(i) = 10\n y(i) {operator} {value} }}");
            expect(&source, &[("N", 2), ("K", 2)], &[("x", x.clone())], &[], &[("y", small(dtype, &wanted))]);
        }
    }
    // Reductions over no variable, and over a variable that occurs only in `where`.
    let source = "def f(int(N) x) -> (y, z) { y(i) +=! x(i)\n z(i) *=! x(i) where k in 0:3 }";
    expect(
        source,
        &[("N", 2)],
        &[("x", i32s(&[2, -3]))],
        &[],
        &[("y", i32s(&[2, -3])), ("z", i32s(&[8, -27]))],
    );
}

#[test]
fn a_reset_starts_from_the_neutral_element_of_the_type() {
    for dtype in INTEGERS.into_iter().chain(FLOATS) {
        let number = |value: i128, float: f64| {
            if dtype.is_float() { floats(dtype, &[float]) } else { ints(dtype, &[value]) }
        };
        let (low, high) = dtype.integer_bounds().unwrap_or_default();
        let table = [
            ("+=!", number(0, 0.0), 5),
            ("*=!", number(1, 1.0), 6),
            ("min=!", number(high, f64::INFINITY), 2),
            ("max=!", number(low, f64::NEG_INFINITY), 3),
        ];
        for (operator, neutral, reduced) in table {
            // Nothing is scattered to 0 and 2.
            let source = format!(
                "def f(int(N) k, {dtype}(N) v) -> (h) {{ h(b) {operator} v(i) where b = k(i), b in 0:3 }}"
            );
            let bytes = [neutral.bytes(), small(dtype, &[reduced]).bytes(), neutral.bytes()].concat();
            let wanted = Tensor::from_bytes(dtype, &[3], bytes).unwrap();
            let inputs = [("k", i32s(&[1, 1])), ("v", small(dtype, &[2, 3]))];
            expect(&source, &[("N", 2)], &inputs, &[], &[("h", wanted)]);
        }
    }
}

#[test]
fn integers_wrap_at_their_width() {
    for dtype in INTEGERS {
        let (low, high) = limits(dtype);
        let a = [("a", ints(dtype, &[high, low]))];
        let signed = dtype.is_signed_integer();
        expect_applied(&a, "a(i) + 1", &ints(dtype, &[low, low + 1]));
        expect_applied(&a, "a(i) - 1", &ints(dtype, &[high - 1, high]));
        expect_applied(&a, "a(i) * a(i)", &ints(dtype, &[1, 0]));
        expect_applied(&a, "-a(i)", &ints(dtype, &if signed { [low + 1, low] } else { [1, 0] }));
        expect_applied(&a, "abs(a(i))", &ints(dtype, &[high, low]));
        // Wrapping also happens between operators: the sum wraps before it is halved.
        expect_applied(&a, "(a(i) + a(i)) / 2", &ints(dtype, &[if signed { -1 } else { high / 2 }, 0]));
        let total = format!("def f({dtype}(N) a) -> (s, p) {{ s +=! a(i)\n p *=! a(i) }}");
        expect(
            &total,
            &[("N", 2)],
            &[("a", ints(dtype, &[high, 2]))],
            &[],
            &[("s", zero_dim(&ints(dtype, &[low + 1]))), ("p", zero_dim(&ints(dtype, &[-2])))],
        );
        if signed {
            expect_applied(&a, "a(i) / -1", &ints(dtype, &[-high, low]));
            expect_applied(&a, "a(i) % -1", &ints(dtype, &[0, 0]));
        }
    }
}

#[test]
fn division_rounds_down_and_by_zero_gives_zero() {
    let a = ("a", i32s(&[7, -7, 7, -7, 7, -6, 0, -7]));
    let b = ("b", i32s(&[2, 2, -2, -2, 0, 3, -5, 0]));
    expect_applied(&[a.clone(), b.clone()], "a(i) / b(i)", &i32s(&[3, -4, -4, 3, 0, -2, 0, 0]));
    expect_applied(&[a.clone(), b.clone()], "a(i) % b(i)", &i32s(&[1, 1, -1, -1, 0, 0, 0, 0]));
    let unsigned = [("a", ints(UInt8, &[200, 3])), ("b", ints(UInt8, &[7, 0]))];
    expect_applied(&unsigned, "a(i) / b(i)", &ints(UInt8, &[28, 0]));
    expect_applied(&unsigned, "a(i) % b(i)", &ints(UInt8, &[4, 0]));
    // Literals and index variables divide in the same way.
    for (expression, value) in [("-7 / 2", -4), ("-7 % 2", 1), ("7 / -2", -4), ("7 % -2", -1), ("-7 / -2", 3)]
    {
        let source = format!("def f() -> (y) {{ y = {expression} }}");
        expect(&source, &[], &[], &[], &[("y", zero_dim(&i32s(&[value])))]);
    }
    let source =
        "def f() -> (q, r) { q(i) = (i - 3) / 2 where i in 0:5\n r(i) = (i - 3) % 2 where i in 0:5 }";
    expect(source, &[], &[], &[], &[("q", i32s(&[-2, -1, -1, 0, 0])), ("r", i32s(&[1, 0, 1, 0, 1]))]);
    // Floats use IEEE division. The result of `%` has the sign of the divisor, that of `fmod` the
    // sign of the dividend.
    let pair = [("a", f32s(&[-7.5, 7.5, -7.5, 7.5])), ("b", f32s(&[2.0, -2.0, -2.0, 2.0]))];
    expect_applied(&pair, "a(i) / b(i)", &f32s(&[-3.75, -3.75, 3.75, 3.75]));
    expect_applied(&pair, "a(i) % b(i)", &f32s(&[0.5, -0.5, -1.5, 1.5]));
    expect_applied(&pair, "fmod(a(i), b(i))", &f32s(&[-1.5, 1.5, -1.5, 1.5]));
    let zero = [("a", f32s(&[1.0, -1.0])), ("b", f32s(&[0.0, 0.0]))];
    expect_applied(&zero, "a(i) / b(i)", &f32s(&[f64::INFINITY, f64::NEG_INFINITY]));
    expect_applied(&zero, "isnan(a(i) % b(i))", &bools(&[1, 1]));
}

#[test]
fn operands_meet_in_a_type_that_holds_both() {
    let i = |dtype, value| ints(dtype, &[value]);
    let f = |dtype, value| floats(dtype, &[value]);
    let sums = [
        (i(UInt8, 200), i(UInt8, 100), i(UInt8, 44)),
        (i(UInt8, 200), i(Int8, -1), i(Int16, 199)),
        (i(UInt8, 255), i(UInt16, 1), i(UInt16, 256)),
        (i(UInt8, 255), i(Int16, 1), i(Int16, 256)),
        (i(Int8, 127), i(Int32, 1), i(Int32, 128)),
        (i(UInt16, 65535), i(Int8, -1), i(Int32, 65534)),
        (i(UInt16, 65535), i(Int16, 1), i(Int32, 65536)),
        (i(UInt32, 4294967295), i(Int8, -1), i(Int64, 4294967294)),
        (i(UInt32, 4294967295), i(Int32, 1), i(Int64, 4294967296)),
        (i(UInt32, 4294967295), i(UInt8, 1), i(UInt32, 0)),
        (i(UInt64, u64::MAX as i128), i(UInt32, 2), i(UInt64, 1)),
        (i(Bool, 1), i(Int8, 5), i(Int8, 6)),
        (i(Bool, 1), i(Bool, 1), i(Int32, 2)),
        // The integer is rounded to the float first.
        (i(Int32, 16777217), f(Float32, 0.5), f(Float32, 16777216.0)),
        (i(Int64, 3), f(Float16, 0.5), f(Float16, 3.5)),
        (i(UInt8, 3), f(BFloat16, 0.5), f(BFloat16, 3.5)),
        (i(Int32, 16777217), f(Float64, 0.5), f(Float64, 16777217.5)),
        (i(Bool, 1), f(Float16, 0.5), f(Float16, 1.5)),
        (f(Float16, 1.0 + power(-10)), f(BFloat16, power(-7)), f(Float32, 1.0 + power(-10) + power(-7))),
        (f(Float16, 0.5), f(Float32, power(-20)), f(Float32, 0.5 + power(-20))),
        (f(Float32, 0.5), f(Float64, power(-40)), f(Float64, 0.5 + power(-40))),
    ];
    for (a, b, wanted) in sums {
        expect_applied(&[("a", a.clone()), ("b", b.clone())], "a(i) + b(i)", &wanted);
        expect_applied(&[("a", b), ("b", a)], "a(i) + b(i)", &wanted);
    }
    for signed in [Int8, Int16, Int32, Int64] {
        let source = format!("def f(uint64(N) a, {signed}(N) b) -> (c) {{ c(i) = a(i) + b(i) }}");
        assert_eq!(compile(&source, &[], &[]).unwrap_err(), [Code::TypeMismatch], "{signed}");
    }
    // Comparisons, `?:` and functions convert their operands to a common type in the same way.
    let mixed = [("a", ints(UInt8, &[255, 1])), ("b", ints(Int8, &[-1, 1]))];
    expect_applied(&mixed, "a(i) > b(i)", &bools(&[1, 0]));
    expect_applied(&mixed, "a(i) == b(i)", &bools(&[0, 1]));
    expect_applied(&mixed, "b(i) < 0 ? a(i) : b(i)", &ints(Int16, &[255, 1]));
    expect_applied(&mixed, "max(a(i), b(i))", &ints(Int16, &[255, 1]));
    let half_and_bfloat = [("a", f(Float16, 1.5)), ("b", f(BFloat16, 2.5))];
    expect_applied(&half_and_bfloat, "min(a(i), b(i))", &f(Float32, 1.5));
}

#[test]
fn literals_take_the_type_of_what_they_meet() {
    let bytes = [("x", ints(UInt8, &[255, 7]))];
    expect_applied(&bytes, "x(i) + 1", &ints(UInt8, &[0, 8]));
    expect_applied(&bytes, "1 + (2 + x(i))", &ints(UInt8, &[2, 10]));
    expect_applied(&bytes, "x(i) + 0x1F", &ints(UInt8, &[30, 38]));
    expect_applied(&bytes, "x(i) * 0.5", &f32s(&[127.5, 3.5]));
    // A suffix selects the type: uint32, int64, uint64.
    expect_applied(&bytes, "x(i) + 1u", &ints(UInt32, &[256, 8]));
    expect_applied(&bytes, "x(i) + 1l", &ints(Int64, &[256, 8]));
    expect_applied(&bytes, "x(i) + 1ull", &ints(UInt64, &[256, 8]));
    expect_applied(&[("x", ints(Int64, &[7]))], "x(i) * 1.5", &f32s(&[10.5]));
    let half = [("x", floats(Float16, &[3.0]))];
    expect_applied(&half, "x(i) * 0.5", &floats(Float16, &[1.5]));
    expect_applied(&half, "x(i) + 1", &floats(Float16, &[4.0]));
    // A literal such as 0.1 is rounded to the type of the expression; the suffix makes it float32
    // even next to a double.
    expect_applied(&[("x", floats(Float64, &[0.0]))], "x(i) + 0.1", &floats(Float64, &[0.1]));
    expect_applied(&[("x", floats(Float64, &[0.0]))], "x(i) + 0.1f", &floats(Float64, &[0.1f32 as f64]));
    expect_applied(&[("x", f32s(&[0.0]))], "x(i) + 0.1", &f32s(&[0.1f32 as f64]));
    let source = "def f(float(N) x, double(N) d) -> (s, t, a, b, c) {
        s = 0\n s += x(i)\n t = 1\n t *= d(i)\n a = 3\n b = 1.5\n c = 1e3 }";
    let inputs = [("x", f32s(&[0.5, 0.25])), ("d", floats(Float64, &[3.0, 0.5]))];
    let results = [
        ("s", zero_dim(&f32s(&[0.75]))),
        ("t", zero_dim(&floats(Float64, &[1.5]))),
        ("a", zero_dim(&i32s(&[3]))),
        ("b", zero_dim(&f32s(&[1.5]))),
        ("c", zero_dim(&f32s(&[1000.0]))),
    ];
    expect(source, &[("N", 2)], &inputs, &[], &results);
    let source = "def f(uint8(N) x) -> (y) { y(i) = x(i) + 300 }";
    assert_eq!(compile(source, &[], &[]).unwrap_err(), [Code::TypeMismatch]);
    // Variables and sizes are int32, and expressions of only these are exact.
    let source = "def f(uint8(N) x) -> (y, z, w) {
        y(i) = x(i) * i + N
            z(i) = i * 100000 * 100000 / 100000 where exists x(i)
            w(i) = float(i) / N where exists x(i) }";
    let results = [
        ("y", i32s(&[4, 259, 514, 769])),
        ("z", i32s(&[0, 100000, 200000, 300000])),
        ("w", f32s(&[0.0, 0.25, 0.5, 0.75])),
    ];
    expect(source, &[("N", 4)], &[("x", ints(UInt8, &[255; 4]))], &[], &results);
}

#[test]
fn sixteen_bit_floats_are_computed_in_float32_and_rounded_when_stored() {
    let half = |values: &[f64]| [("a", floats(Float16, values))];
    // In float16 arithmetic these results would be infinite and 0.
    expect_applied(&half(&[65504.0]), "a(i) + a(i) - a(i)", &floats(Float16, &[65504.0]));
    expect_applied(&half(&[2048.0]), "a(i) + 1 - a(i)", &floats(Float16, &[1.0]));
    expect_applied(&half(&[3.0]), "a(i) * (1 / a(i))", &floats(Float16, &[1.0]));
    // Stores round to nearest, with ties to even, and a value that is too large becomes infinite.
    expect_applied(&half(&[2048.0]), "a(i) + 1", &floats(Float16, &[2048.0]));
    expect_applied(&half(&[2048.0]), "a(i) + 3", &floats(Float16, &[2052.0]));
    expect_applied(&half(&[65504.0]), "a(i) + 15", &floats(Float16, &[65504.0]));
    expect_applied(&half(&[65504.0]), "a(i) + 16", &floats(Float16, &[f64::INFINITY]));
    let bfloat = [("a", floats(BFloat16, &[256.0]))];
    expect_applied(&bfloat, "a(i) + 1", &floats(BFloat16, &[256.0]));
    expect_applied(&bfloat, "a(i) + 3", &floats(BFloat16, &[260.0]));
    expect_applied(&bfloat, "a(i) + 1 - a(i)", &floats(BFloat16, &[1.0]));
    // A temporary is stored, so it is rounded as well.
    let source = "def f(half(N) a) -> (y) { t(i) = a(i) + 1\n y(i) = t(i) - a(i) }";
    expect(source, &[("N", 1)], &[("a", floats(Float16, &[2048.0]))], &[], &[("y", floats(Float16, &[0.0]))]);
    // Float32 results are rounded after every operator.
    expect_applied(&[("a", f32s(&[16777216.0]))], "a(i) + 1 - a(i)", &f32s(&[0.0]));
}

#[test]
fn float_reductions_accumulate_wide() {
    // Sums in the type itself would stop growing at 2048, 256 and 2^24.
    for (dtype, count, start) in [(Float16, 4096, 0.0), (BFloat16, 512, 0.0), (Float32, 4096, power(24))] {
        let source = format!("def f({dtype}(N) x, {dtype}(1) y) -> (s) {{ s = y(0)\n s += x(i) }}");
        let inputs = [("x", floats(dtype, &vec![1.0; count])), ("y", floats(dtype, &[start]))];
        let wanted = zero_dim(&floats(dtype, &[start + count as f64]));
        expect(&source, &[("N", count as i64)], &inputs, &[], &[("s", wanted)]);
    }
    let source = "def f(half(N) x, half(N) y) -> (s) { s +=! x(i) * y(i) }";
    let inputs = [("x", floats(Float16, &[300.0, 300.0])), ("y", floats(Float16, &[300.0, -299.0]))];
    expect(source, &[("N", 2)], &inputs, &[], &[("s", zero_dim(&floats(Float16, &[300.0])))]);
}

#[test]
fn wide_values_are_rounded_once_to_sixteen_bits() {
    // The value is just above the middle of two neighbours. Rounded to float32 first, it would be
    // the middle and then round to even.
    let table = [(Float16, -11, -24), (Float16, -11, -40), (BFloat16, -8, -24), (BFloat16, -8, -40)];
    for (dtype, middle, above) in table {
        let up = 1.0 + power(middle + 1);
        let value = floats(Float64, &[1.0 + power(middle) + power(above), 1.0 + power(middle)]);
        let cast = apply(&[("a", value)], &format!("{dtype}(a(i))"));
        assert_eq!((cast.get(0), cast.get(1)), (Number::Float(up), Number::Float(1.0)), "{dtype} {above}");
    }
    for (dtype, middle, above) in [(Float16, -11, -24), (BFloat16, -8, -40)] {
        let source = format!("def f({dtype}(N) x) -> (s) {{ s +=! x(i) }}");
        let parts = floats(dtype, &[1.0, power(middle), power(above)]);
        let sum = run(&source, &[("N", 3)], &[("x", parts)], &[]).unwrap().remove("s").unwrap();
        assert_eq!(sum.get(0), Number::Float(1.0 + power(middle + 1)), "{dtype}");
    }
}

#[test]
fn indices_wrap_when_they_are_converted() {
    let zeros = [("a", ints(Int64, &[0; 4]))];
    for dtype in [Int8, Int16, Int32, UInt8, UInt16, UInt32] {
        let (low, width) = (limits(dtype).0, 1i128 << dtype.bits());
        for (step, offset) in
            [(1i128 << 32, 0), ((1 << 32) - 1, -7), (-70_001, 3), (1 << 40, -(1i128 << 31) - 1)]
        {
            let wrapped = |at: i128| (step * at + offset - low).rem_euclid(width) + low;
            let wanted = ints(Int64, &[0, 1, 2, 3].map(wrapped));
            expect_applied(&zeros, &format!("a(i) + {dtype}(i * {step} + {offset})"), &wanted);
            expect_applied(&zeros, &format!("a(i) + int64({dtype}(i * {step} + {offset}))"), &wanted);
        }
    }
    // Wider types represent the value exactly.
    let wanted = [0, 1 << 33, 2 << 33, 3 << 33];
    expect_applied(&zeros, "a(i) + int64(i * 8589934592)", &ints(Int64, &wanted));
    expect_applied(&[("a", ints(UInt64, &[0; 4]))], "a(i) + uint64(i * 8589934592)", &ints(UInt64, &wanted));
    let negative = [0, u64::MAX as i128, u64::MAX as i128 - 1, u64::MAX as i128 - 2];
    expect_applied(&[("a", ints(UInt64, &[0; 4]))], "a(i) + uint64(-i)", &ints(UInt64, &negative));
    let wanted = wanted.map(|value| value as f64);
    expect_applied(&[("a", f32s(&[0.0; 4]))], "a(i) + float(i * 8589934592)", &f32s(&wanted));
    // A condition tests the exact number.
    expect_applied(&zeros, "i * 4294967296 ? a(i) + 1 : a(i)", &ints(Int64, &[0, 1, 1, 1]));
    // A compared value may have wrapped.
    expect_applied(&zeros, "uint8(i * 100) < 60 ? a(i) + 1 : a(i)", &ints(Int64, &[1, 0, 0, 1]));
}

#[test]
fn conversions_wrap_truncate_and_saturate() {
    for dtype in INTEGERS {
        let (low, high) = limits(dtype);
        let negative = |value: i128| if low < 0 { value } else { 0 };
        for from in [Float32, Float64] {
            let values = [2.7, -2.7, -0.9, 1e30, -1e30, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
            let wanted = [2, negative(-2), 0, high, low, high, low, 0];
            expect_applied(&[("a", floats(from, &values))], &format!("{dtype}(a(i))"), &ints(dtype, &wanted));
        }
        // In two's complement only the low bits count.
        let values = [300, -1, 70000, -129, (1 << 40) + 5];
        let width = 1i128 << dtype.bits();
        let wanted = values.map(|value: i128| (value - low).rem_euclid(width) + low);
        expect_applied(&[("a", ints(Int64, &values))], &format!("{dtype}(a(i))"), &ints(dtype, &wanted));
        expect_applied(&[("a", bools(&[0, 1]))], &format!("{dtype}(a(i))"), &ints(dtype, &[0, 1]));
    }
    let a = |tensor: Tensor| [("a", tensor)];
    expect_applied(&a(i32s(&[300, 200, -1])), "uint8(a(i))", &ints(UInt8, &[44, 200, 255]));
    expect_applied(&a(i32s(&[300, 200, -1])), "int8(a(i))", &ints(Int8, &[44, -56, -1]));
    expect_applied(&a(i32s(&[16777217, -3])), "float(a(i))", &f32s(&[16777216.0, -3.0]));
    expect_applied(&a(floats(Float64, &[0.1, 1e300])), "float(a(i))", &f32s(&[0.1f32 as f64, f64::INFINITY]));
    expect_applied(&a(f32s(&[1e6, 0.1])), "half(a(i))", &floats(Float16, &[f64::INFINITY, 0.0999755859375]));
    expect_applied(&a(f32s(&[0.5, 0.0, -0.0, f64::NAN])), "bool(a(i))", &bools(&[1, 0, 0, 1]));
    expect_applied(&a(i32s(&[-2, 0, 256])), "bool(a(i))", &bools(&[1, 0, 1]));
    expect_applied(&a(i32s(&[-7, 7])), "float(a(i)) / 2", &f32s(&[-3.5, 3.5]));
    // Stores convert to wider types implicitly.
    let source = "def f(uint8(N) x, half(N) h) -> (int64(N) y, double(N) z, float(N) w) {
        y(i) = x(i)\n z(i) = h(i)\n w(i) = x(i) }";
    let inputs = [("x", ints(UInt8, &[255])), ("h", floats(Float16, &[0.0999755859375]))];
    let results =
        [("y", ints(Int64, &[255])), ("z", floats(Float64, &[0.0999755859375])), ("w", f32s(&[255.0]))];
    expect(source, &[("N", 1)], &inputs, &[], &results);
}

#[test]
fn a_narrow_type_on_the_way_counts() {
    let x = f32s(&[1.0, 2.0]);
    expect_applied(&[("x", x.clone())], "int32(uint8(i + 300)) + 0*int32(x(i))", &i32s(&[44, 45]));
    expect_applied(&[("x", x.clone())], "x(i) * int8(i + 255)", &f32s(&[-1.0, 0.0]));
    expect(
        "def f(float(N) x, int8 s) -> (z) { z(i) = x(i) * s }
         def g(float(N) x, int64 k) -> (y) { y = f(x, k) }",
        &[("N", 2)],
        &[("x", x)],
        &[("k", Number::Int(257))],
        &[("y", f32s(&[1.0, 2.0]))],
    );
}

#[test]
fn a_condition_that_keeps_an_access_in_bounds_does_not_hide_its_range() {
    let x = f32s(&[1.0, 2.0, 4.0]);
    for (statement, wanted) in [
        ("y(i) +=! k <= i ? x(k) : 0 where i in 0:N", [1.0, 3.0, 7.0]),
        ("y(i) +=! (i - k >= 0 && i - k < 2) ? x(k) : 0 where i in 0:N", [1.0, 3.0, 6.0]),
    ] {
        let source = format!("def f(float(N) x) -> (y) {{ {statement} }}");
        expect(&source, &[("N", 3)], &[("x", x.clone())], &[], &[("y", f32s(&wanted))]);
    }
}

#[test]
fn conditions_and_truth_values() {
    let a = ("a", i32s(&[2, 0, -1, 0]));
    let b = ("b", i32s(&[4, 3, 0, 0]));
    let both = [a, b];
    let table: [(&str, [i128; 4]); 11] = [
        ("a(i) && b(i)", [1, 0, 0, 0]),
        ("a(i) || b(i)", [1, 1, 1, 0]),
        ("!a(i)", [0, 1, 0, 1]),
        ("!(a(i) && b(i))", [0, 1, 1, 1]),
        ("a(i) == b(i)", [0, 0, 0, 1]),
        ("a(i) != b(i)", [1, 1, 1, 0]),
        ("a(i) < b(i)", [1, 1, 1, 0]),
        ("a(i) <= b(i)", [1, 1, 1, 1]),
        ("a(i) > b(i)", [0, 0, 0, 0]),
        ("a(i) >= b(i)", [0, 0, 0, 1]),
        ("(a(i) || b(i)) == true", [1, 1, 1, 0]),
    ];
    for (expression, wanted) in table {
        expect_applied(&both, expression, &bools(&wanted));
        // A truth value as a number is 0 or 1, for any operands.
        expect_applied(&both, &format!("int32({expression})"), &i32s(&wanted));
        let counted = wanted.map(|value| 10 * value + 1);
        expect_applied(&both, &format!("10 * ({expression}) + 1"), &i32s(&counted));
    }
    expect_applied(&both, "a(i) ? 10 : b(i) ? 20 : 30", &i32s(&[10, 20, 10, 30]));
    // A number is true if it is not zero; NaN is not zero.
    let x = [("x", f32s(&[0.5, 0.0, -0.0, f64::NAN]))];
    expect_applied(&x, "x(i) ? 1 : 0", &i32s(&[1, 0, 0, 1]));
    expect_applied(&x, "!x(i)", &bools(&[0, 1, 1, 0]));
    // Comparisons with NaN are false, except `!=`.
    expect_applied(&x, "x(i) == x(i)", &bools(&[1, 1, 1, 0]));
    expect_applied(&x, "x(i) != x(i)", &bools(&[0, 0, 0, 1]));
    expect_applied(&x, "x(i) < 1 || x(i) >= 1", &bools(&[1, 1, 1, 0]));
    // Arithmetic on truth values treats them as the numbers 0 and 1.
    let flags = [("p", bools(&[1, 1, 0])), ("q", bools(&[1, 0, 0]))];
    expect_applied(&flags, "p(i) + q(i)", &i32s(&[2, 1, 0]));
    expect_applied(&flags, "p(i) * q(i)", &i32s(&[1, 0, 0]));
    expect_applied(&flags, "p(i) - q(i)", &i32s(&[0, 1, 0]));
    expect_applied(&flags, "p(i) && !q(i)", &bools(&[0, 1, 0]));
    let source = "def f(bool(N) p, int(N) x) -> (n, m, any, all) {
        n +=! p(i)\n m +=! x(i) > 2\n any max=! p(i) ? 1 : 0\n all min=! p(i) ? 1 : 0 }";
    let inputs = [("p", bools(&[1, 1, 0])), ("x", i32s(&[5, 2, 3]))];
    let one = |value| zero_dim(&i32s(&[value]));
    expect(
        source,
        &[("N", 3)],
        &inputs,
        &[],
        &[("n", one(2)), ("m", one(2)), ("any", one(1)), ("all", one(0))],
    );
}

#[test]
fn unneeded_operands_are_not_read() {
    let sizes = [("N", 2), ("M", 3)];
    let inputs = [("x", f32s(&[5.0, 7.0])), ("k", i32s(&[1, -9, 1000])), ("ok", bools(&[1, 0, 0]))];
    let params = "float(N) x, int(M) k, bool(M) ok";
    let table = [
        ("ok(i) ? x(k(i)) : -1", f32s(&[7.0, -1.0, -1.0])),
        ("!ok(i) ? -1 : x(k(i))", f32s(&[7.0, -1.0, -1.0])),
        ("ok(i) && x(k(i)) > 6", bools(&[1, 0, 0])),
        ("!ok(i) || x(k(i)) > 8", bools(&[0, 1, 1])),
        ("0 <= k(i) && k(i) < N ? x(k(i)) : 0", f32s(&[7.0, 0.0, 0.0])),
    ];
    for (expression, wanted) in table {
        let source = format!("def f({params}) -> (y) {{ y(i) = {expression} }}");
        expect(&source, &sizes, &inputs, &[], &[("y", wanted)]);
    }
    // The left operand is always evaluated, and so are both operands of `*`.
    for expression in ["x(k(i)) > 6 && ok(i)", "ok(i) ? 0 : x(k(i))", "ok(i) * x(k(i))"] {
        let source = format!("def f({params}) -> (y) {{ y(i) = {expression} }}");
        let error = run(&source, &sizes, &inputs, &[]).unwrap_err();
        assert!(matches!(error, RunError::OutOfBounds(_)), "{expression}: {error}");
    }
}

#[test]
fn minimum_and_maximum_ignore_nan() {
    let nan = f64::NAN;
    let pair = [("a", f32s(&[nan, 1.0, 2.0, -3.0])), ("b", f32s(&[5.0, nan, 1.0, -4.0]))];
    for name in ["min", "fmin", "fminf"] {
        expect_applied(&pair, &format!("{name}(a(i), b(i))"), &f32s(&[5.0, 1.0, 1.0, -4.0]));
    }
    for name in ["max", "fmax", "fmaxf"] {
        expect_applied(&pair, &format!("{name}(a(i), b(i))"), &f32s(&[5.0, 1.0, 2.0, -3.0]));
    }
    expect_applied(&pair, "max(a(i), b(i), 1.5)", &f32s(&[5.0, 1.5, 2.0, 1.5]));
    expect_applied(&pair, "min(0, a(i), b(i))", &f32s(&[0.0, 0.0, 0.0, -4.0]));
    // The definition is max(min(x, hi), lo): a NaN becomes the upper bound, and the lower bound
    // wins over the upper.
    expect_applied(&[("a", f32s(&[nan, -9.0, 0.5, 9.0]))], "clamp(a(i), 0, 1)", &f32s(&[1.0, 0.0, 0.5, 1.0]));
    expect_applied(&[("a", i32s(&[-9, 9]))], "clamp(a(i), 3, 1)", &i32s(&[3, 3]));
    let source = "def f(float(N) x) -> (low, high, total) {
        low min=! x(i)\n high max=! x(i)\n total +=! isnan(x(i)) ? 0 : x(i) }";
    let value = |value| zero_dim(&f32s(&[value]));
    let results = [("low", value(1.0)), ("high", value(3.0)), ("total", value(4.0))];
    expect(source, &[("N", 3)], &[("x", f32s(&[1.0, nan, 3.0]))], &[], &results);
    let source = "def f(float(N) x) -> (s, p) { s +=! x(i)\n p *=! x(i) }";
    let results = run(source, &[("N", 2)], &[("x", f32s(&[1.0, nan]))], &[]).unwrap();
    assert!(results.values().all(|tensor| tensor.get(0).as_f64().is_nan()));
}

#[test]
fn builtins_by_generic_and_c_names() {
    let unary: [(&str, f64, f64); 42] = [
        ("exp", 0.0, 1.0),
        ("exp", 0.5, 0.5f64.exp()),
        ("exp2", 3.0, 8.0),
        ("expm1", power(-30), power(-30).exp_m1()),
        ("log", 1.0, 0.0),
        ("log", 3.0, 3f64.ln()),
        ("log2", 8.0, 3.0),
        ("log10", 1000.0, 3.0),
        ("log1p", power(-30), power(-30).ln_1p()),
        ("sqrt", 9.0, 3.0),
        ("rsqrt", 4.0, 0.5),
        ("cbrt", -27.0, -3.0),
        ("sin", 0.5, 0.5f64.sin()),
        ("cos", 0.5, 0.5f64.cos()),
        ("tan", 0.5, 0.5f64.tan()),
        ("asin", 1.0, std::f64::consts::FRAC_PI_2),
        ("acos", -1.0, std::f64::consts::PI),
        ("atan", 1.0, std::f64::consts::FRAC_PI_4),
        ("sinh", 0.5, 0.5f64.sinh()),
        ("cosh", 0.5, 0.5f64.cosh()),
        ("tanh", 0.5, 0.5f64.tanh()),
        ("asinh", 0.5, 0.5f64.asinh()),
        ("acosh", 2.0, 2f64.acosh()),
        ("atanh", 0.5, 0.5f64.atanh()),
        ("erf", 0.5, 0.5204998778130465),
        ("erfc", 0.5, 0.4795001221869535),
        ("tgamma", 5.0, 24.0),
        ("lgamma", 3.0, std::f64::consts::LN_2),
        ("floor", -1.5, -2.0),
        ("ceil", -1.5, -1.0),
        ("ceil", 1.25, 2.0),
        ("trunc", -1.75, -1.0),
        ("round", 2.5, 3.0),
        ("round", -2.5, -3.0),
        ("rint", 2.5, 2.0),
        ("rint", 3.5, 4.0),
        ("nearbyint", -2.5, -2.0),
        ("abs", -2.5, 2.5),
        ("fabs", -0.0, 0.0),
        ("sqrt", 2.0, std::f64::consts::SQRT_2),
        ("exp", -1000.0, 0.0),
        ("exp", 1000.0, f64::INFINITY),
    ];
    for (name, argument, wanted) in unary {
        let suffixed = format!("{name}f");
        let names = if name == "abs" { vec![name] } else { vec![name, suffixed.as_str()] };
        for name in names {
            // The argument determines the type, not the function's name.
            let call = format!("{name}(x(i))");
            expect_applied(&[("x", f32s(&[argument]))], &call, &f32s(&[wanted]));
            let double = apply(&[("x", floats(Float64, &[argument]))], &call);
            let found = double.get(0).as_f64();
            let close = found == wanted || (found - wanted).abs() <= 4.0 * f64::EPSILON * wanted.abs();
            assert!(double.dtype() == Float64 && close, "{call} of {argument}: {found}, not {wanted}");
        }
    }
    let binary: [(&str, f64, f64, f64); 9] = [
        ("pow", 2.0, 10.0, 1024.0),
        ("pow", 0.0, 0.0, 1.0),
        ("atan2", 1.0, -1.0, 0.75 * std::f64::consts::PI),
        ("fmod", -7.5, 2.0, -1.5),
        ("hypot", 3.0, 4.0, 5.0),
        ("copysign", 3.0, -0.0, -3.0),
        ("fmin", 1.0, 2.0, 1.0),
        ("fmax", 1.0, 2.0, 2.0),
        ("fmod", 5.0, f64::INFINITY, 5.0),
    ];
    for (name, left, right, wanted) in binary {
        for name in [name.to_owned(), format!("{name}f")] {
            let pair = [("a", f32s(&[left])), ("b", f32s(&[right]))];
            expect_applied(&pair, &format!("{name}(a(i), b(i))"), &f32s(&[wanted]));
        }
    }
    // `fma` rounds once; the square alone would lose its last bit.
    let x = [("x", f32s(&[1.0 + power(-12)]))];
    expect_applied(&x, "fma(x(i), x(i), -1)", &f32s(&[power(-11) + power(-24)]));
    expect_applied(&x, "x(i) * x(i) - 1", &f32s(&[power(-11)]));
    let x = [("x", f32s(&[0.0, f64::NAN, f64::NEG_INFINITY]))];
    expect_applied(&x, "isnan(x(i))", &bools(&[0, 1, 0]));
    expect_applied(&x, "isinf(x(i))", &bools(&[0, 0, 1]));
    expect_applied(&x, "isfinite(x(i))", &bools(&[1, 0, 0]));
    expect_applied(
        &[("x", f32s(&[0.0, 2.0, -200.0]))],
        "sigmoid(x(i))",
        &f32s(&[0.5, 1.0 / (1.0 + (-2f64).exp()), 0.0]),
    );
    // Some functions keep integers; the others convert them to float32. 16-bit floats keep their
    // type.
    let x = [("x", i32s(&[-9, 4]))];
    for name in ["floor", "ceil", "trunc", "round", "rint"] {
        expect_applied(&x, &format!("{name}(x(i))"), &i32s(&[-9, 4]));
    }
    expect_applied(&x, "abs(x(i))", &i32s(&[9, 4]));
    expect_applied(&x, "min(x(i), 0, 7)", &i32s(&[-9, 0]));
    expect_applied(&x, "clamp(x(i), -3, 3)", &i32s(&[-3, 3]));
    expect_applied(&[("x", i32s(&[9, 4]))], "sqrt(x(i))", &f32s(&[3.0, 2.0]));
    expect_applied(&[("x", floats(Float16, &[9.0]))], "sqrt(x(i))", &floats(Float16, &[3.0]));
}

#[test]
fn names_extents_bindings_and_exists() {
    let f = |values: &[f64]| f32s(values);
    expect(
        "def concat(float(M) a, float(N) b) -> (c) {
            c(i) = i < a.0 ? a(i) : b(i - a.0) where i in 0:a.0 + b.0 }",
        &[("M", 2), ("N", 3)],
        &[("a", f(&[1.0, 2.0])), ("b", f(&[3.0, 4.0, 5.0]))],
        &[],
        &[("c", f(&[1.0, 2.0, 3.0, 4.0, 5.0]))],
    );
    // The extents of an inferred tensor, in both dimensions.
    expect(
        "def f(float(M, N) x) -> (n, y) { y(i, j) = x(i, j) + x(i, j + 1)\n n = 10 * y.0 + y.1 }",
        &[("M", 2), ("N", 3)],
        &[("x", shaped(&f(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), &[2, 3]))],
        &[],
        &[("n", zero_dim(&i32s(&[22]))), ("y", shaped(&f(&[3.0, 5.0, 9.0, 11.0]), &[2, 2]))],
    );
    expect(
        "def f(float(N) x) -> (y) { y(i) = b * c where b = x(i + 1) - x(i), c = b + 1 }",
        &[("N", 4)],
        &[("x", f(&[1.0, 3.0, 2.0, 6.0]))],
        &[],
        &[("y", f(&[6.0, -0.0, 20.0]))],
    );
    expect(
        "def f(float(H, W) x) -> (p, n) { p(i) = 2*i + 1 where exists x(i, 0)
            n +=! 1 where exists x(i, j) }",
        &[("H", 3), ("W", 2)],
        &[("x", shaped(&f(&[0.0; 6]), &[3, 2]))],
        &[],
        &[("p", i32s(&[1, 3, 5])), ("n", zero_dim(&i32s(&[6])))],
    );
    // A size and a tensor may have the same name; a scalar and a size are values.
    expect(
        "def f(float(H, W) I, float(W) W, float a, int k) -> (s) { s(h) +=! a * I(h, w) * W(w) + k * W }",
        &[("H", 2), ("W", 2)],
        &[("I", shaped(&f(&[1.0, 2.0, 3.0, 4.0]), &[2, 2])), ("W", f(&[1.0, -1.0]))],
        &[("a", Number::Float(2.0)), ("k", Number::Int(3))],
        &[("s", f(&[10.0, 10.0]))],
    );
    // Names may begin with a digit. `in` and `exists` may be names. A tensor hides a builtin of its
    // name.
    expect(
        "def f(float(N) in, float(N) 2LUT, float(N) exp) -> (y) { y(i) = in(i) + 2LUT(i) + exp(i) }",
        &[("N", 1)],
        &[("in", f(&[1.0])), ("2LUT", f(&[2.0])), ("exp", f(&[4.0]))],
        &[],
        &[("y", f(&[7.0]))],
    );
}

#[test]
fn gather_and_scatter() {
    expect(
        "def f(float(N, C) x, int(M) k) -> (y) { y(i, c) = x(k(i), c) }",
        &[("N", 3), ("C", 2), ("M", 4)],
        &[("x", shaped(&f32s(&[0.0, 1.0, 10.0, 11.0, 20.0, 21.0]), &[3, 2])), ("k", i32s(&[2, 0, 0, 1]))],
        &[],
        &[("y", shaped(&f32s(&[20.0, 21.0, 0.0, 1.0, 0.0, 1.0, 10.0, 11.0]), &[4, 2]))],
    );
    let mut counts = [0; 256];
    (counts[0], counts[3], counts[255]) = (1, 2, 1);
    expect(
        "def f(uint8(N) x) -> (h) { h(x(i)) +=! 1 }",
        &[("N", 4)],
        &[("x", ints(UInt8, &[3, 255, 3, 0]))],
        &[],
        &[("h", i32s(&counts))],
    );
    // Subscripts that are declared, clamped, or bounded by an integer scalar, and a subscript that
    // is exact beyond the range of its type.
    let x = [("x", i32s(&[3, -5, 3, 99]))];
    let four = [("N", 4)];
    expect(
        "def f(int(N) x) -> (h) { h(clamp(x(i), 0, 4)) +=! 1 }",
        &four,
        &x,
        &[],
        &[("h", i32s(&[1, 0, 0, 2, 1]))],
    );
    expect(
        "def f(int(N) x, int bins) -> (h) { h(b) +=! 1 where b = x(i) / 50 + 1, b in 0:bins }",
        &four,
        &x,
        &[("bins", Number::Int(3))],
        &[("h", i32s(&[1, 2, 1]))],
    );
    let mut counts = [0; 257];
    (counts[256], counts[1]) = (1, 1);
    expect(
        "def f(uint8(N) x) -> (int32(257) h) { h(x(i) + 1) +=! 1 }",
        &[("N", 2)],
        &[("x", ints(UInt8, &[255, 0]))],
        &[],
        &[("h", i32s(&counts))],
    );
    // Without `!` the scatter starts from the previous values; with `!` it starts from the neutral
    // element everywhere.
    let source = |operator: &str| {
        format!("def f(int(N) k, int(N) v) -> (int32(3) h) {{ h(i) = 7\n h(k(i)) {operator} v(i) }}")
    };
    let inputs = [("k", i32s(&[2, 0, 2, 2])), ("v", i32s(&[1, 20, -3, 5]))];
    let (low, high) = limits(Int32);
    let table = [
        ("+=", [27, 7, 10]),
        ("+=!", [20, 0, 3]),
        ("*=", [140, 7, -105]),
        ("*=!", [20, 1, -15]),
        ("min=", [7, 7, -3]),
        ("min=!", [20, high, -3]),
        ("max=", [20, 7, 7]),
        ("max=!", [20, low, 5]),
    ];
    for (operator, wanted) in table {
        expect(&source(operator), &four, &inputs, &[], &[("h", i32s(&wanted))]);
    }
    // A gather through a gather.
    expect(
        "def f(int(N) x, int(N) p) -> (y) { y(i) = x(p(p(i))) }",
        &[("N", 3)],
        &[("x", i32s(&[10, 20, 30])), ("p", i32s(&[1, 2, 0]))],
        &[],
        &[("y", i32s(&[30, 10, 20]))],
    );
}

#[test]
fn in_out_results_start_from_what_the_caller_supplies() {
    let matrix = |values: &[f64]| shaped(&f32s(values), &[2, 2]);
    // 0.5 * C + 2 * A B
    expect(
        "def sgemm(float a, float b, float(N, M) A, float(M, K) B) -> (C) {
            C(i, j) = b * C(i, j)\n C(i, j) += a * A(i, k) * B(k, j) }",
        &[("N", 2), ("M", 2), ("K", 2)],
        &[
            ("A", matrix(&[1.0, 2.0, 3.0, 4.0])),
            ("B", matrix(&[5.0, 6.0, 7.0, 8.0])),
            ("C", matrix(&[10.0, 20.0, 30.0, 40.0])),
        ],
        &[("a", Number::Float(2.0)), ("b", Number::Float(0.5))],
        &[("C", matrix(&[43.0, 54.0, 101.0, 120.0]))],
    );
    let table = [("+=", 16), ("*=", 60), ("min=", 1), ("max=", 10)];
    for (operator, wanted) in table {
        let source = format!("def f(int(N) x) -> (s) {{ s {operator} x(i) }}");
        let inputs = [("x", i32s(&[2, 1, 3])), ("s", zero_dim(&i32s(&[10])))];
        expect(&source, &[("N", 3)], &inputs, &[], &[("s", zero_dim(&i32s(&[wanted])))]);
    }
    // Elements that are not written keep their value.
    expect(
        "def f(float(N) x) -> (float(N) y) { y(2*i) = y(2*i + 1) * x(2*i) }",
        &[("N", 4)],
        &[("x", f32s(&[2.0, 0.0, 3.0, 0.0])), ("y", f32s(&[0.0, 5.0, 0.0, 7.0]))],
        &[],
        &[("y", f32s(&[10.0, 5.0, 21.0, 7.0]))],
    );
}

#[test]
fn ordered_loops_run_upwards_and_may_be_empty() {
    let forward = "def f(int(T, N) x) -> (y) { y(0, i) = x(0, i)
            for t in 1:T { y(t, i) = 2 * y(t - 1, i) + x(t, i) } }";
    let x = shaped(&i32s(&[1, 2, 3, 4, 5, 6]), &[3, 2]);
    let wanted = shaped(&i32s(&[1, 2, 5, 8, 15, 22]), &[3, 2]);
    expect(forward, &[("T", 3), ("N", 2)], &[("x", x)], &[], &[("y", wanted)]);
    // The loop has no iterations.
    let x = shaped(&i32s(&[1, 2]), &[1, 2]);
    expect(forward, &[("T", 1), ("N", 2)], &[("x", x.clone())], &[], &[("y", x)]);
    let backward = "def f(int(T) x) -> (y) { y(T - 1) = x(T - 1)
            for t in 1:T { y(T - 1 - t) = 2 * y(T - t) + x(T - 1 - t) } }";
    expect(backward, &[("T", 3)], &[("x", i32s(&[1, 2, 3]))], &[], &[("y", i32s(&[17, 8, 3]))]);
    // In nested loops every iteration completes before the next; 10 a + b identifies the last
    // iteration that wrote.
    let nested = "def f(int(N) x) -> (y, s) {
        y(i) = x(i)\n s = 0
        for a in 0:2 { y(i) = 3 * y(i)
          for b in 1:3 { y(i) = y(i) + 10 * a + b\n s = 100 * s + 10 * a + b } } }";
    let results = [("y", i32s(&[9 + 3 * 3 + 23, 18 + 3 * 3 + 23])), ("s", zero_dim(&i32s(&[1021112])))];
    expect(nested, &[("N", 2)], &[("x", i32s(&[1, 2]))], &[], &results);
    // Powers of a matrix, through a temporary.
    let powers = "def f(int(N, N) A) -> (P) {
        P(i, j) = A(i, j)
        for t in 1:4 { Q(i, j) +=! P(i, k) * A(k, j)\n P(i, j) = Q(i, j) } }";
    let fibonacci = |values: &[i128]| shaped(&i32s(values), &[2, 2]);
    expect(powers, &[("N", 2)], &[("A", fibonacci(&[1, 1, 1, 0]))], &[], &[("P", fibonacci(&[5, 3, 3, 2]))]);
    // Loop bounds may be scalars and negative.
    let bounds = "def f(int n) -> (s) { s = 0\n for t in -n:n + 1 { s = 10 * s + t + n } }";
    expect(bounds, &[], &[], &[("n", Number::Int(2))], &[("s", zero_dim(&i32s(&[1234])))]);
}

#[test]
fn calls_mean_the_statements_of_the_function() {
    let source = "
        def minmax(int(N) x, int offset, float scale) -> (low, high) {
          t(i) = x(i) + offset
          low min=! float(t(i)) * scale
          high max=! float(t(i)) * scale
        }
        def f(int(M) a, int(K) b) -> (r, s, u, v, t) {
          t = b(0)
          (r, s) = minmax(a, 10, 0.5)
          u, v = minmax(b, t + M, 2)
        }";
    // a + 10 is (14, 11, 12), halved; b + t + M is (17, 19, 18), doubled.
    let one = |value| zero_dim(&f32s(&[value]));
    let results =
        [("r", one(5.5)), ("s", one(7.0)), ("u", one(34.0)), ("v", one(38.0)), ("t", zero_dim(&i32s(&[7])))];
    let inputs = [("a", i32s(&[4, 1, 2])), ("b", i32s(&[7, 9, 8]))];
    expect(source, &[("M", 3), ("K", 3)], &inputs, &[], &results);
    // Functions may be defined in any order, call other functions, use the sizes of the arguments,
    // and be called in a loop.
    let source = "
        def twice(float(A, B) p, float(B, C) q) -> (r) { t = product(p, q)\n r(i, j) = 2 * t(i, j) }
        def product(float(M, K) x, float(K, N) y) -> (z) { z(i, j) +=! x(i, k) * y(k, j) }
        def f(float(H, W) x) -> (y) {
          float(H, W) xt
          xt(i, j) = x(i, j)
          u = twice(x, xt)
          y(i, j) = u(i, j)
          for t in 0:2 { v = twice(u, x)\n y(i, j) = y(i, j) + v(i, j) } }";
    let identity = shaped(&f32s(&[0.0, 1.0, 1.0, 0.0]), &[2, 2]);
    let wanted = shaped(&f32s(&[2.0, 8.0, 8.0, 2.0]), &[2, 2]);
    expect(source, &[("H", 2), ("W", 2)], &[("x", identity)], &[], &[("y", wanted)]);
    // A result that is in-out in the called function starts with its value in the caller.
    let source = "
        def add(int(N) x) -> (s) { s += x(i) }
        def f(int(N) x) -> (s) { s = 100\n s = add(x)\n s = add(x) }";
    expect(source, &[("N", 2)], &[("x", i32s(&[1, 2]))], &[], &[("s", zero_dim(&i32s(&[106])))]);
    // A scalar argument is converted to the type of its parameter.
    let source = "
        def scale(float(N) x, int8 k, double d) -> (y) { y(i) = x(i) * k + float(d) }
        def f(float(N) x) -> (y) { y = scale(x, 2 + 1, 0.5) }";
    expect(source, &[("N", 2)], &[("x", f32s(&[1.0, 2.0]))], &[], &[("y", f32s(&[3.5, 6.5]))]);
}

#[test]
fn shapes_borders_strides_and_interleaving() {
    let x = f32s(&[1.0, 2.0, 3.0, 4.0]);
    let four = [("N", 4)];
    let table: [(&str, &[f64]); 9] = [
        (
            "y(i) +=! (0 <= j && j < N) ? x(j) : 0 where i in 0:N, k in 0:3, j = i + k - 1",
            &[3.0, 6.0, 9.0, 7.0],
        ),
        ("y(i) = (i + 1 < N ? x(i + 1) : 0) - x(i)", &[1.0, 1.0, 1.0, -4.0]),
        ("y(i) = x(clamp(i - 2, 0, N - 1)) where i in 0:N + 3", &[1.0, 1.0, 1.0, 2.0, 3.0, 4.0, 4.0]),
        ("y(i) = x(max(i - 1, 0)) + x(min(i + 1, N - 1)) where i in 0:N", &[3.0, 4.0, 6.0, 7.0]),
        ("y(2*i) = x(i)\n y(2*i + 1) = -x(i)", &[1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0, -4.0]),
        ("y(N - 1 - i) = x(i)", &[4.0, 3.0, 2.0, 1.0]),
        ("y(i) = x(i) + x(i + 2)", &[4.0, 6.0]),
        ("y(0) = 9\n y(i) = x(i) - x(i - 1) where i in 1:N", &[9.0, 1.0, 1.0, 1.0]),
        ("y(i) = x(i)\n y(i) = y(0) where i in 1:N", &[1.0, 1.0, 1.0, 1.0]),
    ];
    for (body, wanted) in table {
        let source = format!("def f(const float(N) x) -> (y) {{ {body} }}");
        expect(&source, &four, &[("x", x.clone())], &[], &[("y", f32s(wanted))]);
    }
    // A subscript with a scalar stride.
    let source = "def f(float(N) x, int s) -> (y) { y(i) = x(s * i) }";
    for (stride, wanted) in [(1, &[1.0, 2.0, 3.0, 4.0][..]), (2, &[1.0, 3.0]), (3, &[1.0, 4.0]), (5, &[1.0])]
    {
        expect(source, &four, &[("x", x.clone())], &[("s", Number::Int(stride))], &[("y", f32s(wanted))]);
    }
    // Tensors without dimensions, written with and without parentheses.
    let source = "def f(float(N) x) -> (m, d) { m +=! x(i)\n m() = m / N\n d = m() * 2 }";
    let results = [("m", zero_dim(&f32s(&[2.5]))), ("d", zero_dim(&f32s(&[5.0])))];
    expect(source, &four, &[("x", x)], &[], &results);
    // Declared shapes, extents that are expressions, and row-major order of three dimensions.
    let source = "def f(int(2*N) x) -> (int(N) y, z) { y(i) = x(2*i) + x(2*i + 1)
            z(i, j, k) = 100*i + 10*j + k where i in 0:2, j in 0:1, k in 0:3 }";
    let z = shaped(&i32s(&[0, 1, 2, 100, 101, 102]), &[2, 1, 3]);
    expect(source, &[("N", 2)], &[("x", i32s(&[1, 2, 3, 4]))], &[], &[("y", i32s(&[3, 7])), ("z", z)]);
    let source = "def f(float(H, 3) x) -> (y) { y(3*i + c) = x(i, c) }";
    let x = f32s(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    expect(source, &[("H", 2)], &[("x", shaped(&x, &[2, 3]))], &[], &[("y", x)]);
}

fn out_of_bounds(source: &str, sizes: &[(&str, i64)], tensors: &[(&str, Tensor)]) -> OutOfBounds {
    match run(source, sizes, tensors, &[]) {
        Err(RunError::OutOfBounds(out)) => *out,
        other => panic!("{source}\n{other:?}"),
    }
}

fn byte_offset(text: &str, of: &str) -> usize {
    text.find(of).unwrap()
}

#[test]
fn an_index_from_data_that_leaves_its_tensor_is_reported() {
    let source = "def f(float(N, C) x, int(M) k) -> (y) { y(i, c) = x(k(i) + 1, c) }";
    let sizes = [("N", 3), ("C", 2), ("M", 3)];
    let x = shaped(&f32s(&[0.0; 6]), &[3, 2]);
    let out = out_of_bounds(source, &sizes, &[("x", x.clone()), ("k", i32s(&[0, 1, 6]))]);
    assert_eq!((out.tensor.as_str(), out.shape.as_slice()), ("x", &[3, 2][..]));
    assert_eq!((out.element.as_slice(), out.dimension, out.declared_bounds), (&[7, 0][..], 0, None));
    assert_eq!(out.point, [("i".to_owned(), 2), ("c".to_owned(), 0)]);
    let (start, end) = (out.origin.start as usize, out.origin.end as usize);
    assert_eq!(&source[start..end], "x(k(i) + 1, c)");
    assert_eq!(out.describe(), "`x(7, 0)` does not exist: index 7 of dimension 0 must be in 0 to 2");
    // An index below 0 is also outside, and so is one beyond 64 bits.
    let out = out_of_bounds(source, &sizes, &[("x", x), ("k", i32s(&[-2, 0, 0]))]);
    assert_eq!(out.element, [-1, 0]);
    let source = "def f(float(N) x, uint64(M) k) -> (y) { y(i) = x(k(i)) }";
    let inputs = [("x", f32s(&[1.0])), ("k", ints(UInt64, &[u64::MAX as i128]))];
    assert_eq!(out_of_bounds(source, &[("N", 1), ("M", 1)], &inputs).tensor, "x");
    // The declared size of a scatter's target and a bound in `where` are promises that the run
    // checks.
    let source = "def f(int(N) k) -> (int(4) h) { h(k(i)) +=! 1 }";
    let out = out_of_bounds(source, &[("N", 2)], &[("k", i32s(&[3, 4]))]);
    assert_eq!((out.tensor.as_str(), out.element.as_slice(), out.declared_bounds), ("h", &[4][..], None));
    assert_eq!(out.describe(), "`h(4)` does not exist: index 4 must be in 0 to 3");
    let source = "def f(int(N) k) -> (h) { h(b) +=! 1 where b = k(i), b in 0:4 }";
    let out = out_of_bounds(source, &[("N", 2)], &[("k", i32s(&[3, -1]))]);
    assert_eq!((out.element.as_slice(), out.declared_bounds), (&[-1][..], Some((0, 4))));
    assert_eq!(out.point, [("i".to_owned(), 1)]);
    assert_eq!(out.describe(), "a computed index is -1, but `where` declares the range 0:4");
    // The reported point includes the variables of loops around the statement.
    let source = "def f(int(N) k) -> (y) { y = 0\n for t in 1:3 { y() = k(t * k(t)) } }";
    let out = out_of_bounds(source, &[("N", 3)], &[("k", i32s(&[0, 1, 2]))]);
    assert_eq!((out.element.as_slice(), out.point), (&[4][..], vec![("t".to_owned(), 2)]));
    assert_eq!(out.origin.start as usize, byte_offset(source, "k(t * k(t))"));
}

#[test]
fn an_element_that_nothing_defined_is_reported() {
    let undefined = |source: &str, sizes: &[(&str, i64)], tensors: &[(&str, Tensor)]| -> Undefined {
        match run(source, sizes, tensors, &[]) {
            Err(RunError::Undefined(undefined)) => *undefined,
            other => panic!("{source}\n{other:?}"),
        }
    };
    let source = "def f(float(N) x, int(M) k) -> (y) {
        float(N, 2) t
        t(i, 1) = x(i)
        y(i) = t(clamp(k(i), 0, N - 1), clamp(k(i), 0, 1)) }";
    let inputs = [("x", f32s(&[5.0, 6.0])), ("k", i32s(&[1, 7, 0]))];
    let sizes = [("N", 2), ("M", 3)];
    let found = undefined(source, &sizes, &inputs);
    assert_eq!((found.tensor.as_str(), found.element.as_slice()), ("t", &[0, 0][..]));
    assert_eq!(found.point, [("i".to_owned(), 2)]);
    assert_eq!(found.origin.start as usize, byte_offset(source, "t(clamp"));
    let message = RunError::Undefined(Box::new(found)).to_string();
    assert_eq!(message, "`t(0, 0)` is needed, but nothing has defined it");
    // The same program runs with data that stays within the defined elements.
    let inputs = [("x", f32s(&[5.0, 6.0])), ("k", i32s(&[1, 7, 1]))];
    expect(source, &sizes, &inputs, &[], &[("y", f32s(&[6.0, 6.0, 6.0]))]);
}

#[test]
fn inputs_that_are_missing_or_wrong_are_reported() {
    let source = "def f(float(N) x, float a) -> (y) { y(i) = a * x(i) }";
    let two = [("N", 2)];
    let x = ("x", f32s(&[1.0, 2.0]));
    let a = ("a", Number::Float(2.0));
    let error = |sizes: &[(&str, i64)], tensors: &[(&str, Tensor)], scalars: &[(&str, Number)]| {
        run(source, sizes, tensors, scalars).unwrap_err()
    };
    assert_eq!(error(&two, &[], &[a]), RunError::Missing("x".to_owned()));
    assert_eq!(error(&two, std::slice::from_ref(&x), &[]), RunError::Missing("a".to_owned()));
    assert_eq!(error(&[], std::slice::from_ref(&x), &[a]), RunError::UnknownSize("N".to_owned()));
    let mismatch = |found: &str| RunError::Mismatch {
        name: "x".to_owned(),
        wanted: "float32[2]".to_owned(),
        found: found.to_owned(),
    };
    for (tensor, found) in [
        (floats(Float64, &[1.0, 2.0]), "float64[2]"),
        (f32s(&[1.0, 2.0, 3.0]), "float32[3]"),
        (shaped(&f32s(&[1.0, 2.0]), &[2, 1]), "float32[2, 1]"),
        (i32s(&[1, 2]), "int32[2]"),
    ] {
        assert_eq!(error(&two, &[("x", tensor)], &[a]), mismatch(found));
    }
    // An in-out result is also an input.
    let source = "def f(float(N) x) -> (s) { s += x(i) }";
    let missing = run(source, &two, std::slice::from_ref(&x), &[]).unwrap_err();
    assert_eq!(missing, RunError::Missing("s".to_owned()));
    // The progress callback can stop a run.
    let program = compile("def f() -> (s) { s +=! 1 where i in 0:200000 }", &[], &[]).unwrap();
    let mut calls = Vec::new();
    let stopped = run_with_progress(&program, Inputs::default(), &mut |done| {
        calls.push(done);
        calls.len() < 2
    });
    assert_eq!((stopped, calls), (Err(RunError::Stopped), vec![1 << 16, 2 << 16]));
}

/// The checker refuses sizes of 0, so they are substituted in the program for all sizes.
#[test]
fn reductions_over_nothing_give_their_neutral_elements() {
    let text = "def f(float(M, N) x, int(N) n) -> (sum, product, least, most, whole) {
        sum(i) +=! x(i, j)
        product(i) *=! x(i, j)
        least(i) min=! x(i, j)
        most(i) max=! 2 * sum(i) + x(i, j)
        whole max=! n(j)
    }";
    let general = check(&parse(text).ast, "f", &Bindings::default()).program.unwrap();
    assert_eq!(general.symbols.iter().map(|symbol| symbol.name.as_str()).collect::<Vec<_>>(), ["M", "N"]);
    let program = general.at_unchecked_sizes(&[2, 0]).unwrap();
    let found = interpret(&program, seed::inputs(&program, 0).unwrap()).unwrap();
    let values =
        |name: &str| (0..found[name].len()).map(|at| found[name].get(at).as_f64()).collect::<Vec<_>>();
    assert_eq!(values("sum"), [0.0; 2]);
    assert_eq!(values("product"), [1.0; 2]);
    assert_eq!(values("least"), [f64::INFINITY; 2]);
    assert_eq!(values("most"), [f64::NEG_INFINITY; 2]);
    assert_eq!(values("whole"), [f64::from(i32::MIN)]);
    let program = general.at_unchecked_sizes(&[0, 3]).unwrap();
    let found = interpret(&program, seed::inputs(&program, 0).unwrap()).unwrap();
    assert_eq!((found["sum"].shape(), found["whole"].len()), (&[0][..], 1));
}
