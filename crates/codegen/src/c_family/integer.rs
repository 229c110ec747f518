//! Writes shifts by numbers, and the helper functions of the prelude for shifts, powers and the
//! functions on integers alone. The results are those that [`tilewright_ir::arithmetic`] defines.

use tilewright_ir::arithmetic::philox_constants::{KEY_INCREMENTS, MULTIPLIERS, ROUNDS};
use tilewright_ir::nest::{Expr, ExprKind};
use tilewright_ir::{BinaryOp, DType, Number};

use super::c_expr::CExpr;
use super::dialect::Dialect;
use super::expr::wrapping;
use super::prelude::Helper;
use super::stmt::Emitter;

/// The count of a shift, if it is a number below the width. C has no result for others.
pub(super) fn shift_count(op: BinaryOp, count: &Expr) -> Option<i128> {
    match &count.kind {
        ExprKind::Literal(Number::Int(number))
            if op.is_shift() && (0..i128::from(count.dtype.bits())).contains(number) =>
        {
            Some(*number)
        }
        _ => None,
    }
}

/// The logarithm of the divisor of an integer quotient or remainder, if it is a power of two.
pub(super) fn power_of_two(op: BinaryOp, divisor: &Expr) -> Option<u32> {
    match &divisor.kind {
        ExprKind::Literal(Number::Int(number))
            if matches!(op, BinaryOp::Div | BinaryOp::Mod) && divisor.dtype.is_integer() =>
        {
            (*number > 0 && number.count_ones() == 1).then(|| number.trailing_zeros())
        }
        _ => None,
    }
}

impl Emitter<'_> {
    /// Writes the quotient by a power of two, rounded toward minus infinity, or the remainder that
    /// belongs to it.
    pub(super) fn divide_by_power_of_two(
        &mut self,
        op: BinaryOp,
        value: CExpr,
        shift: u32,
        dtype: DType,
    ) -> CExpr {
        if op == BinaryOp::Div {
            return self.shift_by_number(BinaryOp::ShiftRight, value, i128::from(shift), dtype);
        }
        let ones = self.literal(Number::Int((1 << shift) - 1), dtype);
        wrapping(self.unit.dialect, BinaryOp::BitAnd, value, ones, dtype)
    }

    /// Writes a shift by a number below the width. C shifts a signed number to the right with
    /// copies of its sign, in both dialects.
    pub(super) fn shift_by_number(&mut self, op: BinaryOp, value: CExpr, count: i128, dtype: DType) -> CExpr {
        let dialect = self.unit.dialect;
        let count = CExpr::literal(count.to_string());
        match op {
            BinaryOp::ShiftLeft => wrapping(dialect, op, value, count, dtype),
            _ => CExpr::binary(op, &value, &count).cast(dialect.value_type(dtype)),
        }
    }
}

/// The definition of a helper function on integers.
pub(super) fn function(dialect: Dialect, helper: Helper, dtype: DType) -> String {
    match helper {
        Helper::ShiftLeft | Helper::ShiftRight => shift(dialect, helper, dtype),
        Helper::Power => power(dialect, dtype),
        Helper::Philox => philox(dialect),
        _ => count_bits(dialect, helper, dtype),
    }
}

/// A shift by any count. A count of the width or more, or a negative one, shifts every bit out.
fn shift(dialect: Dialect, helper: Helper, dtype: DType) -> String {
    let (head, own, t) = (dialect.helper_head(), helper.name(dtype), dialect.value_type(dtype));
    let (wide, width) = (dialect.wrapping_type(dtype), dtype.bits());
    let is_in_range = format!("({wide})count < {width}");
    let body = match helper {
        Helper::ShiftLeft => format!("{is_in_range} ? ({t})(({wide})x << count) : 0"),
        _ if dtype.is_signed_integer() => format!("({t})(x >> ({is_in_range} ? count : {}))", width - 1),
        _ => format!("{is_in_range} ? ({t})(x >> count) : 0"),
    };
    format!("{head} {t} {own}({t} x, {t} count) {{ return {body}; }}\n")
}

/// The power by repeated squares, which wraps. A negative exponent gives 0.
fn power(dialect: Dialect, dtype: DType) -> String {
    let (head, own, t) = (dialect.helper_head(), Helper::Power.name(dtype), dialect.value_type(dtype));
    let wide = dialect.wrapping_type(dtype);
    let negative = if dtype.is_signed_integer() { "  if (exponent < 0) return 0;\n" } else { "" };
    format!(
        "{head} {t} {own}({t} x, {t} exponent) {{\n{negative}  {wide} result = 1, square = ({wide})x, bits = \
         ({wide})exponent;\n  for (; bits != 0; bits >>= 1) {{\n    if (bits & 1) result *= square;\n    square *= \
         square;\n  }}\n  return ({t})result;\n}}\n"
    )
}

/// The number of bits that are set, or of zeros before the first or after the last of them.
fn count_bits(dialect: Dialect, helper: Helper, dtype: DType) -> String {
    let (head, own, t) = (dialect.helper_head(), helper.name(dtype), dialect.value_type(dtype));
    let (wide, width) = (dialect.wrapping_type(dtype), dtype.bits());
    let is_long = width == 64;
    let popcount = match (dialect, is_long) {
        (Dialect::OpenCl, _) => "popcount",
        (Dialect::Cuda, true) => "__popcll",
        (Dialect::Cuda, false) => "__popc",
    };
    let leading_zeros = match (dialect, is_long) {
        (Dialect::OpenCl, _) => "clz(bits)",
        (Dialect::Cuda, true) => "__clzll((long long)bits)",
        (Dialect::Cuda, false) => "__clz((int)bits)",
    };
    let mask = if width < 32 { format!(" & {}u", (1u32 << width) - 1) } else { String::new() };
    let value = match helper {
        Helper::Popcount => format!("{popcount}(bits)"),
        Helper::Clz => format!("{leading_zeros} - {}", width.max(32) - width),
        _ => format!("bits == 0 ? {width} : {popcount}(~bits & (bits - 1))"),
    };
    format!("{head} {t} {own}({t} x) {{ {wide} bits = ({wide})x{mask}; return ({t})({value}); }}\n")
}

/// The first word of Philox4x32-10.
fn philox(dialect: Dialect) -> String {
    let (head, own) = (dialect.helper_head(), Helper::Philox.name(DType::UInt32));
    let t = dialect.value_type(DType::UInt32);
    let high = if dialect == Dialect::Cuda { "__umulhi" } else { "mul_hi" };
    let [by0, by2] = MULTIPLIERS;
    let [step0, step1] = KEY_INCREMENTS;
    format!(
        "{head} {t} {own}({t} k0, {t} k1, {t} c0, {t} c1, {t} c2, {t} c3) {{\n  for (int round = 0; round < {ROUNDS}; \
         ++round) {{\n    {t} n0 = {high}({by2}u, c2) ^ c1 ^ k0, n2 = {high}({by0}u, c0) ^ c3 ^ k1;\n    c1 = {by2}u * c2;\n    \
         c3 = {by0}u * c0;\n    c0 = n0;\n    c2 = n2;\n    k0 += {step0}u;\n    k1 += {step1}u;\n  }}\n  return c0;\n}}\n"
    )
}
