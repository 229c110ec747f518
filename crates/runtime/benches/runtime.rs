//! Measures the runtime's own costs: starting a parallel loop, packing, and calling a kernel that
//! does next to nothing.

use std::convert::Infallible;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::{Array2, s};
use tilewright_ir::nest::{
    self, Access, BufferId, Expr, ExprKind, For, IndexExpr, LoopKind, LoopNest, LoopVar, LoopVarId, Scope,
    Stmt, Store,
};
use tilewright_ir::{DType, Origin, Program, TensorId};
use tilewright_runtime::{Buffer, Executable, Pool, View, ViewMut, copy, measure, timing};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::Cpu;

/// An empty loop: right after another loop, and after a pause in which the workers fell asleep.
fn start(c: &mut Criterion) {
    let mut group = c.benchmark_group("empty parallel loop");
    for threads in [1, 2, 4] {
        let pool = Pool::new(threads);
        let empty = |extent| {
            pool.for_each(extent, |part| {
                black_box(part);
            })
        };
        group.bench_function(BenchmarkId::new("warm", threads), |bencher| {
            bencher.iter(|| empty(threads as i64))
        });
        group.bench_function(BenchmarkId::new("warm, 1000 iterations", threads), |bencher| {
            bencher.iter(|| empty(1000));
        });
        group.bench_function(BenchmarkId::new("asleep", threads), |bencher| {
            let pause = || std::thread::sleep(Duration::from_millis(1));
            bencher.iter_batched(pause, |()| empty(threads as i64), criterion::BatchSize::PerIteration);
        });
    }
}

/// Measures how long two threads take to meet in a loop, where each waits for the other. The time
/// is meaningful only on two free cores.
fn rendezvous(c: &mut Criterion) {
    use std::sync::atomic::{AtomicU32, Ordering};
    let pool = Pool::new(2);
    c.bench_function("two threads meet in a loop", |bencher| {
        bencher.iter(|| {
            let here = AtomicU32::new(0);
            pool.for_each(2, |_| {
                here.fetch_add(1, Ordering::Relaxed);
                while here.load(Ordering::Relaxed) < 2 {
                    std::hint::spin_loop();
                }
            });
        });
    });
}

fn pack(c: &mut Criterion) {
    let mut group = c.benchmark_group("pack 1024x1024 float32");
    let array = Array2::<f32>::zeros((1024, 2048));
    let mut packed = Buffer::zeros(DType::Float32, &[1024, 1024]).expect("4 MB are there");
    let cases: [(&str, View<'_>); 4] = [
        ("rows", array.slice(s![.., ..1024]).into()),
        ("transposed", array.slice(s![.., ..1024]).reversed_axes().into()),
        ("every second", array.slice(s![.., ..;2]).into()),
        ("reversed rows", array.slice(s![..;-1, ..1024]).into()),
    ];
    group.throughput(Throughput::Bytes(8 << 20));
    for (name, view) in cases {
        group.bench_function(name, |bencher| bencher.iter(|| copy(&view, &mut packed.view_mut())));
    }
}

/// A call of `o(i) = a(i)` with four elements, in a serial and in a parallel loop.
fn call(c: &mut Criterion) {
    let parsed = parse("def copy(float(N) a) -> (o) { o(i) = a(i) }");
    let bindings: Bindings = [("N", 4)].into_iter().collect();
    let program = check(&parsed.ast, "copy", &bindings).program.expect("the program is right");
    let mut group = c.benchmark_group("call");
    for kind in [LoopKind::Serial, LoopKind::Parallel] {
        let executable = Executable::new(&program, &copying(&program, kind), &Cpu::host())
            .expect("a copy can be compiled");
        let pool = Pool::new(2);
        let bound = executable.bind(&pool, &[]).expect("there are no constants");
        let (a, mut o) = ([1.0f32; 4], [0.0f32; 4]);
        group.bench_function(format!("{kind:?}"), |bencher| {
            bencher.iter(|| {
                let a = View::from_slice(&a, &[4]).expect("the shape fits");
                let o = ViewMut::from_slice(&mut o, &[4]).expect("the shape fits");
                bound.run(&pool, &[a], &mut [o], &[])
            });
        });
    }
}

/// The loops of `o(i) = a(i)`.
fn copying(program: &Program, kind: LoopKind) -> LoopNest {
    let buffer = |at: u32, name: &str| nest::Buffer {
        name: name.into(),
        dtype: DType::Float32,
        shape: vec![4],
        scope: Scope::Argument(TensorId(at)),
    };
    let access = |at: u32| Access {
        tensor: BufferId(at),
        indices: vec![IndexExpr::var(LoopVarId(0))],
        origin: Origin::default(),
    };
    let value = Expr { dtype: DType::Float32, kind: ExprKind::Load(access(0)) };
    let store = Stmt::Store(Store {
        target: access(1),
        value,
        reduce: None,
        is_asynchronous: false,
        is_atomic: false,
        claim: None,
    });
    LoopNest {
        name: program.name.clone(),
        contract: true,
        scalars: Vec::new(),
        buffers: vec![buffer(0, "a"), buffer(1, "o")],
        vars: vec![LoopVar { name: "i".into() }],
        setup: Vec::new(),
        body: vec![Stmt::For(For {
            var: LoopVarId(0),
            extent: IndexExpr::constant(4),
            kind,
            body: vec![store],
        })],
    }
}

/// Prints the time that `measure` reports for an empty call, which is the cost of measuring.
fn clock(_: &mut Criterion) {
    let timing = measure(&timing::Options::default(), || {
        black_box(&());
        Ok::<(), Infallible>(())
    });
    println!("measuring nothing: {timing:?}");
}

criterion_group!(benches, start, rendezvous, pack, call, clock);
criterion_main!(benches);
