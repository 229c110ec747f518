//! Compiled kernels as functions of tensors: constants, strides, threads, and errors.
//!
//! Loop nests are written by hand here, so that the tests cover the launching and not a schedule.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use ndarray::{Array1, Array2, ArrayView, Axis, s};
use tilewright_ir::nest::{
    Access, Allocate, Atom, Buffer, BufferId, Data, Expr, ExprKind, For, IndexExpr, LoopKind, LoopNest,
    LoopVar, LoopVarId, Scope, Stmt, Store,
};
use tilewright_ir::{BinaryOp, DType, Number, Origin, Program, ReduceOp, ScalarId};
use tilewright_runtime::kernel::OutOfBounds;
use tilewright_runtime::{Bound, BuildError, Executable, Pool, RunError, View, ViewMut};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::Cpu;

fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    let bindings: Bindings = sizes.iter().copied().collect();
    let checked = check(&parsed.ast, &parsed.ast.functions[0].name.text, &bindings);
    checked.program.unwrap_or_else(|| panic!("{source}\n{:?}", checked.diagnostics))
}

fn buffer(name: &str, shape: &[i64], scope: Scope) -> Buffer {
    Buffer { name: name.into(), dtype: DType::Float32, shape: shape.to_vec(), scope }
}

fn argument(program: &Program, name: &str) -> Buffer {
    let id = program.find_tensor(name).unwrap();
    let shape = program.shape(id).unwrap().iter().map(|extent| *extent as i64).collect();
    Buffer { name: name.into(), dtype: program.tensor(id).dtype, shape, scope: Scope::Argument(id) }
}

fn access(buffer: u32, indices: &[&IndexExpr]) -> Access {
    Access {
        tensor: BufferId(buffer),
        indices: indices.iter().copied().cloned().collect(),
        origin: Origin::default(),
    }
}

fn load(buffer: u32, indices: &[&IndexExpr]) -> Expr {
    Expr { dtype: DType::Float32, kind: ExprKind::Load(access(buffer, indices)) }
}

fn store(buffer: u32, indices: &[&IndexExpr], value: Expr) -> Stmt {
    Stmt::Store(Store {
        target: access(buffer, indices),
        value,
        reduce: None,
        is_asynchronous: false,
        is_atomic: false,
        claim: None,
    })
}

fn each(var: u32, extent: i64, kind: LoopKind, body: Vec<Stmt>) -> Stmt {
    Stmt::For(For { var: LoopVarId(var), extent: IndexExpr::constant(extent), kind, body })
}

fn var(var: u32) -> IndexExpr {
    IndexExpr::var(LoopVarId(var))
}

fn vars(names: &[&str]) -> Vec<LoopVar> {
    names.iter().map(|name| LoopVar { name: (*name).into() }).collect()
}

const ROWS: i64 = 40;
const COLUMNS: i64 = 24;

/// `y(i,j) = x(i,j) * w(j) + s`, with `w` stored backward as a constant, and each row stored in
/// scratch memory first.
fn layer() -> (Program, LoopNest) {
    let source = "def layer(float(N,M) x, const float(M) w, float s) -> (y) { y(i,j) = x(i,j) * w(j) + s }";
    let program = program(source, &[("N", ROWS), ("M", COLUMNS)]);
    let (x, w, y, backward, row) = (0, 1, 2, 3, 4);
    let (i, j, k, l) = (var(0), var(1), var(2), var(3));
    let mirrored = |index: &IndexExpr| IndexExpr::constant(COLUMNS - 1).sub(index);
    let scalar = Expr { dtype: DType::Float32, kind: ExprKind::Scalar(ScalarId(0)) };
    let product = Expr::binary(BinaryOp::Mul, load(x, &[&i, &j]), load(backward, &[&mirrored(&j)]));
    let fill = store(row, &[&j], Expr::binary(BinaryOp::Add, product, scalar));
    let empty = store(y, &[&i, &k], load(row, &[&k]));
    let with_row = Stmt::Allocate(Allocate {
        buffer: BufferId(row),
        body: vec![
            each(1, COLUMNS, LoopKind::Serial, vec![fill]),
            each(2, COLUMNS, LoopKind::Serial, vec![empty]),
        ],
    });
    let nest = LoopNest {
        name: "layer".into(),
        contract: true,
        scalars: program.scalars.clone(),
        buffers: vec![
            argument(&program, "x"),
            argument(&program, "w"),
            argument(&program, "y"),
            buffer("w_backward", &[COLUMNS], Scope::Constant),
            buffer("row", &[COLUMNS], Scope::Scratch),
        ],
        vars: vars(&["i", "j", "k", "l"]),
        setup: vec![each(
            3,
            COLUMNS,
            LoopKind::Serial,
            vec![store(backward, &[&l], load(w, &[&mirrored(&l)]))],
        )],
        body: vec![each(0, ROWS, LoopKind::Parallel, vec![with_row])],
    };
    (program, nest)
}

fn executable((program, nest): &(Program, LoopNest)) -> Executable {
    Executable::new(program, nest, &Cpu::host()).unwrap()
}

fn numbers(rows: i64, columns: i64, seed: usize) -> Array2<f32> {
    let value = |(i, j): (usize, usize)| ((i * 31 + j * 7 + seed) % 17) as f32 - 8.0;
    Array2::from_shape_fn((rows as usize, columns as usize), value)
}

fn weights(seed: usize) -> Array1<f32> {
    numbers(1, COLUMNS, seed).index_axis_move(Axis(0), 0)
}

/// Runs the layer on arrays with any strides.
fn run_layer(
    bound: &Bound<'_>,
    pool: &Pool,
    x: ArrayView<'_, f32, ndarray::Ix2>,
    y: ViewMut<'_>,
    s: f32,
) -> Result<(), RunError> {
    bound.run(pool, &[x.into()], &mut [y], &[Number::Float(s.into())])
}

#[test]
fn every_bind_has_its_own_constants() {
    let layer = executable(&layer());
    for threads in [1, 2, 3] {
        let pool = Pool::new(threads);
        let (first, second) = (weights(1), weights(2));
        let bounds = [&first, &second].map(|w| (w, layer.bind(&pool, &[w.view().into()]).unwrap()));
        let x = numbers(ROWS, COLUMNS, 5);
        for _ in 0..20 {
            for (w, bound) in &bounds {
                let mut y = Array2::<f32>::zeros(x.raw_dim());
                run_layer(bound, &pool, x.view(), y.view_mut().into(), 0.5).unwrap();
                assert_eq!(y, &x * *w + 0.5);
            }
        }
    }
}

#[test]
fn strided_tensors_are_packed_and_unpacked() {
    let layer = executable(&layer());
    let pool = Pool::new(2);
    let wide = numbers(1, 2 * COLUMNS, 3);
    let w = wide.slice(s![0, ..;2]);
    let bound = layer.bind(&pool, &[w.into()]).unwrap();
    let transposed = numbers(COLUMNS, ROWS, 4);
    let mut larger = Array2::<f32>::from_elem((2 * ROWS as usize, COLUMNS as usize + 3), -1.0);
    let part = s![..;-2, 1..COLUMNS as usize + 1];
    run_layer(&bound, &pool, transposed.t(), larger.slice_mut(part).into(), 2.0).unwrap();
    assert_eq!(larger.slice(part), &transposed.t() * &w + 2.0);
    let untouched = larger.iter().filter(|element| **element == -1.0).count();
    assert!(untouched >= larger.len() - (ROWS * COLUMNS) as usize);
}

#[test]
fn unaligned_tensors_are_packed() {
    let layer = executable(&layer());
    let pool = Pool::new(1);
    let (w, x) = (weights(1), numbers(ROWS, COLUMNS, 2));
    let mut bytes = vec![0u8; 4 * x.len() + 4];
    let start = (0..4).find(|at| (bytes.as_ptr() as usize + at) % 4 == 1).unwrap();
    for (to, element) in bytes[start..].chunks_exact_mut(4).zip(&x) {
        to.copy_from_slice(&element.to_le_bytes());
    }
    // SAFETY: the elements were just written there.
    let view = unsafe {
        View::from_raw_parts(
            DType::Float32,
            bytes[start..].as_ptr(),
            &[ROWS as usize, COLUMNS as usize],
            &[COLUMNS as isize, 1],
        )
    };
    let bound = layer.bind(&pool, &[w.view().into()]).unwrap();
    let mut y = Array2::<f32>::zeros(x.raw_dim());
    bound.run(&pool, &[view], &mut [y.view_mut().into()], &[Number::Float(0.0)]).unwrap();
    assert_eq!(y, &x * &w);
}

#[test]
fn several_threads_call_one_kernel() {
    let layer = executable(&layer());
    let pool = Pool::new(2);
    let w = weights(1);
    let bound = layer.bind(&pool, &[w.view().into()]).unwrap();
    std::thread::scope(|scope| {
        for caller in 0..4 {
            let (bound, pool, w) = (&bound, &pool, &w);
            scope.spawn(move || {
                let x = numbers(ROWS, COLUMNS, caller);
                for at in 0..200 {
                    let mut y = Array2::<f32>::zeros(x.raw_dim());
                    run_layer(bound, pool, x.view(), y.view_mut().into(), at as f32).unwrap();
                    assert_eq!(y, &x * w + at as f32);
                }
            });
        }
    });
}

#[test]
fn an_owned_binding_outlives_its_constants() {
    fn shared<T: Send + Sync + 'static>(value: T) -> T {
        value
    }
    let pool = Pool::new(2);
    let bound = {
        let (layer, w) = (executable(&layer()), weights(1));
        shared(layer.bind(&pool, &[w.view().into()]).unwrap().into_owned().unwrap())
    };
    let x = numbers(ROWS, COLUMNS, 9);
    let mut results = bound.signature().zero_results().unwrap();
    bound.run(&pool, &[x.view().into()], &mut [results[0].view_mut()], &[Number::Float(1.0)]).unwrap();
    assert_eq!(results[0].as_slice::<f32>().unwrap(), (&x * &weights(1) + 1.0).as_slice().unwrap());
}

#[test]
fn wrong_arguments_are_refused() {
    let layer = executable(&layer());
    let pool = Pool::new(1);
    let short = Array1::<f32>::zeros(3);
    let error = layer.bind(&pool, &[short.view().into()]).err().unwrap();
    assert_eq!(error.to_string(), "`w` must be float32(24), and is float32(3)");
    let error = layer.bind(&pool, &[]).err().unwrap();
    assert_eq!(error.to_string(), "expected 1 constant inputs, but the call passes 0");

    let w = weights(0);
    let bound = layer.bind(&pool, &[w.view().into()]).unwrap();
    let x = numbers(ROWS, COLUMNS, 0);
    let mut y = x.clone();
    let doubles = x.mapv(f64::from);
    let error = bound.run(&pool, &[doubles.view().into()], &mut [y.view_mut().into()], &[Number::Int(0)]);
    let wanted = "`x` must be float32(40, 24), and is float64(40, 24)";
    assert_eq!(error.unwrap_err().to_string(), wanted);
    let error = bound.run(&pool, &[x.t().into()], &mut [y.view_mut().into()], &[Number::Int(0)]);
    assert!(matches!(error, Err(RunError::Mismatch { .. })));
    let error = bound.run(&pool, &[x.view().into()], &mut [], &[Number::Int(0)]);
    assert!(matches!(error, Err(RunError::Count { what: "results", wanted: 1, found: 0 })));
    let error = bound.run(&pool, &[x.view().into()], &mut [y.view_mut().into()], &[]);
    assert!(matches!(error, Err(RunError::Count { what: "scalars", wanted: 1, found: 0 })));
}

#[test]
fn a_nest_of_another_program_is_refused() {
    let (program, mut nest) = layer();
    nest.buffers[2].shape[0] += 1;
    let error = Executable::new(&program, &nest, &Cpu::host()).err();
    assert_eq!(error, Some(BuildError::NestMismatch("tensor `y`".into())));
}

#[test]
fn a_strided_tensor_that_is_updated_keeps_its_old_values() {
    let source = "def accumulate(float(N) a) -> (float(N) o) { o(i) += a(i) }";
    let program = program(source, &[("N", 20)]);
    let i = var(0);
    let update = Stmt::Store(Store {
        target: access(1, &[&i]),
        value: load(0, &[&i]),
        reduce: Some(ReduceOp::Add),
        is_asynchronous: false,
        is_atomic: false,
        claim: None,
    });
    let nest = LoopNest {
        name: "accumulate".into(),
        contract: true,
        scalars: Vec::new(),
        buffers: ["a", "o"].map(|name| argument(&program, name)).to_vec(),
        vars: vars(&["i"]),
        setup: Vec::new(),
        body: vec![each(0, 20, LoopKind::Serial, vec![update])],
    };
    let pool = Pool::new(1);
    let bound = executable(&(program, nest)).bind(&pool, &[]).unwrap();
    let a = Array1::from_iter((0..20).map(|at| at as f32));
    let mut o = Array1::from_elem(40, 7.0f32);
    for _ in 0..3 {
        bound.run(&pool, &[a.view().into()], &mut [o.slice_mut(s![..;2]).into()], &[]).unwrap();
    }
    assert_eq!(o.slice(s![..;2]), 3.0 * &a + 7.0);
    assert_eq!(o.slice(s![1..;2]), Array1::from_elem(20, 7.0));
}

/// `o(i) = a(index(i)) + o_in(i)`, which fails where the index is outside of `a`.
fn gather() -> (Program, LoopNest) {
    let source =
        "def gather(float(N) a, int32(K) index, float(K) o_in) -> (o) { o(i) = a(index(i)) + o_in(i) }";
    let program = program(source, &[("N", 10), ("K", 6)]);
    let (a, index, o_in, o) = (0, 1, 2, 3);
    let i = var(0);
    let value = Expr { dtype: DType::Int32, kind: ExprKind::Load(access(index, &[&i])) };
    let gathered = IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared: None })));
    let first = store(o, &[&i], load(o_in, &[&i]));
    let second = Stmt::Store(Store {
        target: access(o, &[&i]),
        value: load(a, &[&gathered]),
        reduce: Some(ReduceOp::Add),
        is_asynchronous: false,
        is_atomic: false,
        claim: None,
    });
    let nest = LoopNest {
        name: "gather".into(),
        contract: true,
        scalars: Vec::new(),
        buffers: ["a", "index", "o_in", "o"].map(|name| argument(&program, name)).to_vec(),
        vars: vars(&["i"]),
        setup: Vec::new(),
        body: vec![each(0, 6, LoopKind::Serial, vec![first, second])],
    };
    (program, nest)
}

#[test]
fn an_index_outside_its_tensor_is_an_error_with_its_name() {
    let gather = executable(&gather());
    let pool = Pool::new(1);
    let bound = gather.bind(&pool, &[]).unwrap();
    let a = Array1::from_iter((0..10).map(|at| at as f32));
    let o_in = Array1::from_elem(6, 100.0f32);
    let run = |index: [i32; 6]| {
        let mut o = [0.0f32; 6];
        let index = View::from_slice(&index, &[6]).unwrap();
        let inputs = [a.view().into(), index, o_in.view().into()];
        let result = bound.run(&pool, &inputs, &mut [ViewMut::from_slice(&mut o, &[6]).unwrap()], &[]);
        result.map(|()| o)
    };
    assert_eq!(run([9, 0, 1, 2, 2, 3]).unwrap(), [109.0, 100.0, 101.0, 102.0, 102.0, 103.0]);
    for outside in [10, -1, i32::MAX] {
        let error = run([0, 1, 2, outside, 4, 5]).unwrap_err();
        let expected = OutOfBounds {
            buffer: "a".into(),
            dimension: 0,
            extent: 10,
            is_declared: false,
            origin: Origin::default(),
        };
        assert_eq!(error, RunError::OutOfBounds(expected));
    }
    assert_eq!(run([0; 6]).unwrap(), [100.0; 6]);
}

#[test]
fn scratch_memory_that_does_not_exist_is_an_error() {
    for kind in [LoopKind::Serial, LoopKind::Parallel] {
        let (program, mut nest) = layer();
        nest.buffers[4].shape = vec![1 << 57];
        let Stmt::For(rows) = &mut nest.body[0] else { unreachable!() };
        rows.kind = kind;
        let executable = executable(&(program, nest));
        let pool = Pool::new(2);
        let w = weights(1);
        let error = match executable.bind(&pool, &[w.view().into()]) {
            Err(error) => error,
            Ok(bound) => {
                let x = numbers(ROWS, COLUMNS, 0);
                let mut y = x.clone();
                run_layer(&bound, &pool, x.view(), y.view_mut().into(), 0.0).unwrap_err()
            }
        };
        assert!(matches!(error, RunError::Memory(memory) if memory.bytes >= 1 << 59), "{kind:?}: {error}");
    }
}
