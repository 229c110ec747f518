//! The programs of docs/language.md do what the text says.

#![allow(clippy::unwrap_used, reason = "a test that cannot read the document has failed")]

use std::fs;
use std::path::Path;

use tilewright_syntax::{Bindings, check_module, parse};

/// Fenced blocks with their mark and the line they begin at.
fn blocks(text: &str) -> Vec<(usize, String, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(mark) = line.trim_start().strip_prefix("```") else { continue };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| line.trim_start() != "```").collect();
        blocks.push((at + 1, mark.trim().to_owned(), body.join("\n")));
    }
    blocks
}

/// The codes of the errors in a program, in the order of its text.
fn errors(source: &str) -> Vec<&'static str> {
    let parsed = parse(source);
    let mut found = parsed.diagnostics;
    found.extend(check_module(&parsed.ast, &Bindings::default()));
    found.sort_by_key(|diagnostic| diagnostic.primary.0);
    found.iter().filter(|diagnostic| diagnostic.is_error()).map(|diagnostic| diagnostic.code.name()).collect()
}

#[test]
fn the_language_reference_is_true() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/language.md");
    let text = fs::read_to_string(path).unwrap();
    let (mut accepted, mut refused) = (0, 0);
    for (line, mark, program) in blocks(&text) {
        match mark.split_once(' ') {
            None if mark == "tw" => {
                assert_eq!(errors(&program), [""; 0], "docs/language.md:{line} is accepted\n{program}");
                accepted += 1;
            }
            Some(("tw-error", code)) => {
                assert_eq!(errors(&program).first(), Some(&code), "docs/language.md:{line}\n{program}");
                refused += 1;
            }
            _ => {}
        }
    }
    assert!(accepted > 20 && refused > 20, "{accepted} accepted and {refused} refused programs found");
}
