//! Tests of subscripts from data: no access leaves its buffer, and the status names the failed
//! check.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod harness;

use std::sync::Arc;

use harness::*;
use tilewright_ir::nest::{Atom, BufferId, Data, IndexExpr, LoopKind};
use tilewright_ir::{DType, ReduceOp};
use tilewright_target::VectorInstructions;

const KINDS: [LoopKind; 3] = [LoopKind::Serial, LoopKind::Vector, LoopKind::Unrolled];

/// out(i) = table(where(i), 1)
fn gathering(vectors: VectorInstructions, kind: LoopKind, dtype: DType) -> Compiled {
    gathering_from(vectors, kind, dtype, None)
}

/// The same, with a declared range for the values of `where`.
fn gathering_from(
    vectors: VectorInstructions,
    kind: LoopKind,
    dtype: DType,
    declared: Option<(i64, i64)>,
) -> Compiled {
    let mut b = Builder::new();
    let (places, table) = (b.argument(dtype, &[16]), b.argument(DType::Float32, &[10, 2]));
    let out = b.argument(DType::Float32, &[16]);
    let i = b.var("i");
    let value = b.load(places, &[v(i)]);
    let declared = declared.map(|(low, end)| (c(low), c(end)));
    let place = IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared })));
    let body = set(out, &[v(i)], b.load(table, &[place, c(1)]));
    b.compile(vectors, vec![each(i, 16, kind, vec![body])])
}

#[test]
fn loads_stay_inside() {
    for vectors in runnable() {
        for kind in KINDS {
            let kernel = gathering(vectors, kind, DType::Int32);
            let mut table = small(20, 1);
            let mut out = vec![0.0f32; 16];
            let mut places: Vec<i32> = (0..16).map(|at| at * 3 % 10).collect();
            assert_eq!(kernel.run(&mut [places.bytes(), table.bytes(), out.bytes()]), 0);
            let wanted: Vec<f32> = places.iter().map(|at| table[*at as usize * 2 + 1]).collect();
            assert_eq!(out, wanted);
            for wrong in [-1, 10, i32::MIN, i32::MAX] {
                places[11] = wrong;
                assert_eq!(kernel.run(&mut [places.bytes(), table.bytes(), out.bytes()]), 1);
                assert_eq!(out[12], wanted[12]);
            }
            let [check] = kernel.kernel.checks() else { panic!("{:?}", kernel.kernel.checks()) };
            assert_eq!((check.buffer, check.dimension, check.origin.start), (BufferId(1), 0, 3));
        }
    }
}

#[test]
fn declared_ranges_are_kept() {
    for vectors in runnable() {
        for kind in KINDS {
            let kernel = gathering_from(vectors, kind, DType::Int32, Some((2, 7)));
            let (mut table, mut out) = (small(20, 1), vec![0.0f32; 16]);
            let mut places: Vec<i32> = (0..16).map(|at| 2 + at % 5).collect();
            assert_eq!(kernel.run(&mut [places.bytes(), table.bytes(), out.bytes()]), 0);
            for wrong in [1, 7, -1, 10, i32::MIN, i32::MAX] {
                places[11] = wrong;
                assert_eq!(kernel.run(&mut [places.bytes(), table.bytes(), out.bytes()]), 1, "{wrong}");
            }
            assert!(kernel.kernel.checks()[0].is_declared);
        }
    }
}

#[test]
fn the_largest_unsigned_index_is_outside() {
    for kind in KINDS {
        let kernel = gathering(VectorInstructions::Baseline, kind, DType::UInt64);
        let mut table = small(20, 1);
        let mut out = vec![0.0f32; 16];
        let mut places = vec![3u64; 16];
        assert_eq!(kernel.run(&mut [places.bytes(), table.bytes(), out.bytes()]), 0);
        places[2] = u64::MAX;
        assert_eq!(kernel.run(&mut [places.bytes(), table.bytes(), out.bytes()]), 1);
    }
}

#[test]
fn stores_outside_do_nothing() {
    for vectors in runnable() {
        for kind in KINDS {
            for op in [None, Some(ReduceOp::Add)] {
                let mut b = Builder::new();
                let (places, out) = (b.argument(DType::Int64, &[16]), b.argument(DType::Float32, &[4]));
                let i = b.var("i");
                let place = data(b.load(places, &[v(i)]));
                let body = match op {
                    Some(op) => reduce(op, out, &[place], float(1.0)),
                    None => set(out, &[place], float(1.0)),
                };
                let kernel = b.compile(vectors, vec![each(i, 16, kind, vec![body])]);
                let mut places = vec![2i64; 16];
                places[4] = 4;
                places[5] = -7;
                let mut out = vec![0.0f32; 4];
                assert_eq!(kernel.run(&mut [places.bytes(), out.bytes()]), 1);
                assert_eq!(out, [0.0, 0.0, if op.is_some() { 14.0 } else { 1.0 }, 0.0], "{kind:?}");
            }
        }
    }
}

/// A row selected by data is the same in all lanes: out(b, d) = table(where(b), d).
#[test]
fn an_embedding_checks_each_row() {
    for vectors in runnable() {
        let mut b = Builder::new();
        let (places, table) = (b.argument(DType::Int32, &[6]), b.argument(DType::Float32, &[5, 40]));
        let out = b.argument(DType::Float32, &[6, 40]);
        let (row, outer, lane) = (b.var("row"), b.var("outer"), b.var("lane"));
        let at = v(outer).scale(8).add(&v(lane));
        let place = data(b.load(places, &[v(row)]));
        let body = set(out, &[v(row), at.clone()], b.load(table, &[place, at.clone()]));
        let body = each(lane, 8, LoopKind::Vector, vec![body]);
        let body = each(row, 6, LoopKind::Parallel, vec![each(outer, 5, LoopKind::Serial, vec![body])]);
        let kernel = b.compile(vectors, vec![body]);
        let mut places = vec![0, 4, 2, 2, 1, 3];
        let mut table: Vec<f32> = (0..200).map(|at| at as f32).collect();
        let mut out = vec![0.0f32; 240];
        assert_eq!(kernel.run(&mut [places.bytes(), table.bytes(), out.bytes()]), 0);
        let wanted: Vec<f32> =
            places.iter().flat_map(|row| (0..40).map(move |at| (row * 40 + at) as f32)).collect();
        assert_eq!(out, wanted);
        places[5] = 5;
        assert_eq!(kernel.run(&mut [places.bytes(), table.bytes(), out.bytes()]), 1);
    }
}

/// Lanes that a mask or a choice excludes are not checked.
#[test]
fn lanes_that_do_not_run_cannot_fail() {
    for vectors in runnable() {
        let mut b = Builder::new();
        let (places, table) = (b.argument(DType::Int32, &[16]), b.argument(DType::Float32, &[10]));
        let out = b.argument(DType::Float32, &[16]);
        let i = b.var("i");
        let place = data(b.load(places, &[v(i)]));
        let body = when(&[c(7).sub(&v(i))], vec![set(out, &[v(i)], b.load(table, &[place]))], vec![]);
        let kernel = b.compile(vectors, vec![each(i, 16, LoopKind::Vector, vec![body])]);
        let mut places: Vec<i32> = (0..16).map(|at| if at < 8 { at } else { 1 << 30 }).collect();
        let mut table = small(10, 1);
        let mut out = vec![0.0f32; 16];
        assert_eq!(kernel.run(&mut [places.bytes(), table.bytes(), out.bytes()]), 0);
        assert_eq!(out[..8], table[..8]);
    }
}
