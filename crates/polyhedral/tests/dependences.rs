//! Tests of the dependences of small programs against results that were worked out by hand.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_ir::Program;
use tilewright_isl::Context;
use tilewright_polyhedral::{Dependence, DependenceKind, Model, dependences, text};
use tilewright_syntax::{Bindings, check, parse};

fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let bindings: Bindings = sizes.iter().copied().collect();
    let name = &parsed.ast.functions.last().unwrap().name.text;
    let checked = check(&parsed.ast, name, &bindings);
    checked.program.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

/// The kind, the two statements, and the flags `exact` and `relaxed` of every dependence, without
/// duplicates.
fn kinds(found: &[Dependence]) -> Vec<(DependenceKind, usize, usize, bool, bool)> {
    let mut kinds: Vec<_> =
        found.iter().map(|own| (own.kind, own.from, own.to, own.exact, own.relaxed)).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

fn kinds_of(source: &str, sizes: &[(&str, i64)]) -> Vec<(DependenceKind, usize, usize, bool, bool)> {
    let program = program(source, sizes);
    let context = Context::new();
    let model = Model::new(&context, &program).unwrap();
    kinds(&dependences(&model).unwrap())
}

#[test]
fn statements_that_share_nothing_do_not_depend() {
    assert_eq!(kinds_of("def f(float(N) x) -> (y, z) { y(i) = x(i)\n z(i) = x(i) + 1 }", &[("N", 5)]), []);
}

#[test]
fn a_temporary_flows_to_its_reader() {
    let source = "def f(float(N) x) -> (y) { t(i) = x(i)\n y(i) = t(i) + t(N - 1 - i) }";
    assert_eq!(kinds_of(source, &[("N", 5)]), [(DependenceKind::Flow, 0, 1, true, false)]);
}

#[test]
fn elements_that_never_meet_do_not_depend() {
    // The odd elements are read before the even ones are overwritten.
    let source = "def f(float(N) x) -> (y, t) { t(i) = x(i / 2) where i in 0:2*N
        y(i) = t(2 * i + 1) where i in 0:N
        t(2 * i) = 0 where i in 0:N }";
    assert_eq!(
        kinds_of(source, &[("N", 5)]),
        [(DependenceKind::Flow, 0, 1, true, false), (DependenceKind::Output, 0, 2, true, false)]
    );
}

#[test]
fn quotients_remainders_and_clamps_are_exact() {
    let source = "def f(float(N) x) -> (y, t) { t(i) = x(i)
        y(i) = t(min(i, 2)) + t(i % 3) where i in 0:N
        t(i + 3) = 1 where i in 0:N-3 }";
    let found = kinds_of(source, &[("N", 8)]);
    assert!(
        !found.iter().any(|own| own.0 == DependenceKind::Anti),
        "only elements 0 to 2 are read: {found:?}"
    );
}

#[test]
fn conditions_on_indices_are_exact() {
    let source = "def f(float(N) x) -> (y, t) { t(i) = x(i)
        y(i) = i < 3 ? t(i) : 0
        t(i + 3) = 1 where i in 0:N-3 }";
    assert!(!kinds_of(source, &[("N", 8)]).iter().any(|own| own.0 == DependenceKind::Anti));
}

#[test]
fn what_data_decides_is_marked() {
    let source = "def f(float(N) x, int32(N) at) -> (y) { t(i) = x(i)\n y(i) = t(clamp(at(i), 0, N - 1)) }";
    assert_eq!(kinds_of(source, &[("N", 5)]), [(DependenceKind::Flow, 0, 1, false, false)]);
    let histogram = "def f(int32(N) at) -> (int32(4) h) { h(clamp(at(i), 0, 3)) +=! 1 }";
    assert_eq!(kinds_of(histogram, &[("N", 5)]), [(DependenceKind::Output, 0, 0, false, true)]);
}

#[test]
fn reductions_are_relaxed() {
    let source = "def f(float(N, M) x) -> (s) { s(i) +=! x(i, k) }";
    assert_eq!(kinds_of(source, &[("N", 3), ("M", 4)]), [(DependenceKind::Output, 0, 0, true, true)]);
}

#[test]
fn ordered_loops_carry_dependences_by_turn() {
    let source = "def f(float(N) a) -> (y) {
        x(i) = a(i)
        p(i) = 2 * x(i)
        y(i) = a(i)
        for t in 0:3 { y(i) = y(i) + p(i)
          x(i) = x(i) + 1 }
    }";
    let found = kinds_of(source, &[("N", 4)]);
    assert!(
        found.contains(&(DependenceKind::Anti, 1, 4, true, false)),
        "x changes after p has read it: {found:?}"
    );
    assert!(
        found.contains(&(DependenceKind::Flow, 3, 3, true, false)),
        "a turn needs the one before: {found:?}"
    );
    assert!(!found.iter().any(|own| (own.1, own.2) == (4, 1)), "p is computed before the loop: {found:?}");
}

#[test]
fn dependences_are_told_with_distances_and_instances() {
    let scan = "def scan(float(N, M) I) -> (O) {
        O(0, m) = I(0, m)
        for n in 1:N { O(n, m) = O(n - 1, m) + I(n, m) }
    }";
    let text = text::describe(&program(scan, &[("N", 6), ("M", 3)])).unwrap();
    assert!(text.contains("flow      S1 -> S1  O  [n: +1, m: same]"), "{text}");
    assert!(text.contains("the second reads O where the first has written it"), "{text}");
    assert!(text.contains("such as S1(n="), "{text}");
}
