//! Canonical texts: equal for programs that differ only in names, different for all other changes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;
mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use examples::examples;
use proptest::prelude::*;
use support::{PRODUCT, SAME_PRODUCT, cpu, nameless, program};
use tilewright_cache::Canonical;
use tilewright_ir::Program;
use tilewright_schedule::{apply, schedule_by_rules, text};
use tilewright_syntax::lexer::{TokenKind, lex};
use tilewright_syntax::parse;

fn canonical(source: &str, sizes: &[(&str, i64)]) -> Canonical {
    Canonical::new(&program(source, None, sizes).unwrap_or_else(|| panic!("refused: {source}")))
}

#[test]
fn names_comments_and_layout_do_not_matter() {
    let one = canonical(PRODUCT, &[("M", 64), ("K", 32), ("N", 16)]);
    let other = canonical(SAME_PRODUCT, &[("X", 64), ("Y", 32), ("Z", 16)]);
    assert_eq!(one.text(), other.text());
    assert_eq!(one.sizes(), other.sizes());
    assert_eq!(one.sizes(), [("s0".to_owned(), 64), ("s1".to_owned(), 32), ("s2".to_owned(), 16)]);
    assert_eq!((one.title().as_str(), other.title().as_str()), ("mm M=64,K=32,N=16", "gemm X=64,Y=32,Z=16"));
    assert_eq!((one.program_size_name("s1"), other.program_size_name("s1")), ("K", "Y"));
    assert_eq!(
        one.text(),
        "program 1\ns0 size from 1\ns1 size from 1\ns2 size from 1\nt0 input float32(s0, s1)\nt1 input float32(s1, s2)\n\
         t2 output float32(s0, s2)\nstage t2\n\
         t2[v0, v1] +=! *:float32(t0[v0, v2]:float32, t1[v2, v1]:float32) over v0 spatial 0:s0, v1 spatial 0:s2, v2 reduction 0:s1\n"
    );
}

#[test]
fn whatever_changes_the_meaning_changes_the_text() {
    let variants = [
        PRODUCT,
        "def mm(double(M,K) A, double(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        "def mm(float(M,K) A, const float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) max=! A(i,k) * B(k,j) }",
        "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) += A(i,k) * B(k,j) }",
        "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) + B(k,j) }",
        "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! B(k,j) * A(i,k) }",
        "def mm(float(M,K) A, float(N,K) B) -> (C) { C(i,j) +=! A(i,k) * B(j,k) }",
        "def mm(float(M,K) A, float(K,N) B) -> (C) { C(j,i) +=! A(i,k) * B(k,j) }",
        "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) * 2 }",
        "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) * 2.5 }",
        "def mm(float(M,M) A, float(M,M) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }",
        "def mm(float a, float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! a * A(i,k) * B(k,j) }",
        "def mm(float(M,K) A, float(K,N) B) -> (D, C) { D(i,j) = A(i,j) C(i,j) +=! A(i,k) * B(k,j) }",
        "def mm(float(M,K) A, float(K,N) B) -> (C) { D(i,j) = A(i,j) C(i,j) +=! D(i,k) * B(k,j) }",
    ];
    let texts: BTreeSet<String> =
        variants.iter().map(|source| canonical(source, &[]).text().to_owned()).collect();
    assert_eq!(texts.len(), variants.len(), "{texts:#?}");
    // The rounding of products is part of the meaning, also of the program for all sizes.
    let product = program(PRODUCT, None, &[("M", 8), ("K", 8), ("N", 8)]).unwrap();
    let exact = Canonical::new(&product.clone().without_contraction());
    assert!(!texts.contains(exact.text()), "{}", exact.text());
    assert_eq!(exact.text().replace("every operation rounded\n", ""), Canonical::new(&product).text());
}

/// The program with every open size set to a small number, if it accepts them.
fn at_sizes(source: &str, name: &str, first: i64) -> Option<(Program, Vec<(String, i64)>)> {
    let open = program(source, Some(name), &[])?;
    let values: Vec<(String, i64)> = open
        .symbols
        .iter()
        .enumerate()
        .map(|(at, symbol)| (symbol.name.clone(), first + at as i64 % 3))
        .collect();
    let sizes: Vec<(&str, i64)> = values.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let program = program(source, Some(name), &sizes).filter(Program::is_concrete)?;
    Some((program, values))
}

fn functions(source: &str) -> Vec<String> {
    parse(source).ast.functions.iter().map(|function| function.name.text.clone()).collect()
}

#[test]
fn the_text_does_not_depend_on_the_sizes() {
    let mut compared = 0;
    for path in examples() {
        let source = fs::read_to_string(&path).unwrap();
        for name in functions(&source) {
            let Some(open) = program(&source, Some(&name), &[]) else { continue };
            let open = Canonical::new(&open);
            for first in [6, 17, 40] {
                let Some((program, _)) = at_sizes(&source, &name, first) else { continue };
                assert_eq!(Canonical::new(&program).text(), open.text(), "{}: {name}", path.display());
                compared += 1;
            }
        }
    }
    assert!(compared > 60, "{compared}");
}

/// The temporaries of every call have names. A schedule with these names can be translated to
/// another program's names.
#[test]
fn schedules_of_functions_called_twice_are_renamed() {
    let one = "def f(float(N) x) -> (y) { t(i) = exp(x(i))\n y(i) = t(i) + t(N - 1 - i) }
        def g(float(N) x) -> (z) { a = f(x)\n z = f(a) }";
    let other = "def first(float(M) p) -> (q) { r(k) = exp(p(k))\n q(k) = r(k) + r(M - 1 - k) }
        def second(float(M) p) -> (q) { s = first(p)\n q = first(s) }";
    let (one, other) = (canonical(one, &[("N", 64)]), canonical(other, &[("M", 64)]));
    assert_eq!(one.text(), other.text());
    let steps = "split f.t.i -> io, ii:8\nvectorize f.t.ii\nsplit f_2.t.i -> io, ii:4\nvectorize f_2.t.ii\n";
    let kept = one.to_canonical(&text::parse(steps).schedule, &cpu());
    assert_eq!(kept.refusal, None);
    let there = other.to_program_names(&kept.schedule, &cpu());
    assert_eq!(there.refusal, None);
    let named: Vec<String> = there.schedule.to_string().lines().map(str::to_owned).collect();
    assert!(
        named[0].starts_with("split first.r.k ") && named[2].starts_with("split first_2.r.k "),
        "{named:?}"
    );
}

/// The names of a source that can be replaced: functions, tensors, variables, sizes and scalars.
fn names(source: &str) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = functions(source).into_iter().collect();
    for function in functions(source) {
        let Some(program) = program(source, Some(&function), &[]) else { continue };
        let tensors = program.tensors.iter().flat_map(|tensor| tensor.name.split('.'));
        let others = program.symbols.iter().map(|symbol| symbol.name.as_str());
        let others = others.chain(program.scalars.iter().map(|scalar| scalar.name.as_str()));
        let others = others.chain(program.vars.iter().map(|var| var.name.as_str()));
        names.extend(tensors.chain(others).map(str::to_owned));
    }
    // A tensor may have the name of the keyword `in`. Only its position tells them apart.
    names.remove("in");
    names
}

/// The source with other names, in another alphabetical order, and a comment on every line.
fn renamed(source: &str, new: &BTreeMap<String, String>) -> String {
    let (tokens, diagnostics) = lex(source);
    assert!(diagnostics.is_empty());
    let mut out = String::new();
    let mut done = 0;
    for token in tokens {
        let text = token.span.text(source);
        out.push_str(&source[done..token.span.start as usize]);
        let is_name = matches!(token.kind, TokenKind::Word(_));
        out.push_str(new.get(text).filter(|_| is_name).map_or(text, String::as_str));
        done = token.span.end as usize;
    }
    out.push_str(&source[done..]);
    out.replace('\n', "   # a remark\n\n")
}

fn new_names(source: &str, seed: u64) -> BTreeMap<String, String> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 40
    };
    let fresh = |letter: u64, at: usize| format!("{}n{at}", char::from(b'a' + (letter % 26) as u8));
    names(source).into_iter().enumerate().map(|(at, name)| (name, fresh(next(), at))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// A schedule kept under one naming is legal under another one, and makes the same loops.
    #[test]
    fn examples_under_random_names(which in 0..1000usize, seed in any::<u64>()) {
        let all = examples();
        let source = fs::read_to_string(&all[which % all.len()]).unwrap();
        let new = new_names(&source, seed);
        let other_source = renamed(&source, &new);
        for name in functions(&source) {
            let Some((own, sizes)) = at_sizes(&source, &name, 9) else { continue };
            let sizes: Vec<(&str, i64)> =
                sizes.iter().map(|(name, value)| (new[name].as_str(), *value)).collect();
            let other = program(&other_source, Some(&new[&name]), &sizes);
            let other = other.unwrap_or_else(|| panic!("refused:\n{other_source}"));
            let (one, two) = (Canonical::new(&own), Canonical::new(&other));
            prop_assert_eq!(one.text(), two.text(), "{}\n{}", source, other_source);
            prop_assert_eq!(one.sizes(), two.sizes());

            let schedule = schedule_by_rules(&own, &cpu());
            let kept = one.to_canonical(&schedule, &cpu());
            prop_assert_eq!(&kept.refusal, &None);
            let read = text::parse(&kept.schedule.to_string());
            prop_assert!(read.diagnostics.is_empty(), "{:?}", read.diagnostics);
            let found = two.to_program_names(&read.schedule, &cpu());
            prop_assert_eq!(&found.refusal, &None);
            let loops = |program, schedule| nameless(apply(program, schedule, &cpu()).unwrap());
            prop_assert_eq!(loops(&own, &schedule), loops(&other, &found.schedule));
            // The kept text is the same for all namings.
            prop_assert_eq!(two.to_canonical(&found.schedule, &cpu()).schedule, kept.schedule);
        }
    }
}
