//! Hostile text is refused quickly, with a message.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its files has failed")]

use std::time::{Duration, Instant};

use tilewright_ir::verify;
use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, Code, check, diagnose, parse};

/// The codes that are found. Asserts that finding and drawing the messages takes little time and
/// space.
fn codes(source: &str) -> Vec<Code> {
    let start = Instant::now();
    let all = diagnose(&parse(source), &Bindings::default());
    for diagnostic in &all {
        let drawn = diagnostic.render("hostile.tw", source, Style::default());
        assert!(drawn.len() < 10_000, "a message of {} bytes", drawn.len());
    }
    // The limit is generous, because unoptimised builds on busy machines run this test too.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    all.into_iter().map(|diagnostic| diagnostic.code).collect()
}

fn function(body: &str) -> String {
    format!("def f(float(N) A) -> (O) {{ {body} }}")
}

#[test]
fn nesting_thousands_deep() {
    for (open, close) in
        [("(", ")"), ("-", ""), ("!", ""), ("exp(", ")"), ("A(", ")"), ("float(", ")"), ("1 ? 2 : ", "")]
    {
        let deep = format!("{}A(0){}", open.repeat(50_000), close.repeat(50_000));
        assert_eq!(codes(&function(&format!("O(i) = {deep}"))), [Code::TooComplex], "{open}");
    }
    let loops = "for t in 0:1 { ".repeat(50_000);
    assert!(codes(&function(&loops)).contains(&Code::TooComplex));
}

/// The checker and the verifier visit each level of nested subscripts only once.
#[test]
fn tables_in_tables() {
    let levels = 200;
    let source =
        format!("def f(int32(N) x) -> (y) {{ y(i) = {}i{} }}", "x(".repeat(levels), ")".repeat(levels));
    assert_eq!(codes(&source), []);
    let start = Instant::now();
    let program = check(&parse(&source).ast, "f", &Bindings::default()).program.unwrap();
    assert!(verify(&program).is_ok());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn chains_thousands_long() {
    let sum = vec!["A(i)"; 20_000].join(" + ");
    assert_eq!(codes(&function(&format!("O(i) = {sum}"))), [Code::TooComplex]);
    // Chains inside chains add up without any one of them being long.
    let mut chain = "A(i)".to_owned();
    for _ in 0..40 {
        chain = format!("({chain}){}", " + 1".repeat(200));
    }
    assert_eq!(codes(&function(&format!("O(i) = {chain}"))), [Code::TooComplex]);
}

#[test]
fn bindings_that_double() {
    let doubling: Vec<String> = (1..60).map(|at| format!("x{at} = x{} + x{}", at - 1, at - 1)).collect();
    let found = codes(&function(&format!("O(i) = x59 where x0 = A(i), {}", doubling.join(", "))));
    assert!(found.contains(&Code::TooComplex));
    let squaring: Vec<String> = (1..12).map(|at| format!("x{at} = x{} * x{}", at - 1, at - 1)).collect();
    let found = codes(&function(&format!("O(i) = A(x11) where x0 = i + j + k + l, {}", squaring.join(", "))));
    assert!(found.contains(&Code::TooComplex));
}

#[test]
fn calls_that_double() {
    let mut module = String::from("def f0(float(N) A) -> (O) { O(i) = A(i) }\n");
    for at in 1..40 {
        let inner = at - 1;
        module.push_str(&format!("def f{at}(float(N) A) -> (O) {{ x = f{inner}(A) O = f{inner}(x) }}\n"));
    }
    assert_eq!(codes(&module), [Code::TooComplex]);
    // The message shows the call that is too much, not one that is inlined.
    let checked = check(&parse(&module).ast, "f39", &Bindings::default());
    let (span, _) = checked.diagnostics[0].primary;
    assert_eq!(&module[span.start as usize..span.end as usize], "O = f13(x)");
}

/// A pyramid of 8 levels that calls two functions with seven preconditions for each level.
#[test]
fn many_preconditions() {
    let mut module = String::from(
        "def crop(float(.., H, W) f, int m) -> (inner)
             requires m >= 0, H >= 2*m, W >= 2*m, H - 2*m >= 1, W > 2*m {
           inner(.., y, x) = f(.., y + m, x + m) where y in 0:H - 2*m, x in 0:W - 2*m
         }
         def down(float(.., H, W) f) -> (small) requires H >= 3, W >= 3 {
           small(.., y, x) = f(.., 2*y, 2*x) + f(.., 2*y + 1, 2*x + 1) + f(.., 2*y + 2, 2*x + 2)
         }
         def pyramid(float(H, W) level, int m) -> (level8) requires m >= 0 {\n",
    );
    for at in 1..=8 {
        let finer = if at == 1 { "level".to_owned() } else { format!("level{}", at - 1) };
        module.push_str(&format!("inner{at} = crop({finer}, m) level{at} = down(inner{at})\n"));
    }
    module.push('}');
    assert_eq!(codes(&module), []);
}

/// An equation with quotients relates all sizes, and every proof may use it.
#[test]
fn quotients_in_a_precondition() {
    let pipeline = include_str!("../../../examples/pipelines/bgu.tw");
    let equation = "requires cell >= 1, factor == max((H + h - 1) / h, (W + w - 1) / w) {";
    let source = pipeline.replace("requires cell >= 1 {", equation);
    assert!(source.contains(equation));
    assert_eq!(codes(&source), []);
}

#[test]
fn numbers_too_large() {
    for body in [
        "O(i) = A(9223372036854775807 * i * 9223372036854775807)",
        "O(i) = A(i) where i in 0:9223372036854775807 * 2",
        "O(i) = A(i + 18446744073709551615)",
        "O(i) = A(i) + 99999999999999999999999999",
    ] {
        assert!(!codes(&function(body)).is_empty(), "{body}");
    }
}

/// A given scalar produces large numbers that do not occur in the text.
#[test]
fn scalars_too_large() {
    let with = |k: i64| {
        let mut bindings = Bindings::default();
        bindings.set("N", 6);
        bindings.set("k", k);
        bindings
    };
    for body in [
        "y(i) = x(clamp(i + 2*k, 0, N - 1)) where i in 0:N",
        "y(i) = i - k > 0 ? x(i) : 0",
        "y(i) = 0 where i in 0:N\n for t in k:k + 2 { y(i) = y(i) + x(i) }",
    ] {
        let source = format!("def f(float(N) x, int64 k) -> (y) {{ {body} }}");
        for k in [i64::MIN, i64::MIN + 1, i64::MAX, 1 << 62] {
            let checked = check(&parse(&source).ast, "f", &with(k));
            let errors = checked.diagnostics.iter().filter(|found| found.is_error());
            assert_eq!(errors.map(|found| found.code).collect::<Vec<_>>(), [Code::TooComplex], "{body} {k}");
        }
        assert!(check(&parse(&source).ast, "f", &with(3)).program.is_some(), "{body}");
    }
}

#[test]
fn a_megabyte_of_garbage() {
    let mut state = 1u64;
    let mut garbage = String::new();
    while garbage.len() < 1 << 20 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        garbage.push(char::from_u32(32 + (state >> 33) as u32 % 0x2fff).unwrap_or('?'));
    }
    assert!(!codes(&garbage).is_empty());
    assert!(!codes(&"def ".repeat(1 << 18)).is_empty());
    assert!(!codes(&"(".repeat(1 << 20)).is_empty());
}

#[test]
fn unterminated_text() {
    for source in [
        "def",
        "def f",
        "def f(",
        "def f(float",
        "def f(float(",
        "def f() -> (",
        "def f() -> (O) {",
        "def f() -> (O) { O(",
        "#",
    ] {
        let found = codes(source);
        assert!(source == "#" || found.contains(&Code::Syntax), "{source}");
    }
}
