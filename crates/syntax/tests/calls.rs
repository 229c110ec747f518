//! Tests of the messages about statements of called functions.

use tilewright_syntax::{Bindings, check, parse};

/// The text of each call that the messages about a function show.
fn call_sites(source: &str) -> Vec<String> {
    let parsed = parse(source);
    assert_eq!(parsed.diagnostics, []);
    let found = check(&parsed.ast, "f", &Bindings::default()).diagnostics;
    let sites = found.iter().flat_map(|diagnostic| &diagnostic.secondary);
    let is_call = |(_, label): &&(_, String)| label == "called from here";
    sites.filter(is_call).map(|(span, _)| span.text(source).to_owned()).collect()
}

const ADD: &str = "def add(float(M) u, float(K) v) -> (w) {\n  w(y) = u(y) + v(y)\n}\n";

#[test]
fn a_warning_about_two_sizes_shows_the_call_with_these_sizes() {
    let source =
        format!("{ADD}def f(float(H) a, float(W) b) -> (s, t) {{\n  s = add(a, a)\n  t = add(a, b)\n}}\n");
    assert_eq!(call_sites(&source), ["t = add(a, b)"]);
}

#[test]
fn an_error_shows_the_call_that_reads_outside() {
    let source = "def at(float(M) u, int k) -> (w) {\n  w(y) = u(y + k) where y in 0:1\n}\n\
                  def f(float(H) a) -> (s, t) {\n  s = at(a, 0)\n  t = at(a, 1)\n}\n";
    assert_eq!(call_sites(source), ["t = at(a, 1)"]);
}

#[test]
fn a_warning_about_narrow_integers_shows_the_call_with_these_types() {
    let source = "def mean<T>(T(M) u) -> (w) {\n  w(y) = (u(y) + u(y)) / 2.0\n}\n\
                  def f(float(H) a, uint8(H) b) -> (s, t) {\n  s = mean(a)\n  t = mean(b)\n}\n";
    assert_eq!(call_sites(source), ["t = mean(b)"]);
}

#[test]
fn the_same_mistake_in_two_calls_is_reported_once() {
    let source = "def mean(uint8(M) u) -> (w) {\n  w(y) = (u(y) + u(y)) / 2.0\n}\n\
                  def f(uint8(H) a, uint8(H) b) -> (s, t) {\n  s = mean(a)\n  t = mean(b)\n}\n";
    assert_eq!(call_sites(source), ["s = mean(a)"]);
}
