//! Computes operators, reductions and builtin functions on single [`Number`]s, exactly as the
//! language defines them.

mod integer;

pub use integer::philox_constants;

use crate::dtype::DType;
use crate::number::Number;
use crate::operators::{BinaryOp, Builtin, UnaryOp};
use crate::program::ReduceOp;

/// `op value`, as a value of `dtype`.
pub fn unary(op: UnaryOp, value: Number, dtype: DType) -> Number {
    match (op, value) {
        (UnaryOp::Not, value) => Number::Int(!value.is_true() as i128),
        (UnaryOp::Neg, Number::Int(value)) => Number::Int(-value).convert(dtype),
        (UnaryOp::Neg, Number::Float(value)) => Number::Float(-value),
        (UnaryOp::Complement, value) => Number::Int(!value.as_i128()).convert(dtype),
    }
}

/// `left op right`; `dtype` is the type of the result, which for comparisons is `bool`.
pub fn binary(op: BinaryOp, left: Number, right: Number, dtype: DType) -> Number {
    if op.is_comparison() {
        return Number::Int(compare(op, left, right) as i128);
    }
    if op.is_logical() {
        return Number::Int(right.is_true() as i128);
    }
    match (left, right) {
        (Number::Int(left), Number::Int(right)) => Number::Int(match op {
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => integer::shift(op, left, right, dtype),
            BinaryOp::Power => integer::power(left, right),
            _ => integer_binary(op, left, right),
        })
        .convert(dtype),
        (left, right) => Number::Float(float_binary(op, left.as_f64(), right.as_f64())).convert(dtype),
    }
}

fn compare(op: BinaryOp, left: Number, right: Number) -> bool {
    op.holds(match (left, right) {
        (Number::Int(left), Number::Int(right)) => left.partial_cmp(&right),
        (left, right) => left.as_f64().partial_cmp(&right.as_f64()),
    })
}

/// Exact for operands of 64 bits, except that a product may wrap at 128 bits. The caller wraps the
/// result to its type.
fn integer_binary(op: BinaryOp, left: i128, right: i128) -> i128 {
    match op {
        BinaryOp::Add => left + right,
        BinaryOp::Sub => left - right,
        BinaryOp::Mul => left.wrapping_mul(right),
        BinaryOp::Div if right == 0 => 0,
        BinaryOp::Mod if right == 0 => 0,
        BinaryOp::Div => (left - floor_mod(left, right)) / right,
        BinaryOp::Mod => floor_mod(left, right),
        BinaryOp::Min => left.min(right),
        BinaryOp::BitAnd => left & right,
        BinaryOp::BitOr => left | right,
        BinaryOp::BitXor => left ^ right,
        _ => left.max(right),
    }
}

/// The remainder with the sign of the divisor.
fn floor_mod(left: i128, right: i128) -> i128 {
    let remainder = left % right;
    if remainder != 0 && (remainder < 0) != (right < 0) { remainder + right } else { remainder }
}

fn float_binary(op: BinaryOp, left: f64, right: f64) -> f64 {
    match op {
        BinaryOp::Add => left + right,
        BinaryOp::Sub => left - right,
        BinaryOp::Mul => left * right,
        BinaryOp::Div => left / right,
        BinaryOp::Mod => {
            let remainder = left % right;
            let opposite = remainder != 0.0 && (remainder < 0.0) != (right < 0.0);
            if opposite { remainder + right } else { remainder }
        }
        // Both `min` and `max` ignore a NaN operand.
        BinaryOp::Min => left.min(right),
        _ => left.max(right),
    }
}

/// Reduces one more value into a total.
pub fn reduce(op: ReduceOp, total: Number, value: Number, dtype: DType) -> Number {
    binary(op.operator(), total, value, dtype)
}

/// The initial value of a reduction: 0, 1, or an end of the type's range.
pub fn neutral(op: ReduceOp, dtype: DType) -> Number {
    let bounds = dtype.integer_bounds();
    match (op, bounds) {
        (ReduceOp::Add, Some(_)) => Number::Int(0),
        (ReduceOp::Mul, Some(_)) => Number::Int(1),
        (ReduceOp::Min, Some((_, high))) => Number::Int(high),
        (ReduceOp::Max, Some((low, _))) => Number::Int(low),
        (ReduceOp::Add, None) => Number::Float(0.0),
        (ReduceOp::Mul, None) => Number::Float(1.0),
        (ReduceOp::Min, None) => Number::Float(f64::INFINITY),
        (ReduceOp::Max, None) => Number::Float(f64::NEG_INFINITY),
    }
}

/// Calls a mathematical function in double precision and rounds the result to `dtype`.
pub fn call(builtin: Builtin, arguments: &[Number], dtype: DType) -> Number {
    if let (Builtin::Abs, Number::Int(value)) = (builtin, arguments[0]) {
        return Number::Int(value.abs()).convert(dtype);
    }
    if builtin.is_on_integers() {
        return Number::Int(integer::call(builtin, arguments, dtype)).convert(dtype);
    }
    let x = arguments[0].as_f64();
    let y = arguments.get(1).map_or(0.0, |argument| argument.as_f64());
    let z = arguments.get(2).map_or(0.0, |argument| argument.as_f64());
    let truth = |value: bool| Number::Int(value as i128);
    let value = match builtin {
        Builtin::IsNan => return truth(x.is_nan()),
        Builtin::IsInf => return truth(x.is_infinite()),
        Builtin::IsFinite => return truth(x.is_finite()),
        Builtin::Abs => x.abs(),
        Builtin::Acos => x.acos(),
        Builtin::Acosh => x.acosh(),
        Builtin::Asin => x.asin(),
        Builtin::Asinh => x.asinh(),
        Builtin::Atan => x.atan(),
        Builtin::Atan2 => x.atan2(y),
        Builtin::Atanh => x.atanh(),
        Builtin::Cbrt => x.cbrt(),
        Builtin::Ceil => x.ceil(),
        Builtin::Copysign => x.copysign(y),
        Builtin::Cos => x.cos(),
        Builtin::Cosh => x.cosh(),
        Builtin::Erf => libm::erf(x),
        Builtin::Erfc => libm::erfc(x),
        Builtin::Exp => x.exp(),
        Builtin::Exp2 => x.exp2(),
        Builtin::Expm1 => x.exp_m1(),
        Builtin::Floor => x.floor(),
        Builtin::Fma => x.mul_add(y, z),
        Builtin::Fmod => x % y,
        Builtin::Hypot => x.hypot(y),
        Builtin::Lgamma => libm::lgamma(x),
        Builtin::Log => x.ln(),
        Builtin::Log10 => x.log10(),
        Builtin::Log1p => x.ln_1p(),
        Builtin::Log2 => x.log2(),
        Builtin::Pow => x.powf(y),
        Builtin::Rint => x.round_ties_even(),
        Builtin::Round => x.round(),
        Builtin::Rsqrt => 1.0 / x.sqrt(),
        Builtin::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Builtin::Sin => x.sin(),
        Builtin::Sinh => x.sinh(),
        Builtin::Sqrt => x.sqrt(),
        Builtin::Tan => x.tan(),
        Builtin::Tanh => x.tanh(),
        Builtin::Tgamma => libm::tgamma(x),
        Builtin::Trunc => x.trunc(),
        Builtin::Clz | Builtin::Ctz | Builtin::Philox | Builtin::Popcount => {
            unreachable!("functions on integers were called above")
        }
    };
    Number::Float(value).convert(dtype)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(op: BinaryOp, left: i128, right: i128) -> Number {
        binary(op, Number::Int(left), Number::Int(right), DType::Int32)
    }

    #[test]
    fn division_rounds_down_and_never_fails() {
        assert_eq!(int(BinaryOp::Div, -7, 2), Number::Int(-4));
        assert_eq!(int(BinaryOp::Mod, -7, 2), Number::Int(1));
        assert_eq!(int(BinaryOp::Div, 7, -2), Number::Int(-4));
        assert_eq!(int(BinaryOp::Mod, 7, -2), Number::Int(-1));
        assert_eq!(int(BinaryOp::Div, 7, 0), Number::Int(0));
        assert_eq!(int(BinaryOp::Mod, 7, 0), Number::Int(0));
        // The only quotient that overflows is -2^31 / -1, and it wraps.
        assert_eq!(int(BinaryOp::Div, i32::MIN as i128, -1), Number::Int(i32::MIN as i128));
    }

    #[test]
    fn products_of_the_largest_integers_wrap() {
        let largest = u64::MAX as i128;
        let squared = binary(BinaryOp::Mul, Number::Int(largest), Number::Int(largest), DType::UInt64);
        assert_eq!(squared, Number::Int(1));
    }

    #[test]
    fn float32_operations_have_the_bits_of_float32() {
        let (left, right) = (0.1f32, 3.3f32);
        for (op, exact) in
            [(BinaryOp::Mul, left * right), (BinaryOp::Div, left / right), (BinaryOp::Sub, left - right)]
        {
            let value = binary(op, Number::Float(left as f64), Number::Float(right as f64), DType::Float32);
            assert_eq!(value, Number::Float(exact as f64), "{op:?}");
        }
    }

    #[test]
    fn minimum_and_maximum_ignore_a_nan() {
        let nan = Number::Float(f64::NAN);
        assert_eq!(binary(BinaryOp::Max, nan, Number::Float(1.0), DType::Float32), Number::Float(1.0));
        assert_eq!(binary(BinaryOp::Min, Number::Float(1.0), nan, DType::Float32), Number::Float(1.0));
    }
}
