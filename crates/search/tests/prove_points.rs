//! Proves points of the spaces of the examples: every decoded schedule computes its program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;

use std::collections::BTreeMap;

use examples::examples;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;
use tilewright_interp::count_points;
use tilewright_ir::{Program, print};
use tilewright_polyhedral::{Verdict, prove_within};
use tilewright_schedule::apply;
use tilewright_search::space::Space;
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Cpu, Gpu, Target, VectorInstructions};

/// The limit of isl operations for one proof, which takes a second or two.
const OPERATIONS: u64 = 4_000_000;

fn at_sizes(source: &str, name: &str, choose: &dyn Fn(usize) -> i64) -> Option<Program> {
    let parsed = parse(source);
    let open = check(&parsed.ast, name, &Bindings::default()).program?;
    let mut bindings = Bindings::default();
    for (at, symbol) in open.symbols.iter().enumerate() {
        bindings.set(&symbol.name, choose(at));
    }
    check(&parsed.ast, name, &bindings).program.filter(Program::is_concrete)
}

/// Proves random points of every example that is small enough, and counts the verdicts. None may be
/// refuted.
fn verdicts(target: Target<'_>, most_points: u64, each: usize, seed: u64) -> BTreeMap<String, usize> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut counts = BTreeMap::new();
    for path in examples() {
        let source = std::fs::read_to_string(&path).unwrap();
        for function in &parse(&source).ast.functions {
            let program = at_sizes(&source, &function.name.text, &|at| [9, 5, 12, 4, 3, 2, 2][at % 7]);
            let Some(program) = program.filter(|program| count_points(program) <= most_points) else {
                continue;
            };
            let space = Space::new(&program, target);
            let sampled = (0..each).filter_map(|_| space.knobs().sample(&mut rng));
            for point in sampled.collect::<Vec<_>>() {
                let Ok(schedule) = space.decode(&point) else { continue };
                let nest = apply(&program, &schedule, target).unwrap();
                let kind = match prove_within(&program, &nest, OPERATIONS) {
                    Verdict::Proved => "proved".to_string(),
                    Verdict::Undecided(why) => why,
                    Verdict::Refuted(what) => {
                        panic!("{}: {what}\n{schedule}{}", path.display(), print::nest(&nest))
                    }
                };
                *counts.entry(kind).or_insert(0) += 1;
            }
        }
    }
    counts
}

/// Checks that at least 95 of 100 points are proved and all others are undecided.
#[track_caller]
fn are_proved(target: Target<'_>, seed: u64) {
    let counts = verdicts(target, 20_000, 1, seed);
    println!("{counts:#?}");
    let proved = counts.get("proved").copied().unwrap_or(0);
    let all: usize = counts.values().sum();
    assert!(all > 30 && 100 * proved >= 95 * all, "{proved} of {all}: {counts:#?}");
}

#[test]
fn random_points_for_a_cpu_are_proved() {
    are_proved(
        Target::Cpu(&Cpu { cores: 2, vectors: VectorInstructions::Avx512, caches: vec![32 << 10, 1 << 20] }),
        4,
    );
}

#[test]
fn random_points_for_a_gpu_are_proved() {
    // The sizes are small, so the GPU has few multiprocessors and narrow warps.
    are_proved(Target::Gpu(&Gpu { processors: 4, warp: 4, ..Gpu::h200() }), 3);
}
