//! Warns of temporaries and views that nothing reads, which are most likely mistakes.

use std::collections::{BTreeMap, HashSet};

use tilewright_ir::unchecked::UncheckedProgram;

use super::model::{Model, Source};
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

/// Adds the warnings, unless the function has errors, which may hide the uses.
pub(super) fn warn_of_unused(model: &mut Model, unchecked: &UncheckedProgram) {
    if model.is_incomplete || model.diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    warn_of_unused_views(model);
    let mut used = vec![false; model.tensors.len()];
    for (statement, unchecked) in model.statements.iter().zip(&unchecked.statements) {
        for read in unchecked.parts.iter().flat_map(|parts| &parts.reads) {
            used[read.access.tensor.index()] = true;
        }
        // A caller may ignore results of a call.
        used[statement.target.index()] |= statement.call.is_some();
    }
    let unused: Vec<usize> =
        (0..used.len()).filter(|at| !used[*at] && model.tensors[*at].source == Source::Local).collect();
    for at in unused {
        let tensor = &model.tensors[at];
        let message = format!("the tensor `{}` is never read", tensor.text);
        let diagnostic = Diagnostic::warning(Code::UnusedTensor, tensor.span, message)
            .label("a tensor that is not a result is a temporary")
            .help("add it to the results, or remove it");
        model.report(diagnostic);
    }
}

/// Warns of each definition of a view whose views nothing uses. In a loop over stages, the
/// definition has a view for each iteration.
fn warn_of_unused_views(model: &mut Model) {
    let used: HashSet<Span> =
        model.views.iter().filter(|view| view.is_used).map(|view| view.name.span).collect();
    let unused: BTreeMap<Span, String> = model
        .views
        .iter()
        .filter(|view| !used.contains(&view.name.span))
        .map(|view| (view.name.span, view.name.text.clone()))
        .collect();
    for (span, name) in unused {
        let name = name.split('[').next().unwrap_or_default();
        let message = format!("the view `{name}` is never read");
        model.report(Diagnostic::warning(Code::UnusedTensor, span, message).help("remove it, or read it"));
    }
}
