//! Tests that partial vectors stay inside of their tensors. The tensors are adjacent to protected
//! memory, so an access outside ends the process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod harness;

#[path = "../../schedule/tests/support/mod.rs"]
mod support;

use tilewright::{Module, parse_schedule};

use harness::fenced_tensor::Placement;
use harness::{Arguments, difference};

/// Runs a function for all vector instruction sets, with its tensors at either end of their memory.
fn expect_inside(source: &str, steps: &str) {
    let module = Module::parse(source).unwrap_or_else(|error| panic!("{source}\n{error}"));
    let program = module.program("f", []).unwrap_or_else(|error| panic!("{source}\n{error}"));
    let schedule = parse_schedule(steps).unwrap_or_else(|error| panic!("{error}"));
    let inputs = support::inputs(program.ir(), 3);
    let wanted = tilewright_interp::run(program.ir(), inputs.clone()).unwrap();
    for vectors in harness::vectors() {
        let kernel = harness::compile(&program, Some(schedule.clone()), vectors, 1).unwrap();
        for at_end in [true, false] {
            let place = || Placement { at_end, ..Placement::contiguous() };
            let found = Arguments::new(&kernel, &inputs, place).run(&kernel, &inputs, 1, place);
            let fails = found.map(|found| difference(&wanted, &found, true)).unwrap_or_else(Some);
            assert_eq!(fails, None, "{source}\n{steps}\n{vectors:?}, at the end: {at_end}");
        }
    }
}

/// Tests several numbers of remaining lanes, above all a single one, with conversions from wide
/// types to narrow ones and back.
#[test]
fn the_last_vector() {
    let types = [
        ("bfloat16", "bfloat16"),
        ("float16", "float32"),
        ("int32", "uint8"),
        ("int64", "int32"),
        ("uint8", "int16"),
    ];
    for (from, to) in types {
        for extent in [1, 2, 3, 15, 17, 18, 33] {
            expect_inside(
                &format!(
                    "def f({from}({extent}) A) -> (B) {{ B(i) = {to}(A(i) * A(i)) where i in 0:{extent} }}"
                ),
                "split B.i -> io, iv:16\nvectorize B.iv",
            );
        }
    }
}

/// Tests strided elements, forwards and backwards.
#[test]
fn elements_apart() {
    for lanes in [1, 2, 3, 4, 5, 8, 16] {
        for apart in 1..7 {
            expect_inside(
                &format!(
                    "def f(float({lanes}, {apart}) A) -> (B, C) {{
                       B(k, i) = A(i, k) where i in 0:{lanes}, k in 0:{apart}
                       C(k, i) = A({lanes} - 1 - i, k) where i in 0:{lanes}, k in 0:{apart}
                     }}"
                ),
                "vectorize B.i\nvectorize C.i",
            );
        }
    }
}

/// Tests borders that repeat, on either side or both, in vectors that lie inside, across and beyond
/// the image.
#[test]
fn clamped_subscripts() {
    for (from, height, width) in [("uint8", 3, 37), ("int16", 1, 16), ("float", 2, 5), ("int64", 1, 1)] {
        for access in [
            "A(clamp(y - 1, 0, H - 1), clamp(x - 2, 0, W - 1))",
            "A(y, max(x - 9, 0)) + A(y, min(x + 20, W - 1))",
            "A(y, clamp(2*x - 3, 0, W - 1)) + A(y, clamp(W - x, 0, W - 1))",
            "x % 3 == 1 ? A(y, clamp(x + 1, 0, W - 1)) : A(y, max(x - 1, 0))",
        ] {
            let access = access.replace('H', &height.to_string()).replace('W', &width.to_string());
            let source = format!(
                "def f({from}({height}, {width}) A) -> (B) {{
                   B(y, x) = {access} where y in 0:{height}, x in 0:{width}
                 }}"
            );
            for lanes in [4, 16] {
                expect_inside(&source, &format!("split B.x -> xo, xv:{lanes}\nvectorize B.xv"));
            }
        }
    }
}

/// Tests images that are made larger or smaller by whole factors, and rows that are interleaved.
#[test]
fn rates_of_sampling() {
    for from in ["uint8", "uint16", "float"] {
        for (width, lanes) in [(1, 4), (7, 8), (33, 16), (70, 32)] {
            for (access, size) in [
                ("A(x/2) + A((x + 1)/2)", format!("2*{width} - 1")),
                ("A(x/3) * A(x % 2 * (W - 1))", format!("3*{width}")),
                ("A(2*x) + A(min(2*x + 1, W - 1))", format!("({width} + 1)/2")),
                ("x % 2 == 0 ? A(x/2) : A(W - 1 - x/2)", format!("2*{width}")),
            ] {
                let access = access.replace('W', &width.to_string());
                let source =
                    format!("def f({from}({width}) A) -> (B) {{ B(x) = {access} where x in 0:{size} }}");
                expect_inside(&source, &format!("split B.x -> xo, xv:{lanes}\nvectorize B.xv"));
            }
        }
    }
}

/// Tests results whose neighbours in memory belong to other iterations, such as the colours of a
/// pixel.
#[test]
fn interleaved_results() {
    for to in ["uint8", "uint16", "float"] {
        for (width, colours, lanes) in [(1, 2, 4), (37, 2, 16), (35, 3, 16), (70, 4, 32), (9, 6, 8)] {
            let source = format!(
                "def f({to}({colours}, {width}) A) -> (B) {{
                   B(x, c) = A(c, x) where x in 0:{width}, c in 0:{colours}
                 }}"
            );
            expect_inside(&source, &format!("split B.x -> xo, xv:{lanes}\nvectorize B.xv\nunroll B.c"));
            expect_inside(
                &source,
                &format!("split B.x -> xo, xv:{lanes}\nreorder B.c, B.xo, B.xv\nvectorize B.xv"),
            );
        }
    }
}

/// Tests look-up tables whose subscripts need no check, and tables next to other memory.
#[test]
fn tables() {
    for to in ["uint8", "uint16", "float"] {
        for size in [1, 17, 300] {
            let source = format!(
                "def f({to}(2, {size}) table, int16(61) A) -> (B) {{
                   B(i) = table(1, clamp(A(i), 0, {size} - 1)) where i in 0:61
                 }}"
            );
            for lanes in [3, 16, 32] {
                expect_inside(&source, &format!("split B.i -> io, iv:{lanes}\nvectorize B.iv"));
            }
        }
    }
}

/// Tests slices that data chooses for each element, as levels of a pyramid are chosen.
#[test]
fn chosen_slices() {
    for (of, data) in [("uint8", "int32"), ("uint16", "int8"), ("float", "int32"), ("float", "int64")] {
        for lanes in [3, 16, 32] {
            let source = format!(
                "def f({of}(5, 2, 61) slices, {data}(61) A) -> (B) {{
                   B(i) = slices(clamp(A(i), 0, 4), 1, i) + slices(A(i) & 3, 0, 60 - i) where i in 0:61
                 }}"
            );
            expect_inside(&source, &format!("split B.i -> io, iv:{lanes}\nvectorize B.iv"));
        }
    }
}
