//! Flattens buffers to one dimension where this simplifies their subscripts.
//!
//! Fused loops have quotients and remainders in their subscripts. Where these cancel in the linear
//! offset of an element, the model uses the offset, which moves as in a plain loop.

use std::borrow::Cow;

use tilewright_ir::nest::{Access, Atom, Buffer, IndexExpr, Stmt};
use tilewright_ir::{LoopNest, walk};

/// Returns the nest with such buffers flattened to one dimension.
pub(super) fn flatten_buffers(nest: &LoopNest) -> Cow<'_, LoopNest> {
    let mut gains = vec![Gain::Unknown; nest.buffers.len()];
    walk::visit(&nest.body, &mut |stmt| {
        let mut add = |access: &Access| {
            let gain = &mut gains[access.tensor.index()];
            *gain = gain.and(Gain::for_access(access, nest.buffer(access.tensor)));
        };
        stmt.element().into_iter().for_each(&mut add);
        stmt.store().into_iter().for_each(|store| store.value.visit_loads(&mut add));
    });
    if !gains.contains(&Gain::Yes) {
        return Cow::Borrowed(nest);
    }
    let mut flat = nest.clone();
    let mut flatten = |access: &mut Access| {
        if gains[access.tensor.index()] == Gain::Yes {
            access.indices = vec![linear_offset(access, nest.buffer(access.tensor))];
        }
    };
    walk::visit_mut(&mut flat.body, &mut |stmt: &mut Stmt| {
        stmt.element_mut().into_iter().for_each(&mut flatten);
        stmt.store_mut().into_iter().for_each(|store| store.value.edit_loads(&mut flatten));
    });
    for (buffer, _) in flat.buffers.iter_mut().zip(&gains).filter(|(_, gain)| **gain == Gain::Yes) {
        buffer.shape = vec![buffer.elements()];
    }
    Cow::Owned(flat)
}

/// Whether flattening a buffer simplifies its subscripts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gain {
    Unknown,
    Yes,
    No,
}

impl Gain {
    fn for_access(access: &Access, buffer: &Buffer) -> Gain {
        let before = access.indices.iter().any(has_quotient);
        match (before, has_quotient(&linear_offset(access, buffer))) {
            (_, true) => Gain::No,
            (true, false) => Gain::Yes,
            (false, false) => Gain::Unknown,
        }
    }

    fn and(self, other: Gain) -> Gain {
        match (self, other) {
            (Gain::No, _) | (_, Gain::No) => Gain::No,
            (Gain::Yes, _) | (_, Gain::Yes) => Gain::Yes,
            (Gain::Unknown, Gain::Unknown) => Gain::Unknown,
        }
    }
}

fn has_quotient(index: &IndexExpr) -> bool {
    index.any_atom(&mut |atom| matches!(atom, Atom::FloorDiv(_) | Atom::Mod(_) | Atom::Data(_)))
}

fn linear_offset(access: &Access, buffer: &Buffer) -> IndexExpr {
    let parts = access.indices.iter().zip(buffer.strides());
    parts.fold(IndexExpr::constant(0), |sum, (index, stride)| sum.add(&index.scale(stride))).merge_quotients()
}
