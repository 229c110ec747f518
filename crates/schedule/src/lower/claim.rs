//! Gives each store of the loop nest its claim: which instances of a program statement the store
//! computes, in terms of the loops around it. Proofs start from the claims and verify them.
//!
//! All stores of one result carry the same `repetition`: the values of the loops around the
//! statement that do not reduce. A result that is computed several times, as at the border of
//! overlapping tiles, has several repetitions. A loop that was fused from a loop over results and
//! one that reduces counts with the variables of the result that it contains: `t / 8` in a loop `t`
//! over 8 terms of each result.

use tilewright_ir::VarKind;
use tilewright_ir::nest::{Claim, ClaimRole, IndexExpr, LoopVarId};

use super::emit::{Emitter, Renaming};
use crate::draft::scan::ScanRole;
use crate::draft::{Instance, LoopRole, StatementId};

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
        let of_result = self.result_variables_in_reduction(id, instance, part.is_none());
        let loops = path.iter().filter(|var| !reduces(var)).map(|var| IndexExpr::var(*var));
        let run = loops.chain(of_result.iter().cloned()).collect();
        let role = match role {
            ClaimRole::Value if instance.sums_partials => ClaimRole::Total,
            other => other,
        };
        // The reset of a reduction and the copies of its result belong to all points that are
        // reduced.
        let is_one = role == ClaimRole::Value;
        let fixed_value = |value: &Option<IndexExpr>| {
            value
                .clone()
                .filter(|value| is_one || !value.vars().iter().any(&reduces) || of_result.contains(value))
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

    /// The values of the variables of a result that are parts of a reducing loop, as after a `fuse`
    /// of loops of both kinds.
    fn result_variables_in_reduction(
        &self,
        id: StatementId,
        instance: &Instance,
        is_of_program: bool,
    ) -> Vec<IndexExpr> {
        let is_reduced = |var: &LoopVarId| {
            let own = self.draft.loop_of(*var);
            own.role == LoopRole::Reduction && own.owner == Some(id)
        };
        // Most statements reduce nothing.
        let reduces = self.draft.path(id).iter().any(is_reduced);
        if !is_of_program || !reduces || self.draft.is_scatter(id) {
            return Vec::new();
        }
        let (statement, _) = self.draft.program.statements()[instance.statement];
        let own = &instance.point[instance.point.len() - statement.vars.len()..];
        let values = statement.vars.iter().zip(own).filter_map(|(var, value)| Some((var, value.as_ref()?)));
        let own_statement = self.draft.statement(id);
        if own_statement.is_partial {
            // Variables that the program reduces choose the partial result, too.
            let indices = own_statement.target.indices.iter();
            return indices.filter(|index| index.vars().iter().any(is_reduced)).cloned().collect();
        }
        let of_result = values.filter(|(var, value)| {
            self.draft.program.var(**var).kind != VarKind::Reduction && value.vars().iter().any(is_reduced)
        });
        of_result.map(|(_, value)| value.clone()).collect()
    }
}

/// The claim of a store in copies of the loops.
pub(super) fn claim_in_copy(claim: &Option<Box<Claim>>, renamed: &Renaming) -> Option<Box<Claim>> {
    let mut claim = claim.clone()?;
    claim.point.iter_mut().flatten().chain(&mut claim.repetition).for_each(|index| *index = renamed(index));
    Some(claim)
}
