//! Tests vector loops: strides, gathers, masks, lazy operators, reductions over lanes.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod harness;

use harness::fenced::Fenced;
use harness::*;
use tilewright_ir::nest::{Expr, IndexExpr, LoopKind};
use tilewright_ir::{BinaryOp, DType, Number, ReduceOp};
use tilewright_target::VectorInstructions;

/// out(i) = in(index(i)) with a vector loop of `lanes` lanes.
fn picked(
    vectors: VectorInstructions,
    lanes: i64,
    size: i64,
    index: &dyn Fn(IndexExpr) -> IndexExpr,
) -> Vec<f32> {
    picked_in(LoopKind::Serial, vectors, lanes, size, index)
}

/// The same, with three iterations of an outer loop of the given kind.
fn picked_in(
    kind: LoopKind,
    vectors: VectorInstructions,
    lanes: i64,
    size: i64,
    index: &dyn Fn(IndexExpr) -> IndexExpr,
) -> Vec<f32> {
    let mut b = Builder::new();
    let (input, out) = (b.argument(DType::Float32, &[size]), b.argument(DType::Float32, &[lanes * 3]));
    let (outer, lane) = (b.var("outer"), b.var("lane"));
    let at = v(outer).scale(lanes).add(&v(lane));
    let body = set(out, std::slice::from_ref(&at), b.load(input, &[index(at.clone())]));
    let body = each(outer, 3, kind, vec![each(lane, lanes, LoopKind::Vector, vec![body])]);
    let kernel = b.compile(vectors, vec![body]);
    let mut input: Vec<f32> = (0..size).map(|at| at as f32).collect();
    let mut out = vec![-1.0f32; 3 * lanes as usize];
    assert_eq!(kernel.run(&mut [input.bytes(), out.bytes()]), 0);
    out
}

#[test]
fn loads_at_any_stride() {
    for vectors in runnable() {
        for lanes in [2, 3, 8, 16, 33, 64] {
            for step in [1, 2, 3, 5, 17] {
                let found = picked(vectors, lanes, 3 * lanes * step, &|at| at.scale(step));
                let wanted: Vec<f32> = (0..3 * lanes).map(|at| (at * step) as f32).collect();
                assert_eq!(found, wanted, "{vectors:?} {lanes} {step}");
            }
            let last = 3 * lanes - 1;
            let found = picked(vectors, lanes, 3 * lanes, &|at| c(last).sub(&at));
            assert_eq!(found, (0..3 * lanes).map(|at| (last - at) as f32).collect::<Vec<_>>());
        }
    }
}

/// Where the outer iteration is a constant, the subscript is the same in all lanes although it
/// mentions the lane.
#[test]
fn loads_at_one_element_for_all_lanes() {
    for vectors in runnable() {
        let index = |at: IndexExpr| at.modulo(&c(4)).floor_div(&c(2));
        let found = picked_in(LoopKind::Unrolled, vectors, 2, 6, &index);
        assert_eq!(found, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0], "{vectors:?}");
    }
}

#[test]
fn loads_at_quotients_and_remainders() {
    for vectors in runnable() {
        for lanes in [4, 16] {
            for by in [3, 8, 64] {
                let wanted = |value: &dyn Fn(i64) -> i64| {
                    (0..3 * lanes).map(|at| value(at) as f32).collect::<Vec<_>>()
                };
                let size = 3 * lanes;
                let found = picked(vectors, lanes, size, &|at| at.floor_div(&c(by)));
                assert_eq!(found, wanted(&|at| at / by));
                let found = picked(vectors, lanes, size, &|at| at.modulo(&c(by)));
                assert_eq!(found, wanted(&|at| at % by));
                let found = picked(vectors, lanes, size, &|at| at.offset(-5).floor_div(&c(by)).offset(2));
                assert_eq!(found, wanted(&|at| (at - 5).div_euclid(by) + 2));
                let found = picked(vectors, lanes, size, &|at| at.minimum(&c(7)).maximum(&c(2)));
                assert_eq!(found, wanted(&|at| at.clamp(2, 7)));
            }
        }
    }
}

#[test]
fn a_transposed_store_scatters() {
    for vectors in runnable() {
        let mut b = Builder::new();
        let (input, out) = (b.argument(DType::Int16, &[5, 16]), b.argument(DType::Int16, &[16, 5]));
        let (row, lane) = (b.var("row"), b.var("lane"));
        let body = set(out, &[v(lane), v(row)], b.load(input, &[v(row), v(lane)]));
        let body = each(row, 5, LoopKind::Unrolled, vec![each(lane, 16, LoopKind::Vector, vec![body])]);
        let kernel = b.compile(vectors, vec![body]);
        let mut input: Vec<i16> = (0..80).collect();
        let mut out = vec![0i16; 80];
        assert_eq!(kernel.run(&mut [input.bytes(), out.bytes()]), 0);
        let wanted: Vec<i16> = (0..80).map(|at| (at % 5) * 16 + at / 5).collect();
        assert_eq!(out, wanted);
    }
}

/// out(i) = 0 <= i + shift < size ? in((i + shift) * step) : -1, and the same with `if` statements.
#[test]
fn unselected_elements_are_not_loaded() {
    for vectors in runnable() {
        for (lanes, kind) in
            [(16, LoopKind::Vector), (5, LoopKind::Vector), (1, LoopKind::Serial), (4, LoopKind::Unrolled)]
        {
            for (shift, step) in [(-3, 1), (4, 1), (-2, 3), (5, 3), (100, 1), (0, 0)] {
                for by_statement in [false, true] {
                    check_guarded_loads(vectors, lanes, kind, shift, step, by_statement);
                }
            }
        }
    }
}

fn check_guarded_loads(
    vectors: VectorInstructions,
    lanes: i64,
    kind: LoopKind,
    shift: i64,
    step: i64,
    by_statement: bool,
) {
    const SIZE: i64 = 23;
    let mut b = Builder::new();
    let input = b.argument(DType::Float32, &[(SIZE - 1) * step + 1]);
    let out = b.argument(DType::Float32, &[SIZE]);
    let (outer, lane) = (b.var("outer"), b.var("lane"));
    let at = v(outer).scale(lanes).add(&v(lane));
    let from = at.offset(shift);
    // With a step of 0 the subscript is far outside, so that a uniform load is guarded too.
    let place = if step == 0 { v(outer).scale(1 << 20) } else { from.scale(step) };
    let load = b.load(input, &[place]);
    let inside =
        [from.clone(), c(SIZE - 1).sub(&from), c(if step == 0 { 0 } else { 1 << 40 }).sub(&v(outer))];
    let store = |value| set(out, std::slice::from_ref(&at), value);
    let body = match by_statement {
        true => when(&inside, vec![store(load)], vec![store(float(-1.0))]),
        false => {
            let holds =
                |condition: &IndexExpr| binary(BinaryOp::GreaterEqual, index(condition.clone()), int(0));
            let all = inside.iter().map(holds).reduce(|left, right| binary(BinaryOp::And, left, right));
            store(choose(all.unwrap(), load, float(-1.0)))
        }
    };
    let body = when(&[c(SIZE - 1).sub(&at)], vec![body], vec![]);
    let body = each(lane, lanes, kind, vec![body]);
    let body = each(outer, (SIZE + lanes - 1) / lanes, LoopKind::Serial, vec![body]);
    let kernel = b.compile(vectors, vec![body]);
    let elements = ((SIZE - 1) * step + 1) as usize;
    let values: Vec<f32> = (0..elements).map(|at| at as f32).collect();
    let mut fenced = Fenced::new(elements * 4);
    let wanted: Vec<f32> = (0..SIZE)
        .map(|at| match step {
            0 if at / lanes == 0 && at + shift < SIZE => 0.0,
            0 => -1.0,
            _ if (0..SIZE).contains(&(at + shift)) => ((at + shift) * step) as f32,
            _ => -1.0,
        })
        .collect();
    for at_the_end in [false, true] {
        let input = if at_the_end { fenced.at_the_end() } else { fenced.at_the_start() };
        input.copy_from_slice(values.clone().bytes());
        let mut out = vec![7.0f32; SIZE as usize];
        assert_eq!(kernel.run(&mut [input, out.bytes()]), 0);
        assert_eq!(out, wanted, "{vectors:?} {lanes} lanes, shift {shift}, step {step}, {by_statement}");
    }
}

#[test]
fn lanes_reduce_into_one_element() {
    for vectors in runnable() {
        for dtype in DType::ALL {
            for op in [ReduceOp::Add, ReduceOp::Mul, ReduceOp::Min, ReduceOp::Max] {
                for in_registers in [false, true] {
                    reduced(vectors, dtype, op, in_registers);
                }
            }
        }
    }
}

fn reduced(vectors: VectorInstructions, dtype: DType, op: ReduceOp, in_registers: bool) {
    use tilewright_ir::{Tensor, arithmetic};
    let mut b = Builder::new();
    let (input, out) = (b.argument(dtype, &[21]), b.argument(dtype, &[2]));
    let register = b.register(dtype, &[2]);
    let (outer, lane) = (b.var("outer"), b.var("lane"));
    let at = v(outer).scale(8).add(&v(lane));
    let target = if in_registers { register } else { out };
    let value = b.value(input, std::slice::from_ref(&at));
    let step = reduce(op, target, &[c(1)], value);
    let step = when(&[c(20).sub(&at)], vec![step], vec![]);
    let loops = each(outer, 3, LoopKind::Serial, vec![each(lane, 8, LoopKind::Vector, vec![step])]);
    let body = match in_registers {
        false => vec![allocate(register, vec![loops])],
        true => {
            let (first, last) = (b.value(out, &[c(1)]), b.value(register, &[c(1)]));
            vec![allocate(register, vec![set(register, &[c(1)], first), loops, set(out, &[c(1)], last)])]
        }
    };
    let kernel = b.compile(vectors, body);
    let mut values = Tensor::zeros(dtype, &[21]).unwrap();
    let mut wanted = Number::Int(1).convert(dtype);
    for at in 0..21 {
        let value = if op == ReduceOp::Mul { 1 - 2 * (at == 7) as i128 } else { (at * 5 % 7) as i128 - 3 };
        values.set(at, Number::Int(value).convert(dtype));
        wanted = arithmetic::reduce(op, wanted, values.get(at), dtype);
    }
    let mut bytes = values.bytes().to_vec();
    let mut out = Tensor::zeros(dtype, &[2]).unwrap();
    out.set(1, Number::Int(1));
    let mut out = out.bytes().to_vec();
    assert_eq!(kernel.run(&mut [&mut bytes, &mut out]), 0);
    let found = Tensor::from_bytes(dtype, &[2], out).unwrap().get(1);
    assert_eq!(found.as_f64(), wanted.as_f64(), "{vectors:?} {dtype} {op:?} {in_registers}");
}

/// The largest value of each column. Some columns contain a NaN, and one contains nothing but NaN.
#[test]
fn a_total_ignores_not_a_number() {
    for vectors in runnable() {
        let mut b = Builder::new();
        let (input, out) = (b.argument(DType::Float32, &[3, 8]), b.argument(DType::Float32, &[8]));
        let total = b.register(DType::Float32, &[8]);
        let (row, lane, first, last) = (b.var("row"), b.var("lane"), b.var("first"), b.var("last"));
        let start = set(total, &[v(first)], float(f64::NEG_INFINITY));
        let step = reduce(ReduceOp::Max, total, &[v(lane)], b.load(input, &[v(row), v(lane)]));
        let end = set(out, &[v(last)], b.load(total, &[v(last)]));
        let over = |var, body| each(var, 8, LoopKind::Vector, vec![body]);
        let rows = each(row, 3, LoopKind::Serial, vec![over(lane, step)]);
        let kernel =
            b.compile(vectors, vec![allocate(total, vec![over(first, start), rows, over(last, end)])]);
        let mut input = small(24, 4);
        for place in [1, 10, 19, 7, 15, 23] {
            input[place] = f32::NAN;
        }
        let mut out = vec![0.0f32; 8];
        assert_eq!(kernel.run(&mut [input.bytes(), out.bytes()]), 0);
        let largest =
            |column: usize| (0..3).map(|row| input[row * 8 + column]).fold(f32::NEG_INFINITY, f32::max);
        assert_eq!(out, (0..8).map(largest).collect::<Vec<_>>());
    }
}

#[test]
fn lanes_that_collide_reduce_one_after_the_other() {
    for vectors in runnable() {
        let mut b = Builder::new();
        let (bins, out) = (b.argument(DType::Int32, &[32]), b.argument(DType::Float32, &[4]));
        let (outer, lane) = (b.var("outer"), b.var("lane"));
        let at = v(outer).scale(16).add(&v(lane));
        let bin = data(b.load(bins, &[at]));
        let body = reduce(ReduceOp::Add, out, &[bin], float(1.0));
        let body = each(outer, 2, LoopKind::Serial, vec![each(lane, 16, LoopKind::Vector, vec![body])]);
        let kernel = b.compile(vectors, vec![body]);
        let mut bins: Vec<i32> = (0..32).map(|at| at * at % 4).collect();
        let mut out = vec![0.0f32; 4];
        assert_eq!(kernel.run(&mut [bins.bytes(), out.bytes()]), 0);
        let count = |bin| bins.iter().filter(|other| **other == bin).count() as f32;
        assert_eq!(out, (0..4).map(count).collect::<Vec<_>>());
    }
}

#[test]
fn the_last_lane_wins_a_plain_store() {
    for vectors in runnable() {
        let mut b = Builder::new();
        let (input, out) = (b.argument(DType::Int32, &[24]), b.argument(DType::Int32, &[2]));
        let register = b.register(DType::Int32, &[1]);
        let (outer, lane, whole) = (b.var("outer"), b.var("lane"), b.var("whole"));
        let at = v(outer).scale(8).add(&v(lane));
        let masked = when(
            &[c(10).sub(&at)],
            vec![set(register, &[c(0)], b.load(input, std::slice::from_ref(&at)))],
            vec![],
        );
        let masked = each(outer, 3, LoopKind::Serial, vec![each(lane, 8, LoopKind::Vector, vec![masked])]);
        let all = each(whole, 6, LoopKind::Vector, vec![set(out, &[c(1)], b.load(input, &[v(whole)]))]);
        let last = b.load(register, &[c(0)]);
        let body = allocate(register, vec![masked, all, set(out, &[c(0)], last)]);
        let kernel = b.compile(vectors, vec![body]);
        let mut input: Vec<i32> = (0..24).map(|at| at + 100).collect();
        let mut out = vec![0i32; 2];
        assert_eq!(kernel.run(&mut [input.bytes(), out.bytes()]), 0);
        assert_eq!(out, [110, 105]);
    }
}

/// Each lane has its own copy of a buffer that is allocated inside a vector loop.
#[test]
fn buffers_in_vector_loops_are_per_lane() {
    for vectors in runnable() {
        for in_registers in [false, true] {
            let mut b = Builder::new();
            let (input, out) = (b.argument(DType::Float32, &[16, 4]), b.argument(DType::Float32, &[16]));
            let buffer = match in_registers {
                true => b.register(DType::Float32, &[2]),
                false => b.scratch(DType::Float32, &[2]),
            };
            let (lane, k) = (b.var("lane"), b.var("k"));
            let value = b.load(input, &[v(lane), v(k)]);
            let total = b.load(buffer, &[c(1)]);
            let body = allocate(
                buffer,
                vec![
                    set(buffer, &[c(1)], float(0.0)),
                    each(k, 4, LoopKind::Serial, vec![reduce(ReduceOp::Add, buffer, &[c(1)], value)]),
                    set(out, &[v(lane)], total),
                ],
            );
            let kernel = b.compile(vectors, vec![each(lane, 16, LoopKind::Vector, vec![body])]);
            let mut input = small(64, 3);
            let mut out = vec![0.0f32; 16];
            assert_eq!(kernel.run(&mut [input.bytes(), out.bytes()]), 0);
            assert_eq!(out, input.chunks(4).map(|row| row.iter().sum()).collect::<Vec<f32>>());
        }
    }
}

/// Vectors of two lengths in one buffer suit no slots.
#[test]
fn registers_with_vectors_of_two_lengths_are_an_array() {
    for vectors in runnable() {
        let mut b = Builder::new();
        let (input, out) = (b.argument(DType::Float16, &[16]), b.argument(DType::Float16, &[16]));
        let room = b.register(DType::Float16, &[16]);
        let (i, k, j, l) = (b.var("i"), b.var("k"), b.var("j"), b.var("l"));
        let filled = [v(i).scale(8).add(&v(k))];
        let fill = set(room, &filled, b.value(input, &filled));
        let twice = binary(BinaryOp::Add, b.value(room, &[v(j).scale(4).add(&v(l))]), float(0.5));
        let body = allocate(
            room,
            vec![
                each(i, 2, LoopKind::Unrolled, vec![each(k, 8, LoopKind::Vector, vec![fill])]),
                each(
                    j,
                    4,
                    LoopKind::Unrolled,
                    vec![each(l, 4, LoopKind::Vector, vec![set(out, &[v(j).scale(4).add(&v(l))], twice)])],
                ),
            ],
        );
        let kernel = b.compile(vectors, vec![body]);
        let mut input: Vec<half::f16> = (0..16).map(|at| half::f16::from_f32(at as f32)).collect();
        let mut out = input.clone();
        assert_eq!(kernel.run(&mut [input.bytes(), out.bytes()]), 0);
        let wanted: Vec<f32> = (0..16).map(|at| at as f32 + 0.5).collect();
        assert_eq!(out.iter().map(|value| value.to_f32()).collect::<Vec<_>>(), wanted);
    }
}

#[test]
fn index_values_and_truth_values_in_lanes() {
    for vectors in runnable() {
        let mut b = Builder::new();
        let (flags, out) = (b.argument(DType::Bool, &[20]), b.argument(DType::Bool, &[20]));
        let numbers = b.argument(DType::Float32, &[20]);
        let (outer, lane) = (b.var("outer"), b.var("lane"));
        let at = v(outer).scale(4).add(&v(lane));
        let odd = binary(BinaryOp::Equal, index(at.modulo(&c(2))), int(1));
        let flag = b.load(flags, std::slice::from_ref(&at));
        let both = binary(
            BinaryOp::Or,
            binary(BinaryOp::And, flag.clone(), odd),
            binary(BinaryOp::Equal, index(at.clone()), int(4)),
        );
        let number = Expr {
            dtype: DType::Float32,
            kind: tilewright_ir::nest::ExprKind::Index(Box::new(at.mul(&at).offset(-7))),
        };
        let body = vec![set(out, std::slice::from_ref(&at), both), set(numbers, &[at], number)];
        let body = each(outer, 5, LoopKind::Serial, vec![each(lane, 4, LoopKind::Vector, body)]);
        let kernel = b.compile(vectors, vec![body]);
        let mut flags: Vec<u8> = (0..20).map(|at| (at % 3) as u8).collect();
        let mut out = vec![9u8; 20];
        let mut numbers = vec![0f32; 20];
        assert_eq!(kernel.run(&mut [flags.bytes(), out.bytes(), numbers.bytes()]), 0);
        let wanted: Vec<u8> = (0..20).map(|at| (flags[at] != 0 && at % 2 == 1 || at == 4) as u8).collect();
        assert_eq!(out, wanted);
        assert_eq!(numbers, (0..20).map(|at| (at * at) as f32 - 7.0).collect::<Vec<_>>());
    }
}

#[test]
fn indices_wrap_in_narrower_types() {
    let (step, offset) = ((1i64 << 32) + 70_001, -(1i64 << 31) - 1);
    for vectors in runnable() {
        for kind in [LoopKind::Serial, LoopKind::Vector, LoopKind::Unrolled] {
            for dtype in
                [DType::Int8, DType::UInt16, DType::Int32, DType::UInt32, DType::Int64, DType::UInt64]
            {
                let mut b = Builder::new();
                let out = b.argument(DType::Int64, &[8]);
                let i = b.var("i");
                let index = Box::new(v(i).scale(step).offset(offset));
                let narrow = Expr { dtype, kind: tilewright_ir::nest::ExprKind::Index(index) };
                let body = set(out, &[v(i)], narrow.cast(DType::Int64));
                let kernel = b.compile(vectors, vec![each(i, 8, kind, vec![body])]);
                let mut found = vec![0i64; 8];
                assert_eq!(kernel.run(&mut [found.bytes()]), 0);
                let wrapped = |at: i64| {
                    let exact = tilewright_ir::Number::Int((step * at + offset) as i128);
                    exact.convert(dtype).convert(DType::Int64).as_i128() as i64
                };
                assert_eq!(found, (0..8).map(wrapped).collect::<Vec<_>>(), "{dtype} {kind:?}");
            }
        }
    }
}
