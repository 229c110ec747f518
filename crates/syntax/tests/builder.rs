//! A builder and the text make the same programs, and refuse the same ones. What a builder accepts
//! comes back from its own text.

#![allow(clippy::unwrap_used, reason = "a test that cannot build its program has failed")]

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tilewright_ir::builder::{Element, Index, ProgramBuilder, Size, Tensor, Value, Var};
use tilewright_ir::{DType, Program, ReduceOp, print, verify};
use tilewright_syntax::{Bindings, check, parse};

const FLOAT: DType = DType::Float32;

fn from_text(source: &str) -> Option<Program> {
    let parsed = parse(source);
    assert_eq!(parsed.diagnostics, [], "{source}");
    check(&parsed.ast, "f", &Bindings::default()).program
}

/// Checks that the builder and the text make the same program, and that its own text does too.
fn assert_same(built: ProgramBuilder, source: &str) {
    let built = built.build().unwrap();
    assert_eq!(verify(&built), Ok(()));
    assert_eq!(from_text(source).as_ref(), Some(&built));
    assert_eq!(from_text(&print::source(&built)).as_ref(), Some(&built), "{}", print::source(&built));
}

#[test]
fn a_matrix_product_is_the_same() {
    let mut p = ProgramBuilder::new("f");
    let (m, k, n) = (p.size("M"), p.size("K"), p.size("N"));
    let (a, b) = (p.input("A", FLOAT, (m, k)), p.input("B", FLOAT, (k, n)));
    let c = p.output("C", FLOAT, (m, n));
    let (i, j, l) = (p.index("i", 0, m), p.index("j", 0, n), p.index("k", 0, k));
    p.reduce(ReduceOp::Add, c.at((i, j)), a.at((i, l)) * b.at((l, j)));
    assert_same(p, "def f(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }");
}

#[test]
fn a_recurrence_is_the_same() {
    let mut p = ProgramBuilder::new("f");
    let n = p.size("N");
    let (x, y) = (p.input("x", FLOAT, n), p.output("y", FLOAT, n));
    p.assign(y.at(0), x.at(0));
    p.ordered_loop("t", 1, n, |p, t| p.assign(y.at(t), y.at(t - 1) * 0.5 + x.at(t)));
    let text =
        "def f(float(N) x) -> (float(N) y) { y(0) = x(0) for t in 1:N { y(t) = y(t-1) * 0.5 + x(t) } }";
    assert_same(p, text);
}

#[test]
fn a_histogram_of_data_is_the_same() {
    let mut p = ProgramBuilder::new("f");
    let n = p.size("N");
    let (x, h) = (p.input("x", DType::UInt8, n), p.output("h", DType::Int32, 256));
    let i = p.index("i", 0, n);
    p.reduce(ReduceOp::Add, h.at(Index::data(x.at(i))), 1);
    assert_same(p, "def f(uint8(N) x) -> (int32(256) h) { h(x(i)) +=! 1 }");
}

#[test]
fn operators_on_bits_are_the_same() {
    let mut p = ProgramBuilder::new("f");
    let n = p.size("N");
    let (x, y) = (p.input("x", DType::UInt8, n), p.output("y", DType::UInt8, n));
    let i = p.index("i", 0, n);
    let shifted = (x.at(i) << 3) ^ (x.at(i) >> x.at(i));
    p.assign(y.at(i), !(shifted & 15) | Value::from(x.at(i)).power(3));
    let text = "def f(uint8(N) x) -> (y) { y(i) = ~((x(i) << 3 ^ x(i) >> x(i)) & 15) | x(i) ** 3 }";
    assert_same(p, text);
}

#[test]
fn operators_on_bits_refuse_the_same() {
    let refused = |value: fn(Element) -> Value, dtype: DType| {
        let mut p = ProgramBuilder::new("f");
        let n = p.size("N");
        let (x, y) = (p.input("x", dtype, n), p.output("y", dtype, n));
        let i = p.index("i", 0, n);
        p.assign(y.at(i), value(x.at(i)));
        p.build().unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert!(refused(|x| x & 1, FLOAT).contains("`&` does not take float32 operands"));
    assert!(refused(|x| x << -1, DType::Int32).contains("`<<` does not take the negative number -1"));
    assert!(
        refused(|x| Value::from(x).power(-1), DType::Int32).contains("does not take the negative number")
    );
}

/// A subscript over `i` and `j`, as text and as an index.
#[derive(Clone, Copy, Debug)]
enum Subscript {
    Shift(i64),
    Other(i64),
    Stride(i64, i64),
    Half(i64),
    Remainder(i64),
    Clamped(i64),
    Reversed(i64),
}

impl Subscript {
    fn text(self) -> String {
        match self {
            Subscript::Shift(by) => format!("i + {by}"),
            Subscript::Other(by) => format!("j + {by}"),
            Subscript::Stride(by, shift) => format!("{by}*i + j + {shift}"),
            Subscript::Half(shift) => format!("(i + {shift})/2"),
            Subscript::Remainder(by) => format!("(i + j) % {by}"),
            Subscript::Clamped(by) => format!("min(max(i + {by}, 0), N - 1)"),
            Subscript::Reversed(by) => format!("N - 1 - i + {by}"),
        }
    }

    fn index(self, Names { n, i, j, .. }: Names) -> Index {
        match self {
            Subscript::Shift(by) => i + by,
            Subscript::Other(by) => j + by,
            Subscript::Stride(by, shift) => by * i + j + shift,
            Subscript::Half(shift) => (i + shift) / 2,
            Subscript::Remainder(by) => (i + j) % by,
            Subscript::Clamped(by) => (i + by).max(0).min(n - 1),
            Subscript::Reversed(by) => n - 1 - i + by,
        }
    }
}

#[derive(Clone, Copy)]
struct Names {
    n: Size,
    a: Tensor,
    i: Var,
    j: Var,
}

fn subscript() -> impl Strategy<Value = Subscript> {
    let shift = -2i64..=2;
    prop_oneof![
        shift.clone().prop_map(Subscript::Shift),
        shift.clone().prop_map(Subscript::Other),
        (1i64..=3, shift.clone()).prop_map(|(by, shift)| Subscript::Stride(by, shift)),
        shift.clone().prop_map(Subscript::Half),
        (2i64..=3).prop_map(Subscript::Remainder),
        shift.clone().prop_map(Subscript::Clamped),
        shift.prop_map(Subscript::Reversed),
    ]
}

/// Whether a condition keeps the access to `A` in bounds.
fn access_text(subscript: Subscript, guarded: bool) -> String {
    let index = subscript.text();
    match guarded {
        true => format!("(({index}) >= 0 && ({index}) < N ? A({index}) : 0)"),
        false => format!("A({index})"),
    }
}

fn access(subscript: Subscript, guarded: bool, names: Names) -> Value {
    let index = || subscript.index(names);
    let element: Element = names.a.at(index());
    match guarded {
        true => {
            let inside = Value::from(index()).at_least(0).and(Value::from(index()).less(names.n));
            Value::select(inside, element, 0)
        }
        false => element.into(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn builder_and_text_agree(
        left in (subscript(), any::<bool>()),
        right in (subscript(), any::<bool>()),
        (from, end) in (0i64..=1, -1i64..=1),
        reduces in any::<bool>(),
    ) {
        let mut p = ProgramBuilder::new("f");
        let (n, m) = (p.size("N"), p.size("M"));
        let a = p.input("A", FLOAT, n);
        let b = p.input("B", FLOAT, m);
        let o = if reduces { p.output("O", FLOAT, n) } else { p.output("O", FLOAT, (n, m)) };
        let (i, j) = (p.index("i", from, n + end), p.index("j", 0, m));
        let names = Names { n, a, i, j };
        let value = access(left.0, left.1, names) * b.at(j) + access(right.0, right.1, names);
        if reduces { p.reduce(ReduceOp::Add, o.at(i), value) } else { p.assign(o.at((i, j)), value) }
        let built = p.build();
        let value = format!("{} * B(j) + {}", access_text(left.0, left.1), access_text(right.0, right.1));
        let (target, shape) = if reduces { ("O(i) +=!", "N") } else { ("O(i, j) =", "N, M") };
        let source = format!(
            "def f(float(N) A, float(M) B) -> (float({shape}) O) {{ {target} {value} where i in {from}:N + {end}, j in 0:M }}"
        );
        let text = from_text(&source);
        prop_assert_eq!(built.as_ref().ok(), text.as_ref(), "{:?}\n{}", built.as_ref().err(), source);
        if let Some(program) = text {
            prop_assert_eq!(verify(&program), Ok(()), "{}", source);
            let own = print::source(&program);
            prop_assert_eq!(from_text(&own), Some(program), "{}", own);
        }
    }
}
