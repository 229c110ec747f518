//! Defines [`DType`], the type of the elements of a tensor or of a scalar.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The type of one element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "the names say it")]
pub enum DType {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float16,
    BFloat16,
    Float32,
    Float64,
}

impl DType {
    /// Every type, in the order of the language reference.
    pub const ALL: [DType; 13] = [
        DType::Bool,
        DType::Int8,
        DType::Int16,
        DType::Int32,
        DType::Int64,
        DType::UInt8,
        DType::UInt16,
        DType::UInt32,
        DType::UInt64,
        DType::Float16,
        DType::BFloat16,
        DType::Float32,
        DType::Float64,
    ];

    /// The name of the type in a program.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::Int8 => "int8",
            DType::Int16 => "int16",
            DType::Int32 => "int32",
            DType::Int64 => "int64",
            DType::UInt8 => "uint8",
            DType::UInt16 => "uint16",
            DType::UInt32 => "uint32",
            DType::UInt64 => "uint64",
            DType::Float16 => "float16",
            DType::BFloat16 => "bfloat16",
            DType::Float32 => "float32",
            DType::Float64 => "float64",
        }
    }

    /// The size of one element in bytes.
    pub fn bytes(self) -> usize {
        match self {
            DType::Bool | DType::Int8 | DType::UInt8 => 1,
            DType::Int16 | DType::UInt16 | DType::Float16 | DType::BFloat16 => 2,
            DType::Int32 | DType::UInt32 | DType::Float32 => 4,
            DType::Int64 | DType::UInt64 | DType::Float64 => 8,
        }
    }

    /// The size of one element in bits.
    pub fn bits(self) -> u32 {
        8 * self.bytes() as u32
    }

    /// Returns true for the floating-point types.
    pub fn is_float(self) -> bool {
        matches!(self, DType::Float16 | DType::BFloat16 | DType::Float32 | DType::Float64)
    }

    /// Returns true for signed and unsigned integers; `bool` is neither.
    pub fn is_integer(self) -> bool {
        !self.is_float() && self != DType::Bool
    }

    /// Returns true for the signed integers.
    pub fn is_signed_integer(self) -> bool {
        matches!(self, DType::Int8 | DType::Int16 | DType::Int32 | DType::Int64)
    }

    /// Returns true for the unsigned integers.
    pub fn is_unsigned_integer(self) -> bool {
        self.is_integer() && !self.is_signed_integer()
    }

    /// The type in which arithmetic on this type is done. 16-bit floats are stored in 16 bits and
    /// computed in float32.
    pub fn compute_type(self) -> DType {
        match self {
            DType::Float16 | DType::BFloat16 => DType::Float32,
            other => other,
        }
    }

    /// The smallest and largest value of an integer type or of `bool`; `None` for floats.
    pub fn integer_bounds(self) -> Option<(i128, i128)> {
        match self {
            DType::Bool => Some((0, 1)),
            _ if self.is_float() => None,
            _ if self.is_signed_integer() => {
                let half = 1i128 << (self.bits() - 1);
                Some((-half, half - 1))
            }
            _ => Some((0, (1i128 << self.bits()) - 1)),
        }
    }

    /// Returns true when every value of this type is a value of `wider`.
    pub fn fits_in(self, wider: DType) -> bool {
        if self == wider || self == DType::Bool {
            return true;
        }
        match (self.integer_bounds(), wider.integer_bounds()) {
            (Some((low, high)), Some((wide_low, wide_high))) => wide_low <= low && high <= wide_high,
            (None, None) => wider == DType::Float64 || (wider == DType::Float32 && self != DType::Float64),
            _ => false,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_follow_the_width() {
        assert_eq!(DType::Int8.integer_bounds(), Some((-128, 127)));
        assert_eq!(DType::UInt64.integer_bounds(), Some((0, u64::MAX as i128)));
        assert_eq!(DType::Float32.integer_bounds(), None);
    }

    #[test]
    fn fitting_never_loses_a_value() {
        assert!(DType::UInt8.fits_in(DType::Int16));
        assert!(!DType::Int8.fits_in(DType::UInt64));
        assert!(!DType::Float16.fits_in(DType::BFloat16));
        assert!(DType::BFloat16.fits_in(DType::Float32));
        assert!(!DType::Int32.fits_in(DType::Float32));
    }
}
