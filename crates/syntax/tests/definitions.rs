//! Tests of named integers: the name means its expression.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_ir::print;
use tilewright_syntax::{Bindings, Code, check, parse};

/// The text of the last function's program, or the codes of its messages.
fn checked(source: &str) -> Result<String, Vec<Code>> {
    let parsed = parse(source);
    let name = parsed.ast.functions.last().map(|last| last.name.text.clone()).unwrap_or_default();
    let checked = check(&parsed.ast, &name, &Bindings::default());
    let all = parsed.diagnostics.iter().chain(&checked.diagnostics);
    let codes: Vec<Code> = all.map(|found| found.code).collect();
    if codes.is_empty() { Ok(print::source(&checked.program.unwrap())) } else { Err(codes) }
}

#[test]
fn a_name_means_its_expression() {
    for (signature, definitions, body) in [
        ("float(N) x", "int half_n = (N + 1) / 2", "y(i) = x(2*i) where i in 0:half_n"),
        ("float(N) x, int k", "int m = N + k; int64 n = m * 2", "y(i) = x(0) + n * m where i in 0:n - m"),
        ("float(N) x", "int m = x.0 / 4", "float(m + 1) y\n y(i) = x(i) where i in 0:m\n y(m) = m"),
        ("float(N) x", "int m = max(N, 4)", "y(i) = i < N ? x(i) : 0 where i in 0:m"),
    ] {
        let named = format!("def f({signature}) -> (y) {{ {definitions}\n {body} }}");
        let mut written = body.to_owned();
        for definition in definitions.split(';').rev() {
            let (name, value) = definition.split_once('=').unwrap();
            let name = name.split_whitespace().last().unwrap();
            // Only whole words are the name.
            let words = written.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_');
            let replaced = words.map(|word| {
                let bare = word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '_');
                if bare == name {
                    format!("({}){}", value.trim(), &word[bare.len()..])
                } else {
                    word.to_owned()
                }
            });
            written = replaced.collect();
        }
        let written = format!("def f({signature}) -> (y) {{ {written} }}");
        let (own, wanted) = (checked(&named), checked(&written));
        assert!(own.is_ok() || own == Err(vec![Code::EmptyRange]), "{named}\n{own:?}");
        assert_eq!(own, wanted, "{named}\n{written}");
    }
}

#[test]
fn a_called_function_has_its_own_names() {
    let source = "def inner(float(N) x) -> (y) { int m = N / 2\n y(i) = x(i) where i in 0:m }
        def f(float(M) x) -> (y) { int m = 3\n t(i) = x(i) * m\n y = inner(t) }";
    let text = checked(source).unwrap();
    assert!(text.contains("in 0:M/2"), "{text}");
}

#[test]
fn names_that_are_refused() {
    for (definition, code) in [
        ("int m = int(1 / a) + 3", Code::InvalidSize),
        ("int m = 1.5", Code::InvalidSize),
        ("int m = int(x(0))", Code::InvalidSize),
        ("float m = 1", Code::TypeMismatch),
        ("int8 m = 1", Code::TypeMismatch),
        ("int N = 1", Code::NameCollision),
        ("int a = 1", Code::NameCollision),
        ("int x = 1", Code::NameCollision),
        ("int m = 1; int m = 2", Code::NameCollision),
        ("int m = q", Code::UndefinedName),
        ("t = 1; int m = 2", Code::Syntax),
    ] {
        let source = format!("def f(float(N) x, float a) -> (y) {{ {definition}\n y(i) = x(i) * a }}");
        let found = checked(&source).unwrap_err();
        assert_eq!(found[0], code, "{source}\n{found:?}");
    }
}
