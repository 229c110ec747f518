//! Reports preconditions that fail or have no value at the given sizes, and preconditions that no
//! sizes satisfy.

use super::Checker;
use super::finding::{Finding, Undefined};
use crate::index::{Atom, IndexExpr};
use crate::operators::BinaryOp;
use crate::precondition::{Consequences, Precondition};
use crate::prove::can_prove_nonnegative;
use crate::unchecked::UncheckedProgram;

/// Returns true after a report: no other check is meaningful then.
pub(super) fn check(checker: &mut Checker<'_>) -> bool {
    let unchecked = checker.unchecked;
    let all = 0..unchecked.preconditions.len();
    let fails = |at: &usize| unchecked.preconditions[*at].holds() == Some(false);
    let undefined = |at: usize| {
        undefined(&unchecked.preconditions[at]).map(|reason| Finding::PreconditionUndefined(at, reason))
    };
    let mut found: Vec<Finding> = all.clone().filter(fails).map(Finding::PreconditionFails).collect();
    if found.is_empty() {
        found.extend(all.clone().filter_map(undefined));
    }
    if found.is_empty() {
        let refuted = all.clone().find(|at| is_refuted(unchecked, *at));
        found.extend(refuted.map(Finding::Unsatisfiable));
    }
    let is_found = !found.is_empty();
    checker.findings.extend(found);
    is_found
}

/// The reason why a precondition has no value, whatever the sizes that are not given.
fn undefined(precondition: &Precondition) -> Option<Undefined> {
    let sides = [&precondition.left, &precondition.right];
    let divides_by_zero = |atom: &Atom| match atom {
        Atom::FloorDiv(pair) | Atom::Mod(pair) => pair.1.as_constant() == Some(0),
        _ => false,
    };
    if sides.iter().any(|side| side.any_atom(&mut |atom| divides_by_zero(atom))) {
        return Some(Undefined::DivisionByZero);
    }
    let is_too_large = |atom: &Atom| matches!(atom, Atom::Overflow);
    let too_large = sides.iter().any(|side| side.any_atom(&mut |atom| is_too_large(atom)));
    too_large.then_some(Undefined::TooLarge)
}

/// Returns true when the precondition fails wherever those before it hold.
fn is_refuted(unchecked: &UncheckedProgram, at: usize) -> bool {
    let own_least = unchecked.symbols.iter().map(|symbol| symbol.least);
    let earlier = Consequences::new(&unchecked.preconditions[..at], own_least);
    let precondition = &unchecked.preconditions[at];
    let negative = |fact: &IndexExpr| can_prove_nonnegative(&fact.scale(-1).offset(-1), &[], &earlier);
    match precondition.op {
        BinaryOp::NotEqual => {
            let difference = precondition.left.sub(&precondition.right);
            let is_nonnegative = |expr| can_prove_nonnegative(expr, &[], &earlier);
            is_nonnegative(&difference) && is_nonnegative(&difference.scale(-1))
        }
        _ => precondition.inequalities().iter().any(negative),
    }
}
