//! Wrong GPU nests are refuted. Each is a correct nest in which a barrier, a wait, an extent, an
//! axis or a subscript is changed.
//!
//! The interpreter also runs nests thread by thread, so a nest that it finds wrong must not be
//! proved. The interpreter performs every store at once and cannot see a missing wait; the prover
//! must.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{inputs, program, schedule};
use tilewright_interp::{Order, run, run_nest};
use tilewright_ir::nest::{
    Axis, BufferId, Combine, Expr, ExprKind, For, If, IndexExpr, LoopKind, Scope, Stmt, Store, Sync,
};
use tilewright_ir::{BinaryOp, LoopNest, Program, ReduceOp, print};
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::apply;
use tilewright_target::Gpu;

const GEMM: &str = "def gemm(float(M, K) A, const float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";

/// Tiles with operands in shared memory and results in registers.
const TILES: &str = "
    split C.i -> ib, it:2, ii:2
    split C.j -> jb, jt:4, ji:2
    split C.k -> ko, ki:2
    reorder C.ib, C.jb, C.ko, C.it, C.jt, C.ki, C.ii, C.ji
    bind C.ib -> block.y
    bind C.jb -> block.x
    bind C.it -> thread.y
    bind C.jt -> thread.x
    unroll C.ii
    unroll C.ji
    promote C at C.jb -> tile registers
    promote A at C.ko -> As shared
    promote B at C.ko -> Bs shared
    bind As.l0 -> thread.x
    bind Bs.l1 -> thread.x";

const SIZES: &[(&str, i64)] = &[("M", 8), ("N", 16), ("K", 6)];

const ROWS: &str = "def rows(float(N, D) I) -> (O) {
    total(n) +=! I(n, d)
    O(n, d) = I(n, d) / total(n)
  }";

/// A few threads for each row, and all rows of a block in one kernel.
const WARPS: &str = "
    split O.n -> nb, nr:2
    split O.d -> do, dt:4
    reorder O.nb, O.nr, O.dt, O.do
    bind O.nb -> block.x
    bind O.nr -> thread.y
    bind O.dt -> thread.x
    compute_at total, O.nr
    split total.d -> do, dt:4
    rfactor total.dt -> part
    reorder part.dt, part.do
    bind part.dt -> thread.x
    bind total.dt -> thread.x";

const STENCILS: &str = "def blur(float(N) I) -> (O) {
    T(i) = I(i) + I(i + 1) + I(i + 2)
    O(i) = T(i) + T(i + 1) + T(i + 2)
  }";

const OVERLAPPING: &str = "
    split O.i -> ib, it:8
    bind O.ib -> block.x
    bind O.it -> thread.x
    compute_at T, O.ib
    bind T.i -> thread.x";

fn lowered(source: &str, sizes: &[(&str, i64)], steps: &str) -> (Program, LoopNest) {
    let program = program(source, sizes);
    let nest = apply(&program, &schedule(steps), &Gpu::h200())
        .unwrap_or_else(|refusal| panic!("{refusal}\n{steps}"));
    let verdict = prove(&program, &nest);
    assert_eq!(verdict, Verdict::Proved, "{}", print::nest(&nest));
    (program, nest)
}

/// Calls `change` on every list of statements.
fn each_body(stmts: &mut Vec<Stmt>, change: &mut dyn FnMut(&mut Vec<Stmt>)) {
    change(stmts);
    for stmt in stmts {
        match stmt {
            Stmt::For(own) => each_body(&mut own.body, change),
            Stmt::If(own) => {
                each_body(&mut own.then, change);
                each_body(&mut own.otherwise, change);
            }
            Stmt::Allocate(own) => each_body(&mut own.body, change),
            Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => {}
        }
    }
}

/// Every nest that differs from this one by one change. `change` receives every statement and
/// returns whether it has changed the statement.
fn changed(nest: &LoopNest, what: &str, change: &dyn Fn(&mut Stmt) -> bool) -> Vec<(String, LoopNest)> {
    let mut found = Vec::new();
    for wanted in 0.. {
        let (mut mutant, mut at) = (nest.clone(), 0);
        each_body(&mut mutant.body, &mut |stmts| {
            for stmt in stmts {
                let before = stmt.clone();
                if change(stmt) {
                    if at != wanted {
                        *stmt = before;
                    }
                    at += 1;
                }
            }
        });
        match at > wanted {
            true => found.push((format!("{what} {wanted}"), mutant)),
            false => break,
        }
    }
    found
}

/// A statement that does nothing.
fn nothing() -> Stmt {
    Stmt::If(If { conditions: Vec::new(), then: Vec::new(), otherwise: Vec::new() })
}

fn without_sync(nest: &LoopNest, test: &dyn Fn(Sync) -> bool) -> Vec<(String, LoopNest)> {
    changed(nest, "without sync", &|stmt| match stmt {
        Stmt::Sync(sync) if test(*sync) => {
            *stmt = nothing();
            true
        }
        _ => false,
    })
}

/// Nests in which a buffer in shared memory is one element shorter in one dimension.
fn with_less_room(nest: &LoopNest) -> Vec<(String, LoopNest)> {
    let mut found = Vec::new();
    for (at, buffer) in nest.buffers.iter().enumerate() {
        for dimension in 0..buffer.shape.len() {
            if buffer.scope == Scope::Shared {
                let mut mutant = nest.clone();
                mutant.buffers[at].shape[dimension] -= 1;
                found.push((format!("{} with less of dimension {dimension}", buffer.name), mutant));
            }
        }
    }
    found
}

fn with_other_axes(nest: &LoopNest) -> Vec<(String, LoopNest)> {
    changed(nest, "another axis of threads", &|stmt| match stmt {
        Stmt::For(For { kind: LoopKind::Thread(axis), .. }) => {
            *axis = if *axis == Axis::Z { Axis::X } else { Axis::Z };
            true
        }
        _ => false,
    })
}

fn with_fewer_iterations(nest: &LoopNest) -> Vec<(String, LoopNest)> {
    changed(nest, "one iteration less", &|stmt| match stmt {
        Stmt::For(own) => {
            own.extent = own.extent.offset(-1);
            true
        }
        _ => false,
    })
}

fn without_conditions(nest: &LoopNest) -> Vec<(String, LoopNest)> {
    changed(nest, "without condition", &|stmt| match stmt {
        Stmt::If(own) if !own.conditions.is_empty() => {
            own.conditions.clear();
            true
        }
        _ => false,
    })
}

/// Nests that load a register of the thread at the opposite end.
fn with_registers_of_others(nest: &LoopNest) -> Vec<(String, LoopNest)> {
    let in_registers = |id: BufferId| nest.buffer(id).scope == Scope::Register;
    changed(nest, "a register of another thread", &|stmt| {
        let (Stmt::Store(Store { value, .. }) | Stmt::Combine(Combine { store: Store { value, .. }, .. })) =
            stmt
        else {
            return false;
        };
        let ExprKind::Load(access) = &mut value.kind else { return false };
        if !in_registers(access.tensor) {
            return false;
        }
        let extent = nest.buffer(access.tensor).shape[0];
        access.indices[0] = IndexExpr::constant(extent - 1).sub(&access.indices[0]);
        true
    })
}

/// Nests that store twice the value.
fn with_doubled_values(nest: &LoopNest) -> Vec<(String, LoopNest)> {
    changed(nest, "twice the value", &|stmt| {
        let (Stmt::Store(Store { value, .. }) | Stmt::Combine(Combine { store: Store { value, .. }, .. })) =
            stmt
        else {
            return false;
        };
        let sides = Box::new([value.clone(), value.clone()]);
        *value = Expr { dtype: value.dtype, kind: ExprKind::Binary(BinaryOp::Add, sides) };
        true
    })
}

/// Nests that reduce by another operator, including combinations of threads.
fn with_other_operators(nest: &LoopNest) -> Vec<(String, LoopNest)> {
    changed(nest, "another operator", &|stmt| match stmt {
        Stmt::Store(Store { reduce: Some(op), .. }) | Stmt::Combine(Combine { op, .. }) => {
            *op = ReduceOp::Max;
            true
        }
        _ => false,
    })
}

/// Returns true when the interpreter finds an error or a different result.
fn is_wrong(program: &Program, nest: &LoopNest) -> bool {
    let inputs = inputs(program, 5);
    let wanted = run(program, inputs.clone()).unwrap();
    [Order::Ascending, Order::Descending].into_iter().any(|order| {
        match run_nest(nest, program, inputs.clone(), order) {
            Err(_) => true,
            Ok(found) => found != wanted,
        }
    })
}

/// Checks that no wrong nest is proved.
#[track_caller]
fn proves_no_wrong_one((program, nest): &(Program, LoopNest)) {
    for (what, mutant) in with_doubled_values(nest).into_iter().chain(with_other_operators(nest)) {
        if is_wrong(program, &mutant) {
            assert_ne!(prove(program, &mutant), Verdict::Proved, "{what}\n{}", print::nest(&mutant));
        }
    }
}

/// Checks that every wrong nest is refuted, and returns their number.
#[track_caller]
fn refutes((program, nest): &(Program, LoopNest), all: Vec<(String, LoopNest)>) -> usize {
    assert!(!all.is_empty(), "nothing to change:\n{}", print::nest(nest));
    let mut refuted = 0;
    for (what, mutant) in all {
        let wrong = is_wrong(program, &mutant);
        let verdict = prove(program, &mutant);
        if wrong {
            assert!(matches!(verdict, Verdict::Refuted(_)), "{what}: {verdict:?}\n{}", print::nest(&mutant));
        }
        refuted += usize::from(matches!(verdict, Verdict::Refuted(_)));
    }
    refuted
}

/// Checks all changes of a nest that the interpreter can see.
#[track_caller]
fn refutes_all(own: &(Program, LoopNest)) {
    let nest = &own.1;
    let mut all = without_sync(nest, &|sync| sync == Sync::Barrier);
    all.extend(with_less_room(nest));
    all.extend(with_other_axes(nest));
    all.extend(with_fewer_iterations(nest));
    all.extend(without_conditions(nest));
    all.extend(with_registers_of_others(nest));
    refutes(own, all);
    proves_no_wrong_one(own);
}

#[test]
fn wrong_tiles_are_refuted() {
    refutes_all(&lowered(GEMM, SIZES, TILES));
    let own = lowered(GEMM, &[("M", 3), ("N", 7), ("K", 3)], TILES);
    refutes(&own, without_sync(&own.1, &|sync| sync == Sync::Barrier));
    refutes(&own, without_conditions(&own.1));
}

#[test]
fn wrong_pipelines_are_refuted() {
    for stages in [2, 3] {
        let steps = format!("{TILES}\npipeline C.ko stages {stages}");
        let own = lowered(GEMM, &[("M", 4), ("N", 8), ("K", 10)], &steps);
        refutes(&own, without_sync(&own.1, &|sync| sync == Sync::Barrier));
        refutes(&own, with_less_room(&own.1));
        let waits = without_sync(&own.1, &|sync| matches!(sync, Sync::Wait(_)));
        assert_eq!(refutes(&own, waits), 1);
        let commits = without_sync(&own.1, &|sync| sync == Sync::Commit);
        assert_eq!(refutes(&own, commits.clone()), commits.len());
        let early = changed(&own.1, "waits for one less", &|stmt| match stmt {
            Stmt::Sync(Sync::Wait(but)) => {
                *but += 1;
                true
            }
            _ => false,
        });
        assert_eq!(refutes(&own, early), 1);
    }
}

#[test]
fn wrong_totals_are_refuted() {
    refutes_all(&lowered(ROWS, &[("N", 5), ("D", 11)], WARPS));
}

#[test]
fn wrong_stencils_are_refuted() {
    refutes_all(&lowered(STENCILS, &[("N", 21)], OVERLAPPING));
}
