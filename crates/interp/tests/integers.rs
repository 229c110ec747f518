//! Tests of integer work in the language: operators on bits, shifts, powers, functions of bits,
//! literals of 64 bits and random numbers. The expected numbers are Rust's own, or worked out by
//! hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use tilewright_interp::{Inputs, RunError, run};
use tilewright_ir::{DType, Number, Program, Tensor, print};
use tilewright_syntax::{Bindings, check, diagnose, parse};

#[track_caller]
fn program_at(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let name = &parsed.ast.functions.last().unwrap().name.text;
    let checked = check(&parsed.ast, name, &sizes.iter().copied().collect::<Bindings>());
    checked.program.unwrap_or_else(|| panic!("{source}\n{:?}", checked.diagnostics))
}

fn tensor(dtype: DType, values: &[i128]) -> Tensor {
    let mut made = Tensor::zeros(dtype, &[values.len()]).unwrap();
    values.iter().enumerate().for_each(|(at, value)| made.set(at, Number::Int(*value)));
    made
}

fn integers(tensor: &Tensor) -> Vec<i128> {
    (0..tensor.len()).map(|at| tensor.get(at).as_i128()).collect()
}

/// Runs a program whose inputs have one dimension, and returns its results. The program must print
/// as text that means the same.
#[track_caller]
fn results(source: &str, inputs: &[(&str, Tensor)]) -> BTreeMap<String, Tensor> {
    let sizes: Vec<(&str, i64)> =
        inputs.iter().take(1).map(|(_, tensor)| ("N", tensor.shape()[0] as i64)).collect();
    let program = program_at(source, &sizes);
    let text = print::source(&program);
    assert_eq!(print::source(&program_at(&text, &sizes)), text, "{source}");
    let tensors = inputs.iter().map(|(name, tensor)| ((*name).to_owned(), tensor.clone())).collect();
    run(&program, Inputs { tensors, scalars: BTreeMap::new() }).unwrap()
}

/// The numbers of results without dimensions.
#[track_caller]
fn numbers(source: &str) -> BTreeMap<String, Number> {
    results(source, &[]).iter().map(|(name, tensor)| (name.clone(), tensor.get(0))).collect()
}

#[track_caller]
fn expect(source: &str, wanted: &[(&str, DType, i128)]) {
    let found = results(source, &[]);
    for (name, dtype, value) in wanted {
        let tensor = &found[*name];
        assert_eq!((tensor.dtype(), tensor.get(0)), (*dtype, Number::Int(*value)), "{name} in {source}");
    }
    assert_eq!(found.len(), wanted.len());
}

/// The messages and helps of a program that is refused.
fn refusal(source: &str) -> String {
    let found = diagnose(&parse(source), &Bindings::default());
    let texts = found.iter().map(|own| format!("{}: {} ({})", own.code, own.message, own.help.join("; ")));
    texts.collect::<Vec<_>>().join("\n")
}

/// All pairs of numbers near the ends of a type, near 0, and near powers of two.
macro_rules! pairs {
    ($t:ty) => {{
        let mut all: Vec<$t> = vec![<$t>::MIN, <$t>::MAX, 0, 1, 2, 3, 5, 7, 8, 9, 63, 64, 100];
        all.extend((0..<$t>::BITS).step_by(3).map(|at| (1 as $t).wrapping_shl(at)));
        all.extend((0..<$t>::BITS).step_by(5).map(|at| (0 as $t).wrapping_sub((1 as $t).wrapping_shl(at))));
        let both = all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b)));
        both.collect::<Vec<($t, $t)>>()
    }};
}

macro_rules! agrees_with_rust {
    ($test:ident $t:ty, $dtype:expr, $wide:ty) => {
        #[test]
        fn $test() {
            let name = $dtype.name();
            let source = format!(
                "def f({name}(N) a, {name}(N) b) -> (c, d, o, x, l, r, p, n, z, t, u, v) {{
                   c(i) = ~a(i)  d(i) = a(i) & b(i)  o(i) = a(i) | b(i)  x(i) = a(i) ^ b(i)
                   l(i) = a(i) << b(i)  r(i) = a(i) >> b(i)  p(i) = a(i) ** b(i)
                   n(i) = popcount(a(i))  z(i) = clz(a(i))  t(i) = ctz(a(i))
                   u(i) = avg_up(a(i), b(i))  v(i) = avg_down(a(i), b(i)) }}"
            );
            let pairs = pairs!($t);
            let column = |of: &dyn Fn($t, $t) -> i128| -> Vec<i128> {
                pairs.iter().map(|(a, b)| of(*a, *b)).collect()
            };
            let inputs = [
                ("a", tensor($dtype, &column(&|a, _| a as i128))),
                ("b", tensor($dtype, &column(&|_, b| b as i128))),
            ];
            let found = results(&source, &inputs);
            let emptied = |a: $t| if a < (0 as $t) { -1 } else { 0 };
            let count = |b: $t| u32::try_from(b).unwrap_or(u32::MAX);
            // Rust's power takes 32 bits of exponent. The powers of a number repeat after 2^bits.
            let power = |a: $t, b: $t| match b < (0 as $t) {
                true => 0,
                false => {
                    let (mut result, mut square, mut left) = (1 as $t, a, b);
                    while left != 0 {
                        if left % 2 != 0 {
                            result = result.wrapping_mul(square);
                        }
                        square = square.wrapping_mul(square);
                        left /= 2;
                    }
                    if b <= (100 as $t) {
                        assert_eq!(result, a.wrapping_pow(count(b)));
                    }
                    result as i128
                }
            };
            let wanted = [
                ("c", column(&|a, _| (!a) as i128)),
                ("d", column(&|a, b| (a & b) as i128)),
                ("o", column(&|a, b| (a | b) as i128)),
                ("x", column(&|a, b| (a ^ b) as i128)),
                ("l", column(&|a, b| a.checked_shl(count(b)).map_or(0, |own| own as i128))),
                ("r", column(&|a, b| a.checked_shr(count(b)).map_or(emptied(a), |own| own as i128))),
                ("p", column(&power)),
                ("n", column(&|a, _| a.count_ones().into())),
                ("z", column(&|a, _| a.leading_zeros().into())),
                ("t", column(&|a, _| a.trailing_zeros().into())),
                ("u", column(&|a, b| (a as i128 + b as i128 + 1).div_euclid(2))),
                ("v", column(&|a, b| (a as i128 + b as i128).div_euclid(2))),
            ];
            for (result, wanted) in wanted {
                assert_eq!(found[result].dtype(), $dtype, "{result}");
                let found = integers(&found[result]);
                for (at, (a, b)) in pairs.iter().enumerate() {
                    assert_eq!(found[at], wanted[at], "{name} {result} of {a} and {b}");
                }
            }
            // A rounded shift, against exact numbers.
            for n in [0, 1, 2, 5, <$t>::BITS - 1, <$t>::BITS, <$t>::BITS + 3] {
                let source =
                    format!("def f({name}(N) a) -> (y) {{ y(i) = rounding_shift_right(a(i), {n}) }}");
                let found = integers(&results(&source, &inputs[..1])["y"]);
                for (at, (a, _)) in pairs.iter().enumerate() {
                    let half = if n == 0 { 0 } else { 1i128 << (n - 1) };
                    assert_eq!(found[at], (*a as i128 + half) >> n, "{name}: {a} shifted by {n}");
                }
            }
            if <$t>::BITS < 64 {
                let source =
                    format!("def f({name}(N) a, {name}(N) b) -> (y) {{ y(i) = widening_mul(a(i), b(i)) }}");
                let found = &results(&source, &inputs)["y"];
                assert_eq!(found.dtype().bits(), 2 * <$t>::BITS);
                assert_eq!(found.dtype().is_signed_integer(), $dtype.is_signed_integer());
                let wanted = column(&|a, b| (a as $wide * b as $wide) as i128);
                assert_eq!(integers(found), wanted, "{name}");
            }
        }
    };
}

agrees_with_rust! { int8 i8, DType::Int8, i16 }
agrees_with_rust! { int16 i16, DType::Int16, i32 }
agrees_with_rust! { int32 i32, DType::Int32, i64 }
agrees_with_rust! { int64 i64, DType::Int64, i128 }
agrees_with_rust! { uint8 u8, DType::UInt8, u16 }
agrees_with_rust! { uint16 u16, DType::UInt16, u32 }
agrees_with_rust! { uint32 u32, DType::UInt32, u64 }
agrees_with_rust! { uint64 u64, DType::UInt64, u128 }

#[test]
fn operators_bind_as_in_python() {
    use DType::{Bool, Int32};
    expect(
        "def f(int x, int y) -> (a, b, c, d, e, g, h, k, m) {
           int(1) six
           six(0) = 6
           a = six(0) & 1 == 0
           b = six(0) | 1 ^ 3 & 2
           c = 1 << six(0) - 4
           d = six(0) + 1 >> 1
           e = -six(0) ** 2
           g = 2 ** 3 ** 2
           h = six(0) ** -0 + 1
           k = ~six(0) ** 2
           m = six(0) & 3 < 4 && true
         }"
        .replace("int x, int y", "")
        .as_str(),
        &[
            ("a", Bool, 1),
            ("b", Int32, 6 | (1 ^ (3 & 2))),
            ("c", Int32, 4),
            ("d", Int32, 3),
            ("e", Int32, -36),
            ("g", Int32, 512),
            ("h", Int32, 2),
            ("k", Int32, !36),
            ("m", Bool, 1),
        ],
    );
}

#[test]
fn a_shift_keeps_the_type_of_its_left_operand() {
    let counts: [i128; 8] = [0, 1, 7, 8, 256, 300, -1, i64::MIN as i128];
    for (count_type, most) in
        [("int8", 127), ("int32", i128::from(i32::MAX)), ("int64", i128::from(i64::MAX))]
    {
        let counts: Vec<i128> = counts.iter().map(|count| (*count).clamp(-most - 1, most)).collect();
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == count_type).unwrap();
        let source = format!(
            "def f({count_type}(N) n) -> (a, b, c, d) {{
               a(i) = uint8(0x81) << n(i)  b(i) = uint8(0x81) >> n(i)
               c(i) = int8(-127) >> n(i)   d(i) = int64(-127) >> n(i) }}"
        );
        let found = results(&source, &[("n", tensor(dtype, &counts))]);
        for (at, count) in counts.iter().enumerate() {
            let places = u32::try_from(*count).unwrap_or(u32::MAX);
            let of = |name: &str| found[name].get(at).as_i128();
            assert_eq!(of("a"), 0x81u8.checked_shl(places).unwrap_or(0).into(), "{count}");
            assert_eq!(of("b"), 0x81u8.checked_shr(places).unwrap_or(0).into(), "{count}");
            assert_eq!(of("c"), (-127i8).checked_shr(places).unwrap_or(-1).into(), "{count}");
            assert_eq!(of("d"), (-127i64).checked_shr(places).unwrap_or(-1).into(), "{count}");
        }
        let types: Vec<DType> = found.values().map(Tensor::dtype).collect();
        assert_eq!(types, [DType::UInt8, DType::UInt8, DType::Int8, DType::Int64]);
    }
}

#[test]
fn bit_operators_promote_as_sums_do() {
    use DType::{Bool, Int16, Int32, UInt8, UInt32};
    expect(
        "def f() -> (a, b, c, d, e, g, h, k) {
           a = int8(-1) & uint8(255)
           b = uint8(0xF0) | 3
           c = true & false
           d = true ^ true
           e = ~true
           g = true | int32(4)
           h = 1u ^ uint8(3)
           k = uint8(0xFF) & ~7
         }",
        &[
            ("a", Int16, 255),
            ("b", UInt8, 0xF3),
            ("c", Bool, 0),
            ("d", Bool, 0),
            ("e", Bool, 0),
            ("g", Int32, 5),
            ("h", UInt32, 2),
            ("k", UInt8, 0xF8),
        ],
    );
}

#[test]
fn powers_and_shifts_of_numbers_are_numbers() {
    use DType::{Int32, Int64, UInt64};
    expect(
        "def f() -> (a, b, c, int64 d, uint64 e, float g) {
           a = 2 ** 10  b = 3 << 4  c = 0xF0 >> 4 & 6 ^ 1  d = 2 ** 40  e = 2 ** 63  g = 2 ** 24
         }"
        .replace(", float g", "")
        .replace("  g = 2 ** 24", "")
        .as_str(),
        &[
            ("a", Int32, 1024),
            ("b", Int32, 48),
            ("c", Int32, 7),
            ("d", Int64, 1 << 40),
            ("e", UInt64, 1 << 63),
        ],
    );
    let found = numbers("def f(float(1) x) -> (float a, float b, c, float d) { a = 7 ** 2  b = 2 ** 0.5 c = 2.0 ** -1 d = 7 ^ 2 / 4 }".replace("float(1) x", "").as_str());
    assert_eq!(found["a"], Number::Float(49.0));
    assert_eq!(found["b"], Number::Float(f64::from(2f32.sqrt())));
    assert_eq!(found["c"], Number::Float(0.5));
    assert_eq!(found["d"], Number::Float(7.0));
    assert!(refusal("def f() -> (a) { a = 2 ** 64 }").contains("this number is too large"));
    assert!(refusal("def f() -> (uint8 a) { a = 1 << 8 }").contains("256 does not fit uint8"));
    assert!(refusal("def f() -> (a) { a = 1 << 31 }").contains("2147483648 does not fit int32"));
}

/// Folding gives what the interpreter computes from values of the same type.
#[test]
fn constants_fold_as_values_compute() {
    let operators = ["&", "|", "^", "<<", ">>", "**"];
    for (at, (left, right)) in [(6, 3), (12, 5), (1, 20), (0, 4), (7, 0), (-9, 2), (-1, 3)].iter().enumerate()
    {
        for op in operators {
            let folded = format!("def f() -> (int64 y) {{ y = ({left}) {op} {right} }}");
            let computed = format!(
                "def f() -> (int64 y) {{ int64(2) x x(0) = {left} x(1) = {right} y = x(0) {op} x(1) }}"
            );
            assert_eq!(numbers(&folded), numbers(&computed), "{at}: {left} {op} {right}");
        }
    }
}

#[test]
fn powers_of_floats_are_those_of_pow() {
    let source = "def f(float(N) x) -> (a, b, c) {
      a(i) = x(i) ** 2 + x(i) ** 0.5  b(i) = -x(i) ** 2  c(i) = pow(x(i), 2) + pow(x(i), 0.5) }";
    let mut x = Tensor::zeros(DType::Float32, &[3]).unwrap();
    [1.5, 2.0, 9.0].iter().enumerate().for_each(|(at, value)| x.set(at, Number::Float(*value)));
    let found = results(source, &[("x", x)]);
    for (at, own) in [1.5f64, 2.0, 9.0].iter().enumerate() {
        assert_eq!(found["a"].get(at), found["c"].get(at));
        assert_eq!(found["b"].get(at), Number::Float(-(own * own)));
    }
}

#[test]
fn long_literals_are_unsigned() {
    use DType::UInt64;
    let most = i128::from(u64::MAX);
    expect(
        "def f() -> (a, b, c, uint64 d, e, g) {
           a = 18446744073709551615ul  b = 0xFFFFFFFFFFFFFFFFul  c = uint64(0xFFFFFFFFFFFFFFFF)
           d = 18446744073709551615  e = 1ul + 18446744073709551614  g = uint64(1) & 0xFFFFFFFFFFFFFFFF
         }",
        &[
            ("a", UInt64, most),
            ("b", UInt64, most),
            ("c", UInt64, most),
            ("d", UInt64, most),
            ("e", UInt64, most),
            ("g", UInt64, 1),
        ],
    );
    let alone = refusal("def f() -> (a) { a = 18446744073709551615 }");
    assert!(alone.contains("this number is a uint64: write `18446744073709551615ul`"), "{alone}");
}

#[test]
fn subscripts_shift_and_mask_exactly() {
    // The variables get their ranges as from quotients and products.
    let source = "def f(int(N) x) -> (a, b, c, d) {
      a(i) = x(i >> 1) where i in 0:2*N
      b(i) = x(i << 1)
      c(i) = x(i & 3) where i in 0:2*N
      d(i) = x(i ** 2) where i in 0:3 }";
    let x = tensor(DType::Int32, &[10, 11, 12, 13, 14, 15]);
    let found = results(source, &[("x", x)]);
    assert_eq!(integers(&found["a"]), [10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15]);
    assert_eq!(integers(&found["b"]), [10, 12, 14]);
    assert_eq!(integers(&found["c"]), [10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13]);
    assert_eq!(integers(&found["d"]), [10, 11, 14]);
    // The mask of a value from data gives a range without a warning or a check.
    let source = "def f(int(N) k, int(8) x) -> (y) { y(i) = x(k(i) & 7) + x(uint8(k(i)) >> 5) }";
    assert_eq!(refusal(source), "");
    let found = results(
        source,
        &[("k", tensor(DType::Int32, &[-1, 9, 255])), ("x", tensor(DType::Int32, &[0, 1, 2, 3, 4, 5, 6, 7]))],
    );
    assert_eq!(integers(&found["y"]), [14, 1, 14]);
}

#[test]
fn values_of_variables_are_exact() {
    let source = "def f() -> (a, b, c, float(4) d) {
      a(i) = i >> 1 where i in 0:4
      b(i) = i ^ 1 where i in 0:4
      c(i) = 2 ** i + (1 << i) where i in 0:4
      d(i) = (i ^ 1) / 2 where i in 0:4 }";
    let found = results(source, &[]);
    assert_eq!(integers(&found["a"]), [0, 0, 1, 1]);
    assert_eq!(integers(&found["b"]), [1, 0, 3, 2]);
    assert_eq!(integers(&found["c"]), [2, 4, 8, 16]);
    assert_eq!(integers(&found["d"]), [0, 0, 1, 1]);
}

#[test]
fn powers_of_variables_are_subscripts() {
    // Maxima over 2^t elements, doubled in every step.
    let source = "def f(int(N) x) -> (y) {
      int(4, N) m
      m(0, i) = x(i)
      for t in 1:4 { m(t, i) = max(m(t - 1, i), m(t - 1, min(i + 2 ** (t - 1), N - 1))) }
      y(i) = m(3, i) }";
    assert_eq!(refusal(source), "", "every access is proved");
    let values = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3];
    let found = results(source, &[("x", tensor(DType::Int32, &values))]);
    let wanted: Vec<i128> = (0..16).map(|i| *values[i..16.min(i + 8)].iter().max().unwrap()).collect();
    assert_eq!(integers(&found["y"]), wanted);
    // `1 << t` is the same.
    let found =
        results(&source.replace("2 ** (t - 1)", "(1 << t - 1)"), &[("x", tensor(DType::Int32, &values))]);
    assert_eq!(integers(&found["y"]), wanted);
}

#[test]
fn a_power_beyond_the_end_is_found() {
    let source = "def f(int(8) x) -> (y) { y(i) = x(2 ** i) where i in 0:4 }";
    assert!(refusal(source).contains("out-of-bounds: `x(2 ** min(40, i))` reads outside of `x`"));
    // Where data decide, the access is checked at run time.
    let program = program_at("def f(int(N) x) -> (y) { y(i) = x(2 ** x(i)) }", &[("N", 5)]);
    let tensors = [("x".to_owned(), tensor(DType::Int32, &[0, 1, 2, 3, 4]))].into();
    match run(&program, Inputs { tensors, scalars: BTreeMap::new() }) {
        Err(RunError::OutOfBounds(found)) => assert_eq!(found.element, [8]),
        other => panic!("{other:?}"),
    }
}

#[test]
fn mistakes_are_explained() {
    for (source, wanted) in [
        (
            "def f(float(N) x) -> (y) { y(i) = x(i) & 1 }",
            "type-mismatch: `&` takes integers, and this is float32 (logical and is `&&`",
        ),
        (
            "def f(float(N) x) -> (y) { y(i) = x(i) | x(i) }",
            "type-mismatch: `|` takes integers, and this is float32 (logical or is `||`",
        ),
        (
            "def f(float(N) x) -> (y) { y(i) = x(i) ^ 2 }",
            "type-mismatch: `^` takes integers, and this is float32 (a power is `x ** y`",
        ),
        (
            "def f(float(N) x) -> (y) { y(i) = ~x(i) }",
            "type-mismatch: `~` takes integers, and this is float32",
        ),
        (
            "def f(float(N) x) -> (y) { y(i) = x(i) << 2 }",
            "type-mismatch: `<<` takes integers, and this is float32 (multiply",
        ),
        (
            "def f(int(N) x, float n) -> (y) { y(i) = x(i) >> n }",
            "type-mismatch: `>>` takes integers, and this is float32",
        ),
        (
            "def f(int(N) x) -> (y) { y(i) = x(i) >> -1 }",
            "type-mismatch: a shift by the negative number -1 (to shift the other way write `<<`)",
        ),
        (
            "def f(int(N) x) -> (y) { y(i) = x(i) ** -1 }",
            "type-mismatch: an integer to the power of -1 is a fraction",
        ),
        ("def f() -> (y) { y = 2 ** -1 }", "type-mismatch: an integer to the power of -1 is a fraction"),
        (
            "def f(float(N) x) -> (y) { y(i) = popcount(x(i)) }",
            "type-mismatch: `popcount` takes integers, and this is float32",
        ),
        (
            "def f(int64(N) x) -> (y) { y(i) = widening_mul(x(i), x(i)) }",
            "type-mismatch: `widening_mul` has no type for the product of int64 numbers",
        ),
        (
            "def f(float(N) x) -> (y) { y(i) = widening_mul(x(i), x(i)) }",
            "type-mismatch: `widening_mul` takes integers, and this is float32",
        ),
        (
            "def f(float(N) x) -> (y) { y(i) = random(x(i)) }",
            "type-mismatch: `philox` takes integers, and this is float32",
        ),
        (
            "def f() -> (y) { y = random() }",
            "rank-mismatch: `random` takes 1 to 5 arguments, but this call has 0",
        ),
        (
            "def f(uint64(N) a, int(N) b) -> (y) { y(i) = a(i) & b(i) }",
            "type-mismatch: no type holds both uint64 and int32",
        ),
        (
            "def f(int8(N) a) -> (int32(N) y) { y(i) = a(i) << 4 }",
            "type-mismatch: this is computed in int8, where it may wrap",
        ),
        ("def f(float(N) x) -> (y) { y(i) = x(i) where i in 0:2**N }", "invalid-range"),
    ] {
        let found = refusal(source);
        assert!(found.contains(wanted), "{source}\n{found}");
    }
}

#[test]
fn random_bits_are_those_of_philox() {
    use DType::UInt32;
    expect(
        "def f() -> (a, b, c, d, e, g) {
           a = philox(0, 0, 0, 0, 0, 0)
           b = philox(0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)
           c = random_bits(0)
           d = random_bits(-1, -1, -1, -1, -1)
           e = random_bits(0x299f31d0a4093822, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344)
           g = random_bits(0x299f31d0a4093822ul, 0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344u)
         }",
        &[
            ("a", UInt32, 0x6627_e8d5),
            ("b", UInt32, 0x408f_276d),
            ("c", UInt32, 0x6627_e8d5),
            ("d", UInt32, 0x408f_276d),
            ("e", UInt32, 0xd16c_fe09),
            ("g", UInt32, 0xd16c_fe09),
        ],
    );
}

#[test]
fn random_numbers_are_uniform() {
    let count = 1 << 14;
    let source = "def f(int seed) -> (r, b) {
      r(i, j) = random(seed, i, j) where i in 0:128, j in 0:128
      b(i, j) = random_bits(seed, i, j) where i in 0:128, j in 0:128 }";
    let program = program_at(source, &[]);
    let draw = |seed: i128| {
        let scalars = [("seed".to_owned(), Number::Int(seed))].into();
        run(&program, Inputs { tensors: BTreeMap::new(), scalars }).unwrap()
    };
    let found = draw(7);
    let numbers: Vec<f64> = (0..count).map(|at| found["r"].get(at).as_f64()).collect();
    let bits: Vec<i128> = integers(&found["b"]);
    assert!(numbers.iter().all(|own| (0.0..1.0).contains(own)));
    assert!(numbers.iter().zip(&bits).all(|(own, bits)| *own == (bits >> 8) as f64 / 16_777_216.0));
    // Ten standard deviations: the numbers are fixed, so the test cannot fail by chance.
    let mean = numbers.iter().sum::<f64>() / count as f64;
    let variance = numbers.iter().map(|own| (own - mean).powi(2)).sum::<f64>() / count as f64;
    assert!((mean - 0.5).abs() < 10.0 * (1.0 / 12.0f64).sqrt() / 128.0, "{mean}");
    assert!((variance - 1.0 / 12.0).abs() < 0.005, "{variance}");
    // Every bit is set in half of the numbers.
    for bit in 0..32 {
        let set = bits.iter().filter(|own| *own >> bit & 1 == 1).count();
        assert!(set.abs_diff(count / 2) < 640, "bit {bit}: {set}");
    }
    // The numbers fill 64 equal intervals evenly: the statistic has 63 degrees of freedom.
    let mut filled = [0u32; 64];
    numbers.iter().for_each(|own| filled[(own * 64.0) as usize] += 1);
    let expected = count as f64 / 64.0;
    let statistic: f64 = filled.iter().map(|own| (f64::from(*own) - expected).powi(2) / expected).sum();
    assert!((20.0..130.0).contains(&statistic), "{statistic}");
    // Neighbours, and the numbers of another seed, are not correlated.
    let correlation = |other: &dyn Fn(usize) -> f64| {
        let sum: f64 = (0..count).map(|at| (numbers[at] - 0.5) * (other(at) - 0.5)).sum();
        12.0 * sum / count as f64
    };
    let other = draw(8);
    assert!(correlation(&|at| numbers[(at + 1) % count]).abs() < 0.05);
    assert!(correlation(&|at| numbers[(at + 128) % count]).abs() < 0.05);
    assert!(correlation(&|at| other["r"].get(at).as_f64()).abs() < 0.05);
}
