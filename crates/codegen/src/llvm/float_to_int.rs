//! Emits conversions from floats to integers: the fraction is cut off, a number beyond the ends of
//! the integer type becomes the nearest end, and NaN becomes 0.
//!
//! LLVM has intrinsics with this meaning (`llvm.fptosi.sat`), but converts vectors lane by lane. So
//! vectors are brought into the range of the integers first, in two or three instructions, and
//! converted by the instruction that is defined only there. Types of 8 and 16 bits are converted to
//! 32 bits and then truncated.

use inkwell::FloatPredicate;
use inkwell::types::IntType;
use inkwell::values::InstructionOpcode;
use tilewright_ir::DType;

use super::function::Unit;
use super::ops::{RESULT, Value, lanes_of};

impl<'ctx> Unit<'ctx, '_> {
    /// Converts a float of type `from`, in its compute type, to an integer of type `to`.
    pub(super) fn float_to_int(&self, value: Value<'ctx>, from: DType, to: DType) -> Value<'ctx> {
        let kind = self.ops.compute_type(to).into_int_type();
        if lanes_of(value).is_none() {
            let name = if to.is_signed_integer() { "llvm.fptosi.sat" } else { "llvm.fptoui.sat" };
            return self
                .ops
                .intrinsic(name, &[kind.into(), value.get_type()], &[value])
                .try_as_basic_value()
                .expect_basic(RESULT);
        }
        self.saturated_lanes(value, from.compute_type(), to, kind)
    }

    fn saturated_lanes(
        &self,
        value: Value<'ctx>,
        from: DType,
        to: DType,
        kind: IntType<'ctx>,
    ) -> Value<'ctx> {
        let ops = &self.ops;
        let (low, high) = to.integer_bounds().expect("the target is an integer type");
        // NaN fails both comparisons, and becomes the low end.
        let low_end = ops.float_like(value, low as f64);
        let mut inside = ops.select(ops.fcmp(FloatPredicate::OGT, value, low_end), value, low_end);
        let is_high_exact = is_exact(high, from);
        if is_high_exact {
            let high_end = ops.float_like(value, high as f64);
            inside = ops.select(ops.fcmp(FloatPredicate::OLT, inside, high_end), inside, high_end);
        }
        let mut result = self.converted_in_range(inside, low, kind);
        if !is_high_exact {
            // The number after the high end is a power of two, which floats represent. Lanes from
            // there on have no defined result of the conversion, and this replaces it.
            let limit = ops.float_like(value, (high + 1) as f64);
            let is_beyond = ops.fcmp(FloatPredicate::OGE, value, limit);
            result = ops.select(is_beyond, ops.int_like(result, high as i64), result);
        }
        if low < 0 {
            let is_number = ops.fcmp(FloatPredicate::ORD, value, value);
            result = ops.select(is_number, result, ops.int_like(result, 0));
        }
        result
    }

    /// Converts lanes that are in the range of the integer type, of which `low` is the least.
    fn converted_in_range(&self, inside: Value<'ctx>, low: i128, kind: IntType<'ctx>) -> Value<'ctx> {
        let ops = &self.ops;
        if kind.get_bit_width() < 32 {
            let wide = ops.cast(InstructionOpcode::FPToSI, inside, ops.int_type(32));
            return ops.resize(wide, kind, true);
        }
        let op = if low < 0 { InstructionOpcode::FPToSI } else { InstructionOpcode::FPToUI };
        ops.cast(op, inside, kind)
    }
}

/// Whether a float type represents the largest number of an integer type, which is `2^n - 1`.
fn is_exact(high: i128, from: DType) -> bool {
    let digits = if from == DType::Float64 { f64::MANTISSA_DIGITS } else { f32::MANTISSA_DIGITS };
    high < 1 << digits
}
