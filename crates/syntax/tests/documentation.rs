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

/// Returns true for the block that shows messages about the program before it.
fn is_message(block: &str) -> bool {
    (block.starts_with("error[") || block.starts_with("warning[")) && block.contains("> example.tw:")
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
                last = Some(block);
            }
            Some(("tw-error", code)) => {
                let found = diagnostics(&block);
                assert_eq!(errors(&found).first(), Some(&code), "docs/language.md:{line}\n{block}");
                refused += 1;
                last = Some(block);
            }
            None if mark.is_empty() && is_message(&block) => {
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

/// The crates that know hardware but are no front ends.
const BELOW_FRONT_ENDS: [&str; 8] =
    ["target", "schedule", "codegen", "runtime", "search", "cache", "driver", "tuner"];

#[test]
fn files_that_tell_targets_apart_are_listed() {
    let architecture = read("ARCHITECTURE.md");
    let listed = architecture.split("**Add a target.**").nth(1).unwrap();
    let listed = listed.split("**Add a strategy.**").next().unwrap();
    for name in BELOW_FRONT_ENDS {
        for path in files(&root().join("crates").join(name).join("src"), &["rs"]) {
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let kinds = ["Target::Cpu(", "Machine::Cpu(", "Place::Cpu {"];
            let path = path.strip_prefix(root().join("crates")).unwrap().display().to_string();
            let is_listed = listed.contains(&format!("`{path}`"));
            assert!(is_listed || !kinds.iter().any(|kind| code.contains(kind)), "{path} is not listed");
        }
    }
}

/// The most columns of a line of prose.
const WIDEST: usize = 100;

#[test]
fn lines_of_prose_are_short() {
    let mut wide = Vec::new();
    for path in files(&root(), &["rs", "md"]) {
        let text = fs::read_to_string(&path).unwrap();
        let is_rust = path.extension().is_some_and(|extension| extension == "rs");
        let prose = if is_rust { comments(&text) } else { paragraphs(&text) };
        let lines = prose.into_iter().filter(|(_, line)| line.chars().count() > WIDEST);
        wide.extend(lines.map(|(number, _)| format!("{}:{number}", path.display())));
    }
    assert!(wide.is_empty(), "prose has at most {WIDEST} columns:\n{}", wide.join("\n"));
}

/// The files with these extensions, without what was built or installed.
fn files(folder: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = entry.file_name().unwrap().to_string_lossy().into_owned();
        let is_built = name.starts_with('.') || name == "target" || name == "snapshots";
        let is_wanted = || extensions.iter().any(|own| entry.extension().is_some_and(|other| other == *own));
        match entry.is_dir() {
            true if !is_built => found.extend(files(&entry, extensions)),
            false if is_wanted() => found.push(entry),
            _ => {}
        }
    }
    found
}

/// The lines of comments, without code blocks, tables and addresses.
fn comments(text: &str) -> Vec<(usize, &str)> {
    let mut in_block = false;
    let lines = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim_start();
        let comment = line.strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!']).trim_start());
        in_block ^= comment.is_some_and(|comment| comment.starts_with("```"));
        comment.is_some_and(|comment| !in_block && !comment.starts_with('|') && !comment.contains("http"))
    });
    lines.map(|(at, line)| (at + 1, line)).collect()
}

/// The lines of a document, without code blocks, tables and addresses.
fn paragraphs(text: &str) -> Vec<(usize, &str)> {
    let mut in_block = false;
    let lines = text.lines().enumerate().filter(|(_, line)| {
        in_block ^= line.trim_start().starts_with("```");
        let is_code = in_block || line.starts_with("    ") && !line.trim_start().starts_with("- ");
        !is_code && !line.starts_with('|') && !line.contains("http") && !line.contains("](")
    });
    lines.map(|(at, line)| (at + 1, line)).collect()
}
