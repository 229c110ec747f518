//! Returns the cost of a single operation or function call: its instructions, and its uses of the
//! division unit.

use tilewright_ir::nest::{Expr, ExprKind};
use tilewright_ir::{BinaryOp, Builtin, Number};

/// Returns true for conversions between scalar integers, which are part of loads, stores and
/// arithmetic.
pub(super) fn is_free(expr: &Expr) -> bool {
    matches!(&expr.kind, ExprKind::Cast(from) if !from.dtype.is_float() && !expr.dtype.is_float())
}

/// The cost of one operation: the number of instructions, and the number of uses of the division
/// unit.
pub(in crate::cost) struct OperationCost {
    pub instructions: f64,
    pub divisions: f64,
}

pub(in crate::cost) fn operation_cost(expr: &Expr) -> OperationCost {
    let plain = |instructions| OperationCost { instructions, divisions: 0.0 };
    match &expr.kind {
        ExprKind::Binary(BinaryOp::Div | BinaryOp::Mod, operands) if expr.dtype.is_integer() => {
            match &operands[1].kind {
                ExprKind::Literal(Number::Int(by)) if by.count_ones() == 1 => plain(2.0),
                ExprKind::Literal(_) => plain(6.0),
                _ => plain(40.0),
            }
        }
        // A product with the reciprocal is exact.
        ExprKind::Binary(BinaryOp::Div, operands) if is_power_of_two(&operands[1]) => plain(1.0),
        ExprKind::Binary(BinaryOp::Div, _) => OperationCost { instructions: 1.0, divisions: 1.0 },
        ExprKind::Binary(BinaryOp::Mod, _) => function_cost(Builtin::Fmod),
        // A float minimum must handle NaN.
        ExprKind::Binary(BinaryOp::Min | BinaryOp::Max, _) if expr.dtype.is_float() => plain(2.0),
        // A count that is not a number is compared with the width.
        ExprKind::Binary(BinaryOp::ShiftLeft | BinaryOp::ShiftRight, operands) => match &operands[1].kind {
            ExprKind::Literal(_) => plain(1.0),
            _ => plain(3.0),
        },
        ExprKind::Binary(BinaryOp::Power, operands) => plain(power_instructions(&operands[1])),
        ExprKind::Call(Builtin::Pow, arguments) => float_power_cost(&arguments[1]),
        ExprKind::Call(function, _) => function_cost(*function),
        ExprKind::Cast(from) => plain(if from.dtype == expr.dtype { 0.0 } else { 1.0 }),
        _ => plain(1.0),
    }
}

/// Whether a float is a literal whose only bit of the significand is the leading one.
fn is_power_of_two(expr: &Expr) -> bool {
    const SIGNIFICAND: u64 = (1 << (f64::MANTISSA_DIGITS - 1)) - 1;
    match &expr.kind {
        ExprKind::Literal(number) => {
            let value = number.as_f64();
            value.is_normal() && value.to_bits() & SIGNIFICAND == 0
        }
        _ => false,
    }
}

/// The products of a power: one for each bit of the exponent, and one for each bit that is set.
/// With an exponent that is not a number, there is also a choice for each bit.
fn power_instructions(exponent: &Expr) -> f64 {
    match &exponent.kind {
        ExprKind::Literal(Number::Int(number)) => {
            f64::from(i128::BITS - number.leading_zeros() + number.count_ones())
        }
        _ => 4.0 * f64::from(exponent.dtype.bits()),
    }
}

/// The cost of a float power. Small constant exponents become products and square roots.
fn float_power_cost(exponent: &Expr) -> OperationCost {
    let ExprKind::Literal(number) = &exponent.kind else { return function_cost(Builtin::Pow) };
    let exponent = number.as_f64();
    if exponent.fract() == 0.0 && (0.0..=6.0).contains(&exponent) {
        return OperationCost { instructions: (exponent / 2.0).ceil(), divisions: 0.0 };
    }
    match exponent {
        -1.0 | -2.0 => OperationCost { instructions: 2.0, divisions: 1.0 },
        0.5 | 1.5 => OperationCost { instructions: 4.0, divisions: 1.2 },
        0.25 | -0.5 => OperationCost { instructions: 4.0, divisions: 2.2 },
        _ => function_cost(Builtin::Pow),
    }
}

fn function_cost(function: Builtin) -> OperationCost {
    let plain = |instructions| OperationCost { instructions, divisions: 0.0 };
    match function {
        Builtin::Abs | Builtin::Ceil | Builtin::Floor | Builtin::Rint | Builtin::Trunc | Builtin::Fma => {
            plain(1.0)
        }
        // Ten rounds of two wide products, four exclusive ors and the sums of the key.
        Builtin::Philox => plain(100.0),
        // Without an instruction for vectors, these take shifts, masks and sums.
        Builtin::Popcount | Builtin::Clz | Builtin::Ctz => plain(8.0),
        Builtin::Copysign | Builtin::IsFinite | Builtin::IsInf | Builtin::IsNan | Builtin::Round => {
            plain(3.0)
        }
        Builtin::Sqrt => OperationCost { instructions: 1.0, divisions: 1.2 },
        Builtin::Rsqrt => OperationCost { instructions: 2.0, divisions: 2.2 },
        Builtin::Exp | Builtin::Exp2 => plain(16.0),
        Builtin::Sigmoid => OperationCost { instructions: 20.0, divisions: 1.0 },
        Builtin::Log | Builtin::Log2 | Builtin::Log10 | Builtin::Log1p | Builtin::Expm1 => plain(24.0),
        Builtin::Tanh | Builtin::Sinh | Builtin::Cosh => OperationCost { instructions: 26.0, divisions: 1.0 },
        Builtin::Sin | Builtin::Cos => plain(30.0),
        Builtin::Tan => OperationCost { instructions: 40.0, divisions: 1.0 },
        Builtin::Hypot => OperationCost { instructions: 16.0, divisions: 1.2 },
        Builtin::Cbrt => plain(28.0),
        // Floats of 32 bits are widened first, as in `erfc` and the functions below.
        Builtin::Fmod => OperationCost { instructions: 24.0, divisions: 2.0 },
        Builtin::Erf => plain(40.0),
        Builtin::Atan | Builtin::Atan2 => OperationCost { instructions: 30.0, divisions: 1.0 },
        Builtin::Asin | Builtin::Acos => OperationCost { instructions: 20.0, divisions: 1.2 },
        Builtin::Asinh | Builtin::Acosh | Builtin::Atanh => {
            OperationCost { instructions: 36.0, divisions: 1.5 }
        }
        _ => plain(80.0),
    }
}
