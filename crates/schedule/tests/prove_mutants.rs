//! Default schedules of all examples and pipelines with one number changed: a nest that computes a
//! different result must not be proved.
//!
//! `MUTANTS=200 cargo test --release -p tilewright-schedule --test prove_mutants` tries more
//! mutants, and `SEED=…` tries others.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;

mod support;

use std::path::Path;

use support::{cpu, inputs, programs};
use tilewright_interp::{Order, run, run_nest};
use tilewright_ir::nest::{IndexExpr, Stmt};
use tilewright_ir::{LoopNest, Program, print};
use tilewright_polyhedral::{Verdict, prove_within};
use tilewright_schedule::{apply, default_schedule};
use tilewright_target::{Gpu, Target};

/// Calls `change` on every subscript, condition and extent of statements.
fn each_index(stmts: &mut [Stmt], change: &mut dyn FnMut(&mut IndexExpr)) {
    for stmt in stmts {
        match stmt {
            Stmt::For(own) => {
                change(&mut own.extent);
                each_index(&mut own.body, change);
            }
            Stmt::If(own) => {
                own.conditions.iter_mut().for_each(&mut *change);
                each_index(&mut own.then, change);
                each_index(&mut own.otherwise, change);
            }
            Stmt::Allocate(own) => each_index(&mut own.body, change),
            Stmt::Store(own) => {
                own.target.indices.iter_mut().for_each(&mut *change);
                own.value.map_indices(&mut |index| {
                    let mut index = index.clone();
                    change(&mut index);
                    index
                });
            }
            Stmt::Combine(_) | Stmt::Prefetch(_) | Stmt::Sync(_) => {}
        }
    }
}

/// The nest with the expression of this number increased or decreased by one.
fn mutant(nest: &LoopNest, number: u64) -> LoopNest {
    let mut mutant = nest.clone();
    let mut all = 0;
    each_index(&mut mutant.body, &mut |_| all += 1);
    let (target, by) = ((number / 2) % all.max(1), if number.is_multiple_of(2) { 1 } else { -1 });
    let mut at = 0;
    each_index(&mut mutant.body, &mut |index| {
        if at == target {
            *index = index.offset(by);
        }
        at += 1;
    });
    mutant
}

/// Returns true when a nest and its program compute different results on some data.
fn differs(program: &Program, nest: &LoopNest) -> bool {
    (1..3).any(|seed| {
        let supplied = inputs(program, seed);
        let Ok(wanted) = run(program, supplied.clone()) else { return false };
        [Order::Ascending, Order::Descending].into_iter().any(
            |order| !matches!(run_nest(nest, program, supplied.clone(), order), Ok(found) if found == wanted),
        )
    })
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

/// Tries some mutants of each program, and returns the number of those that differ.
fn proves_no_wrong_mutant(all: &[(String, Program)], target: Target<'_>) -> usize {
    let mut state = setting("SEED", 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let (mut broken, mut open) = (0, 0);
    let mutants = setting("MUTANTS", 0);
    // Without `MUTANTS`, only every fourth program is tried, with one mutant each.
    for (name, program) in all.iter().step_by(if mutants == 0 { 4 } else { 1 }) {
        let nest = apply(program, &default_schedule(program, target), target).unwrap();
        if differs(program, &nest) {
            // Random data do not suit the program: they give NaNs, or subscripts out of bounds.
            continue;
        }
        for _ in 0..mutants.max(1) {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mutant = mutant(&nest, state >> 33);
            if !differs(program, &mutant) {
                continue;
            }
            broken += 1;
            match prove_within(program, &mutant, 4_000_000) {
                Verdict::Proved => panic!("{name} is proved\n{}", print::nest(&mutant)),
                Verdict::Refuted(_) => {}
                Verdict::Undecided(_) => open += 1,
            }
        }
    }
    println!("{broken} are broken, {open} of them undecided, the others refuted");
    broken
}

fn small_examples() -> Vec<(String, Program)> {
    let size = |name: &str| [7, 5, 3, 6, 4][name.bytes().map(usize::from).sum::<usize>() % 5];
    examples::examples().into_iter().flat_map(|path| programs(&path, &size)).collect()
}

#[test]
fn wrong_loops_of_examples_are_not_proved() {
    assert!(proves_no_wrong_mutant(&small_examples(), Target::Cpu(&cpu())) > 5);
}

#[test]
fn wrong_kernels_of_examples_are_not_proved() {
    assert!(proves_no_wrong_mutant(&small_examples(), Target::Gpu(&Gpu::h200())) > 5);
}

#[test]
#[ignore = "takes minutes"]
fn wrong_pipelines_are_not_proved() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pipelines");
    let small = |name: &str| match name {
        "H" => 13,
        "W" => 19,
        _ => 5,
    };
    let paths = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let all: Vec<(String, Program)> = paths.flat_map(|path| programs(&path, &small)).collect();
    assert!(proves_no_wrong_mutant(&all, Target::Cpu(&cpu())) > 5);
    assert!(proves_no_wrong_mutant(&all, Target::Gpu(&Gpu::h200())) > 5);
}
