//! Gives each store of the loop nest its claim: which instances of a program statement the store
//! computes, in terms of the loops around it. Proofs start from the claims and verify them.
//!
//! All stores of one result carry the same `repetition`: the values of the loops around the
//! statement that do not reduce. A result that is computed several times, as at the border of
//! overlapping tiles, has several repetitions.

use tilewright_ir::nest::{Claim, ClaimRole, IndexExpr, LoopVarId};

use super::emit::{Emitter, Renaming};
use crate::draft::StatementId;
use crate::draft::scan::ScanRole;

impl Emitter<'_> {
    /// The claim of a statement's store; none if the statement is a copy.
    pub fn claim(&self, id: StatementId, role: ClaimRole) -> Option<Box<Claim>> {
        let statement = self.draft.statement(id);
        let (instance, part) = match &statement.scan {
            Some(ScanRole::Part { value, instance, .. }) => (instance, Some(*value)),
            _ => (statement.instances.first()?, None),
        };
        let reduces = |own: &LoopVarId| self.draft.is_reduced_by(*own, id);
        let path = self.draft.path(id);
        let run = path.iter().filter(|var| !reduces(var)).map(|var| IndexExpr::var(*var)).collect();
        let role = match role {
            ClaimRole::Value if instance.sums_partials => ClaimRole::Total,
            other => other,
        };
        // The reset of a reduction and the copies of its result belong to all points that are
        // reduced.
        let is_one = role == ClaimRole::Value;
        let fixed_value = |value: &Option<IndexExpr>| {
            value.clone().filter(|value| is_one || !value.vars().iter().any(&reduces))
        };
        let point = instance.point.iter().map(fixed_value).collect();
        Some(Box::new(Claim {
            role,
            statement: instance.statement,
            part,
            point,
            computation: id.0,
            repetition: run,
        }))
    }
}

/// The claim of a store in copies of the loops.
pub(super) fn claim_in_copy(claim: &Option<Box<Claim>>, renamed: &Renaming) -> Option<Box<Claim>> {
    let mut claim = claim.clone()?;
    claim.point.iter_mut().flatten().chain(&mut claim.repetition).for_each(|index| *index = renamed(index));
    Some(claim)
}
