//! Copies between layouts: packs a strided tensor into contiguous memory, and unpacks it.
//!
//! Dimensions that follow each other without gaps in both tensors are merged. Most copies therefore
//! consist of contiguous rows, and each row is moved as a whole. If the fastest dimension of the
//! target is not the fastest of the source, as in a transposition, the copy walks the two fastest
//! dimensions in tiles. Each cache line is then fetched once.

use smallvec::SmallVec;
use thiserror::Error;

use crate::view::{Layout, View, ViewMut};

/// Elements along each side of a tile: the number of single-precision values in a cache line.
const TILE: usize = 16;

/// Two tensors differ in element type or shape, so one cannot be copied into the other.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{from} cannot be copied into {to}")]
pub struct LayoutMismatch {
    /// The type and shape of the source.
    pub from: String,
    /// The type and shape of the target.
    pub to: String,
}

/// Copies every element of `source` to the same subscripts of `target`, whatever the strides are.
pub fn copy(source: &View<'_>, target: &mut ViewMut<'_>) -> Result<(), LayoutMismatch> {
    let (from, to) = (source.layout(), target.layout());
    if from.dtype() != to.dtype() || from.shape() != to.shape() {
        return Err(LayoutMismatch { from: from.to_string(), to: to.to_string() });
    }
    if from.is_empty() {
        return Ok(());
    }
    let walk = Walk::new(from, to);
    // SAFETY: the walk stays on the elements of the two layouts, which the views guarantee to be
    // valid. The target is borrowed exclusively, so the two tensors do not overlap.
    unsafe { walk.run(source.as_ptr(), target.as_mut_ptr()) };
    Ok(())
}

/// One loop of the copy; strides count bytes.
#[derive(Clone, Copy, Debug)]
struct Axis {
    extent: usize,
    from: isize,
    to: isize,
}

/// The loops of a copy.
struct Walk {
    /// Bytes of an element.
    width: usize,
    outer: SmallVec<[Axis; 6]>,
    row: Axis,
    /// The fastest dimension of the target.
    column: Axis,
}

impl Walk {
    fn new(from: &Layout, to: &Layout) -> Walk {
        let width = from.dtype().bytes();
        let mut axes = merged_axes(from, to);
        let nothing = Axis { extent: 1, from: width as isize, to: width as isize };
        let column = take_fastest(&mut axes, |axis| axis.to).unwrap_or(nothing);
        let row = take_fastest(&mut axes, |axis| axis.from).unwrap_or(nothing);
        Walk { width, outer: axes, row, column }
    }

    /// # Safety
    ///
    /// All elements that the axes reach from the two pointers can be read or written, and the two
    /// tensors do not overlap.
    unsafe fn run(&self, source: *const u8, target: *mut u8) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            match self.width {
                1 => self.outer_loops::<u8>(&self.outer, source, target),
                2 => self.outer_loops::<u16>(&self.outer, source, target),
                4 => self.outer_loops::<u32>(&self.outer, source, target),
                _ => self.outer_loops::<u64>(&self.outer, source, target),
            }
        }
    }

    /// # Safety
    ///
    /// As [`Walk::run`].
    unsafe fn outer_loops<W: Copy>(&self, axes: &[Axis], source: *const u8, target: *mut u8) {
        let Some((axis, inner)) = axes.split_first() else {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.plane::<W>(source, target) };
        };
        for at in 0..axis.extent as isize {
            // SAFETY: `at` is inside the extent, so both offsets lead to elements.
            unsafe {
                self.outer_loops::<W>(inner, source.offset(at * axis.from), target.offset(at * axis.to))
            };
        }
    }

    /// # Safety
    ///
    /// As [`Walk::run`], for the two inner axes.
    unsafe fn plane<W: Copy>(&self, source: *const u8, target: *mut u8) {
        let gapless = size_of::<W>() as isize;
        if self.column.from == gapless && self.column.to == gapless {
            // SAFETY: guaranteed by the caller.
            return unsafe { self.whole_rows::<W>(source, target) };
        }
        // Tiles pay off only if the source is faster along the row axis. Otherwise the columns are
        // walked from first to last.
        let crosswise = self.row.from.abs() < self.column.from.abs();
        let width = if crosswise { TILE } else { self.column.extent };
        for first_row in (0..self.row.extent).step_by(TILE) {
            let rows = first_row..self.row.extent.min(first_row + TILE);
            for first_column in (0..self.column.extent).step_by(width) {
                let columns = first_column..self.column.extent.min(first_column + width);
                for row in rows.clone() {
                    for column in columns.clone() {
                        let from = row as isize * self.row.from + column as isize * self.column.from;
                        let to = row as isize * self.row.to + column as isize * self.column.to;
                        // SAFETY: row and column are inside their extents.
                        unsafe {
                            let element = source.offset(from).cast::<W>().read_unaligned();
                            target.offset(to).cast::<W>().write_unaligned(element);
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    ///
    /// As [`Walk::plane`], and the elements of a row have no gaps in either tensor.
    unsafe fn whole_rows<W>(&self, source: *const u8, target: *mut u8) {
        let bytes = self.column.extent * size_of::<W>();
        for row in 0..self.row.extent as isize {
            // SAFETY: a row is `bytes` long in both, and the tensors do not overlap.
            unsafe {
                source
                    .offset(row * self.row.from)
                    .copy_to_nonoverlapping(target.offset(row * self.row.to), bytes);
            }
        }
    }
}

/// The loops of a copy. Axes of one element are left out, and axes that continue each other in both
/// tensors are merged.
fn merged_axes(from: &Layout, to: &Layout) -> SmallVec<[Axis; 6]> {
    let width = from.dtype().bytes() as isize;
    let mut merged: SmallVec<[Axis; 6]> = SmallVec::new();
    for (at, extent) in from.shape().iter().copied().enumerate().filter(|(_, extent)| *extent != 1) {
        let axis = Axis { extent, from: from.strides()[at] * width, to: to.strides()[at] * width };
        let length = extent as isize;
        match merged.last_mut() {
            Some(outer) if outer.from == axis.from * length && outer.to == axis.to * length => {
                *outer = Axis { extent: outer.extent * extent, ..axis };
            }
            _ => merged.push(axis),
        }
    }
    merged
}

/// Removes the axis with the smallest absolute stride, and the innermost one of several such axes.
fn take_fastest(axes: &mut SmallVec<[Axis; 6]>, stride: impl Fn(&Axis) -> isize) -> Option<Axis> {
    let fastest = (0..axes.len()).rev().min_by_key(|at| stride(&axes[*at]).unsigned_abs())?;
    Some(axes.remove(fastest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array, Array2, Array3, ArrayD, IxDyn, Slice, s};
    use proptest::prelude::*;

    #[test]
    fn a_part_of_an_array_is_packed_and_unpacked() {
        let array = Array::from_shape_fn((5, 40, 33), |(i, j, k)| (i * 10_000 + j * 100 + k) as u32);
        let part = array.slice(s![1..;2, ..;-3, 4..20]);
        let mut packed = Array3::<u32>::zeros(part.raw_dim());
        copy(&part.into(), &mut packed.view_mut().into()).unwrap();
        assert_eq!(packed, part);

        let mut back = Array3::<u32>::zeros(array.raw_dim());
        copy(&packed.view().into(), &mut back.slice_mut(s![1..;2, ..;-3, 4..20]).into()).unwrap();
        assert_eq!(back.slice(s![1..;2, ..;-3, 4..20]), packed);
        assert_eq!(back.iter().filter(|element| **element != 0).count(), packed.len());
    }

    #[test]
    fn different_shapes_or_types_are_refused() {
        let source = Array2::<f32>::zeros((2, 3));
        let mut other = Array2::<f32>::zeros((3, 2));
        let error = copy(&source.view().into(), &mut other.view_mut().into()).unwrap_err();
        assert_eq!(error.to_string(), "float32(2, 3) cannot be copied into float32(3, 2)");
        let mut wider = Array2::<f64>::zeros((2, 3));
        assert!(copy(&source.view().into(), &mut wider.view_mut().into()).is_err());
    }

    #[test]
    fn scalars_and_empty_arrays_are_copied() {
        let source = ndarray::arr0(7i16);
        let mut target = ndarray::arr0(0i16);
        copy(&source.view().into(), &mut target.view_mut().into()).unwrap();
        assert_eq!(target, source);
        let empty = Array2::<u8>::zeros((0, 4));
        copy(&empty.view().into(), &mut empty.clone().view_mut().into()).unwrap();
    }

    #[test]
    fn dimensions_that_continue_each_other_become_one() {
        let array = Array3::<f32>::zeros((4, 5, 6));
        let axes = |view: View<'_>| {
            let packed = Layout::contiguous(view.layout().dtype(), view.layout().shape()).unwrap();
            merged_axes(view.layout(), &packed).len()
        };
        assert_eq!(axes(array.view().into()), 1);
        assert_eq!(axes(array.slice(s![.., .., ..3]).into()), 2);
        assert_eq!(axes(array.slice(s![.., ..3, ..]).into()), 2);
        assert_eq!(axes(array.slice(s![2..3, 1..2, ..]).into()), 1);
        assert_eq!(axes(array.t().into()), 3);
    }

    /// The extents of an array of up to four dimensions, a step for each, and an order of the
    /// dimensions.
    fn cases() -> impl Strategy<Value = (Vec<usize>, Vec<isize>, Vec<usize>)> {
        (0usize..=4).prop_flat_map(|rank| {
            let extents = proptest::collection::vec(0usize..20, rank);
            let steps = proptest::collection::vec(prop_oneof![-3isize..=-1, 1isize..=3], rank);
            let order = Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
            (extents, steps, order)
        })
    }

    fn check<T: crate::Element + PartialEq + std::fmt::Debug + num::FromIndex>(
        (extents, steps, order): (Vec<usize>, Vec<isize>, Vec<usize>),
    ) {
        let mut count = 0;
        let array = ArrayD::from_shape_simple_fn(IxDyn(&extents), || {
            count += 1;
            T::from_index(count)
        });
        let mut source = array.view();
        source.slice_each_axis_inplace(|axis| Slice::new(0, None, steps[axis.axis.index()]));
        let source = source.permuted_axes(IxDyn(&order));
        let mut packed = ArrayD::from_elem(source.raw_dim(), T::from_index(0));
        copy(&source.clone().into(), &mut packed.view_mut().into()).unwrap();
        assert_eq!(packed, source);

        let mut unpacked = ArrayD::from_elem(array.raw_dim(), T::from_index(0));
        let mut target = unpacked.view_mut();
        target.slice_each_axis_inplace(|axis| Slice::new(0, None, steps[axis.axis.index()]));
        copy(&packed.view().into(), &mut target.permuted_axes(IxDyn(&order)).into()).unwrap();
        let mut seen = unpacked.view();
        seen.slice_each_axis_inplace(|axis| Slice::new(0, None, steps[axis.axis.index()]));
        assert_eq!(seen.permuted_axes(IxDyn(&order)), packed);
    }

    mod num {
        /// A number that distinguishes elements.
        pub trait FromIndex {
            fn from_index(at: usize) -> Self;
        }
        macro_rules! from_index {
            ($($number:ty)*) => { $(impl FromIndex for $number {
                fn from_index(at: usize) -> $number { at as $number }
            })* };
        }
        from_index!(u8 i16 f32 f64);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_strides_give_the_same_elements(case in cases()) {
            check::<u8>(case.clone());
            check::<i16>(case.clone());
            check::<f32>(case.clone());
            check::<f64>(case);
        }
    }
}
