//! Collects facts that hold for every size that a program accepts: no range of a statement's
//! variable and no tensor is empty. Ordered loops may be empty.

use std::collections::BTreeSet;

use super::Checker;
use crate::index::IndexExpr;
use crate::program::{Range, VarId};
use crate::prove::can_prove_nonnegative;
use crate::unchecked::{Statement, add_symbols};

/// The maximal number of facts about sizes in a proof; more facts do not make a proof likelier.
const MOST_FACTS: usize = 16;

/// Collects the facts, as expressions that are at least 0.
pub(super) fn collect(checker: &Checker<'_>) -> Vec<IndexExpr> {
    let unchecked = checker.unchecked;
    let boxed: BTreeSet<VarId> =
        unchecked.statements.iter().flat_map(|statement| statement.vars.iter().copied()).collect();
    let ranges = boxed.into_iter().filter_map(|var| unchecked.var(var).range.as_ref());
    let extents = unchecked.tensors.iter().flat_map(|tensor| tensor.shape.iter().flatten());
    // Many ranges and tensors have the same extent, and a proof takes longer than a comparison.
    let facts: BTreeSet<IndexExpr> =
        ranges.map(Range::extent).chain(extents.cloned()).map(|extent| extent.offset(-1)).collect();
    facts.into_iter().filter_map(|fact| unless_proved(checker, fact)).collect()
}

fn nonempty_fact(checker: &Checker<'_>, range: &Range) -> Option<IndexExpr> {
    unless_proved(checker, range.extent().offset(-1))
}

/// The fact, unless it holds for every size anyway.
fn unless_proved(checker: &Checker<'_>, fact: IndexExpr) -> Option<IndexExpr> {
    (!can_prove_nonnegative(&fact, &[], checker)).then_some(fact)
}

impl Checker<'_> {
    /// The facts that are relevant to a statement and to the given expressions.
    pub(super) fn relevant_facts(&self, statement: &Statement, exprs: &[&IndexExpr]) -> Vec<IndexExpr> {
        let mut symbols = BTreeSet::new();
        exprs.iter().for_each(|expr| add_symbols(expr, &mut symbols));
        for range in
            self.unchecked.all_vars(statement).into_iter().filter_map(|var| self.unchecked_range(var))
        {
            add_symbols(&range.from, &mut symbols);
            add_symbols(&range.to, &mut symbols);
        }
        let around = statement.loops.iter().filter_map(|var| self.unchecked_range(*var));
        let mut facts: Vec<IndexExpr> = around.filter_map(|range| nonempty_fact(self, range)).collect();
        let related = |fact: &&IndexExpr| {
            let mut own = BTreeSet::new();
            add_symbols(fact, &mut own);
            !own.is_disjoint(&symbols)
        };
        facts.extend(self.size_facts.iter().filter(related).take(MOST_FACTS).cloned());
        facts
    }

    fn unchecked_range(&self, var: VarId) -> Option<&Range> {
        self.unchecked.var(var).range.as_ref()
    }
}
