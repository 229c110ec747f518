//! Looks up the facts about a called function that its name and its signature give: the builtin
//! that a name means, and the ranks of the results of a function of the module.
//!
//! The ranks come from the called function's text alone, so that the targets of a call can be
//! declared before the function is inlined.

use std::collections::HashSet;

use tilewright_ir::{BinaryOp, Builtin};

use crate::ast::{Function, Module, Stmt, StmtKind};

/// The meanings of a builtin name that is applied to arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check) enum Callable {
    Builtin(Builtin),
    /// `min` or `max` of two or more arguments.
    Extremum(BinaryOp),
    Clamp,
}

/// The builtin with this generic name, or with the name that C programs use for it.
pub(in crate::check) fn builtin_named(name: &str) -> Option<Callable> {
    let generic = |name: &str| match name {
        "min" | "fmin" => Some(Callable::Extremum(BinaryOp::Min)),
        "max" | "fmax" => Some(Callable::Extremum(BinaryOp::Max)),
        "clamp" => Some(Callable::Clamp),
        "fabs" => Some(Callable::Builtin(Builtin::Abs)),
        "nearbyint" => Some(Callable::Builtin(Builtin::Rint)),
        _ => Builtin::ALL.iter().find(|builtin| builtin.name() == name).copied().map(Callable::Builtin),
    };
    generic(name).or_else(|| name.strip_suffix('f').and_then(generic))
}

/// Every generic name, for suggestions.
pub(super) fn builtin_names() -> impl Iterator<Item = &'static str> {
    Builtin::ALL.iter().map(|builtin| builtin.name()).chain(["min", "max", "clamp"])
}

/// The rank of each result of a function, where its text determines the rank.
pub(super) fn result_ranks(module: &Module, function: &Function) -> Vec<Option<usize>> {
    let mut visiting = HashSet::new();
    ranks_of(module, function, &mut visiting)
}

fn ranks_of<'a>(
    module: &'a Module,
    function: &'a Function,
    visiting: &mut HashSet<&'a str>,
) -> Vec<Option<usize>> {
    if visiting.len() > super::MOST_CALLS || !visiting.insert(&function.name.text) {
        return vec![None; function.results.len()];
    }
    let ranks = function
        .results
        .iter()
        .map(|result| match &result.ty {
            Some(ty) => Some(ty.dims.len()),
            None => rank_in(module, &function.body, &result.name.text, visiting),
        })
        .collect();
    visiting.remove(function.name.text.as_str());
    ranks
}

fn rank_in<'a>(
    module: &'a Module,
    body: &'a [Stmt],
    name: &str,
    visiting: &mut HashSet<&'a str>,
) -> Option<usize> {
    body.iter().find_map(|statement| match &statement.kind {
        StmtKind::Comprehension(inner) => (inner.target.text == name).then_some(inner.indices.len()),
        StmtKind::Declare(declaration) if declaration.name.text == name => {
            declaration.ty.as_ref().map(|ty| ty.dims.len())
        }
        StmtKind::Declare(_) => None,
        StmtKind::For { body, .. } => rank_in(module, body, name, visiting),
        StmtKind::Call { targets, callee, .. } => {
            let at = targets.iter().position(|target| target.text == name)?;
            match module.function(&callee.text) {
                Some(function) => ranks_of(module, function, visiting).get(at).copied().flatten(),
                None => Some(0),
            }
        }
    })
}
