//! Stores temporaries with negative coordinates from 0.
//!
//! `t(y) = … where y in -2:N + 2` defines a temporary whose first element is `t(-2)`. Programs have
//! only coordinates from 0, so this pass adds 2 to the subscript of every access to `t`, and to its
//! extent. The model keeps the origin, so that messages speak of the coordinates of the text.

use std::sync::Arc;

use tilewright_ir::interval::lower_bound;
use tilewright_ir::prove::{can_prove_nonnegative, smaller};
use tilewright_ir::unchecked::Parts;
use tilewright_ir::{Access, IndexExpr, TensorId};

use super::model::{Model, Source};

/// Moves the temporaries that begin below 0.
pub(super) fn move_to_zero(model: &mut Model) {
    set_origins(model);
    let origins: Vec<Option<Vec<IndexExpr>>> =
        model.tensors.iter().map(|tensor| tensor.origin.clone()).collect();
    if origins.iter().all(Option::is_none) {
        return;
    }
    // Calls compare extents as the text means them.
    for at in 0..model.equal_sizes.len() {
        let settled = |side: &IndexExpr| model.with_extents(side).unwrap_or_else(|| side.clone());
        let equal = &model.equal_sizes[at];
        let (left, right) = (settled(&equal.left), settled(&equal.right));
        model.equal_sizes[at].left = left;
        model.equal_sizes[at].right = right;
    }
    for (tensor, origin) in model.tensors.iter_mut().zip(&origins) {
        if let (Some(shape), Some(origin)) = (&mut tensor.shape, origin) {
            subtract(shape, origin);
        }
    }
    for statement in &mut model.statements {
        if let Some(parts) = &mut statement.lowered {
            move_accesses(parts, statement.target, &origins);
        }
    }
}

/// Finds the temporaries without a declared shape that have an element below 0.
fn set_origins(model: &mut Model) {
    for at in 0..model.statements.len() {
        let target = model.statements[at].target;
        let tensor = model.tensor(target);
        if tensor.source != Source::Local || tensor.declared.is_some() || tensor.poisoned {
            continue;
        }
        let Some(parts) = &model.statements[at].lowered else { continue };
        let first: Vec<IndexExpr> =
            parts.indices.iter().map(|index| first_below_zero(model, index)).collect();
        let origin = match &tensor.origin {
            Some(origin) => first.iter().zip(origin).map(|(one, other)| smaller(one, other, model)).collect(),
            None => first,
        };
        model.tensors[target.index()].origin = Some(origin);
    }
    for tensor in &mut model.tensors {
        tensor.origin.take_if(|origin| origin.iter().all(|first| first.as_constant() == Some(0)));
    }
}

/// The least value of a subscript, or 0 where it has none below 0, or none that is known.
fn first_below_zero(model: &Model, index: &IndexExpr) -> IndexExpr {
    let zero = IndexExpr::constant(0);
    match lower_bound(index, model) {
        Some(first) if !can_prove_nonnegative(&first, &[], model) => smaller(&first, &zero, model),
        _ => zero,
    }
}

fn move_accesses(parts: &mut Parts, target: TensorId, origins: &[Option<Vec<IndexExpr>>]) {
    let move_access = &mut |access: &mut Access| {
        if let Some(origin) = &origins[access.tensor.index()] {
            subtract(&mut access.indices, origin);
        }
    };
    parts.indices.iter_mut().for_each(|index| index.edit_reads(move_access));
    if let Some(origin) = &origins[target.index()] {
        subtract(&mut parts.indices, origin);
    }
    parts.value.edit_reads(move_access);
    for read in &mut parts.reads {
        read.access.indices.iter_mut().for_each(|index| index.edit_reads(move_access));
        move_access(&mut read.access);
        for guard in &mut read.guards {
            Arc::make_mut(&mut guard.condition).edit_reads(move_access);
        }
    }
}

fn subtract(indices: &mut [IndexExpr], origin: &[IndexExpr]) {
    for (index, origin) in indices.iter_mut().zip(origin) {
        *index = index.sub(origin);
    }
}
