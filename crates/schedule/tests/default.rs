//! The default schedule of every example, at small and odd sizes: its loops compute what the program does.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;
mod support;

use examples::examples;
use support::{cpu, expect_agreement};
use tilewright_ir::Program;
use tilewright_schedule::{apply, default_schedule};
use tilewright_syntax::{Bindings, check, parse};

/// A size, by its name and place.
type Choose = dyn Fn(&str, usize) -> i64;

/// The program with every size that is still open set by `choose`.
fn at_sizes(source: &str, name: &str, choose: &Choose) -> Option<Program> {
    let parsed = parse(source);
    let open = check(&parsed.ast, name, &Bindings::default()).program?;
    let mut bindings = Bindings::default();
    for (at, symbol) in open.symbols.iter().enumerate() {
        bindings.set(&symbol.name, choose(&symbol.name, at));
    }
    check(&parsed.ast, name, &bindings).program.filter(Program::is_concrete)
}

#[test]
fn every_example_runs_as_its_default_schedule_says() {
    let rounds: [&Choose; 4] =
        [&|_, _| 1, &|_, at| 4 + at as i64, &|_, _| 5, &|_, at| [17, 3, 6, 4, 3, 2, 2][at % 7]];
    let mut ran = 0;
    for path in examples() {
        let source = std::fs::read_to_string(&path).unwrap();
        for function in &parse(&source).ast.functions {
            for choose in rounds {
                let Some(program) = at_sizes(&source, &function.name.text, choose) else { continue };
                if tilewright_interp::points(&program) > 200_000 {
                    continue;
                }
                let schedule = default_schedule(&program, &cpu());
                let nest = apply(&program, &schedule, &cpu())
                    .unwrap_or_else(|refusal| panic!("{}: {refusal}\n{schedule}", path.display()));
                expect_agreement(&program, &nest, 3);
                ran += 1;
            }
        }
    }
    assert!(ran > 120, "only {ran} ran");
}

#[test]
fn long_values_are_vectors_but_not_tiles() {
    let terms: Vec<String> = (0..140).map(|at| format!("exp(-x(i, k) * z(k, j) * {at}.5)")).collect();
    let source =
        format!("def f(float(N, K) x, float(K, M) z) -> (y) {{ y(i, j) +=! {} }}", terms.join(" + "));
    let program = at_sizes(&source, "f", &|_, _| 40).unwrap();
    let schedule = default_schedule(&program, &cpu());
    assert!(apply(&program, &schedule, &cpu()).is_ok());
    let steps = schedule.to_string();
    assert!(steps.contains("vectorize y.jv") && steps.contains("jv:16"), "{steps}");
    assert!(!steps.contains("ju:") && !steps.contains("ii:"), "{steps}");
}
