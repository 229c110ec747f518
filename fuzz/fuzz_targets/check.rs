//! Any text: it is parsed, checked and every message drawn, without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, diagnose, parse};

fuzz_target!(|source: &str| {
    for diagnostic in diagnose(&parse(source), &Bindings::default()) {
        diagnostic.render("fuzz.tw", source, Style::default());
    }
});
