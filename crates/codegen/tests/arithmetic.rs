//! Tests every operator and conversion on every type, in scalars and in vectors, against the
//! language's definition.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod harness;

use harness::*;
use tilewright_ir::nest::{Expr, ExprKind, LoopKind};
use tilewright_ir::{BinaryOp, Builtin, DType, Number, Tensor, UnaryOp, arithmetic};
use tilewright_target::VectorInstructions;

/// Values at and near the limits of the type, and in between.
fn interesting(dtype: DType) -> Vec<Number> {
    let Some((low, high)) = dtype.integer_bounds() else {
        let values = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -2.5,
            3.0,
            7.25,
            -127.6,
            255.5,
            300.0,
            65504.0,
            65519.0,
            65520.0,
            70000.0,
            -32769.0,
            2147483648.0,
            -2147483904.0,
            4294967296.0,
            9.3e18,
            -9.3e18,
            2e19,
            1e-8,
            6e-8,
            1e-40,
            1e38,
            -1e300,
            16777217.0,
            1.0009765625,
            1.00048828125001,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        return values.iter().map(|value| Number::Float(*value).convert(dtype)).collect();
    };
    let mut values: Vec<i128> =
        vec![0, 1, 2, 3, 7, 10, 100, -1, -2, -3, -7, -100, 127, 255, 16777217, 1 << 40];
    values.extend([low, low + 1, high, high - 1, high / 2, high / 3]);
    for value in [9007199254740993, 1152921573326323713, 0x0101_0000_0000_0001] {
        values.extend([value, -value]);
    }
    values.iter().map(|value| Number::Int(*value).convert(dtype)).collect()
}

fn tensor(dtype: DType, values: &[Number]) -> Tensor {
    let mut tensor = Tensor::zeros(dtype, &[values.len()]).unwrap();
    values.iter().enumerate().for_each(|(at, value)| tensor.set(at, *value));
    tensor
}

/// Evaluates an expression of `inputs` elementwise, in a loop of `kind` with `lanes` iterations.
fn run(
    vectors: VectorInstructions,
    lanes: i64,
    kind: LoopKind,
    inputs: &[Tensor],
    result: DType,
    value: &dyn Fn(Vec<Expr>) -> Expr,
) -> Tensor {
    let count = inputs[0].len() as i64;
    let mut b = Builder::new();
    let ids: Vec<_> = inputs.iter().map(|input| b.argument(input.dtype(), &[count])).collect();
    let out = b.argument(result, &[count]);
    let (outer, lane) = (b.var("outer"), b.var("lane"));
    let at = v(outer).scale(lanes).add(&v(lane));
    let loads: Vec<_> = ids.iter().map(|id| b.load(*id, std::slice::from_ref(&at))).collect();
    let value = value(loads).cast(result.compute_type());
    let body = when(&[c(count - 1).sub(&at)], vec![set(out, &[at], value)], vec![]);
    let body = each(lane, lanes, kind, vec![body]);
    let kernel =
        b.compile(vectors, vec![each(outer, (count + lanes - 1) / lanes, LoopKind::Serial, vec![body])]);
    let mut bytes: Vec<Vec<u8>> = inputs.iter().map(|input| input.bytes().to_vec()).collect();
    bytes.push(vec![0; count as usize * result.bytes()]);
    let mut arguments: Vec<&mut [u8]> = bytes.iter_mut().map(|bytes| bytes.as_mut_slice()).collect();
    assert_eq!(kernel.run(&mut arguments), 0);
    Tensor::from_bytes(result, &[count as usize], bytes.pop().unwrap()).unwrap()
}

fn same(left: Number, right: Number) -> bool {
    match (left, right) {
        (Number::Float(left), Number::Float(right)) => left == right || (left.is_nan() && right.is_nan()),
        (left, right) => left == right,
    }
}

/// The loops that run every test. Vectors of odd length and unrolled loops are tested on one target
/// only.
fn loop_shapes(vectors: VectorInstructions) -> Vec<(i64, LoopKind)> {
    let mut shapes = vec![(1, LoopKind::Serial), (16, LoopKind::Vector)];
    if vectors == VectorInstructions::Baseline {
        shapes.extend([(5, LoopKind::Vector), (4, LoopKind::Unrolled)]);
    }
    shapes
}

/// All pairs of interesting values.
fn pairs(dtype: DType) -> (Vec<Number>, Vec<Number>) {
    let values = interesting(dtype);
    let pairs = values.iter().flat_map(|left| values.iter().map(move |right| (*left, *right)));
    pairs.unzip()
}

const OPERATORS: [BinaryOp; 21] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Mod,
    BinaryOp::Min,
    BinaryOp::Max,
    BinaryOp::Equal,
    BinaryOp::NotEqual,
    BinaryOp::Less,
    BinaryOp::LessEqual,
    BinaryOp::Greater,
    BinaryOp::GreaterEqual,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::BitAnd,
    BinaryOp::BitOr,
    BinaryOp::BitXor,
    BinaryOp::ShiftLeft,
    BinaryOp::ShiftRight,
    BinaryOp::Power,
];

#[test]
fn operators_do_what_the_language_says() {
    for vectors in runnable() {
        for dtype in DType::ALL {
            let (lefts, rights) = pairs(dtype);
            let inputs = [tensor(dtype, &lefts), tensor(dtype, &rights)];
            for op in OPERATORS {
                if op.is_logical() != (dtype == DType::Bool) && op.is_logical() {
                    continue;
                }
                if op.is_on_integers() && !dtype.is_integer() {
                    continue;
                }
                let result = if op.is_comparison() { DType::Bool } else { dtype };
                for (lanes, kind) in loop_shapes(vectors) {
                    let found = run(vectors, lanes, kind, &inputs, result, &|loads| {
                        binary(op, loads[0].clone(), loads[1].clone())
                    });
                    for at in 0..lefts.len() {
                        let (left, right) = (inputs[0].get(at), inputs[1].get(at));
                        let wanted = match (op, left.is_true()) {
                            (BinaryOp::And, false) | (BinaryOp::Or, true) => left,
                            _ => arithmetic::binary(op, left, right, result),
                        };
                        let zeros = matches!(op, BinaryOp::Min | BinaryOp::Max);
                        assert!(
                            same(found.get(at), wanted)
                                || zeros && !wanted.is_true() && !found.get(at).is_true(),
                            "{vectors:?} {lanes} {dtype}: {left:?} {} {right:?} gave {:?}, not {wanted:?}",
                            op.symbol(),
                            found.get(at)
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn division_by_constants() {
    for dtype in [DType::Int32, DType::UInt8, DType::Int64, DType::Int8] {
        let values = interesting(dtype);
        let input = [tensor(dtype, &values)];
        for by in [-8i128, -3, -1, 0, 1, 3, 7, 8, 64] {
            let by = Number::Int(by).convert(dtype);
            for op in [BinaryOp::Div, BinaryOp::Mod] {
                for (lanes, kind) in loop_shapes(VectorInstructions::Baseline) {
                    let found = run(VectorInstructions::Baseline, lanes, kind, &input, dtype, &|loads| {
                        binary(op, loads[0].clone(), Expr::literal(dtype, by))
                    });
                    for (at, value) in values.iter().enumerate() {
                        let wanted = arithmetic::binary(op, *value, by, dtype);
                        assert_eq!(found.get(at), wanted, "{value:?} {} {by:?}", op.symbol());
                    }
                }
            }
        }
    }
}

/// Such quotients become products on processors with fused multiply-adds.
#[test]
fn small_integers_over_numbers_are_exact() {
    for dtype in [DType::UInt8, DType::Int8, DType::UInt16, DType::Int16] {
        let values = interesting(dtype);
        let input = [tensor(dtype, &values)];
        for by in [255.0, 65535.0, -3.0, 0.1, 1e-39, 0.0, f64::INFINITY] {
            for vectors in [VectorInstructions::Baseline, VectorInstructions::Avx2] {
                for (lanes, kind) in loop_shapes(vectors) {
                    let found = run(vectors, lanes, kind, &input, DType::Float32, &|loads| {
                        let dividend = loads[0].clone().cast(DType::Float32);
                        binary(BinaryOp::Div, dividend, Expr::literal(DType::Float32, Number::Float(by)))
                    });
                    for (at, value) in values.iter().enumerate() {
                        let wanted = value.as_f64() as f32 / by as f32;
                        let found = found.get(at).as_f64() as f32;
                        let same = wanted.to_bits() == found.to_bits() || wanted.is_nan() && found.is_nan();
                        assert!(same, "{dtype}: {value:?} / {by} is {found}, not {wanted}");
                    }
                }
            }
        }
    }
}

#[test]
fn shifts_and_powers_by_constants() {
    for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_integer()) {
        let values = interesting(dtype);
        let input = [tensor(dtype, &values)];
        for by in [-1i128, 0, 1, 5, 7, 8, 31, 64] {
            let by = Number::Int(by).convert(dtype);
            for op in [BinaryOp::ShiftLeft, BinaryOp::ShiftRight, BinaryOp::Power, BinaryOp::BitAnd] {
                for (lanes, kind) in loop_shapes(VectorInstructions::Baseline) {
                    let found = run(VectorInstructions::Baseline, lanes, kind, &input, dtype, &|loads| {
                        binary(op, loads[0].clone(), Expr::literal(dtype, by))
                    });
                    for (at, value) in values.iter().enumerate() {
                        let wanted = arithmetic::binary(op, *value, by, dtype);
                        assert_eq!(found.get(at), wanted, "{dtype}: {value:?} {} {by:?}", op.symbol());
                    }
                }
            }
        }
    }
}

#[test]
fn functions_on_integers() {
    for vectors in runnable() {
        for dtype in DType::ALL.into_iter().filter(|dtype| dtype.is_integer()) {
            let values = interesting(dtype);
            let input = [tensor(dtype, &values)];
            for (lanes, kind) in loop_shapes(vectors) {
                for builtin in [Builtin::Popcount, Builtin::Clz, Builtin::Ctz] {
                    let found = run(vectors, lanes, kind, &input, dtype, &|loads| {
                        call(builtin, vec![loads[0].clone()])
                    });
                    for (at, value) in values.iter().enumerate() {
                        let wanted = arithmetic::call(builtin, &[*value], dtype);
                        assert_eq!(found.get(at), wanted, "{dtype}: {} of {value:?}", builtin.name());
                    }
                }
                let found = run(vectors, lanes, kind, &input, dtype, &|loads| Expr {
                    dtype,
                    kind: ExprKind::Unary(UnaryOp::Complement, Box::new(loads[0].clone())),
                });
                for (at, value) in values.iter().enumerate() {
                    let wanted = arithmetic::unary(UnaryOp::Complement, *value, dtype);
                    assert_eq!(found.get(at), wanted, "{dtype}: ~{value:?}");
                }
            }
        }
    }
}

#[test]
fn random_words() {
    let dtype = DType::UInt32;
    let values = interesting(dtype);
    let input = [tensor(dtype, &values)];
    for vectors in runnable() {
        for (lanes, kind) in loop_shapes(vectors) {
            // Two words are the same in every lane, and the others differ.
            let word = |number: i128| Expr::literal(dtype, Number::Int(number));
            let found = run(vectors, lanes, kind, &input, dtype, &|loads| {
                let own = || loads[0].clone();
                call(Builtin::Philox, vec![word(7), own(), own(), word(0xFFFF_FFFF), own(), own()])
            });
            for (at, value) in values.iter().enumerate() {
                let (own, seven, most) = (*value, Number::Int(7), Number::Int(0xFFFF_FFFF));
                let wanted = arithmetic::call(Builtin::Philox, &[seven, own, own, most, own, own], dtype);
                assert_eq!(found.get(at), wanted, "{lanes} {value:?}");
            }
        }
    }
}

#[test]
fn conversions_between_all_types() {
    for vectors in runnable() {
        for from in DType::ALL {
            let values = interesting(from);
            let input = [tensor(from, &values)];
            for to in DType::ALL {
                for (lanes, kind) in loop_shapes(vectors) {
                    let found = run(vectors, lanes, kind, &input, to, &|loads| loads[0].clone().cast(to));
                    for at in 0..values.len() {
                        let value = input[0].get(at);
                        let wanted = value.convert(to);
                        assert!(
                            same(found.get(at), wanted),
                            "{vectors:?} {lanes}: {value:?} of {from} to {to} gave {:?}, not {wanted:?}",
                            found.get(at)
                        );
                    }
                }
            }
        }
    }
}

/// Rounding to float64 first gives other results next to a midpoint between two 16-bit floats.
#[test]
fn long_integers_are_rounded_once() {
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state
    };
    let mut integers = vec![0x0101_0000_0000_0001, (1 << 53) + 1, u64::MAX as i128, i64::MIN as i128];
    for _ in 0..500 {
        let middle = i128::from(2 * (random() >> 56) + 1) << (random() % 55);
        integers.extend([middle - 1, middle, middle + 1, i128::from(random() >> (random() % 64))]);
    }
    let integers: Vec<i128> = integers.iter().flat_map(|value| [*value, -value]).collect();
    for vectors in runnable() {
        for (from, to) in [
            (DType::Int64, DType::BFloat16),
            (DType::UInt64, DType::BFloat16),
            (DType::Int64, DType::Float16),
            (DType::UInt64, DType::Float16),
        ] {
            let values: Vec<Number> =
                integers.iter().map(|value| Number::Int(*value).convert(from)).collect();
            let input = [tensor(from, &values)];
            for (lanes, kind) in loop_shapes(vectors) {
                let found = run(vectors, lanes, kind, &input, to, &|loads| loads[0].clone().cast(to));
                for (at, value) in values.iter().enumerate() {
                    let (found, wanted) = (found.get(at), value.convert(to));
                    assert!(same(found, wanted), "{vectors:?} {lanes}: {value:?} to {to} gave {found:?}");
                }
            }
        }
    }
    // Known results, whatever the oracle says.
    let input = [tensor(DType::Int64, &[Number::Int(0x0101_0000_0000_0001)])];
    let brain = DType::BFloat16;
    let found = run(runnable()[0], 1, LoopKind::Serial, &input, brain, &|loads| loads[0].clone().cast(brain));
    assert_eq!(found.get(0), Number::Float(0x0102_0000_0000_0000u64 as f64));
}

#[test]
fn every_16_bit_float_survives_and_every_midpoint_rounds_to_even() {
    for vectors in runnable() {
        let all: Vec<u16> = (0..=u16::MAX).collect();
        let bits: Vec<u8> = all.iter().flat_map(|bits| bits.to_le_bytes()).collect();
        for dtype in [DType::Float16, DType::BFloat16] {
            let narrow = Tensor::from_bytes(dtype, &[all.len()], bits.clone()).unwrap();
            let widened =
                run(vectors, 16, LoopKind::Vector, &[narrow], DType::Float32, &|loads| loads[0].clone());
            let back = run(vectors, 16, LoopKind::Vector, std::slice::from_ref(&widened), dtype, &|loads| {
                loads[0].clone()
            });
            // Around each number: the number, the next float32, the midpoint to the next number,
            // and the midpoint's two neighbours.
            let mut around = Vec::new();
            for at in 0..all.len() {
                let wide = widened.get(at).as_f64() as f32;
                let wanted = match dtype {
                    DType::Float16 => half::f16::from_bits(all[at]).to_f32(),
                    _ => half::bf16::from_bits(all[at]).to_f32(),
                };
                assert!(wide == wanted || wide.is_nan() && wanted.is_nan(), "{:#x}", all[at]);
                let same_bits = back.bytes()[2 * at..2 * at + 2] == bits[2 * at..2 * at + 2];
                assert!(same_bits || wide.is_nan() && back.get(at).as_f64().is_nan(), "{:#x}", all[at]);
                let middle = if dtype == DType::Float16 { 1 << 12 } else { 1 << 15 };
                for step in [0, 1, middle - 1, middle, middle + 1] {
                    around.push(f32::from_bits(wide.to_bits().wrapping_add(step)));
                }
            }
            let wide: Vec<u8> = around.iter().flat_map(|value| value.to_le_bytes()).collect();
            let wide = Tensor::from_bytes(DType::Float32, &[around.len()], wide).unwrap();
            let found = run(vectors, 16, LoopKind::Vector, &[wide], dtype, &|loads| loads[0].clone());
            for (at, value) in around.iter().enumerate() {
                let found = u16::from_le_bytes([found.bytes()[2 * at], found.bytes()[2 * at + 1]]);
                let (wanted, nan) = match dtype {
                    DType::Float16 => {
                        (half::f16::from_f32(*value).to_bits(), half::f16::from_bits(found).is_nan())
                    }
                    _ => (half::bf16::from_f32(*value).to_bits(), half::bf16::from_bits(found).is_nan()),
                };
                assert!(found == wanted || value.is_nan() && nan, "{vectors:?} {dtype} {value:e}");
            }
        }
    }
}

#[test]
fn signs_and_negations() {
    for dtype in DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool) {
        let values = interesting(dtype);
        let input = [tensor(dtype, &values)];
        for (lanes, kind) in loop_shapes(VectorInstructions::Baseline) {
            let negated = run(VectorInstructions::Baseline, lanes, kind, &input, dtype, &|loads| Expr {
                dtype,
                kind: ExprKind::Unary(UnaryOp::Neg, Box::new(loads[0].clone())),
            });
            let positive = run(VectorInstructions::Baseline, lanes, kind, &input, dtype, &|loads| {
                call(Builtin::Abs, vec![loads[0].clone()])
            });
            for at in 0..values.len() {
                let value = input[0].get(at);
                assert!(same(negated.get(at), arithmetic::unary(UnaryOp::Neg, value, dtype)), "-{value:?}");
                let wanted = arithmetic::call(Builtin::Abs, &[value], dtype);
                assert!(same(positive.get(at), wanted), "|{value:?}|");
            }
        }
    }
}

#[test]
fn functions_agree_with_the_oracle() {
    for vectors in runnable() {
        for dtype in [DType::Float32, DType::Float64] {
            let values: Vec<Number> =
                [-3.5, -2.5, -1.0, -0.75, -0.1, 0.0, 0.3, 0.5, 0.99, 1.0, 1.5, 2.5, 4.25, 9.0]
                    .iter()
                    .map(|value| Number::Float(*value).convert(dtype))
                    .collect();
            let others: Vec<Number> = values.iter().rev().copied().collect();
            let inputs = [tensor(dtype, &values), tensor(dtype, &others), tensor(dtype, &values)];
            for builtin in Builtin::ALL.iter().filter(|builtin| !builtin.is_on_integers()) {
                let result = if builtin.is_predicate() { DType::Bool } else { dtype };
                for (lanes, kind) in loop_shapes(vectors) {
                    let found = run(vectors, lanes, kind, &inputs, result, &|loads| {
                        call(*builtin, loads[..builtin.arity()].to_vec())
                    });
                    for at in 0..values.len() {
                        let arguments: Vec<_> = inputs.iter().map(|input| input.get(at)).collect();
                        let wanted = arithmetic::call(*builtin, &arguments[..builtin.arity()], result);
                        let (found, wanted) = (found.get(at).as_f64(), wanted.as_f64());
                        let tolerance = if dtype == DType::Float32 { 1e-6 } else { 1e-13 };
                        let close = (found - wanted).abs() <= tolerance * wanted.abs().max(1.0);
                        assert!(
                            close || found == wanted || found.is_nan() && wanted.is_nan(),
                            "{vectors:?} {} of {:?} gave {found}, not {wanted}",
                            builtin.name(),
                            arguments[0]
                        );
                    }
                }
            }
        }
    }
}
