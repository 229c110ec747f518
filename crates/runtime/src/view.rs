//! Describes tensors in borrowed memory by their element type, first address, extents and strides.
//!
//! A [`View`] is for reading, and a [`ViewMut`] for reading and writing. Both are made from slices,
//! from ndarray's views, from a [`crate::Buffer`], or from raw parts, as a binding to another
//! language has them. Strides count elements and may be negative. The strides of a `View` may be 0,
//! as broadcasting makes them.

use std::fmt;
use std::marker::PhantomData;

use ndarray::{Array, ArrayView, ArrayViewMut, Dimension};
use smallvec::SmallVec;
use tilewright_ir::DType;
use tilewright_ir::tensor::{TensorError, byte_size};

use crate::element::Element;

/// A layout of up to this many dimensions needs no allocation.
const INLINE_DIMENSIONS: usize = 6;

/// How a tensor lies in memory: its element type, extents and strides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    dtype: DType,
    shape: SmallVec<[usize; INLINE_DIMENSIONS]>,
    strides: SmallVec<[isize; INLINE_DIMENSIONS]>,
}

impl Layout {
    /// A row-major layout without gaps. Returns an error if such a tensor is larger than the
    /// address space.
    pub fn contiguous(dtype: DType, shape: &[usize]) -> Result<Layout, TensorError> {
        byte_size(dtype, shape).ok_or_else(|| TensorError::TooLarge { dtype, shape: shape.to_vec() })?;
        let mut strides = SmallVec::from_elem(1, shape.len());
        for at in (1..shape.len()).rev() {
            // Wraps only if another extent is 0, and then the strides are never used.
            strides[at - 1] = isize::wrapping_mul(strides[at], shape[at] as isize);
        }
        Ok(Layout { dtype, shape: shape.into(), strides })
    }

    fn strided(dtype: DType, shape: &[usize], strides: &[isize]) -> Layout {
        assert_eq!(shape.len(), strides.len(), "a stride for every dimension");
        Layout { dtype, shape: shape.into(), strides: strides.into() }
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The extents.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The distance between neighbouring elements of each dimension, in elements.
    pub fn strides(&self) -> &[isize] {
        &self.strides
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Bytes that the elements take without gaps.
    pub fn bytes(&self) -> usize {
        self.len() * self.dtype.bytes()
    }

    /// Whether the elements follow each other in row-major order, without gaps.
    pub fn is_contiguous(&self) -> bool {
        let mut wanted = 1;
        let mut dimensions = self.shape.iter().zip(&self.strides).rev();
        let follows = |(extent, stride): (&usize, &isize)| {
            // The stride of a dimension with one element is never used.
            let fits = *extent == 1 || *stride == wanted;
            wanted *= *extent as isize;
            fits
        };
        self.is_empty() || dimensions.all(follows)
    }
}

/// Formats the type and shape as in a signature: `float32(3, 4)`.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        write!(f, "{}({})", self.dtype, extents.join(", "))
    }
}

/// A tensor in borrowed memory, for reading.
#[derive(Clone, Debug)]
pub struct View<'a> {
    start: *const u8,
    layout: Layout,
    memory: PhantomData<&'a [u8]>,
}

/// A tensor in borrowed memory, for reading and writing.
#[derive(Debug)]
pub struct ViewMut<'a> {
    start: *mut u8,
    layout: Layout,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: a `View` is a shared borrow of plain numbers, like `&[u8]`, and a `ViewMut` an exclusive
// one, like `&mut [u8]`.
unsafe impl Send for View<'_> {}
// SAFETY: as above.
unsafe impl Sync for View<'_> {}
// SAFETY: as above.
unsafe impl Send for ViewMut<'_> {}
// SAFETY: as above.
unsafe impl Sync for ViewMut<'_> {}

impl<'a> View<'a> {
    /// A slice as a row-major tensor of this shape.
    pub fn from_slice<T: Element>(elements: &'a [T], shape: &[usize]) -> Result<View<'a>, TensorError> {
        let layout = layout_of_slice::<T>(elements.len(), shape)?;
        Ok(View { start: elements.as_ptr().cast(), layout, memory: PhantomData })
    }

    /// Any memory as a tensor; the strides count elements.
    ///
    /// # Panics
    ///
    /// If there are not as many strides as extents.
    ///
    /// # Safety
    ///
    /// The element with all subscripts 0 is at `start`. For `'a`, every element that the extents
    /// and strides reach from there is initialised memory that nobody writes. Every `bool` is 0 or
    /// 1, and elements need not be aligned. If there are no elements, `start` may be anything.
    pub unsafe fn from_raw_parts(
        dtype: DType,
        start: *const u8,
        shape: &[usize],
        strides: &[isize],
    ) -> View<'a> {
        View { start, layout: Layout::strided(dtype, shape, strides), memory: PhantomData }
    }

    /// The element type, extents and strides.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The address of the element with all subscripts 0.
    pub fn as_ptr(&self) -> *const u8 {
        self.start
    }

    /// Whether the elements follow each other in row-major order, without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Checks whether every element is aligned for its type.
    pub fn is_aligned(&self) -> bool {
        self.start.addr().is_multiple_of(self.layout.dtype.bytes())
    }

    /// The elements as bytes, if they follow each other in row-major order, without gaps.
    pub fn contiguous_bytes(&self) -> Option<&'a [u8]> {
        if self.layout.is_empty() {
            return Some(&[]);
        }
        // SAFETY: without gaps, the elements are exactly these bytes, which nobody writes for `'a`.
        self.is_contiguous().then(|| unsafe { std::slice::from_raw_parts(self.start, self.layout.bytes()) })
    }
}

impl<'a> ViewMut<'a> {
    /// A slice as a row-major tensor of this shape.
    pub fn from_slice<T: Element>(
        elements: &'a mut [T],
        shape: &[usize],
    ) -> Result<ViewMut<'a>, TensorError> {
        let layout = layout_of_slice::<T>(elements.len(), shape)?;
        Ok(ViewMut { start: elements.as_mut_ptr().cast(), layout, memory: PhantomData })
    }

    /// Any memory as a tensor; the strides count elements.
    ///
    /// # Panics
    ///
    /// If there are not as many strides as extents.
    ///
    /// # Safety
    ///
    /// The element with all subscripts 0 is at `start`. For `'a`, every element that the extents
    /// and strides reach from there is initialised memory that nobody else reads or writes. Every
    /// `bool` is 0 or 1, and no two elements overlap. Elements need not be aligned. If there are no
    /// elements, `start` may be anything.
    pub unsafe fn from_raw_parts(
        dtype: DType,
        start: *mut u8,
        shape: &[usize],
        strides: &[isize],
    ) -> ViewMut<'a> {
        ViewMut { start, layout: Layout::strided(dtype, shape, strides), memory: PhantomData }
    }

    /// The element type, extents and strides.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The address of the element with all subscripts 0.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start
    }

    /// The same tensor for reading.
    pub fn view(&self) -> View<'_> {
        View { start: self.start, layout: self.layout.clone(), memory: PhantomData }
    }

    /// Whether the elements follow each other in row-major order, without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.layout.is_contiguous()
    }

    /// Checks whether every element is aligned for its type.
    pub fn is_aligned(&self) -> bool {
        self.start.addr().is_multiple_of(self.layout.dtype.bytes())
    }

    /// The elements as bytes, if they follow each other in row-major order, without gaps. The
    /// writer must leave every `bool` as 0 or 1.
    pub(crate) fn contiguous_bytes_mut(&mut self) -> Option<&mut [u8]> {
        if self.layout.is_empty() {
            return Some(&mut []);
        }
        let bytes = self.layout.bytes();
        // SAFETY: without gaps, the elements are exactly these bytes, which nobody else uses while
        // `self` is borrowed.
        self.is_contiguous().then(|| unsafe { std::slice::from_raw_parts_mut(self.start, bytes) })
    }
}

impl<'a, T: Element, D: Dimension> From<ArrayView<'a, T, D>> for View<'a> {
    fn from(array: ArrayView<'a, T, D>) -> View<'a> {
        let layout = Layout::strided(T::DTYPE, array.shape(), array.strides());
        View { start: array.as_ptr().cast(), layout, memory: PhantomData }
    }
}

impl<'a, T: Element, D: Dimension> From<&'a Array<T, D>> for View<'a> {
    fn from(array: &'a Array<T, D>) -> View<'a> {
        array.view().into()
    }
}

impl<'a, T: Element, D: Dimension> From<&'a mut Array<T, D>> for ViewMut<'a> {
    fn from(array: &'a mut Array<T, D>) -> ViewMut<'a> {
        array.view_mut().into()
    }
}

impl<'a, T: Element, D: Dimension> From<ArrayViewMut<'a, T, D>> for ViewMut<'a> {
    fn from(mut array: ArrayViewMut<'a, T, D>) -> ViewMut<'a> {
        let layout = Layout::strided(T::DTYPE, array.shape(), array.strides());
        ViewMut { start: array.as_mut_ptr().cast(), layout, memory: PhantomData }
    }
}

fn layout_of_slice<T: Element>(elements: usize, shape: &[usize]) -> Result<Layout, TensorError> {
    let layout = Layout::contiguous(T::DTYPE, shape)?;
    if layout.len() != elements {
        return Err(TensorError::WrongLength {
            dtype: T::DTYPE,
            shape: shape.to_vec(),
            wanted: layout.bytes(),
            found: elements * size_of::<T>(),
        });
    }
    Ok(layout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, s};

    #[test]
    fn contiguity_ignores_strides_that_are_never_used() {
        let contiguous =
            |shape: &[usize], strides: &[isize]| Layout::strided(DType::Int8, shape, strides).is_contiguous();
        assert!(contiguous(&[], &[]));
        assert!(contiguous(&[2, 3], &[3, 1]));
        assert!(contiguous(&[2, 1, 3], &[3, 77, 1]));
        assert!(contiguous(&[1, 3], &[-5, 1]));
        assert!(contiguous(&[4, 0], &[9, 9]));
        assert!(!contiguous(&[2, 3], &[4, 1]));
        assert!(!contiguous(&[2, 3], &[1, 2]));
        assert!(!contiguous(&[3], &[-1]));
        assert!(!contiguous(&[3], &[0]));
    }

    #[test]
    fn a_slice_must_have_as_many_elements_as_the_shape() {
        let elements = [1.0f32; 6];
        let view = View::from_slice(&elements, &[2, 3]).unwrap();
        assert_eq!(view.layout().to_string(), "float32(2, 3)");
        assert_eq!(view.layout().strides(), [3, 1]);
        let error = View::from_slice(&elements, &[2, 2]).unwrap_err();
        assert!(matches!(error, TensorError::WrongLength { wanted: 16, found: 24, .. }), "{error}");
        assert!(matches!(View::from_slice(&elements, &[usize::MAX, 2]), Err(TensorError::TooLarge { .. })));
    }

    #[test]
    fn arrays_come_with_their_strides() {
        let mut array = Array2::<f64>::zeros((4, 6));
        let whole = View::from(array.view());
        assert_eq!((whole.layout().dtype(), whole.is_contiguous()), (DType::Float64, true));
        let part = View::from(array.slice(s![1.., ..;-2]));
        assert_eq!((part.layout().shape(), part.layout().strides()), (&[3, 3][..], &[6, -2][..]));
        assert!(!part.is_contiguous());
        let row = array.row(0).to_owned();
        let repeated = View::from(row.broadcast((5, 6)).unwrap());
        assert_eq!(repeated.layout().strides(), [0, 1]);
        let transposed = ViewMut::from(array.view_mut().reversed_axes());
        assert_eq!(transposed.layout().strides(), [1, 6]);
    }

    #[test]
    fn the_bytes_of_a_view_without_gaps() {
        let mut array = Array2::<u16>::from_shape_fn((2, 2), |(i, j)| (256 * i + j) as u16);
        assert_eq!(View::from(array.view()).contiguous_bytes(), Some(&[0, 0, 1, 0, 0, 1, 1, 1][..]));
        assert_eq!(View::from(array.t()).contiguous_bytes(), None);
        assert_eq!(View::from(array.slice(s![..0, ..])).contiguous_bytes(), Some(&[][..]));
        ViewMut::from(&mut array).contiguous_bytes_mut().unwrap()[7] = 2;
        assert_eq!(array[[1, 1]], 0x201);
        assert_eq!(ViewMut::from(array.slice_mut(s![.., ..1])).contiguous_bytes_mut(), None);
    }

    #[test]
    fn alignment_is_that_of_the_element() {
        let bytes = [0u64; 4];
        let start = bytes.as_ptr().cast::<u8>();
        for (offset, aligned) in [(0, true), (4, true), (2, false), (1, false)] {
            // SAFETY: the two elements end before the array does.
            let view = unsafe { View::from_raw_parts(DType::Float32, start.add(offset), &[2], &[1]) };
            assert_eq!(view.is_aligned(), aligned, "{offset}");
        }
    }
}
