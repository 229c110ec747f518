//! Tensors as a caller may lend them: in any order of dimensions, with gaps, backwards, without alignment.

use tilewright::{DType, View, ViewMut};
use tilewright_ir::Tensor;

use super::fence::{Fenced, GAP};

/// How a tensor lies in memory.
#[derive(Clone, Debug)]
pub struct Placement {
    /// Dimensions, the one whose neighbours are farthest apart first; those that are not named come last.
    pub order: Vec<usize>,
    /// For each dimension, how many elements are left out after each, and whether it runs backwards.
    pub steps: Vec<(usize, bool)>,
    /// Bytes by which elements miss their alignment.
    pub skew: usize,
    /// Whether it lies against the end of its memory, or against the start.
    pub at_end: bool,
}

impl Placement {
    /// Row-major without gaps, against the end.
    pub fn contiguous() -> Placement {
        Placement { order: Vec::new(), steps: Vec::new(), skew: 0, at_end: true }
    }
}

/// A tensor in memory that a call may borrow.
pub struct Lent {
    memory: Fenced,
    /// Where the element with all subscripts 0 is.
    start: usize,
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl Lent {
    /// Memory for a tensor, that holds nothing sensible.
    pub fn empty(dtype: DType, shape: &[usize], placement: &Placement) -> Lent {
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
        Lent { memory, start: from + start * dtype.bytes(), dtype, shape: shape.to_vec(), strides }
    }

    /// A copy of a tensor.
    pub fn of(tensor: &Tensor, placement: &Placement) -> Lent {
        let mut lent = Lent::empty(tensor.dtype(), tensor.shape(), placement);
        let width = tensor.dtype().bytes();
        for (place, element) in lent.places().into_iter().zip(tensor.bytes().chunks(width)) {
            lent.memory.bytes_mut()[place..place + width].copy_from_slice(element);
        }
        lent
    }

    /// Where the elements are, in row-major order.
    fn places(&self) -> Vec<usize> {
        let mut places = vec![self.start as isize];
        for (extent, stride) in self.shape.iter().zip(&self.strides) {
            let step = stride * self.dtype.bytes() as isize;
            let along = |from: &isize| (0..*extent as isize).map(|at| from + at * step).collect::<Vec<_>>();
            places = places.iter().flat_map(along).collect();
        }
        places.into_iter().map(|place| place as usize).collect()
    }

    /// The tensor that the elements are.
    pub fn tensor(&self) -> Tensor {
        let width = self.dtype.bytes();
        let elements = self.places().into_iter().flat_map(|place| &self.memory.bytes()[place..place + width]);
        Tensor::from_bytes(self.dtype, &self.shape, elements.copied().collect()).unwrap()
    }

    /// Whether everything that is not an element is as it was.
    pub fn gaps_are_whole(&self) -> bool {
        let mut outside = vec![true; self.memory.bytes().len()];
        for place in self.places() {
            outside[place..place + self.dtype.bytes()].fill(false);
        }
        self.memory.bytes().iter().zip(outside).all(|(byte, outside)| !outside || *byte == GAP)
    }

    /// For reading.
    pub fn view(&self) -> View<'_> {
        let start = self.memory.bytes().as_ptr().wrapping_add(self.start);
        // SAFETY: all elements are within the memory, which the view borrows.
        unsafe { View::from_raw_parts(self.dtype, start, &self.shape, &self.strides) }
    }

    /// For writing.
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        let start = self.memory.bytes_mut().as_mut_ptr().wrapping_add(self.start);
        // SAFETY: all elements are within the memory, none twice, and the view borrows it exclusively.
        unsafe { ViewMut::from_raw_parts(self.dtype, start, &self.shape, &self.strides) }
    }
}
