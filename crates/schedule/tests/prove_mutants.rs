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
use tilewright_ir::nest::{Expr, ExprKind, IndexExpr, Stmt};
use tilewright_ir::{BinaryOp, LoopNest, Program, ReduceOp, print, walk};
use tilewright_polyhedral::{Verdict, prove_within};
use tilewright_schedule::{apply, schedule_by_rules};
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

/// The nest with the operation of this number replaced by another one; `None` if there are fewer
/// operations.
fn mutant_operation(nest: &LoopNest, number: usize) -> Option<LoopNest> {
    let mut mutant = nest.clone();
    let mut at = 0;
    walk::visit_mut(&mut mutant.body, &mut |stmt| {
        if let Some(store) = stmt.store_mut() {
            each_operation(&mut store.value, &mut |expr| {
                if at == number {
                    match &mut expr.kind {
                        ExprKind::Select(parts) => parts.swap(1, 2),
                        ExprKind::Binary(op @ BinaryOp::Add, _) => *op = BinaryOp::Sub,
                        ExprKind::Binary(op @ BinaryOp::Mul, _) => *op = BinaryOp::Add,
                        ExprKind::Binary(op, _) => *op = BinaryOp::Mul,
                        _ => {}
                    }
                }
                at += 1;
            });
            if at == number {
                store.reduce = match store.reduce {
                    Some(ReduceOp::Add) => Some(ReduceOp::Mul),
                    Some(_) => None,
                    None => Some(ReduceOp::Add),
                };
            }
            at += 1;
        }
    });
    (number < at).then_some(mutant)
}

/// Calls `change` on the choices and the arithmetic of a value.
fn each_operation(expr: &mut Expr, change: &mut dyn FnMut(&mut Expr)) {
    let is_arithmetic = match &expr.kind {
        ExprKind::Select(_) => true,
        ExprKind::Binary(op, _) => !op.is_comparison() && !op.is_logical(),
        _ => false,
    };
    if is_arithmetic {
        change(expr);
    }
    expr.operands_mut().iter_mut().for_each(|operand| each_operation(operand, change));
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
        let nest = apply(program, &schedule_by_rules(program, target), target).unwrap();
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

/// Every mutant of recurrences that are computed in parts.
#[test]
fn wrong_recurrences_in_parts_are_not_proved() {
    let split = "split y[2].t -> part, t:4\nscan y[2].part -> carry\n";
    let both = "split y[2].t -> p, q:2, t:4\nscan y[2].p -> outer\nscan y[2].q -> inner\n";
    let lanes = "split carry_parts.t -> t, lane:2\nrfactor carry_parts.lane -> lanes\n";
    let (mut broken, mut open) = (0, 0);
    for (value, steps) in [
        ("y(t - 1) + x(t)", format!("{split}parallel y[2].part\nparallel carry_parts.part")),
        ("y(t - 1) + x(t)", format!("{split}{lanes}")),
        ("max(y(t - 1), x(t) + a(t))", both.to_string()),
        ("a(t) * y(t - 1) - x(t)", format!("{split}parallel y[2].part")),
        ("a(t) * y(t - 1) - x(t)", both.to_string()),
    ] {
        let source = format!(
            "def f(float(N) x, float(N) a) -> (y) {{
                y(0) = x(0)
                for t in 1:N {{ y(t) = {value} }}
            }}"
        );
        let program = support::program(&source, &[("N", 20)]);
        let nest = apply(&program, &support::schedule(&steps), &cpu()).unwrap();
        let mut all: Vec<LoopNest> = (0..).map_while(|number| mutant_operation(&nest, number)).collect();
        let mut indices = 0;
        each_index(&mut nest.clone().body, &mut |_| indices += 1);
        all.extend((0..2 * indices).map(|number| mutant(&nest, number)));
        for mutant in all.iter().filter(|mutant| differs(&program, mutant)) {
            broken += 1;
            match prove_within(&program, mutant, 4_000_000) {
                Verdict::Proved => panic!("proved: {value}, {steps}\n{}", print::nest(mutant)),
                Verdict::Refuted(_) => {}
                Verdict::Undecided(_) => open += 1,
            }
        }
    }
    println!("{broken} are broken, {open} of them undecided, the others refuted");
    assert!(broken > 200, "{broken}");
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
