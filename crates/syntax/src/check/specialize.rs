//! Sizes that are given, put in place.
//!
//! Ranges and shapes are inferred for all sizes first, so that a program means the same whether its sizes are given
//! or not; only then do numbers take the place of symbols, and the proofs that follow are for these numbers.

use tilewright_ir::{Atom, IndexExpr, Range};

use super::model::Model;
use crate::diagnostic::{Code, Diagnostic};

/// Puts the given sizes and scalars in place. What the model was before, if that changes it.
pub(super) fn specialize(model: &mut Model) -> Option<Model> {
    let values: Vec<Option<i64>> = model.symbols.iter().map(|symbol| symbol.value).collect();
    if values.iter().all(Option::is_none) {
        return None;
    }
    let mut general = model.clone();
    general.symbols.iter_mut().for_each(|symbol| symbol.value = None);
    let put = |index: &IndexExpr| {
        index.substitute(&mut |atom| match atom {
            Atom::Symbol(symbol) => values[symbol.index()].map(IndexExpr::constant),
            _ => None,
        })
    };
    for var in &mut model.vars {
        var.range = var.range.take().map(|range| Range { from: put(&range.from), to: put(&range.to) });
    }
    for tensor in &mut model.tensors {
        for shape in [&mut tensor.shape, &mut tensor.declared].into_iter().flatten() {
            shape.iter_mut().for_each(|extent| *extent = put(extent));
        }
    }
    for lowered in model.statements.iter_mut().filter_map(|statement| statement.lowered.as_mut()) {
        lowered.map_indices(&mut |index| put(index));
    }
    for equal in &mut model.equal_sizes {
        equal.left = put(&equal.left);
        equal.right = put(&equal.right);
    }
    for mixed in &mut model.mixed_sizes {
        mixed.left.extent = put(&mixed.left.extent);
        mixed.right.extent = put(&mixed.right.extent);
    }
    model.collect_size_facts();
    Some(general)
}

/// Refuses shapes that do not exist at the sizes given.
pub(super) fn refuse_empty_tensors(model: &mut Model) {
    let mut found = Vec::new();
    for tensor in model.tensors.iter_mut().filter(|tensor| !tensor.poisoned) {
        let extents = tensor.shape.iter().flatten().enumerate();
        let none = extents
            .filter_map(|(at, extent)| Some((at, extent.as_constant()?)))
            .find(|(_, extent)| *extent < 1);
        if let Some((dimension, extent)) = none {
            let message = format!("`{}` would have {extent} elements in dimension {dimension}", tensor.name);
            found.push(
                Diagnostic::error(Code::InvalidSize, tensor.span, message).label("an extent is at least 1"),
            );
            tensor.poisoned = true;
        }
    }
    found.into_iter().for_each(|diagnostic| model.report(diagnostic));
}
