//! Emits shifts, powers and the functions on integers alone, on scalars and vectors. The results
//! are those that [`tilewright_ir::arithmetic`] defines.

use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode;
use tilewright_ir::arithmetic::philox_constants::{KEY_INCREMENTS, MULTIPLIERS, ROUNDS};
use tilewright_ir::{Builtin, DType};

use super::arith::constant_of;
use super::function::Unit;
use super::ops::{RESULT, Value, element_type};

impl<'ctx> Unit<'ctx, '_> {
    /// Emits a shift. LLVM's instructions have no result for a count of the width or more, so such
    /// a count is replaced, or the result is.
    pub(super) fn shift(&self, op: InstructionOpcode, value: Value<'ctx>, count: Value<'ctx>) -> Value<'ctx> {
        let ops = &self.ops;
        let width = i64::from(element_type(value).into_int_type().get_bit_width());
        if constant_of(count).is_some_and(|count| (0..width).contains(&count)) {
            return ops.binary(op, value, count);
        }
        if op == InstructionOpcode::AShr {
            let most = ops.int_like(count, width - 1);
            return ops.binary(op, value, ops.elementwise("llvm.umin", &[count, most]));
        }
        let is_in_range = ops.icmp(IntPredicate::ULT, count, ops.int_like(count, width));
        ops.select(is_in_range, ops.binary(op, value, count), ops.int_like(value, 0))
    }

    /// Emits the power of integers, by repeated squares. An exponent that is a number takes only
    /// the products of its bits.
    pub(super) fn integer_power(
        &self,
        base: Value<'ctx>,
        exponent: Value<'ctx>,
        signed: bool,
    ) -> Value<'ctx> {
        let ops = &self.ops;
        let bits = element_type(exponent).into_int_type().get_bit_width();
        let zero = ops.int_like(exponent, 0);
        let bits = match constant_of(exponent) {
            Some(number) if signed && number < 0 => return ops.int_like(base, 0),
            Some(number) => bits.min(i64::BITS - number.leading_zeros()),
            // The sign of a signed exponent is no bit of the number.
            None => bits - u32::from(signed),
        };
        let mut result = ops.int_like(base, 1);
        let mut square = base;
        for bit in 0..bits {
            result = match constant_of(exponent) {
                Some(number) if number >> bit & 1 == 0 => result,
                Some(_) => ops.mul(result, square),
                None => {
                    let mask = ops.int_like(exponent, 1 << bit);
                    let is_set = ops.icmp(IntPredicate::NE, ops.and(exponent, mask), zero);
                    ops.select(is_set, ops.mul(result, square), result)
                }
            };
            if bit + 1 < bits {
                square = ops.mul(square, square);
            }
        }
        if !signed || constant_of(exponent).is_some() {
            return result;
        }
        ops.select(ops.icmp(IntPredicate::SLT, exponent, zero), ops.int_like(base, 0), result)
    }

    /// Emits a function on integers alone.
    pub(super) fn integer_builtin(&self, builtin: Builtin, arguments: &[Value<'ctx>]) -> Value<'ctx> {
        let x = arguments[0];
        match builtin {
            Builtin::Popcount => self.ops.elementwise("llvm.ctpop", &[x]),
            Builtin::Clz => self.count_zeros("llvm.ctlz", x),
            Builtin::Ctz => self.count_zeros("llvm.cttz", x),
            _ => self.philox(arguments),
        }
    }

    /// Emits a count of zeros, which is the width for 0.
    fn count_zeros(&self, name: &str, x: Value<'ctx>) -> Value<'ctx> {
        let is_zero_undefined = self.ops.bit(false);
        self.ops
            .intrinsic(name, &[x.get_type()], &[x, is_zero_undefined])
            .try_as_basic_value()
            .expect_basic(RESULT)
    }

    /// Emits the first word of Philox4x32-10, of two words of a key and four of a counter.
    fn philox(&self, arguments: &[Value<'ctx>]) -> Value<'ctx> {
        let ops = &self.ops;
        let mut key = [arguments[0], arguments[1]];
        let mut counter = [arguments[2], arguments[3], arguments[4], arguments[5]];
        for round in 0..ROUNDS {
            let (high0, low0) = self.wide_product(counter[0], MULTIPLIERS[0]);
            let (high2, low2) = self.wide_product(counter[2], MULTIPLIERS[1]);
            counter = [
                ops.xor(ops.xor(high2, counter[1]), key[0]),
                low2,
                ops.xor(ops.xor(high0, counter[3]), key[1]),
                low0,
            ];
            if round + 1 < ROUNDS {
                key = [0, 1].map(|at| ops.add(key[at], ops.int_like(key[at], KEY_INCREMENTS[at].into())));
            }
        }
        counter[0]
    }

    /// The high and the low half of a product of 32-bit numbers.
    fn wide_product(&self, word: Value<'ctx>, by: u32) -> (Value<'ctx>, Value<'ctx>) {
        let ops = &self.ops;
        let wide = self.convert(word, DType::UInt32, DType::UInt64);
        let product = ops.mul(wide, ops.int_like(wide, by.into()));
        let high = ops.binary(InstructionOpcode::LShr, product, ops.int_like(product, 32));
        let narrow = |value| self.convert(value, DType::UInt64, DType::UInt32);
        (narrow(high), narrow(product))
    }
}
