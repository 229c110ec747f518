//! Tests matrix products with register tiles, packed operands and tails.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod harness;

use harness::*;
use tilewright_codegen::assembly;
use tilewright_ir::nest::{LoopKind, Stmt};
use tilewright_ir::{BinaryOp, DType, LoopNest, ReduceOp, verify_nest};
use tilewright_target::{Cpu, VectorInstructions};

fn product(m: usize, n: usize, k: usize, a: &[f32], b: &[f32]) -> Vec<f32> {
    let mut c = vec![0.0; m * n];
    for i in 0..m {
        for j in 0..n {
            c[i * n + j] = (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
        }
    }
    c
}

/// C(m, n) += A(m, k) * B(k, n) with tiles of `rows` times `vectors * lanes`, where B is packed
/// once for each block of columns.
fn tiled(m: i64, n: i64, k: i64, rows: i64, vectors: i64, lanes: i64) -> (Builder, Vec<Stmt>) {
    let mut b = Builder::new();
    let columns = vectors * lanes;
    let (lhs, rhs) = (b.argument(DType::Float32, &[m, k]), b.argument(DType::Float32, &[k, n]));
    let out = b.argument(DType::Float32, &[m, n]);
    let packed = b.scratch(DType::Float32, &[k, columns]);
    let acc = b.register(DType::Float32, &[rows, columns]);
    let (jo, io, p) = (b.var("jo"), b.var("io"), b.var("p"));
    let mut nest_over = |body: &mut dyn FnMut(&mut Builder, [tilewright_ir::nest::IndexExpr; 2]) -> Stmt| {
        let (i, jv, jl) = (b.var("i"), b.var("jv"), b.var("jl"));
        let column = v(jv).scale(lanes).add(&v(jl));
        let inner = body(&mut b, [v(i), column]);
        let lanes_loop = each(jl, lanes, LoopKind::Vector, vec![inner]);
        let columns_loop = each(jv, vectors, LoopKind::Unrolled, vec![lanes_loop]);
        each(i, rows, LoopKind::Unrolled, vec![columns_loop])
    };
    let row = |i: &tilewright_ir::nest::IndexExpr| v(io).scale(rows).add(i);
    let column = |j: &tilewright_ir::nest::IndexExpr| v(jo).scale(columns).add(j);
    let init = nest_over(&mut |_, [i, j]| set(acc, &[i, j], float(0.0)));
    let step = nest_over(&mut |b, [i, j]| {
        let left = b.load(lhs, &[row(&i), v(p)]);
        let right = b.load(packed, &[v(p), j.clone()]);
        reduce(ReduceOp::Add, acc, &[i, j], binary(BinaryOp::Mul, left, right))
    });
    let store = nest_over(&mut |b, [i, j]| {
        let inside = [c(m - 1).sub(&row(&i)), c(n - 1).sub(&column(&j))];
        let value = b.load(acc, &[i.clone(), j.clone()]);
        when(&inside, vec![set(out, &[row(&i), column(&j)], value)], vec![])
    });
    let (q, jv, jl) = (b.var("q"), b.var("jv"), b.var("jl"));
    let at = v(jv).scale(lanes).add(&v(jl));
    let from = b.load(rhs, &[v(q), column(&at)]);
    let inside = [c(n - 1).sub(&column(&at))];
    let copy = when(
        &inside,
        vec![set(packed, &[v(q), at.clone()], from)],
        vec![set(packed, &[v(q), at.clone()], float(0.0))],
    );
    let pack = each(
        q,
        k,
        LoopKind::Serial,
        vec![each(jv, vectors, LoopKind::Serial, vec![each(jl, lanes, LoopKind::Vector, vec![copy])])],
    );
    let tile = allocate(acc, vec![init, each(p, k, LoopKind::Serial, vec![step]), store]);
    let tiles = each(io, m / rows, LoopKind::Serial, vec![tile]);
    let blocks = (n + columns - 1) / columns;
    let body = each(jo, blocks, LoopKind::Parallel, vec![allocate(packed, vec![pack, tiles])]);
    (b, vec![body])
}

#[test]
fn tiles_in_registers_give_the_product() {
    for vectors in runnable() {
        for (m, n, k, rows, tile, lanes) in
            [(12, 64, 20, 12, 2, 16), (8, 37, 5, 4, 2, 8), (6, 5, 3, 3, 1, 4), (4, 9, 2, 2, 1, 7)]
        {
            let (b, body) = tiled(m, n, k, rows, tile, lanes);
            let kernel = b.compile(vectors, body);
            let (m, n, k) = (m as usize, n as usize, k as usize);
            let (mut lhs, mut rhs) = (small(m * k, 1), small(k * n, 2));
            for parallel in [serially, on_threads] as [tilewright_codegen::Parallel; 2] {
                let mut out = vec![f32::NAN; m * n];
                let status = kernel.run_with(&mut [lhs.bytes(), rhs.bytes(), out.bytes()], &[], parallel);
                assert_eq!(status, 0);
                assert_eq!(out, product(m, n, k, &lhs, &rhs), "{vectors:?} {m}x{n}x{k}");
            }
        }
    }
}

fn nest_of(b: Builder, body: Vec<Stmt>) -> LoopNest {
    LoopNest { body, ..b.nest }
}

/// A kernel's speed depends on its inner loop, which must keep accumulators in registers without
/// spills.
#[test]
fn the_inner_loop_is_fused_multiply_adds_and_loads() {
    let (b, body) = tiled(120, 128, 256, 12, 2, 16);
    let cpu = Cpu { cores: 1, vectors: VectorInstructions::Avx512, caches: vec![32 << 10] };
    let text = assembly(verify_nest(&nest_of(b, body)).unwrap(), &cpu).unwrap();
    let inner = text.split(".LBB").max_by_key(|block| block.matches("vfmadd").count()).unwrap();
    assert_eq!(inner.matches("vfmadd").count(), 24, "{inner}");
    assert_eq!(inner.matches("vmovups").count(), 2, "{inner}");
    assert!(!inner.contains("%rsp"), "spills:\n{inner}");
    assert!(inner.lines().count() < 24 + 2 + 12 + 8, "{inner}");
}

#[test]
#[ignore = "prints how long compiling takes"]
fn compile_times() {
    for _ in 0..5 {
        let (b, body) = tiled(120, 128, 256, 12, 2, 16);
        let kernel = b.compile(Cpu::host().vectors, body);
        println!("{:?}", kernel.kernel.compile_time());
    }
}
