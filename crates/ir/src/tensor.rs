//! Defines [`Tensor`], a dense, row-major tensor in host memory.

use thiserror::Error;

use crate::dtype::DType;
use crate::number::Number;

/// A dense, row-major tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    dtype: DType,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// The reason why a tensor could not be created.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TensorError {
    /// The tensor needs more bytes than an address space holds.
    #[error("a {dtype} tensor of shape {shape:?} is larger than the address space")]
    TooLarge {
        /// The element type.
        dtype: DType,
        /// The requested shape.
        shape: Vec<usize>,
    },
    /// The allocator returned no memory.
    #[error("no memory for a {dtype} tensor of shape {shape:?} ({bytes} bytes)")]
    OutOfMemory {
        /// The element type.
        dtype: DType,
        /// The requested shape.
        shape: Vec<usize>,
        /// The number of bytes that were requested.
        bytes: usize,
    },
    /// The data does not have the length that the shape requires.
    #[error("{found} bytes of data for a {dtype} tensor of shape {shape:?}, which takes {wanted}")]
    WrongLength {
        /// The element type.
        dtype: DType,
        /// The requested shape.
        shape: Vec<usize>,
        /// The number of bytes that the shape takes.
        wanted: usize,
        /// The number of bytes that were given.
        found: usize,
    },
}

/// The number of bytes of a tensor, or `None` if they do not fit the address space.
pub fn byte_size(dtype: DType, shape: &[usize]) -> Option<usize> {
    let elements = shape.iter().try_fold(1usize, |product, extent| product.checked_mul(*extent))?;
    elements.checked_mul(dtype.bytes()).filter(|bytes| *bytes <= isize::MAX as usize)
}

impl Tensor {
    /// A tensor of zeros.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Tensor, TensorError> {
        let bytes =
            byte_size(dtype, shape).ok_or_else(|| TensorError::TooLarge { dtype, shape: shape.to_vec() })?;
        let mut data = Vec::new();
        data.try_reserve_exact(bytes).map_err(|_| TensorError::OutOfMemory {
            dtype,
            shape: shape.to_vec(),
            bytes,
        })?;
        data.resize(bytes, 0);
        Ok(Tensor { dtype, shape: shape.to_vec(), bytes: data })
    }

    /// A tensor over little-endian, row-major bytes.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Tensor, TensorError> {
        let wanted =
            byte_size(dtype, shape).ok_or_else(|| TensorError::TooLarge { dtype, shape: shape.to_vec() })?;
        if bytes.len() != wanted {
            return Err(TensorError::WrongLength {
                dtype,
                shape: shape.to_vec(),
                wanted,
                found: bytes.len(),
            });
        }
        Ok(Tensor { dtype, shape: shape.to_vec(), bytes })
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Returns true when there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as little-endian, row-major bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The element at a position in row-major order.
    pub fn get(&self, at: usize) -> Number {
        let width = self.dtype.bytes();
        let raw = &self.bytes[at * width..(at + 1) * width];
        match self.dtype {
            DType::Bool => Number::Int((raw[0] != 0) as i128),
            DType::Int8 => Number::Int(raw[0] as i8 as i128),
            DType::UInt8 => Number::Int(raw[0] as i128),
            DType::Int16 => Number::Int(i16::from_le_bytes(element_bytes(raw)) as i128),
            DType::UInt16 => Number::Int(u16::from_le_bytes(element_bytes(raw)) as i128),
            DType::Int32 => Number::Int(i32::from_le_bytes(element_bytes(raw)) as i128),
            DType::UInt32 => Number::Int(u32::from_le_bytes(element_bytes(raw)) as i128),
            DType::Int64 => Number::Int(i64::from_le_bytes(element_bytes(raw)) as i128),
            DType::UInt64 => Number::Int(u64::from_le_bytes(element_bytes(raw)) as i128),
            DType::Float16 => Number::Float(half::f16::from_le_bytes(element_bytes(raw)).to_f64()),
            DType::BFloat16 => Number::Float(half::bf16::from_le_bytes(element_bytes(raw)).to_f64()),
            DType::Float32 => Number::Float(f32::from_le_bytes(element_bytes(raw)) as f64),
            DType::Float64 => Number::Float(f64::from_le_bytes(element_bytes(raw))),
        }
    }

    /// Converts a number to the element type and stores it at a position in row-major order.
    pub fn set(&mut self, at: usize, number: Number) {
        let width = self.dtype.bytes();
        let raw = &mut self.bytes[at * width..(at + 1) * width];
        match (self.dtype, number.convert(self.dtype)) {
            (DType::Float16, number) => {
                raw.copy_from_slice(&half::f16::from_f64(number.as_f64()).to_le_bytes())
            }
            (DType::BFloat16, number) => {
                raw.copy_from_slice(&half::bf16::from_f64(number.as_f64()).to_le_bytes())
            }
            (DType::Float32, number) => raw.copy_from_slice(&(number.as_f64() as f32).to_le_bytes()),
            (DType::Float64, number) => raw.copy_from_slice(&number.as_f64().to_le_bytes()),
            // Two's complement: the low bytes are the value.
            (_, number) => raw.copy_from_slice(&number.as_i128().to_le_bytes()[..width]),
        }
    }
}

fn element_bytes<const N: usize>(raw: &[u8]) -> [u8; N] {
    raw.try_into().expect("an element has the width of its type")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_round_trips() {
        for dtype in DType::ALL {
            let mut tensor = Tensor::zeros(dtype, &[3]).unwrap();
            let value = if dtype.is_float() { Number::Float(-1.5) } else { Number::Int(1) };
            tensor.set(1, value);
            assert_eq!(tensor.get(1), value, "{dtype}");
            assert!(!tensor.get(0).is_true() && !tensor.get(2).is_true(), "{dtype}");
        }
    }

    #[test]
    fn a_shape_that_cannot_exist_is_refused() {
        assert!(matches!(Tensor::zeros(DType::Float64, &[usize::MAX, 2]), Err(TensorError::TooLarge { .. })));
        let short = Tensor::from_bytes(DType::Int16, &[2], vec![0; 3]);
        assert!(matches!(short, Err(TensorError::WrongLength { wanted: 4, found: 3, .. })));
    }
}
