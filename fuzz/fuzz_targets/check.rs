//! Any text: it is parsed, checked and every message drawn, without a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tilewright_syntax::diagnostic::Style;
use tilewright_syntax::{Bindings, check_module, parse};

fuzz_target!(|source: &str| {
    let parsed = parse(source);
    let mut found = parsed.diagnostics;
    found.extend(check_module(&parsed.ast, &Bindings::default()));
    for diagnostic in found {
        diagnostic.render("fuzz.tw", source, Style::default());
    }
});
