//! Assumes the shape of a tensor that depends on itself, and checks the assumption.
//!
//! A view of `e` clamps its subscripts to the extent of `e`, which is known once every statement
//! that writes `e` has ranges. If one of these statements reads the view, or a tensor computed from
//! it, no statement can be solved first. The pass then takes the shape that the solved statements
//! give `e`. The assumption holds if the other statements write no element outside of that shape,
//! which is checked when their ranges are known.

use tilewright_ir::check::fact_alternatives;
use tilewright_ir::{Atom, IndexExpr, TensorId, print};

use super::model::{Model, Source};
use super::shapes::hull;
use crate::diagnostic::{Code, Diagnostic};

/// A tensor and its assumed shape.
pub(super) struct Assumption {
    tensor: TensorId,
    shape: Vec<IndexExpr>,
}

/// Sets the shape of the first tensor whose extent a pending statement needs, from those of its
/// writers that are solved. `writers` has the statements that write each tensor.
pub(super) fn assume_next(
    model: &mut Model,
    pending: &[usize],
    writers: &[Vec<usize>],
) -> Option<Assumption> {
    let needed = pending.iter().flat_map(|at| needed_extents(model, *at));
    let open = |tensor: &TensorId| {
        let info = model.tensor(*tensor);
        info.shape.is_none() && info.declared.is_none() && !info.poisoned
    };
    let (tensor, shape) = needed.filter(open).find_map(|tensor| {
        let own = writers[tensor.index()].iter().copied();
        let solved: Vec<usize> = own.filter(|at| model.statements[*at].has_ranges).collect();
        Some((tensor, hull(model, &solved)?))
    })?;
    model.tensors[tensor.index()].shape = Some(shape.clone());
    Some(Assumption { tensor, shape })
}

/// The tensors whose extents occur in the subscripts of a statement, or in conditions around them.
fn needed_extents(model: &Model, at: usize) -> Vec<TensorId> {
    let statement = &model.statements[at];
    let mut found = Vec::new();
    let mut visit = |index: &IndexExpr| {
        index.any_atom(&mut |atom| {
            if let Atom::Extent(tensor, _) = atom {
                found.push(*tensor);
            }
            false
        });
    };
    if let Some(lowered) = &statement.lowered {
        lowered.indices.iter().for_each(&mut visit);
        lowered.reads.iter().flat_map(|read| &read.access.indices).for_each(&mut visit);
        let guards = lowered.reads.iter().flat_map(|read| fact_alternatives(&read.guards));
        guards.flatten().for_each(|fact| visit(&fact));
    }
    statement.view_reads.iter().flat_map(|read| &read.ends).for_each(&mut visit);
    found
}

/// Reports the tensors whose shape is not the assumed one.
pub(super) fn report_wrong(model: &mut Model, assumed: &[Assumption]) {
    for Assumption { tensor, shape } in assumed {
        let info = model.tensor(*tensor);
        let Some(found) = info.shape.as_ref().filter(|found| *found != shape && !info.poisoned) else {
            continue;
        };
        let text = |shape: &[IndexExpr]| {
            let extents: Vec<String> = shape.iter().map(|extent| print::index(extent, model)).collect();
            extents.join(", ")
        };
        let (first, all) = (text(shape), text(found));
        let dtype = info.dtype.map(|dtype| dtype.to_string()).unwrap_or_default();
        let declaration = match info.source {
            Source::Result => format!("`-> ({dtype}({all}) {})`", info.name),
            _ => format!("`{dtype}({all}) {}`", info.name),
        };
        let message = format!("the shape of `{}` depends on itself", info.name);
        let diagnostic = Diagnostic::error(Code::AmbiguousRange, info.span, message)
            .note(format!("it is ({first}) where a view of it is read, and ({all}) in the end"))
            .help(format!("declare it: {declaration}"));
        model.report(diagnostic);
        model.tensors[tensor.index()].poisoned = true;
    }
}
