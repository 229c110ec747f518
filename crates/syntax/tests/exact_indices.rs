//! Tests of values of variables and sizes: they are computed in 64 bits, also with operators on
//! bits.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;

use tilewright_interp::{Inputs, run};
use tilewright_ir::{Number, print};
use tilewright_syntax::{Bindings, check, parse};

/// The elements of `y`, for a program without inputs except the int32 scalar `n`.
fn elements(body: &str) -> Vec<i128> {
    let program = |source: &str| {
        let checked = check(&parse(source).ast, "f", &Bindings::default());
        assert!(checked.diagnostics.is_empty(), "{source}\n{:?}", checked.diagnostics);
        checked.program.unwrap()
    };
    let first = program(&format!("def f(int n) -> (y) {{ {body} }}"));
    // The text of the program means the same.
    let again = program(&print::source(&first));
    assert_eq!(print::program(&first), print::program(&again), "{}", print::source(&first));
    let scalars = BTreeMap::from([("n".to_owned(), Number::Int(2))]);
    let results = run(&first, Inputs { tensors: BTreeMap::new(), scalars }).unwrap();
    let y = &results["y"];
    (0..y.len())
        .map(|at| if let Number::Int(number) = y.get(at) { number } else { panic!("{body}") })
        .collect()
}

#[test]
fn powers_and_bits_of_variables_are_exact() {
    let all = |value: i128| vec![value; 40];
    assert_eq!(elements("y(i) = i < 2 ** i ? 1 : 0 where i in 0:40"), all(1));
    assert_eq!(elements("y(i) = i < n ** i + 0 * n ? 1 : 0 where i in 0:40"), all(1));
    assert_eq!(elements("y(i) = 2 ** i ? 1 : 0 where i in 0:40"), all(1));
    assert_eq!(elements("y(i) = (i ^ 1) * 1000000000 < 0 ? 1 : 0 where i in 0:40"), all(0));
    assert_eq!(elements("y(i) = 2 ** (i + 1) / 2 == 2 ** i ? 1 : 0 where i in 0:40"), all(1));
    // The exact value is converted once, at its end.
    let halves = elements("y(i) = 2 ** (i + 1) / 2 where i in 0:40");
    assert_eq!(halves[30..33], [1 << 30, -(1 << 31), 0]);
}
