//! Defines the trait [`Element`] for the Rust types that can be elements of tensors, and assigns
//! each type its [`DType`].

use half::{bf16, f16};
use tilewright_ir::DType;

/// A Rust type with the layout of a [`DType`]. The trait is sealed: only the types in this file
/// implement it.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The element type.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($element:ty => $dtype:ident,)*) => {
        $(
            impl sealed::Sealed for $element {}
            impl Element for $element {
                const DTYPE: DType = DType::$dtype;
            }
        )*

        #[cfg(test)]
        const SIZES: &[(DType, usize)] = &[$((DType::$dtype, size_of::<$element>()),)*];
    };
}

elements! {
    bool => Bool,
    i8 => Int8,
    i16 => Int16,
    i32 => Int32,
    i64 => Int64,
    u8 => UInt8,
    u16 => UInt16,
    u32 => UInt32,
    u64 => UInt64,
    f16 => Float16,
    bf16 => BFloat16,
    f32 => Float32,
    f64 => Float64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_its_element() {
        assert_eq!(SIZES.iter().map(|(dtype, _)| *dtype).collect::<Vec<_>>(), DType::ALL);
        assert!(SIZES.iter().all(|(dtype, size)| dtype.bytes() == *size));
    }
}
