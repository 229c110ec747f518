//! Emits the instructions of unary and binary operators, multiply-adds and reductions, on scalars
//! and vectors. The results are those that [`tilewright_ir::arithmetic`] defines.

use inkwell::values::{FastMathFlags, InstructionOpcode};
use inkwell::{FloatPredicate, IntPredicate};
use tilewright_ir::nest::BufferId;
use tilewright_ir::{BinaryOp, DType, ReduceOp, UnaryOp, arithmetic};

use super::function::Unit;
use super::ops::{BUILT, RESULT, Value, element_type};

/// The value that a statement stores, or reduces into its target.
#[derive(Clone, Copy)]
pub(super) enum StoredValue<'ctx> {
    /// A value.
    Value(Value<'ctx>),
    /// A product that is added to the target without being rounded first: see
    /// [`contract`](crate::contract).
    Product(Value<'ctx>, Value<'ctx>),
}

impl<'ctx> StoredValue<'ctx> {
    /// Applies `map` to each value.
    pub(super) fn map(self, mut map: impl FnMut(Value<'ctx>) -> Value<'ctx>) -> StoredValue<'ctx> {
        match self {
            StoredValue::Value(value) => StoredValue::Value(map(value)),
            StoredValue::Product(left, right) => StoredValue::Product(map(left), map(right)),
        }
    }
}

impl<'ctx> Unit<'ctx, '_> {
    pub(super) fn unary(&self, op: UnaryOp, value: Value<'ctx>, dtype: DType) -> Value<'ctx> {
        match op {
            UnaryOp::Not => self.ops.not(value),
            UnaryOp::Complement => self.ops.xor(value, self.ops.int_like(value, -1)),
            UnaryOp::Neg if dtype.is_float() => self.negated(value),
            UnaryOp::Neg if dtype == DType::Bool => value,
            UnaryOp::Neg => self.ops.sub(self.ops.int_like(value, 0), value),
        }
    }

    pub(super) fn negated(&self, value: Value<'ctx>) -> Value<'ctx> {
        match value {
            Value::FloatValue(value) => self.ops.builder.build_float_neg(value, "").expect(BUILT).into(),
            value => self.ops.builder.build_float_neg(value.into_vector_value(), "").expect(BUILT).into(),
        }
    }

    /// Emits an operator on operands of type `dtype`. Even for lazy operators, both operands are
    /// evaluated.
    pub(super) fn binary(
        &self,
        op: BinaryOp,
        left: Value<'ctx>,
        right: Value<'ctx>,
        dtype: DType,
    ) -> Value<'ctx> {
        match dtype {
            _ if op.is_comparison() => self.comparison(op, left, right, dtype),
            DType::Bool => self.logical(op, left, right),
            _ if dtype.is_float() => self.rounded(dtype, self.float_operation(op, left, right)),
            _ => self.integer_operation(op, left, right, dtype.is_signed_integer()),
        }
    }

    fn comparison(&self, op: BinaryOp, left: Value<'ctx>, right: Value<'ctx>, dtype: DType) -> Value<'ctx> {
        use {FloatPredicate as F, IntPredicate as I};
        let (float, signed, unsigned) = match op {
            BinaryOp::Equal => (F::OEQ, I::EQ, I::EQ),
            BinaryOp::NotEqual => (F::UNE, I::NE, I::NE),
            BinaryOp::Less => (F::OLT, I::SLT, I::ULT),
            BinaryOp::LessEqual => (F::OLE, I::SLE, I::ULE),
            BinaryOp::Greater => (F::OGT, I::SGT, I::UGT),
            _ => (F::OGE, I::SGE, I::UGE),
        };
        if dtype.is_float() {
            return self.ops.fcmp(float, left, right);
        }
        self.ops.icmp(if dtype.is_signed_integer() { signed } else { unsigned }, left, right)
    }

    /// Arithmetic on truth values: the result as an integer, where any value but 0 is true.
    fn logical(&self, op: BinaryOp, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        match op {
            BinaryOp::Add | BinaryOp::Max | BinaryOp::Or => self.ops.or(left, right),
            BinaryOp::Sub => self.ops.xor(left, right),
            BinaryOp::Mod => self.ops.bit(false),
            _ => self.ops.and(left, right),
        }
    }

    fn float_operation(&self, op: BinaryOp, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        match op {
            BinaryOp::Add => self.ops.binary(InstructionOpcode::FAdd, left, right),
            BinaryOp::Sub => self.ops.binary(InstructionOpcode::FSub, left, right),
            BinaryOp::Mul => self.ops.binary(InstructionOpcode::FMul, left, right),
            BinaryOp::Div => self.ops.binary(InstructionOpcode::FDiv, left, right),
            BinaryOp::Mod => self.float_remainder(left, right),
            BinaryOp::Min => self.float_min_max(FloatPredicate::OLT, "llvm.minnum", left, right),
            _ => self.float_min_max(FloatPredicate::OGT, "llvm.maxnum", left, right),
        }
    }

    /// The remainder with the sign of the divisor.
    fn float_remainder(&self, left: Value<'ctx>, right: Value<'ctx>) -> Value<'ctx> {
        let ops = &self.ops;
        let remainder = self.truncated_remainder(left, right);
        let zero = ops.float_like(remainder, 0.0);
        let negative = |value| ops.fcmp(FloatPredicate::OLT, value, zero);
        let some = ops.fcmp(FloatPredicate::UNE, remainder, zero);
        let opposite = ops.and(some, ops.xor(negative(remainder), negative(right)));
        let corrected = ops.binary(InstructionOpcode::FAdd, remainder, right);
        ops.select(opposite, corrected, remainder)
    }

    /// The smaller or larger value; if one is NaN, the other. With a constant operand, one
    /// comparison is enough.
    fn float_min_max(
        &self,
        predicate: FloatPredicate,
        name: &str,
        left: Value<'ctx>,
        right: Value<'ctx>,
    ) -> Value<'ctx> {
        let is_nan_free = |value: Value<'ctx>| match value {
            Value::FloatValue(value) => {
                value.is_const() && value.get_constant().is_some_and(|(value, _)| !value.is_nan())
            }
            _ => false,
        };
        for (value, constant) in [(left, right), (right, left)] {
            if is_nan_free(constant) {
                return self.ops.select(self.ops.fcmp(predicate, value, constant), value, constant);
            }
        }
        self.ops.elementwise(name, &[left, right])
    }

    fn integer_operation(
        &self,
        op: BinaryOp,
        left: Value<'ctx>,
        right: Value<'ctx>,
        signed: bool,
    ) -> Value<'ctx> {
        match op {
            BinaryOp::Add => self.ops.add(left, right),
            BinaryOp::Sub => self.ops.sub(left, right),
            BinaryOp::Mul => self.ops.mul(left, right),
            BinaryOp::Div => self.floor_division(left, right, signed, true),
            BinaryOp::Mod => self.floor_division(left, right, signed, false),
            BinaryOp::BitAnd => self.ops.and(left, right),
            BinaryOp::BitOr => self.ops.or(left, right),
            BinaryOp::BitXor => self.ops.xor(left, right),
            BinaryOp::ShiftLeft => self.shift(InstructionOpcode::Shl, left, right),
            BinaryOp::ShiftRight if signed => self.shift(InstructionOpcode::AShr, left, right),
            BinaryOp::ShiftRight => self.shift(InstructionOpcode::LShr, left, right),
            BinaryOp::Power => self.integer_power(left, right, signed),
            BinaryOp::Min if signed => self.ops.elementwise("llvm.smin", &[left, right]),
            BinaryOp::Min => self.ops.elementwise("llvm.umin", &[left, right]),
            _ if signed => self.ops.elementwise("llvm.smax", &[left, right]),
            _ => self.ops.elementwise("llvm.umax", &[left, right]),
        }
    }

    /// The integer quotient or remainder, rounded toward minus infinity. Division by zero gives 0.
    /// No lane traps.
    pub(super) fn floor_division(
        &self,
        left: Value<'ctx>,
        right: Value<'ctx>,
        signed: bool,
        quotient: bool,
    ) -> Value<'ctx> {
        match constant_of(right) {
            Some(0) => self.ops.int_like(left, 0),
            Some(by) if by > 0 && (by as u64).is_power_of_two() => {
                self.division_by_power_of_two(left, by, signed, quotient)
            }
            Some(_) if !signed => self.unsigned_division(left, right, quotient),
            Some(by) if by != -1 => self.signed_division(left, right, quotient),
            _ => self.guarded_division(left, right, signed, quotient),
        }
    }

    fn division_by_power_of_two(
        &self,
        left: Value<'ctx>,
        by: i64,
        signed: bool,
        quotient: bool,
    ) -> Value<'ctx> {
        let shift = if signed { InstructionOpcode::AShr } else { InstructionOpcode::LShr };
        match quotient {
            true => self.ops.binary(shift, left, self.ops.int_like(left, by.trailing_zeros() as i64)),
            false => self.ops.and(left, self.ops.int_like(left, by - 1)),
        }
    }

    /// Divides with the divisor replaced by 1 where the instruction would trap: for a division by
    /// zero, and where the quotient overflows.
    fn guarded_division(
        &self,
        left: Value<'ctx>,
        right: Value<'ctx>,
        signed: bool,
        quotient: bool,
    ) -> Value<'ctx> {
        let ops = &self.ops;
        let zero = ops.int_like(right, 0);
        let by_zero = ops.icmp(IntPredicate::EQ, right, zero);
        let mut traps = by_zero;
        if signed {
            let bits = element_type(left).into_int_type().get_bit_width();
            let least = ops.icmp(IntPredicate::EQ, left, ops.int_like(left, i64::MIN >> (64 - bits)));
            let minus_one = ops.icmp(IntPredicate::EQ, right, ops.int_like(right, -1));
            traps = ops.or(traps, ops.and(least, minus_one));
        }
        let divisor = ops.select(traps, ops.int_like(right, 1), right);
        let value = match signed {
            true => self.signed_division(left, divisor, quotient),
            false => self.unsigned_division(left, divisor, quotient),
        };
        ops.select(by_zero, zero, value)
    }

    fn unsigned_division(&self, left: Value<'ctx>, right: Value<'ctx>, quotient: bool) -> Value<'ctx> {
        let op = if quotient { InstructionOpcode::UDiv } else { InstructionOpcode::URem };
        self.ops.binary(op, left, right)
    }

    fn signed_division(&self, left: Value<'ctx>, right: Value<'ctx>, quotient: bool) -> Value<'ctx> {
        let ops = &self.ops;
        let remainder = ops.binary(InstructionOpcode::SRem, left, right);
        let zero = ops.int_like(remainder, 0);
        let some = ops.icmp(IntPredicate::NE, remainder, zero);
        let opposite = ops.icmp(IntPredicate::SLT, ops.xor(remainder, right), zero);
        let rounded_up = ops.and(some, opposite);
        match quotient {
            true => {
                let truncated = ops.binary(InstructionOpcode::SDiv, left, right);
                let below = ops.sub(truncated, ops.int_like(truncated, 1));
                ops.select(rounded_up, below, truncated)
            }
            false => ops.select(rounded_up, ops.add(remainder, right), remainder),
        }
    }

    /// `left * right + addend`, rounded once. Without the instruction, LLVM emits a multiplication
    /// and an addition.
    pub(super) fn multiply_add(
        &self,
        left: Value<'ctx>,
        right: Value<'ctx>,
        addend: Value<'ctx>,
    ) -> Value<'ctx> {
        self.ops.elementwise("llvm.fmuladd", &[left, right, addend])
    }

    /// The stored value as one value. A product is rounded before the addition.
    pub(super) fn single_value(&self, stored: StoredValue<'ctx>) -> Value<'ctx> {
        match stored {
            StoredValue::Value(value) => value,
            StoredValue::Product(left, right) => self.ops.binary(InstructionOpcode::FMul, left, right),
        }
    }

    /// Reduces one more value or product into a total that `buffer` holds.
    pub(super) fn reduce_value(
        &self,
        op: ReduceOp,
        total: Value<'ctx>,
        stored: StoredValue<'ctx>,
        buffer: BufferId,
    ) -> Value<'ctx> {
        let value = match stored {
            StoredValue::Value(value) => value,
            StoredValue::Product(left, right) => return self.multiply_add(left, right, total),
        };
        let dtype = self.nest.buffer(buffer).dtype.compute_type();
        let predicate = match op {
            ReduceOp::Min => FloatPredicate::OLT,
            ReduceOp::Max => FloatPredicate::OGT,
            _ => return self.binary(op.operator(), total, value, dtype),
        };
        if dtype.is_float() && self.nan_free_buffers.contains(&buffer) {
            // A NaN never replaces the total, because the comparison is false.
            return self.ops.select(self.ops.fcmp(predicate, value, total), value, total);
        }
        self.binary(op.operator(), total, value, dtype)
    }

    /// Reduces all lanes to one scalar. For the minimum or maximum of floats, no lane may be NaN.
    pub(super) fn reduce_lanes(&self, op: ReduceOp, value: Value<'ctx>, dtype: DType) -> Value<'ctx> {
        let types = [value.get_type()];
        let (name, start) = match (op, dtype) {
            (ReduceOp::Add | ReduceOp::Max, DType::Bool) => ("or", None),
            (_, DType::Bool) => ("and", None),
            (ReduceOp::Add, _) if dtype.is_float() => ("fadd", Some(-0.0)),
            (ReduceOp::Mul, _) if dtype.is_float() => ("fmul", Some(1.0)),
            (ReduceOp::Min, _) if dtype.is_float() => ("fmin", None),
            (ReduceOp::Max, _) if dtype.is_float() => ("fmax", None),
            (ReduceOp::Add, _) => ("add", None),
            (ReduceOp::Mul, _) => ("mul", None),
            (ReduceOp::Min, _) if dtype.is_signed_integer() => ("smin", None),
            (ReduceOp::Max, _) if dtype.is_signed_integer() => ("smax", None),
            (ReduceOp::Min, _) => ("umin", None),
            (ReduceOp::Max, _) => ("umax", None),
        };
        let mut arguments: Vec<Value<'ctx>> =
            start.map(|start| self.ops.float_like(value, start)).into_iter().collect();
        arguments.push(value);
        let total = self
            .ops
            .intrinsic(&format!("llvm.vector.reduce.{name}"), &types, &arguments)
            .try_as_basic_value()
            .expect_basic(RESULT);
        if let Value::FloatValue(float) = total
            && let Some(instruction) = float.as_instruction()
        {
            // Sums and products may be reassociated to a tree. The operands of minima and maxima
            // are never NaN.
            let flags = if start.is_some() { FastMathFlags::AllowReassoc } else { FastMathFlags::NoNaNs };
            instruction.set_fast_math_flags(flags).expect("a float reduction takes fast-math flags");
        }
        total
    }

    /// The neutral element from which a reduction starts.
    pub(super) fn neutral(&self, op: ReduceOp, dtype: DType) -> Value<'ctx> {
        self.literal(arithmetic::neutral(op, dtype), dtype)
    }
}

/// The value of an integer constant that is the same in all lanes.
pub(super) fn constant_of(value: Value<'_>) -> Option<i64> {
    match value {
        Value::IntValue(value) => value.get_sign_extended_constant(),
        _ => None,
    }
}
