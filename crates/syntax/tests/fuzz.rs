//! Runs the fuzz target of `fuzz/` for a short bounded time on mutations of the examples.
//!
//! `TILEWRIGHT_FUZZ_SECONDS` sets the time; a failure prints the text that caused it.

#![allow(clippy::unwrap_used, reason = "a test that cannot read its files has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, diagnose, parse};

/// Parses and checks any text and draws every message, without a panic.
fn survives(source: &str) {
    for diagnostic in diagnose(&parse(source), &Bindings::default()) {
        diagnostic.render("fuzz.tw", source, Style::default());
    }
}

/// Every example, and every program that the checker refuses in a test.
fn corpus() -> Vec<String> {
    let refused = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused");
    let refused = fs::read_dir(refused).unwrap().map(|entry| entry.unwrap().path());
    let paths = examples::examples().into_iter().chain(refused);
    let mut texts: Vec<String> = paths.map(|path| fs::read_to_string(path).unwrap()).collect();
    texts.sort();
    texts
}

/// The fixed seed gives the same mutants in the same order every time.
const SEED: u64 = 11;

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Words of the language, which mutations insert at arbitrary positions.
const WORDS: &[&str] = &[
    "def",
    "fn",
    "where",
    "in",
    "for",
    "exists",
    "const",
    "float(",
    "(",
    ")",
    "{",
    "}",
    "=",
    "+=!",
    "max=",
    "->",
    ",",
    ":",
    "?",
    "/",
    "%",
    "*",
    "-",
    "!",
    "&&",
    "i",
    "N",
    "A",
    "O(i)",
    "0",
    "9223372036854775807",
    "1e999",
    "min(",
    ".1",
    "#",
];

fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    for next in text.chars() {
        match tokens.last_mut() {
            Some(last) if next.is_alphanumeric() && last.chars().all(char::is_alphanumeric) => {
                last.push(next)
            }
            _ => tokens.push(next.to_string()),
        }
    }
    tokens
}

fn mutate(text: &str, other: &str, random: &mut Random) -> String {
    let mut parts = tokens(text);
    let others = tokens(other);
    for _ in 0..1 + random.below(4) {
        let at = random.below(parts.len());
        match random.below(6) {
            0 => drop(parts.drain(at..(at + 1 + random.below(3)).min(parts.len()))),
            1 => parts.insert(at, WORDS[random.below(WORDS.len())].to_owned()),
            2 => parts[at] = WORDS[random.below(WORDS.len())].to_owned(),
            3 => parts.swap(at, random.below(text.len()).min(at)),
            4 => parts.insert(at, others[random.below(others.len())].clone()),
            _ => {
                let from = random.below(others.len());
                let piece = others[from..(from + random.below(30)).min(others.len())].to_vec();
                parts.splice(at..at, piece);
            }
        }
        if parts.is_empty() {
            parts.push("def".to_owned());
        }
    }
    parts.concat()
}

#[test]
fn mutated_programs_never_panic() {
    let seconds =
        std::env::var("TILEWRIGHT_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5);
    let corpus = corpus();
    let mut random = Random(SEED);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut tried = 0u64;
    while Instant::now() < end {
        let text = &corpus[random.below(corpus.len())];
        let other = &corpus[random.below(corpus.len())];
        let mutant = mutate(text, other, &mut random);
        // A separate thread turns a hang into a failure that shows the text.
        let (done, finished) = mpsc::channel();
        let text = mutant.clone();
        let thread = std::thread::spawn(move || {
            survives(&text);
            let _ = done.send(());
        });
        match finished.recv_timeout(Duration::from_secs(20)) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("this text takes more than 20 s:\n{mutant}"),
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                assert!(thread.join().is_ok(), "this text panics:\n{mutant}");
            }
        }
        tried += 1;
    }
    println!("{tried} mutants");
}
