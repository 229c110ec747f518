//! Emits conversions between element types, and between the type of a value in memory and its type
//! during computation.
//!
//! 16-bit floats are computed as float32. The processor converts float16 where it has the
//! instruction. Integer arithmetic converts bfloat16: the processors' own instruction for it
//! flushes small numbers to zero.

use inkwell::FloatPredicate;
use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode;
use tilewright_ir::{DType, Number};

use super::function::Unit;
use super::ops::{Value, integer};

impl<'ctx> Unit<'ctx, '_> {
    /// A constant in the compute type of its element type.
    pub(super) fn literal(&self, number: Number, dtype: DType) -> Value<'ctx> {
        let kind = self.ops.compute_type(dtype);
        match number.convert(dtype) {
            Number::Int(value) => integer(kind.into_int_type(), value as i64).into(),
            Number::Float(value) => kind.into_float_type().const_float(value).into(),
        }
    }

    /// Converts a value from its memory type to its compute type.
    pub(super) fn decode(&self, dtype: DType, raw: Value<'ctx>) -> Value<'ctx> {
        match dtype {
            DType::Bool => self.ops.icmp(IntPredicate::NE, raw, self.ops.int_like(raw, 0)),
            DType::Float16 if self.machine.converts_half => {
                let half = self.ops.cast(InstructionOpcode::BitCast, raw, self.ops.context.f16_type());
                self.ops.cast(InstructionOpcode::FPExt, half, self.ops.context.f32_type())
            }
            DType::Float16 => self.half_to_float(raw),
            DType::BFloat16 => {
                let wide = self.ops.resize(raw, self.ops.int_type(32), false);
                let bits = self.ops.binary(InstructionOpcode::Shl, wide, self.ops.int_like(wide, 16));
                self.as_float(bits)
            }
            _ => raw,
        }
    }

    /// Converts a value from its compute type to its memory type. 16-bit floats round to nearest
    /// even.
    pub(super) fn encode(&self, dtype: DType, value: Value<'ctx>) -> Value<'ctx> {
        match dtype {
            DType::Bool => self.ops.resize(value, self.ops.int_type(8), false),
            DType::Float16 if self.machine.converts_half => {
                let half = self.ops.cast(InstructionOpcode::FPTrunc, value, self.ops.context.f16_type());
                self.ops.cast(InstructionOpcode::BitCast, half, self.ops.int_type(16))
            }
            DType::Float16 => self.float_to_half(value),
            DType::BFloat16 => self.float_to_bfloat(value),
            _ => value,
        }
    }

    /// Rounds a value to the precision of a 16-bit float type; returns other types unchanged.
    pub(super) fn rounded(&self, dtype: DType, value: Value<'ctx>) -> Value<'ctx> {
        match dtype {
            DType::Float16 | DType::BFloat16 => self.decode(dtype, self.encode(dtype, value)),
            _ => value,
        }
    }

    fn as_float(&self, bits: Value<'ctx>) -> Value<'ctx> {
        self.ops.cast(InstructionOpcode::BitCast, bits, self.ops.context.f32_type())
    }

    fn as_bits(&self, value: Value<'ctx>) -> Value<'ctx> {
        self.ops.cast(InstructionOpcode::BitCast, value, self.ops.int_type(32))
    }

    fn shift_right(&self, bits: Value<'ctx>, by: i64) -> Value<'ctx> {
        self.ops.binary(InstructionOpcode::LShr, bits, self.ops.int_like(bits, by))
    }

    fn shift_left(&self, bits: Value<'ctx>, by: i64) -> Value<'ctx> {
        self.ops.binary(InstructionOpcode::Shl, bits, self.ops.int_like(bits, by))
    }

    fn float_to_bfloat(&self, value: Value<'ctx>) -> Value<'ctx> {
        let ops = &self.ops;
        let bits = self.as_bits(value);
        let int = |value: i64| ops.int_like(bits, value);
        let odd = ops.and(self.shift_right(bits, 16), int(1));
        let rounded = self.shift_right(ops.add(ops.add(bits, int(0x7fff)), odd), 16);
        let quiet = ops.or(self.shift_right(bits, 16), int(0x40));
        let nan = ops.fcmp(FloatPredicate::UNO, value, value);
        ops.resize(ops.select(nan, quiet, rounded), ops.int_type(16), false)
    }

    /// Shifts exponent and mantissa into position, and corrects the exponent by a multiplication.
    /// The multiplication also normalises subnormal numbers.
    fn half_to_float(&self, raw: Value<'ctx>) -> Value<'ctx> {
        let ops = &self.ops;
        let bits = ops.resize(raw, ops.int_type(32), false);
        let int = |value: i64| ops.int_like(bits, value);
        let magnitude = self.shift_left(ops.and(bits, int(0x7fff)), 13);
        let scaled = self.as_float(magnitude);
        let scaled = ops.binary(InstructionOpcode::FMul, scaled, ops.float_like(scaled, 2f64.powi(112)));
        let special = ops.icmp(IntPredicate::UGE, magnitude, int(0x7c00 << 13));
        let scaled = self.as_bits(scaled);
        let special_bits = ops.or(scaled, int(0xff << 23));
        let sign = self.shift_left(ops.and(bits, int(0x8000)), 16);
        self.as_float(ops.or(ops.select(special, special_bits, scaled), sign))
    }

    /// Handles three cases. Values that are too large or NaN become constants. For subnormal
    /// results, adding a power of two makes the processor round. Normal results are rounded on the
    /// bits.
    fn float_to_half(&self, value: Value<'ctx>) -> Value<'ctx> {
        /// 2^16 as a float. Any number from here on becomes infinite, or is NaN.
        const TOO_LARGE: i64 = (127 + 16) << 23;
        /// 2^-14. Any number below becomes subnormal.
        const LEAST_NORMAL: i64 = 113 << 23;
        /// The power of two whose last place is the last place of subnormal numbers.
        const SUBNORMAL: i64 = ((127 - 15) + (23 - 10) + 1) << 23;
        let ops = &self.ops;
        let bits = self.as_bits(value);
        let int = |value: i64| ops.int_like(bits, value);
        let sign = ops.and(bits, int(0x8000_0000));
        let magnitude = ops.xor(bits, sign);

        let nan = ops.icmp(IntPredicate::UGT, magnitude, int(0xff << 23));
        let large = ops.select(nan, int(0x7e00), int(0x7c00));
        let shifted = ops.binary(
            InstructionOpcode::FAdd,
            self.as_float(magnitude),
            ops.float_like(value, f32::from_bits(SUBNORMAL as u32) as f64),
        );
        let small = ops.sub(self.as_bits(shifted), int(SUBNORMAL));
        let odd = ops.and(self.shift_right(magnitude, 13), int(1));
        let biased = ops.add(magnitude, int(((15 - 127) << 23) + 0xfff));
        let normal = self.shift_right(ops.add(biased, odd), 13);

        let is_small = ops.icmp(IntPredicate::ULT, magnitude, int(LEAST_NORMAL));
        let is_large = ops.icmp(IntPredicate::UGE, magnitude, int(TOO_LARGE));
        let half = ops.select(is_large, large, ops.select(is_small, small, normal));
        ops.resize(ops.or(half, self.shift_right(sign, 16)), ops.int_type(16), false)
    }

    /// Converts a value of one type to another type.
    pub(super) fn convert(&self, value: Value<'ctx>, from: DType, to: DType) -> Value<'ctx> {
        if from == to {
            return value;
        }
        match (from.is_float(), to.is_float()) {
            (_, _) if to == DType::Bool => self.to_bool(value, from),
            (true, true) => self.float_to_float(value, from, to),
            (false, true) => self.int_to_float(value, from, to),
            (true, false) => self.float_to_int(value, from, to),
            (false, false) => {
                let to = self.ops.compute_type(to).into_int_type();
                self.ops.resize(value, to, from.is_signed_integer())
            }
        }
    }

    fn to_bool(&self, value: Value<'ctx>, from: DType) -> Value<'ctx> {
        match from.is_float() {
            true => self.ops.fcmp(FloatPredicate::UNE, value, self.ops.float_like(value, 0.0)),
            false => self.ops.icmp(IntPredicate::NE, value, self.ops.int_like(value, 0)),
        }
    }

    fn int_to_float(&self, value: Value<'ctx>, from: DType, to: DType) -> Value<'ctx> {
        let signed = from.is_signed_integer();
        let op = if signed { InstructionOpcode::SIToFP } else { InstructionOpcode::UIToFP };
        let narrow = matches!(to, DType::Float16 | DType::BFloat16);
        // An integer with more digits than float32 has is converted through float64, so that it is
        // not rounded to float32 on the way to 16 bits.
        if narrow && from != DType::Bool && from.bits() > 16 {
            let value = if from.bits() > 53 { self.shorten_integer(value, signed) } else { value };
            let exact = self.ops.cast(op, value, self.ops.context.f64_type());
            return self.float_to_float(exact, DType::Float64, to);
        }
        self.rounded(to, self.ops.cast(op, value, self.ops.compute_type(to)))
    }

    /// Changes a 64-bit integer of more than 53 digits to one that float64 represents and that is
    /// rounded to the same 16-bit float. The last 12 digits are replaced by half of their unit
    /// unless they are all 0. Midpoints between 16-bit floats of this size have zeros there, so the
    /// integer stays on its side of each midpoint.
    fn shorten_integer(&self, value: Value<'ctx>, signed: bool) -> Value<'ctx> {
        /// The last 12 digits.
        const LAST: i64 = 0xfff;
        let ops = &self.ops;
        let int = |number: i64| ops.int_like(value, number);
        let rest = ops.icmp(IntPredicate::NE, ops.and(value, int(LAST)), int(0));
        let half = ops.select(rest, int(LAST / 2 + 1), int(0));
        let short = ops.or(ops.and(value, int(!LAST)), half);
        // The digits in front of the last 53 are 0, or -1 for a negative number.
        let shift = if signed { InstructionOpcode::AShr } else { InstructionOpcode::LShr };
        let front = ops.binary(shift, value, int(53));
        let fits = ops.icmp(IntPredicate::ULE, ops.add(front, int(1)), int(1));
        ops.select(fits, value, short)
    }

    fn float_to_float(&self, value: Value<'ctx>, from: DType, to: DType) -> Value<'ctx> {
        let single = self.ops.context.f32_type();
        match (from, to) {
            (_, DType::Float64) => {
                self.ops.cast(InstructionOpcode::FPExt, value, self.ops.context.f64_type())
            }
            (DType::Float64, DType::Float32) => self.ops.cast(InstructionOpcode::FPTrunc, value, single),
            (DType::Float64, _) => self.rounded(to, self.rounded_to_odd(value)),
            _ => self.rounded(to, value),
        }
    }

    /// Converts float64 to float32 by truncation, and sets the last bit where truncation lost
    /// something. Rounding the result to 16 bits gives the same as rounding the value itself.
    /// Rounding twice to nearest does not.
    fn rounded_to_odd(&self, value: Value<'ctx>) -> Value<'ctx> {
        let ops = &self.ops;
        let nearest = ops.cast(InstructionOpcode::FPTrunc, value, ops.context.f32_type());
        let exact = ops.cast(InstructionOpcode::FPExt, nearest, ops.context.f64_type());
        let bits = self.as_bits(nearest);
        let absolute = |value| ops.elementwise("llvm.fabs", &[value]);
        let above = ops.fcmp(FloatPredicate::OGT, absolute(exact), absolute(value));
        let toward_zero = ops.select(above, ops.sub(bits, ops.int_like(bits, 1)), bits);
        let odd = ops.or(toward_zero, ops.int_like(bits, 1));
        let inexact = ops.fcmp(FloatPredicate::ONE, exact, value);
        self.as_float(ops.select(inexact, odd, bits))
    }
}
