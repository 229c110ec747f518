//! Defines [`Buffer`], a tensor that owns its memory. The tensor is aligned and contiguous, so that
//! kernels can use it without a copy.

use std::mem::MaybeUninit;

use tilewright_ir::DType;
use tilewright_ir::tensor::{Tensor, TensorError};

use crate::copy::{LayoutMismatch, copy};
use crate::element::Element;
use crate::memory::{Block, OutOfMemory};
use crate::view::{Layout, View, ViewMut};

/// A tensor that owns its memory. It is row-major without gaps, and aligned like a [`Block`].
#[derive(Debug)]
pub struct Buffer {
    layout: Layout,
    block: Block,
}

impl Buffer {
    /// A tensor of zeros.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Result<Buffer, TensorError> {
        Buffer::with_block(dtype, shape, Block::zeroed)
    }

    /// A tensor in memory that `block` allocates, given the number of bytes.
    fn with_block(
        dtype: DType,
        shape: &[usize],
        block: impl FnOnce(usize) -> Result<Block, OutOfMemory>,
    ) -> Result<Buffer, TensorError> {
        let layout = Layout::contiguous(dtype, shape)?;
        let block = block(layout.bytes()).map_err(|error| TensorError::OutOfMemory {
            dtype,
            shape: shape.to_vec(),
            bytes: error.bytes,
        })?;
        Ok(Buffer { layout, block })
    }

    /// A copy of row-major elements.
    pub fn from_slice<T: Element>(elements: &[T], shape: &[usize]) -> Result<Buffer, TensorError> {
        Buffer::pack(&View::from_slice(elements, shape)?)
    }

    /// A contiguous copy of a tensor with any strides.
    pub fn pack(view: &View<'_>) -> Result<Buffer, TensorError> {
        let mut buffer = Buffer::zeros(view.layout().dtype(), view.layout().shape())?;
        copy(view, &mut buffer.view_mut()).expect("the buffer was made with this type and shape");
        Ok(buffer)
    }

    /// Copies every element out to a tensor with any strides.
    pub fn unpack(&self, target: &mut ViewMut<'_>) -> Result<(), LayoutMismatch> {
        copy(&self.view(), target)
    }

    /// A copy of a tensor.
    pub fn from_tensor(tensor: &Tensor) -> Result<Buffer, TensorError> {
        let copied = |_| Block::copy_of(tensor.bytes());
        Ok(Buffer::with_block(tensor.dtype(), tensor.shape(), copied)?.with_normalised_bools())
    }

    /// A tensor whose elements `fill` writes in place. `fill` returns the bytes as initialised, to
    /// show that it has written all of them.
    pub fn filled(
        dtype: DType,
        shape: &[usize],
        fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> &mut [u8],
    ) -> Result<Buffer, TensorError> {
        Ok(Buffer::with_block(dtype, shape, |bytes| Block::filled(bytes, fill))?.with_normalised_bools())
    }

    /// Normalises `bool` elements: in a `Tensor`, any byte but 0 is true; here, as in Rust, only 1
    /// is.
    fn with_normalised_bools(mut self) -> Buffer {
        if self.layout.dtype() == DType::Bool {
            self.block.as_bytes_mut().iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
        }
        self
    }

    /// A copy as a tensor of the IR.
    pub fn to_tensor(&self) -> Result<Tensor, TensorError> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(self.block.len()).map_err(|_| TensorError::OutOfMemory {
            dtype: self.layout.dtype(),
            shape: self.layout.shape().to_vec(),
            bytes: self.block.len(),
        })?;
        bytes.extend_from_slice(self.block.as_bytes());
        Tensor::from_bytes(self.layout.dtype(), self.layout.shape(), bytes)
    }

    /// The element type, extents and strides.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The elements, if they are of this type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        // SAFETY: the block is aligned for any element, and holds `len` elements of the layout's
        // type. Everything that writes a `bool` guarantees that it is 0 or 1.
        (T::DTYPE == self.layout.dtype())
            .then(|| unsafe { std::slice::from_raw_parts(self.block.as_ptr().cast(), self.layout.len()) })
    }

    /// The elements, if they are of this type, for writing.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        let (elements, dtype) = (self.layout.len(), self.layout.dtype());
        // SAFETY: as in `as_slice`, borrowed exclusively.
        (T::DTYPE == dtype)
            .then(|| unsafe { std::slice::from_raw_parts_mut(self.block.as_mut_ptr().cast(), elements) })
    }

    /// The elements as bytes.
    pub fn bytes(&self) -> &[u8] {
        self.block.as_bytes()
    }

    /// The tensor for reading.
    pub fn view(&self) -> View<'_> {
        // SAFETY: the block holds the elements of the layout, and is borrowed for as long as the
        // view.
        unsafe {
            View::from_raw_parts(
                self.layout.dtype(),
                self.block.as_ptr(),
                self.layout.shape(),
                self.layout.strides(),
            )
        }
    }

    /// The tensor for reading and writing.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        let start = self.block.as_mut_ptr();
        // SAFETY: the block holds the elements of the layout, none twice, and is borrowed
        // exclusively.
        unsafe {
            ViewMut::from_raw_parts(self.layout.dtype(), start, self.layout.shape(), self.layout.strides())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::Array2;
    use tilewright_ir::Number;

    #[test]
    fn tensors_come_back_as_they_were() {
        for dtype in DType::ALL {
            let mut tensor = Tensor::zeros(dtype, &[2, 3]).unwrap();
            (0..6).for_each(|at| tensor.set(at, Number::Int(at as i128)));
            let buffer = Buffer::from_tensor(&tensor).unwrap();
            assert_eq!(buffer.to_tensor().unwrap(), tensor);
        }
    }

    #[test]
    fn every_true_byte_becomes_1() {
        let tensor = Tensor::from_bytes(DType::Bool, &[3], vec![0, 1, 7]).unwrap();
        assert_eq!(Buffer::from_tensor(&tensor).unwrap().as_slice(), Some(&[false, true, true][..]));
    }

    #[test]
    fn elements_are_written_where_they_stay() {
        fn fill(bytes: &mut [MaybeUninit<u8>]) -> &mut [u8] {
            bytes.iter_mut().enumerate().for_each(|(at, byte)| _ = byte.write(at as u8));
            // SAFETY: every byte was just written.
            unsafe { &mut *(std::ptr::from_mut(bytes) as *mut [u8]) }
        }
        let bytes = Buffer::filled(DType::UInt8, &[2, 2], fill).unwrap();
        assert_eq!(bytes.as_slice(), Some(&[0u8, 1, 2, 3][..]));
        // Every byte but 0 becomes 1, whatever `fill` wrote.
        let bools = Buffer::filled(DType::Bool, &[4], fill).unwrap();
        assert_eq!(bools.as_slice(), Some(&[false, true, true, true][..]));
        assert_eq!(Buffer::filled(DType::UInt8, &[0], fill).unwrap().bytes(), &[] as &[u8]);
    }

    #[test]
    fn slices_are_of_the_buffers_own_type() {
        let mut buffer = Buffer::from_slice(&[1i32, 2, 3, 4], &[2, 2]).unwrap();
        assert!(buffer.as_slice::<f32>().is_none() && buffer.as_mut_slice::<u32>().is_none());
        buffer.as_mut_slice::<i32>().unwrap()[3] = -4;
        assert_eq!(buffer.as_slice(), Some(&[1, 2, 3, -4][..]));
    }

    #[test]
    fn a_transposed_array_is_packed_and_unpacked() {
        let array = Array2::from_shape_fn((3, 70), |(i, j)| (100 * i + j) as f32);
        let buffer = Buffer::pack(&array.t().into()).unwrap();
        assert_eq!(buffer.layout().shape(), [70, 3]);
        assert_eq!(buffer.as_slice::<f32>().unwrap()[..4], [0.0, 100.0, 200.0, 1.0]);
        let mut back = Array2::<f32>::zeros((3, 70));
        buffer.unpack(&mut back.view_mut().reversed_axes().into()).unwrap();
        assert_eq!(back, array);
    }

    #[test]
    fn too_much_is_refused_with_the_size() {
        let error = Buffer::zeros(DType::Float32, &[1 << 40, 1 << 18]).unwrap_err();
        assert!(matches!(error, TensorError::OutOfMemory { bytes: 0x1000_0000_0000_0000, .. }), "{error}");
        assert!(matches!(Buffer::zeros(DType::Float32, &[usize::MAX, 3]), Err(TensorError::TooLarge { .. })));
    }
}
