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
