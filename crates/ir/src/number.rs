//! Defines [`Number`], the value of a literal, a scalar or an element.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::dtype::DType;

/// One exact number: every integer type fits `Int`, every float type fits `Float`, and `bool` is 0
/// or 1.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(into = "NumberText", try_from = "NumberText")]
pub enum Number {
    /// An integer or a truth value.
    Int(i128),
    /// A float, already rounded to its type.
    Float(f64),
}

/// A number in serialised form. Most formats have neither 128-bit integers nor infinities.
#[derive(Serialize, Deserialize)]
enum NumberText {
    Int(String),
    Float(String),
}

impl From<Number> for NumberText {
    fn from(number: Number) -> NumberText {
        match number {
            Number::Int(value) => NumberText::Int(value.to_string()),
            Number::Float(value) => NumberText::Float(format!("{value:?}")),
        }
    }
}

impl TryFrom<NumberText> for Number {
    type Error = String;

    fn try_from(text: NumberText) -> Result<Number, String> {
        let not_a_number = |text: &str| format!("`{text}` is not a number");
        match &text {
            NumberText::Int(text) => text.parse().map(Number::Int).map_err(|_| not_a_number(text)),
            NumberText::Float(text) => text.parse().map(Number::Float).map_err(|_| not_a_number(text)),
        }
    }
}

impl Number {
    fn key(self) -> (u8, i128) {
        match self {
            Number::Int(value) => (0, value),
            Number::Float(value) => (1, value.to_bits() as i128),
        }
    }

    /// The number as a float.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// The number as an integer, truncated toward zero; NaN is 0.
    pub fn as_i128(self) -> i128 {
        match self {
            Number::Int(value) => value,
            Number::Float(value) => value as i128,
        }
    }

    /// Returns true when the number is not zero.
    pub fn is_true(self) -> bool {
        match self {
            Number::Int(value) => value != 0,
            Number::Float(value) => value != 0.0,
        }
    }

    /// Converts the number to a value of `dtype`. Integers wrap, floats round, and float to integer
    /// truncates and saturates.
    pub fn convert(self, dtype: DType) -> Number {
        match (dtype, self) {
            (DType::Bool, number) => Number::Int(number.is_true() as i128),
            (DType::Float64, number) => Number::Float(number.as_f64()),
            (DType::Float32, Number::Int(value)) => Number::Float(value as f32 as f64),
            (DType::Float32, Number::Float(value)) => Number::Float(value as f32 as f64),
            (DType::Float16, number) => Number::Float(half::f16::from_f32(number.round_to_odd()).to_f64()),
            (DType::BFloat16, number) => Number::Float(half::bf16::from_f32(number.round_to_odd()).to_f64()),
            (integer, Number::Int(value)) => Number::Int(wrap(value, integer)),
            (integer, Number::Float(value)) => {
                let (low, high) = integer.integer_bounds().expect("the float types were matched above");
                Number::Int((value as i128).clamp(low, high))
            }
        }
    }

    /// Converts the number to single precision, rounded to odd: truncated, with the last bit set if
    /// the truncation was inexact. Rounding the result to 16 bits equals rounding the number
    /// directly to 16 bits; rounding twice to nearest does not.
    fn round_to_odd(self) -> f32 {
        let (nearest, distance) = match self {
            Number::Int(value) => {
                let nearest = value as f32;
                (nearest, (nearest as i128).unsigned_abs().cmp(&value.unsigned_abs()))
            }
            Number::Float(value) => {
                let nearest = value as f32;
                let distance = (nearest as f64).abs().partial_cmp(&value.abs());
                (nearest, distance.unwrap_or(Ordering::Equal))
            }
        };
        match distance {
            Ordering::Equal => nearest,
            Ordering::Greater => f32::from_bits((nearest.to_bits() - 1) | 1),
            Ordering::Less => f32::from_bits(nearest.to_bits() | 1),
        }
    }
}

/// `value` modulo two to the width of `dtype`, in the range of `dtype`.
fn wrap(value: i128, dtype: DType) -> i128 {
    let width = 1i128 << dtype.bits();
    let (_, high) = dtype.integer_bounds().expect("only integer types wrap");
    let low_bits = value & (width - 1);
    if low_bits > high { low_bits - width } else { low_bits }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Number {}
impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversion_wraps_rounds_and_saturates() {
        assert_eq!(Number::Int(300).convert(DType::UInt8), Number::Int(44));
        assert_eq!(Number::Int(-1).convert(DType::UInt64), Number::Int(u64::MAX as i128));
        assert_eq!(Number::Float(-1e30).convert(DType::Int16), Number::Int(-32768));
        assert_eq!(Number::Float(f64::NAN).convert(DType::Int32), Number::Int(0));
        assert_eq!(Number::Float(0.1).convert(DType::Float32), Number::Float(0.1f32 as f64));
        assert_eq!(Number::Float(-0.5).convert(DType::Bool), Number::Int(1));
        // Just above the midpoint between two 16-bit floats, by less than the precision of float32.
        let (half, brain) = (1.0 + 2f64.powi(-11) + 2f64.powi(-30), 1.0 + 2f64.powi(-8) + 2f64.powi(-40));
        assert_eq!(Number::Float(half).convert(DType::Float16), Number::Float(1.0 + 2f64.powi(-10)));
        assert_eq!(Number::Float(brain).convert(DType::BFloat16), Number::Float(1.0 + 2f64.powi(-7)));
        assert_eq!(Number::Float(1e300).convert(DType::Float16), Number::Float(f64::INFINITY));
    }

    /// The multiple of a power of two that is nearest to a number, and even where two are. The
    /// power leaves `digits` binary digits.
    fn nearest(value: i128, digits: u32) -> f64 {
        let magnitude = value.unsigned_abs();
        let unit = 1u128 << (128 - magnitude.leading_zeros()).saturating_sub(digits);
        let (below, rest) = (magnitude / unit, magnitude % unit);
        let is_up = rest * 2 > unit || rest * 2 == unit && below % 2 == 1;
        let rounded = ((below + u128::from(is_up)) * unit) as f64;
        if value < 0 { -rounded } else { rounded }
    }

    #[test]
    fn long_integers_are_rounded_once() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state
        };
        let mut values: Vec<i128> =
            vec![0x0101_0000_0000_0001, (1 << 53) + 1, (1 << 25) + 1, u64::MAX as i128, i64::MIN as i128];
        for _ in 0..1000 {
            // Midpoints between two numbers of 8 digits, and their neighbours, are hard to round.
            let (digits, shift) = (random() >> 56, random() % 55);
            let middle = i128::from(2 * digits + 1) << shift;
            values.extend([middle - 1, middle, middle + 1, i128::from(random() >> (random() % 64))]);
        }
        for value in values.iter().flat_map(|value| [*value, -value]) {
            let found = Number::Int(value).convert(DType::BFloat16);
            assert_eq!(found, Number::Float(nearest(value, 8)), "{value:#x}");
            let wanted = nearest(value, 11);
            let wanted = if wanted.abs() > 65504.0 { wanted.signum() * f64::INFINITY } else { wanted };
            assert_eq!(Number::Int(value).convert(DType::Float16), Number::Float(wanted), "{value:#x}");
        }
    }
}
