//! Checks that every access stays within its tensor.
//!
//! An access is proved in bounds for all sizes, or refuted by a counterexample. An access that
//! depends on data, or that can neither be proved nor refuted, is checked when the program runs.

use std::collections::BTreeSet;

use super::Checker;
use super::facts::{Facts, fact_alternatives};
use super::finding::{AccessId, Finding};
use super::witness::{SearchOutcome, Witness, search};
use crate::expr::{Expr, ExprKind};
use crate::index::{Atom, IndexExpr};
use crate::interval::upper_bound;
use crate::program::{TensorId, VarId};
use crate::prove::can_prove_nonnegative;
use crate::unchecked::Guard;

/// Reports accesses that can leave their tensor.
pub(super) fn check(checker: &mut Checker<'_>) {
    for at in 0..checker.unchecked.statements.len() {
        let found = check_statement(checker, at);
        if found.iter().any(Finding::is_error) {
            checker.mark_suspect(checker.unchecked.statements[at].target);
        }
        checker.findings.extend(found);
    }
}

fn check_statement(checker: &Checker<'_>, at: usize) -> Vec<Finding> {
    let Some(parts) = checker.parts(at) else { return Vec::new() };
    let reads = parts.reads.iter().enumerate().map(|(place, read)| GuardedAccess {
        id: AccessId { statement: at, read: Some(place) },
        tensor: read.access.tensor,
        indices: &read.access.indices,
        guards: &read.guards,
    });
    let write = GuardedAccess {
        id: AccessId { statement: at, read: None },
        tensor: checker.unchecked.statements[at].target,
        indices: &parts.indices,
        guards: &[],
    };
    reads.chain([write]).filter_map(|access| check_access(checker, &access)).collect()
}

/// An access under conditions, read or written.
struct GuardedAccess<'a> {
    id: AccessId,
    tensor: TensorId,
    indices: &'a [IndexExpr],
    guards: &'a [Guard],
}

/// The claim that one subscript of an access stays between 0 and its extent.
struct SubscriptClaim<'a> {
    access: &'a GuardedAccess<'a>,
    dimension: usize,
    index: &'a IndexExpr,
    extent: &'a IndexExpr,
}

fn check_access(checker: &Checker<'_>, access: &GuardedAccess<'_>) -> Option<Finding> {
    if checker.is_suspect(access.tensor) {
        return None;
    }
    let shape = checker.unchecked.tensor(access.tensor).shape.as_ref()?;
    let guards = fact_alternatives(access.guards);
    access.indices.iter().zip(shape).enumerate().find_map(|(dimension, (index, extent))| {
        check_subscript(checker, &SubscriptClaim { access, dimension, index, extent }, &guards)
    })
}

fn check_subscript(checker: &Checker<'_>, claim: &SubscriptClaim<'_>, guards: &[Facts]) -> Option<Finding> {
    let slack = slack(checker, claim);
    if can_prove_nonnegative(claim.index, &[], checker) && can_prove_nonnegative(&slack, &[], checker) {
        return None;
    }
    let statement = &checker.unchecked.statements[claim.access.id.statement];
    let size_facts = checker.relevant_facts(statement, &[claim.index, claim.extent]);
    let in_bounds = guards.iter().all(|facts| {
        let facts: Vec<IndexExpr> =
            facts.iter().chain(&remainder_facts(facts, checker)).chain(&size_facts).cloned().collect();
        can_prove_nonnegative(&IndexExpr::constant(-1), &facts, checker)
            || (can_prove_nonnegative(claim.index, &facts, checker)
                && can_prove_nonnegative(&slack, &facts, checker))
    });
    if in_bounds || reads_data(claim.index) {
        return None;
    }
    refute(checker, claim, &size_facts)
}

/// An expression that is at least 0 where the index is below its extent.
fn slack(checker: &Checker<'_>, claim: &SubscriptClaim<'_>) -> IndexExpr {
    let is_write = claim.access.id.read.is_none();
    if is_write && checker.unchecked.tensor(claim.access.tensor).has_inferred_shape {
        return IndexExpr::constant(0);
    }
    let last = claim.extent.offset(-1);
    // Most shapes are the hull of what is written, and the bound of the index proves that at once.
    let below = |bound: &IndexExpr| can_prove_nonnegative(&last.sub(bound), &[], checker);
    if is_write && upper_bound(claim.index, checker).is_some_and(|bound| below(&bound)) {
        return IndexExpr::constant(0);
    }
    last.sub(claim.index)
}

/// Searches for sizes and variables at which the claim fails.
fn refute(checker: &Checker<'_>, claim: &SubscriptClaim<'_>, size_facts: &[IndexExpr]) -> Option<Finding> {
    // The search also covers the variables and sizes of the guards.
    let guard_indices = guard_indices(claim.access.guards);
    let mentioned: Vec<&IndexExpr> = [claim.index, claim.extent].into_iter().chain(&guard_indices).collect();
    let vars: BTreeSet<VarId> =
        [claim.index].into_iter().chain(&guard_indices).flat_map(IndexExpr::vars).collect();
    let vars: Vec<VarId> = vars.into_iter().collect();
    let mut depends_on_data = false;
    let outcome = search(checker.unchecked, &mentioned, &vars, size_facts, &mut |witness| {
        if is_inside(claim, witness) {
            return false;
        }
        let verdicts: Vec<Option<bool>> =
            claim.access.guards.iter().map(|guard| witness.allows(guard)).collect();
        let excluded = verdicts.contains(&Some(false));
        depends_on_data |= !excluded && verdicts.contains(&None);
        !excluded && !verdicts.contains(&None)
    });
    let (access, dimension) = (claim.access.id, claim.dimension);
    match outcome {
        SearchOutcome::Found(witness) => {
            let index = witness.eval(claim.index).unwrap_or_default();
            let extent = witness.eval(claim.extent).unwrap_or_default();
            Some(Finding::OutOfBounds { access, dimension, index, extent, witness })
        }
        // Where a condition depends on data, the access is checked when the program runs.
        _ if depends_on_data => None,
        SearchOutcome::Proved => None,
        SearchOutcome::Unknown => Some(Finding::MaybeOutOfBounds { access, dimension }),
    }
}

fn is_inside(claim: &SubscriptClaim<'_>, witness: &Witness) -> bool {
    match (witness.eval(claim.index), witness.eval(claim.extent)) {
        (Some(index), Some(extent)) => (0..extent).contains(&index),
        _ => true,
    }
}

/// Facts that a non-negative number is at least its remainder: where `i % 2 == 1`, `i` is at least
/// 1.
fn remainder_facts(facts: &[IndexExpr], checker: &Checker<'_>) -> Vec<IndexExpr> {
    let mut found = Vec::new();
    for atom in facts.iter().flat_map(|fact| fact.terms()).flat_map(|term| &term.factors) {
        if let Atom::Mod(pair) = atom
            && can_prove_nonnegative(&pair.0, &[], checker)
        {
            found.push(pair.0.sub(&IndexExpr::atom(atom.clone())));
        }
    }
    found
}

/// Returns true when the value of an index depends on tensors, or on scalars that are not symbols.
fn reads_data(index: &IndexExpr) -> bool {
    fn reads(expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Load(_) | ExprKind::Scalar(_) => true,
            ExprKind::Index(index) => reads_data(index),
            _ => expr.operands().iter().any(reads),
        }
    }
    index.any_atom(&mut |atom| matches!(atom, Atom::Data(data) if reads(&data.value)))
}

/// The index expressions in the conditions around an access.
fn guard_indices(guards: &[Guard]) -> Vec<IndexExpr> {
    let mut indices = Vec::new();
    for guard in guards {
        (*guard.condition).clone().map_indices(&mut |index| {
            indices.push(index.clone());
            index.clone()
        });
    }
    indices
}
