//! Finds the accesses that are out of bounds only where an integer scalar is negative.
//!
//! An integer scalar may be negative, which the author of a filter with a radius seldom has in
//! mind. If the counterexample of an access has a negative scalar, the checks run once more with
//! scalars that are at least 0. The message about an access that is then in bounds suggests a
//! precondition.

use std::collections::BTreeSet;

use tilewright_ir::check::{AccessId, Finding, check};
use tilewright_ir::unchecked::UncheckedProgram;
use tilewright_ir::{SymbolId, SymbolKind};

/// The accesses that stay in bounds if some scalars are not negative.
pub(super) struct RepairedAccesses {
    scalars: BTreeSet<SymbolId>,
    accesses: Vec<AccessId>,
}

impl RepairedAccesses {
    pub(super) fn find(unchecked: &UncheckedProgram, findings: &[Finding]) -> RepairedAccesses {
        let failing: Vec<(AccessId, BTreeSet<SymbolId>)> = findings
            .iter()
            .filter_map(|finding| match finding {
                Finding::OutOfBounds { access, witness, .. } => {
                    let negative = witness.sizes.iter().filter(|(_, value)| **value < 0);
                    Some((*access, negative.map(|(symbol, _)| *symbol).collect()))
                }
                _ => None,
            })
            .collect();
        let is_scalar =
            |symbol: &SymbolId| matches!(unchecked.symbols[symbol.index()].kind, SymbolKind::Scalar(_));
        let scalars: BTreeSet<SymbolId> =
            failing.iter().flat_map(|(_, negative)| negative).copied().filter(is_scalar).collect();
        if scalars.is_empty() {
            return RepairedAccesses { scalars, accesses: Vec::new() };
        }
        let mut restricted = unchecked.clone();
        for symbol in &scalars {
            let least = &mut restricted.symbols[symbol.index()].least;
            *least = Some(least.unwrap_or(0).max(0));
        }
        let remaining: Vec<AccessId> = check(&restricted).findings.iter().filter_map(access_of).collect();
        let accesses = failing
            .into_iter()
            .filter(|(access, negative)| !negative.is_empty() && !remaining.contains(access))
            .map(|(access, _)| access)
            .collect();
        RepairedAccesses { scalars, accesses }
    }

    /// Suggests the precondition that keeps an access in bounds, if there is one.
    pub(super) fn help(&self, access: AccessId, unchecked: &UncheckedProgram) -> Option<String> {
        if !self.accesses.contains(&access) {
            return None;
        }
        let names: Vec<&str> =
            self.scalars.iter().map(|symbol| unchecked.symbols[symbol.index()].name.as_str()).collect();
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        let conditions: Vec<String> = names.iter().map(|name| format!("{name} >= 0")).collect();
        Some(format!(
            "if {} {verb} never negative, state it after the results: `requires {}`",
            quoted.join(" and "),
            conditions.join(", ")
        ))
    }
}

fn access_of(finding: &Finding) -> Option<AccessId> {
    match finding {
        Finding::OutOfBounds { access, .. } | Finding::MaybeOutOfBounds { access, .. } => Some(*access),
        _ => None,
    }
}
