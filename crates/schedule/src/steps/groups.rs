//! Copies of whole groups: `promote I at O.c -> Is shared (d0, d1, d2, d3/4, d3%4)`.
//!
//! A layout that cuts the last dimension of a tensor into groups of neighbours lets a thread copy a group at once, if groups
//! begin where a wide access may: at multiples of their size. What a tile needs often begins elsewhere: one element before
//! it, where a window with padding is read. So shared memory holds whole groups, where it can be proved that each is inside of the
//! tensor or outside of it, and the copy asks once for a group:
//!
//! ```text
//! elements 55..114 of a row that has 112   →   groups 52..56, 56..60, …, 108..112, and 112..116, which is outside
//! ```

use tilewright_ir::IndexExpr;

use super::layout::Part;
use super::padding::Padding;
use crate::draft::region::Interval;

/// The groups of a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    /// The dimension of the tensor that is cut into them.
    pub dimension: usize,
    /// Elements of a group.
    pub size: i64,
}

impl Groups {
    /// Lets a region begin and end with whole groups, if its layout has such and the tensor and its padding do.
    pub fn of(
        layout: &[Part],
        shape: &[i64],
        padding: Option<&Padding>,
        region: &mut [Interval],
    ) -> Option<Groups> {
        let dimension = shape.len().checked_sub(1)?;
        let size = size_of_groups(layout, dimension)?;
        let whole = |count: i64| count % size == 0;
        if !whole(shape[dimension]) || !padding.is_none_or(|padding| padding.keeps_whole(dimension, size)) {
            return None;
        }
        let Interval { low, extent, .. } = &region[dimension];
        let before = (0..size).find(|before| low.offset(-before).is_multiple_of(size))?;
        let (low, extent) = (low.offset(-before), (extent + before + size - 1) / size * size);
        region[dimension] = Interval { low, extent, available: IndexExpr::constant(extent) };
        Some(Groups { dimension, size })
    }
}

/// The elements of a group, if a dimension is laid out as its groups and their elements.
fn size_of_groups(layout: &[Part], dimension: usize) -> Option<i64> {
    let mut parts = layout.iter().filter(|part| part.dimension == dimension);
    match (parts.next()?, parts.next()?, parts.next()) {
        (Part { divide: size, modulo: None, .. }, Part { divide: 1, modulo: Some(same), .. }, None)
            if size == same =>
        {
            Some(*size)
        }
        _ => None,
    }
}
