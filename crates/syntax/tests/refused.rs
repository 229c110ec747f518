//! Snapshots of the messages for every program that must be refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its files has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, Code, Diagnostic, diagnose, parse};

fn diagnostics(source: &str) -> Vec<Diagnostic> {
    diagnose(&parse(source), &Bindings::default())
}

#[test]
fn refused_programs_are_explained() {
    insta::glob!("refused/*.tw", |path| {
        let source = fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let rendered: Vec<String> =
            diagnostics(&source).iter().map(|found| found.render(name, &source, Style::default())).collect();
        insta::assert_snapshot!(rendered.join("\n\n"));
    });
}

/// `hostile.rs` tests deep nesting and oversized numbers.
#[test]
fn every_kind_of_diagnostic_has_a_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let mut seen = BTreeSet::from([Code::TooComplex]);
    for entry in fs::read_dir(folder).unwrap() {
        let source = fs::read_to_string(entry.unwrap().path()).unwrap();
        seen.extend(diagnostics(&source).iter().map(|found| found.code));
    }
    let missing: Vec<&Code> = Code::ALL.iter().filter(|code| !seen.contains(code)).collect();
    assert!(missing.is_empty(), "no program shows {missing:?}");
}
