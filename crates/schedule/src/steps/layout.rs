//! Checks the layout of a promoted buffer, such as `(d1/32, d0, d1%32)`, and gives the shape of the
//! buffer and the index of each element.

use tilewright_ir::nest::IndexExpr;

use crate::draft::region::Interval;
use crate::step::LayoutDim;

/// The largest number in a layout. No tensor is longer in one dimension, and products with it do
/// not overflow.
const LARGEST_IN_LAYOUT: i64 = 1 << 31;

/// One dimension of a buffer: for a coordinate `r`, its index is `(r % modulo) / divide`.
#[derive(Clone, Copy)]
pub(super) struct BufferDimension {
    pub dimension: usize,
    pub modulo: Option<i64>,
    pub divide: i64,
}

impl BufferDimension {
    pub fn extent(&self, region: &[Interval]) -> i64 {
        let whole = region[self.dimension].extent;
        let count = self.modulo.map_or(whole, |modulo| modulo.min(whole));
        (count + self.divide - 1) / self.divide
    }

    pub fn index_of(&self, coordinate: &IndexExpr) -> IndexExpr {
        let rest = self.modulo.map_or(coordinate.clone(), |by| coordinate.modulo(&IndexExpr::constant(by)));
        rest.floor_div(&IndexExpr::constant(self.divide))
    }
}

/// The error of a layout, and the part at fault, if there is a single one.
pub(super) struct BadLayout {
    pub part: Option<usize>,
    pub why: String,
}

/// Returns the parts of a layout if they give every element its own place.
pub(super) fn checked_layout(
    layout: &[LayoutDim],
    region: &[Interval],
) -> Result<Vec<BufferDimension>, BadLayout> {
    if layout.is_empty() {
        return Ok((0..region.len())
            .map(|dimension| BufferDimension { dimension, modulo: None, divide: 1 })
            .collect());
    }
    for (at, dim) in layout.iter().enumerate() {
        check_part(dim, region.len()).map_err(|why| BadLayout { part: Some(at), why })?;
    }
    let parts: Vec<BufferDimension> = layout
        .iter()
        .map(|dim| BufferDimension {
            dimension: dim.dimension,
            modulo: dim.modulo,
            divide: dim.divide.unwrap_or(1),
        })
        .collect();
    for dimension in 0..region.len() {
        check_dimension(&parts, dimension)?;
    }
    Ok(parts)
}

/// Refuses a part that is wrong regardless of the other parts.
fn check_part(dim: &LayoutDim, dimensions: usize) -> Result<(), String> {
    if dim.divide.max(dim.modulo).is_some_and(|number| number > LARGEST_IN_LAYOUT) {
        return Err(format!("a number in the layout is larger than {LARGEST_IN_LAYOUT}"));
    }
    if dim.dimension >= dimensions {
        let last = dimensions.max(1) - 1;
        return Err(format!("it has no dimension d{}: the last is d{last}", dim.dimension));
    }
    if dim.modulo.is_some_and(|modulo| modulo <= dim.divide.unwrap_or(1)) {
        return Err(format!("`{dim}` in the layout is always 0: leave it out"));
    }
    Ok(())
}

/// Refuses a dimension whose elements do not all get their own place. Exactly one part must be the
/// whole quotient, and the next finer part must split the remainder of each part.
fn check_dimension(parts: &[BufferDimension], dimension: usize) -> Result<(), BadLayout> {
    let own = parts.iter().enumerate().filter(|(_, part)| part.dimension == dimension);
    let mut chain: Vec<(usize, &BufferDimension)> = own.collect();
    chain.sort_by_key(|(_, part)| part.divide);
    let Some((last, _)) = chain.last().copied() else {
        return Err(BadLayout { part: None, why: format!("the layout leaves out dimension d{dimension}") });
    };
    let mut scale = 1;
    for (at, part) in chain {
        let fits = part.divide == scale
            && part.modulo.is_none() == (at == last)
            && part.modulo.is_none_or(|modulo| modulo > scale && modulo % scale == 0);
        if !fits {
            let why = format!("the layout does not keep the elements of dimension d{dimension} apart");
            return Err(BadLayout { part: Some(at), why });
        }
        scale = part.modulo.unwrap_or(scale);
    }
    Ok(())
}

/// The extents of the buffer, with the last one lengthened by the padding.
pub(super) fn padded_shape(layout: &[BufferDimension], region: &[Interval], pad: i64) -> Vec<i64> {
    let mut shape: Vec<i64> = layout.iter().map(|part| part.extent(region)).collect();
    if let Some(last) = shape.last_mut() {
        *last += pad;
    }
    shape
}

/// The nesting order of the copy's loops: that of the layout, unless a part of a dimension would
/// come before a coarser part that clips its extent.
pub(super) fn nesting_order(layout: &[BufferDimension]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..layout.len()).collect();
    let coarse_first = |left: usize, right: usize| {
        layout[left].dimension != layout[right].dimension || layout[left].divide > layout[right].divide
    };
    let in_order =
        (0..layout.len()).all(|left| (left + 1..layout.len()).all(|right| coarse_first(left, right)));
    if !in_order {
        order.sort_by_key(|at| (layout[*at].dimension, std::cmp::Reverse(layout[*at].divide)));
    }
    order
}
