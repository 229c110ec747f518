//! Allocates tensors in fenced memory (between protected pages), with any layout that a caller may
//! use: any order of dimensions, with gaps, reversed, unaligned.

use tilewright::{DType, View, ViewMut};
use tilewright_ir::Tensor;

use super::fenced_memory::{Fenced, GAP};

/// The layout of a tensor in memory.
#[derive(Clone, Debug)]
pub struct Placement {
    /// The dimensions in order of decreasing stride. Dimensions that are not listed come last.
    pub order: Vec<usize>,
    /// For each dimension, the number of elements skipped after each element, and whether it is
    /// reversed.
    pub steps: Vec<(usize, bool)>,
    /// The number of bytes by which elements miss their alignment.
    pub skew: usize,
    /// Whether the tensor is at the end of its memory, or at the start.
    pub at_end: bool,
}

impl Placement {
    /// A row-major layout without gaps, at the end of the memory.
    pub fn contiguous() -> Placement {
        Placement { order: Vec::new(), steps: Vec::new(), skew: 0, at_end: true }
    }
}

/// A tensor in memory that a call may borrow.
pub struct FencedTensor {
    memory: Fenced,
    /// The position of the element with all subscripts 0.
    start: usize,
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl FencedTensor {
    /// Allocates memory for a tensor, filled with meaningless bytes.
    pub fn empty(dtype: DType, shape: &[usize], placement: &Placement) -> FencedTensor {
        let mut order: Vec<usize> = placement.order.iter().copied().filter(|at| *at < shape.len()).collect();
        order.extend((0..shape.len()).filter(|at| !placement.order.contains(at)));
        let mut strides = vec![0isize; shape.len()];
        let (mut span, mut start) = (1, 0);
        for at in order.into_iter().rev() {
            let (gap, backwards) = placement.steps.get(at).copied().unwrap_or((0, false));
            let stride = span * (gap + 1);
            let last = stride * shape[at].saturating_sub(1);
            strides[at] = if backwards { -(stride as isize) } else { stride as isize };
            start += if backwards { last } else { 0 };
            span += last;
        }
        let bytes = span * dtype.bytes() + placement.skew;
        let memory = Fenced::new(bytes);
        let from = if placement.at_end { memory.bytes().len() - bytes } else { placement.skew };
        FencedTensor { memory, start: from + start * dtype.bytes(), dtype, shape: shape.to_vec(), strides }
    }

    /// Copies a tensor.
    pub fn copy_of(tensor: &Tensor, placement: &Placement) -> FencedTensor {
        let mut lent = FencedTensor::empty(tensor.dtype(), tensor.shape(), placement);
        let width = tensor.dtype().bytes();
        for (place, element) in lent.element_offsets().into_iter().zip(tensor.bytes().chunks(width)) {
            lent.memory.bytes_mut()[place..place + width].copy_from_slice(element);
        }
        lent
    }

    /// The positions of the elements, in row-major order.
    fn element_offsets(&self) -> Vec<usize> {
        let mut places = vec![self.start as isize];
        for (extent, stride) in self.shape.iter().zip(&self.strides) {
            let step = stride * self.dtype.bytes() as isize;
            let along = |from: &isize| (0..*extent as isize).map(|at| from + at * step).collect::<Vec<_>>();
            places = places.iter().flat_map(along).collect();
        }
        places.into_iter().map(|place| place as usize).collect()
    }

    /// Copies the elements to a tensor.
    pub fn tensor(&self) -> Tensor {
        let width = self.dtype.bytes();
        let elements =
            self.element_offsets().into_iter().flat_map(|place| &self.memory.bytes()[place..place + width]);
        Tensor::from_bytes(self.dtype, &self.shape, elements.copied().collect()).unwrap()
    }

    /// Whether all bytes outside of the elements are unchanged.
    pub fn gaps_are_unchanged(&self) -> bool {
        let mut outside = vec![true; self.memory.bytes().len()];
        for place in self.element_offsets() {
            outside[place..place + self.dtype.bytes()].fill(false);
        }
        self.memory.bytes().iter().zip(outside).all(|(byte, outside)| !outside || *byte == GAP)
    }

    /// Returns a view for reading.
    pub fn view(&self) -> View<'_> {
        let start = self.memory.bytes().as_ptr().wrapping_add(self.start);
        // SAFETY: all elements are within the memory, which the view borrows.
        unsafe { View::from_raw_parts(self.dtype, start, &self.shape, &self.strides) }
    }

    /// Returns a view for writing.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        let start = self.memory.bytes_mut().as_mut_ptr().wrapping_add(self.start);
        // SAFETY: all elements are distinct and within the memory, which the view borrows
        // exclusively.
        unsafe { ViewMut::from_raw_parts(self.dtype, start, &self.shape, &self.strides) }
    }
}
