//! Tests each invariant with a nest that satisfies it and a nest that does not.

use std::sync::Arc;

use super::*;
use crate::expr::Origin;
use crate::nest::{Data, Expr, ExprKind, LoopVar};
use crate::number::Number;
use crate::operators::BinaryOp;
use crate::program::{ReduceOp, TensorId};
use LoopKind::*;

const I: LoopVarId = LoopVarId(0);
const J: LoopVarId = LoopVarId(1);
const K: LoopVarId = LoopVarId(2);

/// float32 arguments of extent 8.
const A: BufferId = BufferId(0);
const B: BufferId = BufferId(1);
/// A float16 argument of extent 8.
const H: BufferId = BufferId(2);
/// An int32 argument of extent 8.
const N: BufferId = BufferId(3);
/// A constant of extent 8.
const P: BufferId = BufferId(4);
/// Scratch of extent 8, and a register buffer of 2 by 8.
const S: BufferId = BufferId(5);
const R: BufferId = BufferId(6);

fn buffer(name: &str, dtype: DType, shape: &[i64], scope: Scope) -> Buffer {
    Buffer { name: name.to_owned(), dtype, shape: shape.to_vec(), scope }
}

/// A nest with the buffers above; S and R are allocated around `body`.
fn nest(body: Vec<Stmt>) -> LoopNest {
    bare(vec![allocate(S, vec![allocate(R, body)])])
}

fn bare(body: Vec<Stmt>) -> LoopNest {
    let argument = |tensor| Scope::Argument(TensorId(tensor));
    LoopNest {
        name: "f".to_owned(),
        contract: true,
        scalars: vec![Scalar { name: "alpha".to_owned(), dtype: DType::Float32 }],
        buffers: vec![
            buffer("A", DType::Float32, &[8], argument(0)),
            buffer("B", DType::Float32, &[8], argument(1)),
            buffer("H", DType::Float16, &[8], argument(2)),
            buffer("N", DType::Int32, &[8], argument(3)),
            buffer("P", DType::Float32, &[8], Scope::Constant),
            buffer("S", DType::Float32, &[8], Scope::Scratch),
            buffer("R", DType::Float32, &[2, 8], Scope::Register),
        ],
        vars: ["i", "j", "k"].map(|name| LoopVar { name: name.to_owned() }).to_vec(),
        setup: Vec::new(),
        body,
    }
}

fn c(value: i64) -> IndexExpr {
    IndexExpr::constant(value)
}

fn v(var: LoopVarId) -> IndexExpr {
    IndexExpr::var(var)
}

fn access(tensor: BufferId, indices: &[IndexExpr]) -> Access {
    Access { tensor, indices: indices.to_vec(), origin: Origin::default() }
}

fn load(tensor: BufferId, indices: &[IndexExpr]) -> Expr {
    let dtype = match tensor {
        H => DType::Float16,
        N => DType::Int32,
        _ => DType::Float32,
    };
    Expr { dtype, kind: ExprKind::Load(access(tensor, indices)) }
}

fn one() -> Expr {
    Expr::literal(DType::Float32, Number::Float(1.0))
}

/// A subscript that is an integer read from `N`.
fn data(index: IndexExpr) -> IndexExpr {
    IndexExpr::atom(Atom::Data(Arc::new(Data { value: load(N, &[index]), declared: None })))
}

fn store(tensor: BufferId, indices: &[IndexExpr], value: Expr) -> Stmt {
    Stmt::Store(Store {
        target: access(tensor, indices),
        value,
        reduce: None,
        is_asynchronous: false,
        is_atomic: false,
        claim: None,
    })
}

fn set(tensor: BufferId, index: IndexExpr) -> Stmt {
    store(tensor, &[index], one())
}

fn each(kind: LoopKind, var: LoopVarId, extent: IndexExpr, body: Vec<Stmt>) -> Stmt {
    Stmt::For(For { var, extent, kind, body })
}

fn when(conditions: Vec<IndexExpr>, then: Vec<Stmt>, otherwise: Vec<Stmt>) -> Stmt {
    Stmt::If(If { conditions, then, otherwise })
}

fn allocate(buffer: BufferId, body: Vec<Stmt>) -> Stmt {
    Stmt::Allocate(Allocate { buffer, body })
}

#[track_caller]
fn accepted(nest: &LoopNest) {
    assert_eq!(verify_nest(nest).err(), None, "\n{}", print::nest(nest));
}

#[track_caller]
fn refused(nest: &LoopNest, what: &str) {
    let found = verify_nest(nest).expect_err("this should have been refused");
    assert_eq!(found.what, what);
}

#[test]
fn ids_point_into_their_tables() {
    accepted(&nest(vec![each(Serial, K, c(8), vec![set(A, v(K))])]));
    refused(&nest(vec![each(Serial, LoopVarId(3), c(8), vec![])]), "loop variable 3 does not exist");
    refused(
        &nest(vec![set(BufferId(7), c(0))]),
        "the tensor of an access does not exist, in <no buffer>[0] = 1.0",
    );
    refused(&nest(vec![allocate(BufferId(7), vec![])]), "allocated buffer 7 does not exist");
    let scalar = |at| Expr { dtype: DType::Float32, kind: ExprKind::Scalar(ScalarId(at)) };
    accepted(&nest(vec![store(A, &[c(0)], scalar(0))]));
    refused(&nest(vec![store(A, &[c(0)], scalar(1))]), "a scalar does not exist, in A[0] = <no scalar>");
}

#[test]
fn buffers_can_exist() {
    let mut twice = nest(vec![]);
    twice.buffers[1].scope = Scope::Argument(TensorId(0));
    refused(&twice, "B is an argument for a tensor that another buffer already represents");
    let mut negative = nest(vec![]);
    negative.buffers[0].shape = vec![-1];
    refused(&negative, "A has a negative extent");
    let mut huge = nest(vec![]);
    huge.buffers[0].shape = vec![1 << 40, 1 << 40];
    refused(&huge, "the size of A in bytes overflows");
    let mut none = nest(vec![]);
    none.buffers[0].shape = vec![0];
    accepted(&none);
}

#[test]
fn a_variable_is_used_inside_its_loop_only() {
    let once = |body| each(Serial, I, c(8), body);
    accepted(&nest(vec![once(vec![set(A, v(I))]), once(vec![set(A, v(I))])]));
    refused(&nest(vec![once(vec![]), set(A, v(I))]), "variable 0 out of scope, in A[i] = 1.0");
    refused(&nest(vec![once(vec![once(vec![])])]), "the loop over i is inside another loop over i");
    refused(&nest(vec![each(Serial, I, v(I), vec![])]), "variable 0 out of scope");
    refused(&nest(vec![when(vec![v(I)], vec![], vec![])]), "variable 0 out of scope, in if i >= 0");
}

#[test]
fn an_access_has_the_rank_of_its_buffer() {
    refused(
        &nest(vec![store(A, &[], one())]),
        "the number of subscripts of A is 0, but its rank is 1, in A[] = 1.0",
    );
    let copy = store(A, &[c(0)], load(B, &[c(0), c(0)]));
    refused(&nest(vec![copy]), "the number of subscripts of B is 2, but its rank is 1, in A[0] = B[0, 0]");
}

#[test]
fn sizes_are_numbers() {
    let symbol = IndexExpr::symbol(SymbolId(0));
    refused(&nest(vec![each(Serial, I, symbol, vec![])]), "symbol 0 does not exist");
    let extent = IndexExpr::atom(Atom::Extent(A, 0));
    refused(&nest(vec![each(Serial, I, extent, vec![])]), "an extent was never inferred");
    let overflow = IndexExpr::atom(Atom::Overflow);
    refused(&nest(vec![each(Serial, I, overflow, vec![])]), "a number overflows 64 bits");
}

#[test]
fn values_have_the_required_types() {
    let half = load(H, &[c(0)]);
    accepted(&nest(vec![store(H, &[c(1)], half.clone().cast(DType::Float32))]));
    refused(
        &nest(vec![store(H, &[c(1)], half.clone())]),
        "a float16 value for a float16 buffer, in H[1] = H[0]",
    );
    let sum = Expr::binary(BinaryOp::Add, one(), half);
    refused(
        &nest(vec![store(A, &[c(0)], sum)]),
        "float16 where float32 is needed: H[0], in A[0] = 1.0 + H[0]",
    );
}

#[test]
fn buffers_are_allocated_once_and_used_inside() {
    accepted(&nest(vec![set(S, c(0)), store(A, &[c(0)], load(S, &[c(0)]))]));
    let around = |body| vec![allocate(R, vec![]), allocate(S, body)];
    accepted(&bare(around(vec![set(S, c(0))])));
    let after = [around(vec![]), vec![set(S, c(0))]].concat();
    refused(&bare(after), "S is used where it is not allocated, in S[0] = 1.0");
    refused(&nest(vec![allocate(S, vec![])]), "S is allocated twice");
    refused(&bare(vec![allocate(S, vec![])]), "R is never allocated");
    for id in [A, P] {
        let name = nest(vec![]).buffer(id).name.clone();
        let wanted = format!("{name} is allocated, but not a scratch, shared or register buffer");
        refused(&nest(vec![allocate(id, vec![])]), &wanted);
    }
}

#[test]
fn setup_writes_constants_and_the_body_arguments() {
    let mut packed = nest(vec![store(A, &[c(0)], load(P, &[c(0)]))]);
    packed.setup = vec![store(P, &[c(0)], load(B, &[c(0)]))];
    accepted(&packed);
    refused(&nest(vec![set(P, c(0))]), "P is written outside of setup, in P[0] = 1.0");
    packed.setup = vec![set(B, c(0))];
    refused(&packed, "B is written in setup, in B[0] = 1.0");
}

#[test]
fn vector_and_unrolled_loops_have_constant_extents() {
    let inside = |kind, extent| nest(vec![each(Serial, I, c(8), vec![each(kind, J, extent, vec![])])]);
    accepted(&inside(Unrolled, c(0)));
    accepted(&inside(Vector, c(1)));
    accepted(&inside(Serial, v(I)));
    refused(&inside(Unrolled, v(I)), "unrolled loop j has no constant extent");
    refused(&inside(Vector, v(I)), "vector loop j has no constant extent");
    refused(&inside(Vector, c(0)), "vector loop j has no lanes");
}

#[test]
fn loop_kinds_have_nesting_rules() {
    let nested = |outer, inner| nest(vec![each(outer, I, c(8), vec![each(inner, J, c(8), vec![])])]);
    for (outer, inner) in [(Parallel, Vector), (Parallel, Unrolled), (Serial, Parallel), (Vector, Unrolled)] {
        accepted(&nested(outer, inner));
    }
    refused(&nested(Vector, Vector), "vector loop j inside a vector loop");
    refused(&nested(Parallel, Parallel), "parallel loop j inside a parallel loop");
    refused(&nested(Vector, Parallel), "parallel loop j inside a vector loop");
    refused(&nested(Unrolled, Parallel), "parallel loop j inside an unrolled loop");
}

#[test]
fn register_subscripts_are_constant_after_unrolling() {
    let inside = |row: IndexExpr, lane: IndexExpr| {
        let innermost = each(Vector, K, c(4), vec![store(R, &[row, lane], one())]);
        nest(vec![each(Serial, I, c(2), vec![each(Unrolled, J, c(2), vec![innermost])])])
    };
    accepted(&inside(c(1), c(3)));
    accepted(&inside(v(J), v(K).add(&v(J).scale(4))));
    accepted(&inside(v(J).floor_div(&c(2)), v(K)));
    let refuse = |row: IndexExpr, lane: IndexExpr, text: &str| {
        let wanted = format!(
            "{text} is in registers, and a subscript is not constant after unrolling, in {text} = 1.0"
        );
        refused(&inside(row, lane), &wanted);
    };
    refuse(v(I), c(0), "R[i, 0]");
    refuse(v(J), v(K).add(&v(I)), "R[j, i + k]");
    refuse(v(K).floor_div(&c(2)), c(0), "R[k/2, 0]");
    refuse(v(J), v(K).scale(2), "R[j, 2*k]");
    refuse(data(c(0)), c(0), "R[N[0], 0]");
}

#[test]
fn register_subscripts_have_the_same_thread_axes() {
    let threads = |axis, var, row: IndexExpr, lane: IndexExpr| {
        each(Thread(axis), var, c(2), vec![store(R, &[row, lane], one())])
    };
    let first = || threads(Axis::X, I, v(I), c(0));
    let then = |second: Stmt| {
        let block = each(Block(Axis::X), K, c(8), vec![allocate(R, vec![first(), second])]);
        bare(vec![allocate(S, vec![block])])
    };
    accepted(&then(threads(Axis::X, J, v(J), c(1))));
    let refuse = |second, text: &str| {
        let what = "has thread axes in other subscripts than earlier uses of the buffer";
        refused(&then(second), &format!("{text} {what}, in {text} = 1.0"));
    };
    refuse(threads(Axis::Y, J, v(J), c(1)), "R[j, 1]");
    refuse(threads(Axis::X, J, c(0), c(1)), "R[0, 1]");
    refuse(threads(Axis::X, J, c(0), v(J)), "R[0, j]");
}

#[test]
fn threads_write_different_elements() {
    let threads = |extent, body| nest(vec![each(Parallel, I, c(extent), body)]);
    accepted(&threads(8, vec![set(A, v(I))]));
    accepted(&threads(8, vec![set(A, data(v(I)))]));
    accepted(&threads(1, vec![set(A, c(0))]));
    // A trip count that depends on the parallel variable also distinguishes the threads.
    accepted(&threads(8, vec![each(Serial, J, v(I), vec![set(A, v(J))])]));
    let wanted = "every iteration of parallel loop i writes the same element of A, in A[0] = 1.0";
    refused(&threads(8, vec![set(A, c(0))]), wanted);
    // A condition that leaves one iteration leaves one writer; one that leaves two iterations
    // leaves two writers.
    let up_to = |last: i64| when(vec![c(last).sub(&v(I))], vec![set(A, c(0))], vec![]);
    accepted(&threads(8, vec![up_to(0)]));
    // Conditions that exclude each other leave no writer.
    accepted(&threads(8, vec![when(vec![v(I).offset(-5)], vec![up_to(3)], vec![])]));
    refused(&threads(8, vec![up_to(1)]), wanted);
    let own = each(Parallel, I, c(8), vec![allocate(S, vec![set(S, c(0))])]);
    accepted(&bare(vec![allocate(R, vec![]), own]));
    let wanted = "every iteration of parallel loop i writes the same element of S, in S[0] += 1.0";
    let shared = Store {
        target: access(S, &[c(0)]),
        value: one(),
        reduce: Some(ReduceOp::Add),
        is_asynchronous: false,
        is_atomic: false,
        claim: None,
    };
    refused(&threads(8, vec![Stmt::Store(shared.clone())]), wanted);
    // The order of float sums counts, so no threads may share them.
    let wanted = "an atomic store does not reduce integers into memory, in atomic S[0] += 1.0";
    refused(&threads(8, vec![Stmt::Store(Store { is_atomic: true, ..shared })]), wanted);
}

#[test]
fn an_access_out_of_bounds_is_found() {
    let over = |extent, index: IndexExpr| nest(vec![each(Serial, I, c(extent), vec![set(A, index)])]);
    accepted(&over(8, v(I)));
    refused(
        &over(9, v(I)),
        "A[i] is out of bounds: index 8 of dimension 0, of extent 8 at i = 8, in A[i] = 1.0",
    );
    refused(
        &over(4, v(I).offset(-1)),
        "A[i - 1] is out of bounds: index -1 of dimension 0, of extent 8 at i = 0, in A[i - 1] = 1.0",
    );
    // A loop that never runs reaches no point.
    accepted(&over(0, v(I).offset(100)));
    let read = store(A, &[c(0)], load(B, &[c(8)]));
    refused(&nest(vec![read]), "B[8] is out of bounds: index 8 of dimension 0, of extent 8, in A[0] = B[8]");
}

/// Tiles of 3 over 8 elements; the last tile has two elements.
fn tiled(most: i64, otherwise: bool) -> LoopNest {
    let index = || v(I).scale(3).add(&v(J));
    let store = vec![set(A, index())];
    let fits = c(most).sub(&index());
    let masked = match otherwise {
        false => when(vec![fits], store, vec![]),
        true => when(vec![c(-1).sub(&fits)], vec![], store),
    };
    nest(vec![each(Serial, I, c(3), vec![each(Unrolled, J, c(3), vec![masked])])])
}

#[test]
fn conditions_keep_an_access_in_bounds() {
    for otherwise in [false, true] {
        accepted(&tiled(7, otherwise));
        // The condition admits one element too many: in the middle of the inner loop's range, at
        // the end of the outer loop's range.
        let mut wrong = tiled(7, otherwise);
        wrong.buffers[0].shape = vec![7];
        refused(
            &wrong,
            "A[3*i + j] is out of bounds: index 7 of dimension 0, of extent 7 at i = 2, j = 1, in A[3*i + j] = 1.0",
        );
    }
    let short = v(I).scale(-3).offset(8).minimum(&c(3));
    let clamped = each(Serial, J, short, vec![set(A, v(I).scale(3).add(&v(J)))]);
    accepted(&nest(vec![each(Serial, I, c(3), vec![clamped])]));
    // The condition never holds.
    accepted(&nest(vec![when(vec![c(-1)], vec![set(A, c(9))], vec![])]));
}

#[test]
fn data_dependent_accesses_are_accepted() {
    let choice = Expr::binary(BinaryOp::Less, load(N, &[c(0)]), load(N, &[c(1)]));
    let either = |then: Expr| Expr {
        dtype: DType::Float32,
        kind: ExprKind::Select(Box::new([choice.clone(), then, one()])),
    };
    accepted(&nest(vec![store(A, &[c(0)], either(load(B, &[c(9)])))]));
    accepted(&nest(vec![set(A, data(c(0)).offset(8))]));
    accepted(&nest(vec![when(vec![data(c(0))], vec![set(A, c(8))], vec![])]));
    // A condition may guard the next one; a condition alone is certainly evaluated.
    let read = data(c(8));
    accepted(&nest(vec![when(vec![data(c(0)), read.clone()], vec![], vec![])]));
    refused(
        &nest(vec![when(vec![read], vec![], vec![])]),
        "N[8] is out of bounds: index 8 of dimension 0, of extent 8, in if N[8] >= 0",
    );
}

/// `B[j] = sum of A[i] over i` in a loop of this kind, inside rows of threads.
fn combined(kind: LoopKind, target: IndexExpr, beside: Vec<Stmt>) -> LoopNest {
    let store = Store {
        target: access(B, &[target]),
        value: load(A, &[v(I)]),
        reduce: None,
        is_asynchronous: false,
        is_atomic: false,
        claim: None,
    };
    let combine = Stmt::Combine(Combine { lane: I, op: ReduceOp::Add, store });
    let lanes = each(kind, I, c(8), [vec![combine], beside].concat());
    let rows = each(Thread(Axis::Y), J, c(4), vec![when(vec![v(J).offset(-1)], vec![lanes], vec![])]);
    nest(vec![each(Block(Axis::X), K, c(1), vec![rows])])
}

#[test]
fn threads_are_combined_alone_and_along_x() {
    accepted(&combined(Thread(Axis::X), v(J), vec![]));
    let beside = "loop j combines threads, and contains more than thread loops, conditions and \
                  the combination";
    refused(&combined(Serial, v(J), vec![]), beside);
    refused(&combined(Thread(Axis::X), v(J), vec![set(A, v(I))]), beside);
    let z = "threads are combined, but not directly inside their thread loop along x, in B[j] = sum of A[i] over i";
    refused(&combined(Thread(Axis::Z), v(J), vec![]), z);
    let of_lane = "the target of the total depends on the lane, or its store is asynchronous, in B[i] = sum of A[i] over i";
    refused(&combined(Thread(Axis::X), v(I), vec![]), of_lane);
    // Every row would write the same element.
    let same =
        "every iteration of parallel loop j writes the same element of B, in B[0] = sum of A[i] over i";
    refused(&combined(Thread(Axis::X), c(0), vec![]), same);
}
