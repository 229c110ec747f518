//! Programs that the checker accepts never fail when they run.
//!
//! The test generates random small programs, whose subscripts shift, stride, divide, clamp and
//! stand under conditions. It checks each program for all sizes and at given sizes. An accepted
//! program must run without leaving a tensor and without reading an undefined element. A program
//! that is accepted for all sizes must be accepted at each size.

#![allow(clippy::unwrap_used, reason = "a test that cannot build its program has failed")]

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tilewright_interp::{Inputs, run};
use tilewright_ir::{Program, Tensor, verify};
use tilewright_syntax::{Bindings, Code, Diagnostic, check, parse};

/// A subscript over `i` and `j`, in bounds or not.
fn subscript() -> impl Strategy<Value = String> {
    let shift = -2i64..=2;
    prop_oneof![
        shift.clone().prop_map(|by| format!("i + {by}")),
        shift.clone().prop_map(|by| format!("j + {by}")),
        (1i64..=3, shift.clone()).prop_map(|(by, shift)| format!("{by}*i + j + {shift}")),
        (2i64..=3, shift.clone()).prop_map(|(by, shift)| format!("(i + {shift})/{by}")),
        (2i64..=3).prop_map(|by| format!("(i + j) % {by}")),
        shift.clone().prop_map(|by| format!("clamp(i + {by}, 0, N - 1)")),
        shift.clone().prop_map(|by| format!("min(i + j, M + {by})")),
        shift.clone().prop_map(|by| format!("N - 1 - i + {by}")),
        shift.prop_map(|by| format!("max(i - j, {by})")),
    ]
}

fn access() -> impl Strategy<Value = String> {
    let tensor = prop_oneof![Just("A"), Just("B"), Just("t")];
    (tensor, subscript(), subscript(), any::<u8>()).prop_map(|(tensor, index, other, guard)| {
        let extent = if tensor == "B" { "M" } else { "N" };
        let access = format!("{tensor}({index})");
        match guard % 6 {
            0 => format!("(({index}) >= 0 && ({index}) < {extent} ? {access} : 0)"),
            1 => format!("(i > 0 && j < M - 1 ? {access} : 1)"),
            2 => format!("(({other}) < N || i == j ? {access} : 1)"),
            _ => access,
        }
    })
}

fn range() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (0i64..=2, -2i64..=1).prop_map(|(from, by)| format!(" where i in {from}:N + {by}")),
        (0i64..=1, -1i64..=1).prop_map(|(from, by)| format!(" where j in {from}:M + {by}")),
        (-1i64..=1).prop_map(|by| format!(" where i in 0:N, j in 0:M + {by}")),
        Just(" where i in 0:(N + 1)/2, j in 0:min(M, 3)".to_owned()),
    ]
}

/// A definition of the temporary: in full, in pieces, with a gap, or by a recurrence.
fn definition() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("t(i) = A(i)".to_owned()),
        Just("t(0) = 1\n  t(i) = A(i - 1) where i in 1:N".to_owned()),
        Just("t(0) = 1\n  t(i) = A(i) where i in 2:N + 1".to_owned()),
        Just("t(0) = A(0)\n  for k in 1:N { t(k) = t(k - 1) + A(k) }".to_owned()),
        Just("t(N - 1) = A(0)\n  for k in 1:N { t(N - 1 - k) = t(N - k) * 2 }".to_owned()),
        Just("t(2*i) = A(i)\n  t(2*i + 1) = A(i)".to_owned()),
        Just("for k in 1:M { t(i) = A(i) }".to_owned()),
        Just("t(i) +=! A(i) * B(j)".to_owned()),
    ]
}

fn program() -> impl Strategy<Value = String> {
    (definition(), access(), access(), range(), any::<bool>()).prop_map(|(definition, left, right, range, reduce)| {
        let target = if reduce { "O(i) +=!" } else { "O(i, j) =" };
        format!("def f(float(N) A, float(M) B) -> (O) {{\n  {definition}\n  {target} {left} + {right}{range}\n}}\n")
    })
}

/// Returns true for a warning that leaves a property to be checked at run time.
fn is_unproved(found: &Diagnostic) -> bool {
    matches!(found.code, Code::OutOfBounds | Code::UndefinedElement)
}

fn inputs(program: &Program) -> Inputs {
    let mut tensors = BTreeMap::new();
    for (id, declared) in program.tensors_with(|role| role.is_supplied()) {
        tensors.insert(
            declared.name.clone(),
            Tensor::zeros(declared.dtype, &program.shape(id).unwrap()).unwrap(),
        );
    }
    Inputs { tensors, scalars: BTreeMap::new() }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn accepted_programs_run(source in program(), sizes in prop::collection::vec((1i64..7, 1i64..7), 4)) {
        let module = parse(&source).ast;
        let everywhere = check(&module, "f", &Bindings::default());
        for (n, m) in sizes {
            let bindings: Bindings = [("N", n), ("M", m)].into_iter().collect();
            let here = check(&module, "f", &bindings);
            match here.program {
                Some(program) => {
                    prop_assert_eq!(verify(&program), Ok(()), "N={} M={}:\n{}", n, m, source);
                    let warned = here.diagnostics.iter().any(is_unproved);
                    let outcome = run(&program, inputs(&program));
                    prop_assert!(warned || outcome.is_ok(), "N={n} M={m}: {outcome:?}\n{source}");
                }
                None => {
                    let proved = everywhere.program.is_some() && !everywhere.diagnostics.iter().any(is_unproved);
                    // Proofs for all sizes exclude sizes at which a range is empty.
                    let empty = here.diagnostics.iter().any(|found| {
                        matches!(found.code, Code::EmptyRange | Code::InvalidSize)
                    });
                    prop_assert!(!proved || empty, "N={n} M={m}: {:?}\n{source}", here.diagnostics);
                }
            }
        }
    }
}
