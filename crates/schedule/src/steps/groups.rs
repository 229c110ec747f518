//! Extends the region that a promotion copies to whole groups of neighbouring elements: `promote I
//! at O.c -> Is shared (d0, d1, d2, d3/4, d3%4)`.
//!
//! A layout that splits the last dimension of a tensor into groups of neighbours lets a thread copy
//! a group with one wide access. For that, groups must begin at multiples of their size. The region
//! that a tile needs often begins elsewhere: one element earlier, for example, where a window with
//! padding is read. So shared memory holds whole groups, if each group is provably either inside
//! the tensor or outside it. The copy then checks its conditions once for each group:
//!
//! ```text
//! elements 55..114 of a row that has 112
//!   →   groups 52..56, 56..60, …, 108..112, and 112..116, which is outside
//! ```

use tilewright_ir::nest::IndexExpr;

use super::layout::BufferDimension;
use super::padding::Padding;
use crate::draft::region::Interval;

/// The groups that a buffer's last dimension is split into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Groups {
    /// The dimension of the tensor that is split into groups.
    pub dimension: usize,
    /// The number of elements in a group.
    pub size: i64,
}

impl Groups {
    /// Extends a region to whole groups, if its layout has groups and the tensor and its padding
    /// consist of whole groups.
    pub fn extend_region(
        layout: &[BufferDimension],
        shape: &[i64],
        padding: Option<&Padding>,
        region: &mut [Interval],
    ) -> Option<Groups> {
        let dimension = shape.len().checked_sub(1)?;
        let size = size_of_groups(layout, dimension)?;
        let whole = |count: i64| count % size == 0;
        if !whole(shape[dimension])
            || !padding.is_none_or(|padding| padding.keeps_groups_whole(dimension, size))
        {
            return None;
        }
        let Interval { low, extent, .. } = &region[dimension];
        let before = (0..size).find(|before| low.offset(-before).is_multiple_of(size))?;
        let (low, extent) = (low.offset(-before), (extent + before + size - 1) / size * size);
        region[dimension] = Interval { low, extent, available: IndexExpr::constant(extent) };
        Some(Groups { dimension, size })
    }
}

/// The number of elements in a group, if the layout splits a dimension into groups and their
/// elements.
fn size_of_groups(layout: &[BufferDimension], dimension: usize) -> Option<i64> {
    let mut parts = layout.iter().filter(|part| part.dimension == dimension);
    match (parts.next()?, parts.next()?, parts.next()) {
        (
            BufferDimension { divide: size, modulo: None, .. },
            BufferDimension { divide: 1, modulo: Some(same), .. },
            None,
        ) if size == same => Some(*size),
        _ => None,
    }
}
