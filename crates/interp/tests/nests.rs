//! Tests of loop nests that are written by hand. Correct ones are compared with their program, and
//! wrong ones must fail.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::sync::Arc;

use LoopKind::{Parallel, Serial, Unrolled, Vector};
use tilewright_interp::{Inputs, Order, RunError, run, run_nest};
use tilewright_ir::nest::{
    Access, Allocate, Atom, Buffer, BufferId, Data, Expr, ExprKind, For, If, IndexExpr, LoopKind, LoopVar,
    LoopVarId, Scope, Stmt, Store,
};
use tilewright_ir::{
    BinaryOp, DType, LoopNest, Number, Origin, Program, ReduceOp, Tensor, TensorId, print, verify_nest,
};
use tilewright_syntax::{Bindings, check, parse};

fn compile(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let bindings: Bindings = sizes.iter().copied().collect();
    let checked = check(&parsed.ast, &parsed.ast.functions[0].name.text, &bindings);
    checked.program.unwrap_or_else(|| panic!("{source}\nis refused: {:?}", checked.diagnostics))
}

/// Inputs for a program: tensors of small numbers, whose sums are exact in any order.
fn inputs(program: &Program) -> Inputs {
    let mut tensors = BTreeMap::new();
    for (id, declared) in program.tensors_with(|role| role.is_supplied()) {
        let mut tensor = Tensor::zeros(declared.dtype, &program.shape(id).unwrap()).unwrap();
        for at in 0..tensor.len() {
            tensor.set(at, Number::Int(((at * 7 + id.index() * 3) % 5) as i128));
        }
        tensors.insert(declared.name.clone(), tensor);
    }
    Inputs { tensors, scalars: BTreeMap::new() }
}

/// A nest whose first buffers are the tensors of a program, with the same ids.
fn nest_for(program: &Program) -> LoopNest {
    let argument = |at: usize| {
        let id = TensorId(at as u32);
        let declared = program.tensor(id);
        let shape = declared.shape.iter().map(|extent| extent.as_constant().unwrap()).collect();
        Buffer { name: declared.name.clone(), dtype: declared.dtype, shape, scope: Scope::Argument(id) }
    };
    LoopNest {
        name: program.name.clone(),
        contract: true,
        scalars: program.scalars.clone(),
        buffers: (0..program.tensors.len()).map(argument).collect(),
        vars: Vec::new(),
        setup: Vec::new(),
        body: Vec::new(),
    }
}

fn buffer(nest: &mut LoopNest, name: &str, shape: &[i64], scope: Scope) -> BufferId {
    nest.buffers.push(Buffer { name: name.to_owned(), dtype: DType::Float32, shape: shape.to_vec(), scope });
    BufferId(nest.buffers.len() as u32 - 1)
}

fn vars<const N: usize>(nest: &mut LoopNest, names: [&str; N]) -> [LoopVarId; N] {
    names.map(|name| {
        nest.vars.push(LoopVar { name: name.to_owned() });
        LoopVarId(nest.vars.len() as u32 - 1)
    })
}

fn c(value: i64) -> IndexExpr {
    IndexExpr::constant(value)
}
fn v(var: LoopVarId) -> IndexExpr {
    IndexExpr::var(var)
}
/// `by * outer + inner`
fn tile(outer: LoopVarId, by: i64, inner: LoopVarId) -> IndexExpr {
    v(outer).scale(by).add(&v(inner))
}
fn access(tensor: BufferId, indices: &[IndexExpr]) -> Access {
    Access { tensor, indices: indices.to_vec(), origin: Origin::default() }
}
fn load(tensor: BufferId, indices: &[IndexExpr]) -> Expr {
    Expr { dtype: DType::Float32, kind: ExprKind::Load(access(tensor, indices)) }
}
fn times(left: Expr, right: Expr) -> Expr {
    Expr::binary(BinaryOp::Mul, left, right)
}
fn number(value: f64) -> Expr {
    Expr::literal(DType::Float32, Number::Float(value))
}
fn set(target: Access, value: Expr) -> Stmt {
    Stmt::Store(Store { target, value, reduce: None, is_asynchronous: false, is_atomic: false, claim: None })
}
fn add(target: Access, value: Expr) -> Stmt {
    Stmt::Store(Store {
        target,
        value,
        reduce: Some(ReduceOp::Add),
        is_asynchronous: false,
        is_atomic: false,
        claim: None,
    })
}
fn each(kind: LoopKind, var: LoopVarId, extent: i64, body: Vec<Stmt>) -> Stmt {
    Stmt::For(For { var, extent: c(extent), kind, body })
}
fn allocate(buffer: BufferId, body: Vec<Stmt>) -> Stmt {
    Stmt::Allocate(Allocate { buffer, body })
}
fn when(condition: IndexExpr, then: Vec<Stmt>) -> Stmt {
    Stmt::If(If { conditions: vec![condition], then, otherwise: Vec::new() })
}

/// Checks that the nest is valid and computes the program's results, in both orders.
#[track_caller]
fn agrees(nest: &LoopNest, program: &Program) {
    let text = print::nest(nest);
    assert_eq!(verify_nest(nest).err(), None, "\n{text}");
    let wanted = run(program, inputs(program)).unwrap();
    for order in [Order::Ascending, Order::Descending] {
        let found = run_nest(nest, program, inputs(program), order);
        assert_eq!(found.as_ref(), Ok(&wanted), "{order:?}\n{text}");
    }
}

fn failure(nest: &LoopNest, program: &Program) -> String {
    match run_nest(nest, program, inputs(program), Order::Ascending) {
        Ok(_) => panic!("this should have failed:\n{}", print::nest(nest)),
        Err(error) => error.to_string(),
    }
}

const GEMM: &str = "def gemm(float(M, K) A, const float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
const A: BufferId = BufferId(0);
const B: BufferId = BufferId(1);
const C: BufferId = BufferId(2);

/// A nest with tiles of 4 rows by 2 vectors of 4 in registers. A guard masks rows beyond the last.
fn gemm(rows: i64) -> (LoopNest, Program) {
    let program = compile(GEMM, &[("M", rows), ("K", 6), ("N", 8)]);
    let mut nest = nest_for(&program);
    let acc = buffer(&mut nest, "acc", &[4, 2, 4], Scope::Register);
    let [io, k, ii, jo, ji] = vars(&mut nest, ["i", "k", "i", "j", "j"]);
    let (row, column) = (tile(io, 4, ii), tile(jo, 4, ji));
    let sum = || access(acc, &[v(ii), v(jo), v(ji)]);
    let over_tile = |statement: Stmt| {
        let columns = each(Unrolled, jo, 2, vec![each(Vector, ji, 4, vec![statement])]);
        let fits = c(rows - 1).sub(&row);
        let inner = if rows % 4 == 0 { columns } else { when(fits, vec![columns]) };
        each(Unrolled, ii, 4, vec![inner])
    };
    let product = times(load(A, &[row.clone(), v(k)]), load(B, &[v(k), column.clone()]));
    let body = vec![
        over_tile(set(sum(), number(0.0))),
        each(Serial, k, 6, vec![over_tile(add(sum(), product))]),
        over_tile(set(access(C, &[row.clone(), column]), load(acc, &sum().indices))),
    ];
    nest.body = vec![each(Parallel, io, (rows + 3) / 4, vec![allocate(acc, body)])];
    (nest, program)
}

#[test]
fn a_tiled_matrix_product_in_registers() {
    let (nest, program) = gemm(8);
    agrees(&nest, &program);
}

#[test]
fn a_masked_tail() {
    let (nest, program) = gemm(10);
    agrees(&nest, &program);
    assert_eq!(
        print::nest(&nest),
        "\
gemm(float32 A[10, 6], float32 B[6, 8]) -> float32 C[10, 8]
  parallel i in 3
    register float32 acc[4, 2, 4]
    unroll i_1 in 4
      if 4*i + i_1 <= 9
        unroll j in 2
          vector j_1 in 4
            acc[i_1, j, j_1] = 0.0
    for k in 6
      unroll i_1 in 4
        if 4*i + i_1 <= 9
          unroll j in 2
            vector j_1 in 4
              acc[i_1, j, j_1] += A[4*i + i_1, k] * B[k, 4*j + j_1]
    unroll i_1 in 4
      if 4*i + i_1 <= 9
        unroll j in 2
          vector j_1 in 4
            C[4*i + i_1, 4*j + j_1] = acc[i_1, j, j_1]
"
    );
}

/// A nest that packs B into panels of 4 columns before the first call.
fn packed(from: BufferId) -> (LoopNest, Program) {
    let program = compile(GEMM, &[("M", 6), ("K", 6), ("N", 6)]);
    let mut nest = nest_for(&program);
    let panels = buffer(&mut nest, "Bp", &[2, 6, 4], Scope::Constant);
    let row = buffer(&mut nest, "row", &[6], Scope::Scratch);
    let [jo, k, ji, i] = vars(&mut nest, ["jo", "k", "ji", "i"]);
    let column = tile(jo, 4, ji);
    let exists = |body| each(Vector, ji, 4, vec![when(c(5).sub(&column), body)]);
    let pack = set(access(panels, &[v(jo), v(k), v(ji)]), load(from, &[v(k), column.clone()]));
    nest.setup = vec![each(Serial, jo, 2, vec![each(Serial, k, 6, vec![exists(vec![pack])])])];

    let copy = each(Serial, k, 6, vec![set(access(row, &[v(k)]), load(A, &[v(i), v(k)]))]);
    let sum = || access(C, &[v(i), column.clone()]);
    let product = times(load(row, &[v(k)]), load(panels, &[v(jo), v(k), v(ji)]));
    let panel = vec![
        exists(vec![set(sum(), number(0.0))]),
        each(Serial, k, 6, vec![exists(vec![add(sum(), product)])]),
    ];
    let body = vec![copy, each(Serial, jo, 2, panel)];
    nest.body = vec![each(Parallel, i, 6, vec![allocate(row, body)])];
    (nest, program)
}

#[test]
fn setup_packs_a_constant_input() {
    let (nest, program) = packed(B);
    agrees(&nest, &program);
}

#[test]
fn setup_sees_no_input_that_may_change() {
    let (nest, program) = packed(A);
    assert_eq!(verify_nest(&nest).err(), None);
    assert_eq!(failure(&nest, &program), "`A(0, 0)` is needed, but nothing has defined it");
}

#[test]
fn a_scatter_stores_at_the_indices_in_the_data() {
    let source = "def f(int(N) k, float(N) x) -> (h) { h(b) +=! x(i) where b = k(i), b in 0:5 }";
    let program = compile(source, &[("N", 9)]);
    let (keys, values, bins) = (BufferId(0), BufferId(1), BufferId(2));
    let mut nest = nest_for(&program);
    let [b, i] = vars(&mut nest, ["b", "i"]);
    let key = Expr { dtype: DType::Int32, kind: ExprKind::Load(access(keys, &[v(i)])) };
    let bin = |value: Expr, most| {
        let declared = Some((c(0), c(most)));
        IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared })))
    };
    let clear = each(Vector, b, 5, vec![set(access(bins, &[v(b)]), number(0.0))]);
    let scatter = |index| each(Serial, i, 9, vec![add(access(bins, &[index]), load(values, &[v(i)]))]);
    nest.body = vec![clear.clone(), scatter(bin(key.clone(), 5))];
    agrees(&nest, &program);

    nest.body = vec![clear, scatter(bin(key.clone(), 4))];
    let wanted = "a computed index is 4, but `where` declares the range 0:4";
    assert_eq!(failure(&nest, &program), wanted);
    nest.body = vec![scatter(bin(key, 5))];
    assert_eq!(failure(&nest, &program), "`h(0)` is needed, but nothing has defined it");
}

/// A nest for `y(i) = x(i)` through a buffer of `shape`. `body` makes its statements from the
/// buffer and the variable.
fn copy(shape: &[i64], body: impl FnOnce(BufferId, LoopVarId) -> Vec<Stmt>) -> (LoopNest, Program) {
    let program = compile("def f(float(N) x) -> (y) { y(i) = x(i) }", &[("N", 4)]);
    let mut nest = nest_for(&program);
    let scratch = buffer(&mut nest, "s", shape, Scope::Scratch);
    let [i] = vars(&mut nest, ["i"]);
    nest.body = body(scratch, i);
    (nest, program)
}

const X: BufferId = BufferId(0);
const Y: BufferId = BufferId(1);

#[test]
fn unwritten_elements_cannot_be_read() {
    let from = |s: BufferId, i| set(access(Y, &[v(i)]), load(s, &[v(i)]));
    let to = |s: BufferId, i| set(access(s, &[v(i)]), load(X, &[v(i)]));
    let (right, program) = copy(&[4], |s, i| {
        vec![allocate(s, vec![each(Serial, i, 4, vec![to(s, i)]), each(Serial, i, 4, vec![from(s, i)])])]
    });
    agrees(&right, &program);
    let (short, _) = copy(&[4], |s, i| {
        vec![allocate(s, vec![each(Serial, i, 3, vec![to(s, i)]), each(Serial, i, 4, vec![from(s, i)])])]
    });
    assert_eq!(failure(&short, &program), "`s(3)` is needed, but nothing has defined it");
    // Each allocation is new: the value that the first iteration wrote is undefined in the second.
    let (again, _) = copy(&[4], |s, i| {
        let first = when(v(i).scale(-1), vec![set(access(s, &[c(0)]), load(X, &[c(0)]))]);
        let all = set(access(Y, &[v(i)]), load(s, &[c(0)]));
        vec![each(Serial, i, 4, vec![allocate(s, vec![first, all])])]
    });
    assert_eq!(failure(&again, &program), "`s(0)` is needed, but nothing has defined it");
}

#[test]
fn results_must_be_written_in_full_and_in_bounds() {
    let direct = |extent: i64, shift: i64| {
        move |s: BufferId, i: LoopVarId| {
            let one = set(access(Y, &[v(i).offset(shift)]), load(X, &[v(i)]));
            vec![allocate(s, vec![]), each(Vector, i, extent, vec![one])]
        }
    };
    let (right, program) = copy(&[4], direct(4, 0));
    agrees(&right, &program);
    let (short, _) = copy(&[4], direct(3, 0));
    assert_eq!(failure(&short, &program), "`y(3)` is needed, but nothing has defined it");
    let (outside, _) = copy(&[4], direct(4, 1));
    assert_eq!(failure(&outside, &program), "`y(4)` does not exist: index 4 must be in 0 to 3");
    let (nothing, _) = copy(&[4], |s, _| vec![allocate(s, vec![])]);
    assert_eq!(failure(&nothing, &program), "`y(0)` is needed, but nothing has defined it");
}

#[test]
fn a_result_that_depends_on_the_order_shows() {
    // Every lane writes the same element, so the last lane decides its value.
    let (nest, program) = copy(&[1], |s, i| {
        let race = each(Vector, i, 4, vec![set(access(s, &[c(0)]), load(X, &[v(i)]))]);
        let spread = each(Serial, i, 4, vec![set(access(Y, &[v(i)]), load(s, &[c(0)]))]);
        vec![allocate(s, vec![race, spread])]
    });
    let results = |order| run_nest(&nest, &program, inputs(&program), order).unwrap();
    assert_ne!(results(Order::Ascending), results(Order::Descending));
}

#[test]
fn a_narrow_buffer_rounds_at_every_store() {
    let program = compile("def f(half(N) x) -> (half y) { y +=! x(i) }", &[("N", 2)]);
    let mut nest = nest_for(&program);
    let [i] = vars(&mut nest, ["i"]);
    let x = Expr { dtype: DType::Float16, kind: ExprKind::Load(access(X, &[v(i)])) }.cast(DType::Float32);
    nest.body =
        vec![set(access(Y, &[]), number(2048.0)), each(Serial, i, 2, vec![add(access(Y, &[]), x.clone())])];
    let mut ones = inputs(&program);
    let tensor = ones.tensors.get_mut("x").unwrap();
    (0..2).for_each(|at| tensor.set(at, Number::Int(1)));
    // 2049 is not a float16 number, so each sum rounds to 2048; in single precision it would be
    // 2050.
    let found = run_nest(&nest, &program, ones, Order::Ascending).unwrap();
    assert_eq!(found["y"].get(0), Number::Float(2048.0));
}

#[test]
fn arguments_are_the_tensors_of_the_program() {
    let (mut nest, program) = copy(&[4], |s, _| vec![allocate(s, vec![])]);
    nest.buffers[0].shape = vec![5];
    assert_eq!(failure(&nest, &program), "`x` must be float32[5], and is float32[4]");
    let missing = run_nest(&nest, &program, Inputs::default(), Order::Ascending);
    assert_eq!(missing, Err(RunError::Missing("x".to_owned())));
}

#[test]
fn an_in_out_tensor_that_no_loop_touches_comes_back() {
    let program = compile("def f(float(N) x) -> (y) { y(i) = x(i) }", &[("N", 4)]);
    let mut in_out = program.clone();
    in_out.tensors[0].role = tilewright_ir::Role::InOut;
    in_out.tensors[1].role = tilewright_ir::Role::Temporary;
    let nest = nest_for(&in_out);
    agrees(&nest, &in_out);
}
