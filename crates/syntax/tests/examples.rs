//! Snapshots of the programs that the examples become.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its files has failed")]

use std::fs;

use tilewright_ir::{print, verify};
use tilewright_syntax::{Bindings, check, parse, runs_alone};

#[test]
fn examples_become_programs() {
    insta::glob!("../../../examples", "*/*.tw", |path| {
        let source = fs::read_to_string(path).unwrap();
        let parsed = parse(&source);
        assert_eq!(parsed.diagnostics, [], "{}", path.display());
        let mut text = String::new();
        // Generic functions become programs where they are called.
        for function in parsed.ast.functions.iter().filter(|function| runs_alone(function)) {
            let checked = check(&parsed.ast, &function.name.text, &Bindings::default());
            assert_eq!(checked.diagnostics, [], "{}", path.display());
            let program = checked.program.unwrap();
            assert_eq!(verify(&program), Ok(()));
            text.push_str(&print::program(&program));
            text.push('\n');
        }
        insta::assert_snapshot!(text);
    });
}
