//! Reports ranges of a statement's variables that are empty for all sizes, and tensors that are
//! empty at the given sizes.

use std::collections::BTreeMap;

use super::Checker;
use super::finding::Finding;
use crate::index::IndexExpr;
use crate::program::{TensorId, VarId};
use crate::prove::can_prove_nonnegative;

/// Reports the variables of statements whose ranges are empty for all sizes.
///
/// An ordered loop may be empty: a recurrence over one element consists of its first element only.
pub(super) fn check_ranges(checker: &mut Checker<'_>) {
    let unchecked = checker.unchecked;
    // Many variables have the same range.
    let mut known = BTreeMap::new();
    for (at, statement) in unchecked.statements.iter().enumerate() {
        for var in &statement.vars {
            if is_empty(checker, *var, &mut known) && !is_in_empty_loop(checker, at) {
                checker.report(Finding::EmptyRange(*var));
                checker.discarded[at] = true;
                checker.mark_suspect(statement.target);
            }
        }
    }
}

/// Returns true when the range of a variable is empty for all sizes. `known` holds the answers for
/// the negated extents of ranges so far.
fn is_empty(checker: &Checker<'_>, var: VarId, known: &mut BTreeMap<IndexExpr, bool>) -> bool {
    let Some(range) = &checker.unchecked.var(var).range else { return false };
    let missing = range.from.sub(&range.to);
    // The variables of ordered loops would make the answer depend on the statement.
    if let (Some(known), true) = (known.get(&missing), missing.vars().is_empty()) {
        return *known;
    }
    let is_empty = match missing.as_constant() {
        Some(value) => value >= 0,
        None => can_prove_nonnegative(&missing, &[], checker),
    };
    known.insert(missing, is_empty);
    is_empty
}

/// Returns true when the statement is in a loop that does not run.
fn is_in_empty_loop(checker: &Checker<'_>, at: usize) -> bool {
    checker.unchecked.statements[at].loops.iter().any(|var| {
        let range = checker.unchecked.var(*var).range.as_ref();
        range.and_then(|range| range.extent().as_constant()).is_some_and(|extent| extent <= 0)
    })
}

/// Reports tensors that are empty at the given sizes.
pub(super) fn check_tensors(checker: &mut Checker<'_>) {
    for (at, tensor) in checker.unchecked.tensors.iter().enumerate() {
        let id = TensorId(at as u32);
        let extents = tensor.shape.iter().flatten().map(|extent| extent.as_constant());
        let none = extents.enumerate().find_map(|(dimension, extent)| {
            extent.filter(|extent| *extent < 1).map(|extent| (dimension, extent))
        });
        if let (Some((dimension, extent)), false) = (none, checker.is_suspect(id)) {
            checker.report(Finding::EmptyTensor { tensor: id, dimension, extent });
            checker.mark_suspect(id);
        }
    }
}
