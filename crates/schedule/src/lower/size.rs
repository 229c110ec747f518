//! How much code a draft becomes, and whether it can be lowered at all: only `emit` and this refuse anything.
//!
//! What `emit` refuses of a statement, and the stores it gives it, depend on that statement and the loops around it
//! alone. So when a draft that was measured is changed, only the statements that the change reaches are measured anew,
//! each on its own.

use std::collections::BTreeSet;

use super::{emit, stmts};
use crate::draft::{Draft, Legal, StatementId};
use crate::illegal::Illegal;

/// Stores of one kernel, with unrolled loops written out: compiling this many takes seconds.
const MOST_CODE: usize = 10_000;

/// Refuses more code than can be compiled in a reasonable time.
pub(super) fn check(stores: usize) -> Legal<()> {
    match stores > MOST_CODE {
        true => Err(Illegal::TooMuchCode { stores, most: MOST_CODE }),
        false => Ok(()),
    }
}

/// A draft that can be lowered, and the stores that it becomes.
pub(crate) struct Measured<'a> {
    draft: Draft<'a>,
    stores: usize,
}

impl<'a> Measured<'a> {
    /// Measures all of a draft.
    pub fn new(draft: &Draft<'a>) -> Legal<Measured<'a>> {
        let all = (0..draft.statements.len()).map(StatementId).collect();
        Measured::checked(draft, stores_of(draft, &all)?)
    }

    /// Measures what another draft, made from this one, does not share with it.
    pub fn after_changes(&self, draft: &Draft<'a>) -> Legal<Measured<'a>> {
        let mut reached = draft.statements_changed_since(&self.draft);
        reached.extend(self.draft.statements_changed_since(draft));
        let kept = self.stores.saturating_sub(stores_of(&self.draft, &reached)?);
        Measured::checked(draft, kept.saturating_add(stores_of(draft, &reached)?))
    }

    fn checked(draft: &Draft<'a>, stores: usize) -> Legal<Measured<'a>> {
        check(stores)?;
        Ok(Measured { draft: draft.clone(), stores })
    }
}

/// The stores of those of the statements that a draft has.
fn stores_of(draft: &Draft, statements: &BTreeSet<StatementId>) -> Legal<usize> {
    let present =
        statements.iter().copied().filter(|id| id.0 < draft.statements.len() && draft.is_present(*id));
    present
        .map(|id| Ok(stmts::stores(&emit::emit_alone(draft, id)?)))
        .try_fold(0usize, |sum, stores: Legal<usize>| Ok(sum.saturating_add(stores?)))
}
