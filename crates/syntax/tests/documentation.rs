//! Checks that the programs of docs/language.md behave as the text says, and that the documents
//! name existing files.

#![allow(clippy::unwrap_used, reason = "a test that cannot read the document has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, Diagnostic, diagnose, parse};

/// The fenced blocks, each with its starting line and its mark.
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

fn diagnostics(source: &str) -> Vec<Diagnostic> {
    diagnose(&parse(source), &Bindings::default())
}

/// The codes of the errors in a program, in the order of its text.
fn errors(found: &[Diagnostic]) -> Vec<&'static str> {
    found.iter().filter(|diagnostic| diagnostic.is_error()).map(|diagnostic| diagnostic.code.name()).collect()
}

/// Returns true when the lines of a message, which may have been shortened, all occur in the drawn
/// messages, in order.
fn is_drawn(message: &str, source: &str, found: &[Diagnostic]) -> bool {
    let drawn: Vec<String> =
        found.iter().map(|found| found.render("example.tw", source, Style::default())).collect();
    let drawn = drawn.join("\n");
    let mut lines = drawn.lines().map(str::trim_end);
    message.lines().map(str::trim_end).all(|wanted| wanted.is_empty() || lines.any(|line| line == wanted))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_language_reference_is_true() {
    let text = read("docs/language.md");
    let (mut accepted, mut refused, mut messages) = (0, 0, 0);
    let mut last: Option<String> = None;
    for (line, mark, block) in blocks(&text) {
        match mark.split_once(' ') {
            None if mark == "tw" => {
                let found = diagnostics(&block);
                assert_eq!(errors(&found), [""; 0], "docs/language.md:{line} is accepted\n{block}");
                accepted += 1;
                last = None;
            }
            Some(("tw-error", code)) => {
                let found = diagnostics(&block);
                assert_eq!(errors(&found).first(), Some(&code), "docs/language.md:{line}\n{block}");
                refused += 1;
                last = Some(block);
            }
            None if mark.is_empty() && block.starts_with("error[") && block.contains("> example.tw:") => {
                if let Some(source) = last.take() {
                    let found = diagnostics(&source);
                    assert!(
                        is_drawn(&block, &source, &found),
                        "docs/language.md:{line} is not what is drawn\n{block}"
                    );
                    messages += 1;
                }
            }
            _ => {}
        }
    }
    assert!(
        accepted > 20 && refused > 20 && messages > 20,
        "{accepted}, {refused} and {messages} blocks found"
    );
}

#[test]
fn paths_that_the_documents_name_exist() {
    for document in ["ARCHITECTURE.md", "CONTRIBUTING.md", "README.md"] {
        let text = read(document);
        let quoted = text.split('`').skip(1).step_by(2);
        for path in quoted.filter(|path| path.ends_with(".rs") && path.contains('/')) {
            let found = ["", "crates", "crates/syntax/src"]
                .iter()
                .any(|folder| root().join(folder).join(path).exists());
            assert!(found, "{document} names {path}, which does not exist");
        }
    }
}
