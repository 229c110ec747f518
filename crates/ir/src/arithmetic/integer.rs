//! Computes shifts, powers and the functions on integers alone, on single numbers. The numbers are
//! exact; the caller wraps the result to its type.

use crate::dtype::DType;
use crate::number::Number;
use crate::operators::{BinaryOp, Builtin};

/// `left << right` or `left >> right`, for operands of type `dtype`. The count is read as an
/// unsigned number: a negative count shifts every bit out, as does any other count of the width or
/// more.
pub(super) fn shift(op: BinaryOp, left: i128, right: i128, dtype: DType) -> i128 {
    let width = i128::from(dtype.bits());
    let is_in_range = (0..width).contains(&right);
    match op {
        BinaryOp::ShiftLeft if is_in_range => left << right,
        BinaryOp::ShiftLeft => 0,
        // The sign is copied into a signed number, and an unsigned number is never negative here.
        _ => left >> if is_in_range { right } else { width },
    }
}

/// `left` to the power of `right`, which wraps at 128 bits. A negative exponent gives 0.
pub(super) fn power(left: i128, right: i128) -> i128 {
    if right < 0 {
        return 0;
    }
    let (mut result, mut square, mut exponent) = (1i128, left, right);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        exponent >>= 1;
    }
    result
}

/// Calls a function on integers.
pub(super) fn call(builtin: Builtin, arguments: &[Number], dtype: DType) -> i128 {
    let width = dtype.bits();
    let bits = (arguments[0].as_i128() & ((1 << width) - 1)) as u128;
    match builtin {
        Builtin::Popcount => bits.count_ones().into(),
        Builtin::Clz => (bits.leading_zeros() - (u128::BITS - width)).into(),
        Builtin::Ctz => bits.trailing_zeros().min(width).into(),
        _ => {
            let words: Vec<u32> = arguments.iter().map(|argument| argument.as_i128() as u32).collect();
            let word = |at: usize| words.get(at).copied().unwrap_or(0);
            philox([word(0), word(1)], [word(2), word(3), word(4), word(5)])[0].into()
        }
    }
}

/// The multipliers of Philox4x32, and the numbers that its key grows by in each round.
pub mod philox_constants {
    /// The multipliers of words 0 and 2 of the counter.
    pub const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
    /// The increments of the two words of the key.
    pub const KEY_INCREMENTS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
    /// The number of rounds.
    pub const ROUNDS: u32 = 10;
}

/// The four words of Philox4x32-10 for a key and a counter: *Parallel random numbers: as easy as 1,
/// 2, 3*, Salmon et al., 2011, section 3.3.
pub(super) fn philox(mut key: [u32; 2], mut counter: [u32; 4]) -> [u32; 4] {
    use philox_constants::{KEY_INCREMENTS, MULTIPLIERS, ROUNDS};
    for _ in 0..ROUNDS {
        let product = |word: u32, by: u32| {
            let wide = u64::from(word) * u64::from(by);
            ((wide >> 32) as u32, wide as u32)
        };
        let (high0, low0) = product(counter[0], MULTIPLIERS[0]);
        let (high2, low2) = product(counter[2], MULTIPLIERS[1]);
        counter = [high2 ^ counter[1] ^ key[0], low2, high0 ^ counter[3] ^ key[1], low0];
        key = [0, 1].map(|at| key[at].wrapping_add(KEY_INCREMENTS[at]));
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::super::{binary, call as call_builtin, unary};
    use super::*;
    use crate::operators::UnaryOp;

    /// The vectors that the authors of the generator publish with it.
    #[test]
    fn philox_gives_its_published_numbers() {
        assert_eq!(philox([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = u32::MAX;
        assert_eq!(philox([ones; 2], [ones; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    /// Interesting numbers of a type: its ends, and numbers near 0 and near powers of two.
    macro_rules! samples {
        ($t:ty) => {{
            let mut all: Vec<$t> = vec![<$t>::MIN, <$t>::MAX, 0, 1, 2, 3, 7, 8, 100];
            all.extend([0x55, 0x33].map(|part: i128| part as $t));
            all.extend((0..<$t>::BITS).map(|at| (1 as $t).wrapping_shl(at)));
            all.extend((0..<$t>::BITS).map(|at| (0 as $t).wrapping_sub((1 as $t).wrapping_shl(at))));
            all
        }};
    }

    macro_rules! agrees_with_rust {
        ($test:ident $t:ty, $dtype:expr) => {
            #[test]
            fn $test() {
                let number = |value: $t| Number::Int(value as i128);
                let of = |op, a: $t, b: $t| binary(op, number(a), number(b), $dtype);
                for a in samples!($t) {
                    assert_eq!(unary(UnaryOp::Complement, number(a), $dtype), number(!a));
                    let one = |builtin| call_builtin(builtin, &[number(a)], $dtype);
                    assert_eq!(one(Builtin::Popcount), Number::Int(a.count_ones().into()));
                    assert_eq!(one(Builtin::Clz), Number::Int(a.leading_zeros().into()));
                    assert_eq!(one(Builtin::Ctz), Number::Int(a.trailing_zeros().into()));
                    for b in samples!($t) {
                        assert_eq!(of(BinaryOp::BitAnd, a, b), number(a & b));
                        assert_eq!(of(BinaryOp::BitOr, a, b), number(a | b));
                        assert_eq!(of(BinaryOp::BitXor, a, b), number(a ^ b));
                        let count = u32::try_from(b).unwrap_or(u32::MAX);
                        let emptied = if a < (0 as $t) { (0 as $t).wrapping_sub(1) } else { 0 };
                        let left = a.checked_shl(count).unwrap_or(0);
                        let right = a.checked_shr(count).unwrap_or(emptied);
                        assert_eq!(of(BinaryOp::ShiftLeft, a, b), number(left), "{a} << {b}");
                        assert_eq!(of(BinaryOp::ShiftRight, a, b), number(right), "{a} >> {b}");
                        let small = count.min(200);
                        let power = a.wrapping_pow(small);
                        let small = Number::Int(small.into());
                        if small == number(b) {
                            assert_eq!(of(BinaryOp::Power, a, b), number(power), "{a} ** {b}");
                        }
                        if b < (0 as $t) {
                            assert_eq!(of(BinaryOp::Power, a, b), number(0), "{a} ** {b}");
                        }
                    }
                }
            }
        };
    }

    agrees_with_rust! { int8_agrees_with_rust i8, DType::Int8 }
    agrees_with_rust! { int16_agrees_with_rust i16, DType::Int16 }
    agrees_with_rust! { int32_agrees_with_rust i32, DType::Int32 }
    agrees_with_rust! { int64_agrees_with_rust i64, DType::Int64 }
    agrees_with_rust! { uint8_agrees_with_rust u8, DType::UInt8 }
    agrees_with_rust! { uint16_agrees_with_rust u16, DType::UInt16 }
    agrees_with_rust! { uint32_agrees_with_rust u32, DType::UInt32 }
    agrees_with_rust! { uint64_agrees_with_rust u64, DType::UInt64 }
}
