//! Tests of preconditions: what the proofs conclude from them, and where they are checked.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_ir::{Program, print};
use tilewright_syntax::{Bindings, Checked, Code, check, parse};

/// Checks the last function of a source, with warnings.
fn checked(source: &str, sizes: &[(&str, i64)]) -> Checked {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let name = parsed.ast.functions.last().unwrap().name.text.clone();
    check(&parsed.ast, &name, &sizes.iter().copied().collect::<Bindings>())
}

fn program(source: &str) -> Program {
    let Checked { program, diagnostics, .. } = checked(source, &[]);
    assert!(diagnostics.is_empty(), "{source}\n{diagnostics:#?}");
    program.unwrap()
}

fn codes(source: &str, sizes: &[(&str, i64)]) -> Vec<Code> {
    checked(source, sizes).diagnostics.iter().map(|found| found.code).collect()
}

fn shape(source: &str) -> String {
    let program = program(source);
    print::tensor_type(&program, program.find_tensor("y").unwrap())
}

/// Signature without preconditions, preconditions, body.
const NEEDED: &[[&str; 3]] = &[
    ["float(H) x, float(P) p", "P <= H", "y(i) = x(H - P + i) * p(i) where i in 0:P"],
    ["float(N) x, int p", "0 <= p && p < N", "y(i) = x(p) where i in 0:N"],
    ["float(N) x, int p", "p >= 0, N > p", "y(i) = x(p) where i in 0:N"],
    ["float(M) x, float(N) z", "M == N", "y(i) = x(i) + z(i)"],
    ["float(M) x, float(N) z", "M == N + 1", "y(i) = x(i) + x(i + 1) + z(i) where i in 0:N"],
    [
        "float(C) x, int G",
        "C % G == 0",
        "float(C) y\n y(g*(C/G) + c) = x(g*(C/G) + c) where g in 0:G, c in 0:C/G",
    ],
    ["float(C) x", "C % 4 == 0", "float(C) y\n y(4*i + j) = x(i) where i in 0:C/4, j in 0:4"],
    [
        "float(C) x",
        "C % 3 == 1, C > 1",
        "float(C) y\n y(3*i + j) = x(i) where i in 0:C/3, j in 0:3\n y(C - 1) = 0",
    ],
    ["float(C) x, int G", "C % G == 0", "y(i) = x(i % (C/G)) where i in 0:C"],
    ["float(N) x", "N >= 100", "y(i) = x(i + 99) where i in 0:1"],
    ["float(N) x, int(S) start, int K", "S == K + 1", "y(k) = start(k + 1) - start(k) where k in 0:K"],
    ["float(A) x, float(B) z, float(C) w", "A <= B, B <= C", "y(i) = w(i) where i in 0:A"],
];

#[test]
fn proofs_use_preconditions() {
    for [signature, requires, body] in NEEDED {
        let source = format!("def f({signature}) -> (y) requires {requires} {{ {body} }}");
        let program = program(&source);
        // Nothing is left to check or to fill when the program runs.
        assert!(program.statements().iter().all(|(statement, _)| !statement.is_filler), "{source}");
    }
}

#[test]
fn programs_need_their_preconditions() {
    for [signature, requires, body] in NEEDED {
        let source = format!("def f({signature}) -> (y) {{ {body} }}");
        let is_needed = !codes(&source, &[]).is_empty();
        assert!(is_needed, "{source}\nis accepted without {requires}");
    }
}

#[test]
fn requirements_that_follow_are_not_listed() {
    let body = "{ y(i) +=! x(i + k) * w(k) }";
    let conv = |requires: &str| {
        checked(&format!("def f(float(N) x, float(K) w) -> (y) {requires} {body}"), &[]).requirements.len()
    };
    assert_eq!(conv(""), 1);
    assert_eq!(conv("requires K <= N"), 0);
    assert_eq!(conv("requires K <= N + 1"), 1);
}

#[test]
fn remainders_simplify_shapes_and_smaller_sizes_end_ranges() {
    let grouped = "def f(float(C) x, int G) -> (y) requires C % G == 0
        { y(g*(C/G) + c) = x(g*(C/G) + c) where g in 0:G, c in 0:C/G }";
    assert_eq!(shape(grouped), "float32(C)");
    let common =
        "def f(float(M) a, float(N) b) -> (y) requires M <= N { y(i) = a(i) * b(i) where i in 0:min(M, N) }";
    assert_eq!(shape(common), "float32(min(M, N))");
    let inferred = "def f(float(M) a, float(N + 1) b, float(N) c) -> (y) requires M <= N
        { y(i) = a(i) + b(i + 1) + c(0) }";
    assert_eq!(shape(inferred), "float32(M)");
}

#[test]
fn preconditions_are_checked_when_sizes_are_known() {
    let source = "def f(float(C) x, int G) -> (y) requires C % G == 0, C != 12 { y(i) = x(i) }";
    assert_eq!(codes(source, &[("C", 6), ("G", 3)]), []);
    assert_eq!(codes(source, &[("C", 6), ("G", 4)]), [Code::Precondition]);
    assert_eq!(codes(source, &[("C", 12), ("G", 4)]), [Code::Precondition]);
    // Some values may stay unknown.
    assert_eq!(codes(source, &[("C", 6)]), []);
    assert_eq!(codes(source, &[("C", 12)]), [Code::Precondition]);
    let general = program(source);
    assert!(general.at_sizes(&[3, 6]).is_ok());
    let mistakes = general.at_sizes(&[4, 6]).unwrap_err();
    assert_eq!(mistakes[0].to_string(), "the precondition C % G == 0 fails with G = 4, C = 6");
}

#[test]
fn calls_prove_or_inherit_preconditions() {
    let crop = "def crop(float(H) x, float(P) p) -> (y) requires P <= H { y(i) = x(H - P + i) * p(i) }\n";
    let inherited = |caller: &str| {
        let program = program(&format!("{crop}{caller}"));
        program.preconditions.iter().map(|own| own.text(&program)).collect::<Vec<_>>()
    };
    assert_eq!(inherited("def f(float(A) x, float(B) p) -> (y) { y = crop(x, p) }"), ["B <= A"]);
    assert_eq!(
        inherited("def f(float(A) x, float(B) p) -> (y) requires B < A { y = crop(x, p) }"),
        ["B < A"]
    );
    assert!(inherited("def f(float(A) x) -> (y) { y = crop(x, x) }").is_empty());
    assert!(inherited("def f(float(8) x, float(5) p) -> (y) { y = crop(x, p) }").is_empty());
    let through = "def g(float(A) x, float(B) p) -> (y) { t(i) = x(i) + x(i + 1)\n y = crop(t, p) }
        def f(float(A) x, float(B) p) -> (y) { y = g(x, p) }";
    assert_eq!(inherited(through), ["B <= A - 1"]);
    let caller = format!("{crop}def f(float(A) x, float(B) p) -> (y) {{ y = crop(x, p) }}");
    assert_eq!(codes(&caller, &[("A", 3), ("B", 3)]), []);
    assert_eq!(codes(&caller, &[("A", 3), ("B", 4)]), [Code::Precondition]);
}

#[test]
fn a_scalar_in_a_precondition_stays_known() {
    let with = program("def f(float(N) x, int k) -> (y) requires k > 2 { y(i) = k * x(i) }");
    let without = program("def f(float(N) x, int k) -> (y) { y(i) = k * x(i) }");
    let names = |program: &Program| program.symbols.iter().map(|own| own.name.clone()).collect::<Vec<_>>();
    assert_eq!((names(&with), names(&without)), (vec!["k".into(), "N".into()], vec!["N".to_owned()]));
}

#[test]
fn requires_is_an_ordinary_name_elsewhere() {
    program("def f(float(N) requires) -> y requires N > 1 { y(i) = requires(i) }");
}

#[test]
fn a_precondition_without_a_value_is_refused() {
    let quotient = "def f(float(N) x, int k) -> (y) requires N / (k - 3) >= 0 { y(i) = x(i) }";
    assert_eq!(codes(quotient, &[("k", 4)]), []);
    for sizes in [vec![("k", 3)], vec![("k", 3), ("N", 7)]] {
        let found = checked(quotient, &sizes).diagnostics;
        assert_eq!(found[0].message, "the precondition `N/(k - 3) >= 0` divides by 0");
        assert_eq!(found.len(), 1);
    }
    let mistakes = program(quotient).at_sizes(&[3, 7]).unwrap_err();
    assert!(
        mistakes[0].to_string().ends_with("has no value at these sizes: it divides by 0"),
        "{mistakes:?}"
    );
    let guarded = "def f(float(N) x, int k) -> (y) requires k != 3, N / (k - 3) >= 0 { y(i) = x(i) }";
    let found = checked(guarded, &[("k", 3)]).diagnostics;
    assert_eq!(found[0].message, "the sizes violate the precondition `k != 3`");
    let large = "def f(float(N) x) -> (y) requires N + 9223372036854775807 > N { y(i) = x(i) }";
    let found = checked(large, &[("N", 4)]).diagnostics;
    assert_eq!(found[0].message, "a number in the precondition `N + 9223372036854775807 > N` is too large");
    assert!(program(large).at_sizes(&[4]).is_err());
    let called = "def g(float(C) x, int G) -> (y) requires C % G == 0 { y(i) = x(i) }
        def f(float(C) x) -> (y) { y = g(x, 0) }";
    assert_eq!(codes(called, &[]), [Code::InvalidRange]);
}
