//! Decides which dependences a recurrence keeps that is computed in parts. The first iteration of a
//! part does not read the result of the iteration before, but a value that the totals of the parts
//! give. The statements of the totals read what the recurrence reads, and write tensors of their
//! own.

use tilewright_ir::Update;
use tilewright_ir::nest::IndexExpr;
use tilewright_polyhedral::isl::{Affine, Map};
use tilewright_polyhedral::{Dependence, DependenceKind};

use super::{DependenceCheck, Execution, coordinates};
use crate::draft::scan::{Restart, ScanRole};

impl DependenceCheck<'_> {
    /// The pairs of iterations that must still keep their order, if there can be any.
    pub(super) fn without_replaced(
        &self,
        pairs: Map,
        (first, second): (&Execution, &Execution),
        dependence: &Dependence,
    ) -> Option<Map> {
        let of_result = |execution: &Execution| {
            let own = &self.model.statements[execution.statement];
            !execution.is_inlined && own.statement.target == dependence.tensor
        };
        let role = |execution: &Execution| self.draft.statement(execution.id).scan.as_ref();
        let is_total = |own: &Execution| role(own).is_some_and(ScanRole::is_total) && of_result(own);
        if is_total(first) || is_total(second) {
            return self.in_total(pairs, (first, second));
        }
        let is_flow = dependence.kind == DependenceKind::Flow;
        match role(second) {
            Some(ScanRole::Result { restarts, .. })
                if is_flow && first.id == second.id && of_result(first) && of_result(second) =>
            {
                Some(restarts.iter().fold(pairs, |pairs, own| self.without_restart(pairs, second, own)))
            }
            _ => Some(pairs),
        }
    }

    /// The pairs of a total's own iterations that must keep their order. No total reads or writes
    /// the tensor of the recurrence.
    fn in_total(&self, pairs: Map, (first, second): (&Execution, &Execution)) -> Option<Map> {
        let statement = self.draft.statement(second.id);
        if first.id != second.id || statement.update != Update::Assign {
            return None;
        }
        let Some(ScanRole::Part { position: Some(position), .. }) = &statement.scan else { return None };
        let Some(position) = self.value(second, position) else { return Some(pairs) };
        let begins = Map::from_domain_and_range(&pairs.domain(), &position.zero_set());
        Some(pairs.subtract(&begins))
    }

    /// Removes the pairs of which the second iteration begins a part.
    fn without_restart(&self, pairs: Map, second: &Execution, restart: &Restart) -> Map {
        let values = self.value(second, &restart.position).zip(self.value(second, &restart.part));
        let Some((position, part)) = values else { return pairs };
        let begins = position.zero_set().intersect(&part.offset(-1).nonnegative_set());
        pairs.subtract(&Map::from_domain_and_range(&pairs.domain(), &begins))
    }

    fn value(&self, execution: &Execution, index: &IndexExpr) -> Option<Affine> {
        coordinates(&self.context, &execution.path).affine(index)
    }
}
