//! Substitutes the given sizes.
//!
//! Ranges and shapes are inferred for all sizes first, so that a program has the same meaning
//! whether its sizes are given or not. Only then do numbers replace symbols, and the later proofs
//! are about these numbers.

use tilewright_ir::{Atom, IndexExpr};

use super::model::Model;
use crate::diagnostic::{Code, Diagnostic};

/// Substitutes the given sizes and scalars. Returns the model before the substitution, if any value
/// was given.
pub(super) fn specialize(model: &mut Model) -> Option<Model> {
    let values: Vec<Option<i64>> = model.symbols.iter().map(|symbol| symbol.value).collect();
    if values.iter().all(Option::is_none) {
        return None;
    }
    let mut general = model.clone();
    general.symbols.iter_mut().for_each(|symbol| symbol.value = None);
    model.map_indices(&mut |index| {
        index.substitute(&mut |atom| match atom {
            Atom::Symbol(symbol) => values[symbol.index()].map(IndexExpr::constant),
            _ => None,
        })
    });
    model.collect_size_facts();
    Some(general)
}

/// Refuses tensors that are empty at the given sizes.
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
